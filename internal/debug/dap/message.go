package dap

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/google/go-dap"
)

// These bound a message from a client: the header, for which the specification defines one field, and the content.
const (
	maxHeader  = 4 << 10
	maxContent = 4 << 20
)

// readContent reads the content of one message (Overview, "Base Protocol"). It returns [io.EOF] only between two messages.
func readContent(r *bufio.Reader) ([]byte, error) {
	length, header := -1, 0
	for {
		line, err := readLine(r, maxHeader-header)
		if err != nil {
			if err == io.EOF && (header > 0 || line != "") {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		header += len(line) + 2
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		if strings.EqualFold(name, "Content-Type") {
			continue // accept a Content-Type line, as Visual Studio Code's library for the base protocol does
		}
		if !strings.EqualFold(name, "Content-Length") {
			// Reject other header fields: a web page can send an HTTP POST to any local port, with a message of this protocol as its body.
			return nil, fmt.Errorf("%.40q is not a header field of the Debug Adapter Protocol: expected Content-Length", line)
		}
		if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil || length < 0 {
			return nil, fmt.Errorf("Content-Length %.20q: expected a number of bytes", strings.TrimSpace(value))
		}
	}
	switch {
	case length < 0:
		return nil, errors.New("not a message of the Debug Adapter Protocol: a header without Content-Length")
	case length > maxContent:
		return nil, fmt.Errorf("a message of %d bytes: the limit is %d", length, maxContent)
	}
	content, err := io.ReadAll(io.LimitReader(r, int64(length))) // allocates for the received bytes, not for the announced length
	if err == nil && len(content) < length {
		err = io.ErrUnexpectedEOF
	}
	return content, err
}

// readLine reads a line of a header, without its line end.
func readLine(r *bufio.Reader, most int) (string, error) {
	var line []byte
	for {
		b, err := r.ReadByte()
		switch {
		case err != nil:
			return string(line), err
		case b == '\n':
			return strings.TrimSuffix(string(line), "\r"), nil
		case len(line) >= most:
			return "", fmt.Errorf("not a message of the Debug Adapter Protocol: a header of more than %d bytes", maxHeader)
		}
		line = append(line, b)
	}
}

// incoming is a received message.
type incoming struct {
	dap.Message
	asked dap.Request // sequence number, type and command; those that the message lacks are empty
	wrong error       // the reason why the message cannot be decoded as a request
}

// decode decodes a message. It returns an error for content that is not a message, to which no response is possible.
func decode(content []byte) (m incoming, err error) {
	var head struct {
		Seq     int    `json:"seq"`
		Type    string `json:"type"`
		Command string `json:"command"`
	}
	if err := json.Unmarshal(content, &head); err != nil {
		return m, fmt.Errorf("not a message of the Debug Adapter Protocol: %w", err)
	}
	m.asked = dap.Request{ProtocolMessage: dap.ProtocolMessage{Seq: head.Seq, Type: head.Type}, Command: head.Command}
	if head.Type != "request" {
		return m, nil
	}
	m.Message, m.wrong = dap.DecodeProtocolMessage(content)
	var unknown *dap.DecodeProtocolMessageFieldError
	var shape *json.UnmarshalTypeError
	switch {
	case errors.As(m.wrong, &unknown):
		m.wrong = fmt.Errorf("request %.40q is not supported", head.Command)
	case errors.As(m.wrong, &shape):
		m.wrong = fmt.Errorf("the arguments of %s: the type of %s is not that of the specification", head.Command, shape.Field)
	}
	return m, nil
}

// queued bounds the messages that wait to be written.
const queued = 256

// writer numbers messages and sends them in order.
type writer struct {
	ctx   context.Context // the context of the connection; the writer sends nothing after it is done
	queue chan dap.Message
	done  chan struct{}
	logs  logs
}

func newWriter(ctx context.Context, out io.Writer, failed func(error)) *writer {
	w := &writer{ctx: ctx, queue: make(chan dap.Message, queued), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		seq, broken := 0, false
		for m := range w.queue {
			if broken {
				continue
			}
			seq++
			switch m := m.(type) {
			case dap.ResponseMessage:
				m.GetResponse().Seq = seq
			case dap.EventMessage:
				m.GetEvent().Seq = seq
			}
			if err := dap.WriteProtocolMessage(out, m); err != nil {
				broken = true
				failed(err)
			}
		}
	}()
	return w
}

// send queues a message for writing.
func (w *writer) send(m dap.Message) {
	select {
	case w.queue <- m:
	case <-w.ctx.Done():
	}
}

// event returns the head of an event.
func event(name string) dap.Event {
	return dap.Event{ProtocolMessage: dap.ProtocolMessage{Type: "event"}, Event: name}
}

// respond answers a request.
func (w *writer) respond(to *dap.Request, r dap.ResponseMessage) {
	*r.GetResponse() = dap.Response{ProtocolMessage: dap.ProtocolMessage{Type: "response"}, RequestSeq: to.Seq, Success: true, Command: to.Command}
	w.send(r)
}

// refuse answers a request with the reason why it failed.
func (w *writer) refuse(to *dap.Request, why error) {
	r := &dap.ErrorResponse{}
	r.Response = dap.Response{ProtocolMessage: dap.ProtocolMessage{Type: "response"}, RequestSeq: to.Seq, Command: to.Command, Message: why.Error()}
	// Braces in Format are variables, so the text is passed as a variable.
	r.Body.Error = &dap.ErrorMessage{Id: 1, Format: "{why}", Variables: map[string]string{"why": why.Error()}, ShowUser: true}
	w.send(r)
}

// print writes to the client's console.
func (w *writer) print(category, text string) {
	w.send(&dap.OutputEvent{Event: event("output"), Body: dap.OutputEventBody{Category: category, Output: text}})
}

// say writes a line to the client's console.
func (w *writer) say(category, format string, args ...any) {
	w.print(category, fmt.Sprintf(format, args...)+"\n")
}
