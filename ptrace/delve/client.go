package delve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
	"unicode"

	"example.com/reframe/ptrace/holder"
)

const (
	// maxReply bounds the size of a reply. The reply to a request for 64 KiB of memory has 88 KB, and the state of 10,000 threads has 4 MB.
	maxReply = 16 << 20
)

// client sends requests to Delve's server, one at a time. The server speaks JSON-RPC 1.0 (package net/rpc/jsonrpc) without any framing.
type client struct {
	conn    net.Conn
	timeout time.Duration // of each request
	end     time.Time     // deadline for all requests
	number  uint64        // number of the last request
	replies bounded
	decoder *json.Decoder
	lost    error // the error after which the connection cannot be used; nil before
}

// dial connects to host:port or unix:PATH. limit bounds the time of all requests together.
func dial(ctx context.Context, addr string, limit time.Duration) (*client, error) {
	network, where := "tcp", addr
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, where = "unix", path
	} else if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, ErrAddress
	}
	c := &client{timeout: min(max(requestTime, limit/6), limit), end: time.Now().Add(limit)}
	conn, err := (&net.Dialer{Timeout: c.timeout}).DialContext(ctx, network, where)
	if err != nil {
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			err = op.Err
		}
		if sys := (*os.SyscallError)(nil); errors.As(err, &sys) {
			err = sys.Err
		}
		return nil, fmt.Errorf("%w: %w", ErrConnect, err)
	}
	c.conn, c.replies = conn, bounded{from: conn}
	c.decoder = json.NewDecoder(&c.replies)
	context.AfterFunc(ctx, func() { conn.Close() })
	return c, nil
}

// refusal is an error that the server returned for a request. Further requests are possible.
type refusal string

func (r refusal) Error() string { return string(r) }

// call sends a request, and decodes the result in the reply. Each error wraps [holder.ErrLost], unless it is a refusal.
func (c *client) call(method string, args, result any) error {
	if c.lost != nil {
		return c.lost
	}
	err := c.exchange(method, args, result)
	if err == nil || errors.As(err, new(refusal)) {
		return err
	}
	c.lost = lostError{err}
	return c.lost
}

// lostError is an error after which no further data can be read.
type lostError struct{ error }

// Is implements the interface of [errors.Is].
func (lostError) Is(target error) bool { return target == holder.ErrLost }

// Unwrap returns the reason.
func (e lostError) Unwrap() error { return e.error }

// exchange sends a request and decodes the result. It is called only if no earlier request has failed.
func (c *client) exchange(method string, args, result any) error {
	now := time.Now()
	if !now.Before(c.end) {
		return errors.New("it did not send all replies in time: allow more with --timeout")
	}
	end := now.Add(c.timeout)
	if end.After(c.end) {
		end = c.end
	}
	if err := c.conn.SetDeadline(end); err != nil {
		return err
	}
	c.number++
	request, err := json.Marshal(map[string]any{"method": "RPCServer." + method, "params": [1]any{args}, "id": c.number})
	if err != nil {
		return err
	}
	if _, err := c.conn.Write(append(request, '\n')); err != nil {
		return c.failed(method, err)
	}
	c.replies.left = maxReply
	var reply struct {
		ID     *uint64         `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := c.decoder.Decode(&reply); err != nil {
		return c.failed(method, err)
	}
	if reply.ID == nil || *reply.ID != c.number {
		return fmt.Errorf("its reply to %s has the number of another request", method)
	}
	if len(reply.Error) > 0 && string(reply.Error) != "null" {
		var text string
		if err := json.Unmarshal(reply.Error, &text); err != nil {
			return fmt.Errorf("its error for %s is malformed: %w", method, err)
		}
		return refusal(oneLine(text))
	}
	if err := json.Unmarshal(reply.Result, result); err != nil {
		return fmt.Errorf("its reply to %s is malformed: %w", method, err)
	}
	return nil
}

// failed returns the error of a request without a complete reply.
func (c *client) failed(method string, err error) error {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("no reply to %s within %v", method, c.timeout)
	case errors.Is(err, errTooLong):
		return fmt.Errorf("its reply to %s is longer than %d MiB", method, maxReply>>20)
	case c.number == 1 && !errors.As(err, new(*json.SyntaxError)):
		return errors.New("it closed the connection without a reply: is it a headless server of dlv that serves another user (--only-same-user=false), or of dlv dap?")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("it closed the connection during %s", method)
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		return fmt.Errorf("the connection failed during %s: %w", method, op.Err)
	}
	return fmt.Errorf("its reply to %s is malformed: %w", method, err)
}

// maxText bounds the length of a server's text in an error.
const maxText = 200

// oneLine returns a server's text as one printable line.
func oneLine(text string) string {
	text, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	if len(text) > maxText {
		text, more = strings.ToValidUTF8(text[:maxText], ""), true
	}
	if more {
		text += " ..."
	}
	return text
}

// errTooLong is the error for a reply that exceeds maxReply.
var errTooLong = errors.New("too long")

// bounded reads at most left bytes.
type bounded struct {
	from io.Reader
	left int
}

// Read implements [io.Reader].
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.from.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
