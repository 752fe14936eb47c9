package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"example.com/reframe/ptrace/holder"
)

// stream is a connection to a stub: a socket, or the standard input and output of a command.
type stream interface {
	io.ReadWriteCloser
	SetDeadline(time.Time) error
}

// dial connects to host:port, unix:PATH or | COMMAND.
func dial(ctx context.Context, addr string) (stream, error) {
	if command, ok := strings.CutPrefix(addr, "|"); ok {
		return start(strings.TrimSpace(command))
	}
	network, place := "tcp", addr
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, place = "unix", path
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, place)
	if err != nil {
		if e := (*net.OpError)(nil); errors.As(err, &e) {
			err = e.Err
		}
		if e := (*os.SyscallError)(nil); errors.As(err, &e) {
			err = e.Err
		}
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	return c.(stream), nil
}

// piped is a command that speaks the protocol on its standard input and output.
type piped struct {
	command *exec.Cmd
	in, out *os.File // in is read by this program, out is written
}

// start runs a command in the shell, as gdb's target remote | COMMAND does. The command shares this program's standard error.
func start(command string) (stream, error) {
	if command == "" {
		return nil, errors.New("the command after | is empty")
	}
	theirOut, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	in, theirIn, err := os.Pipe()
	if err != nil {
		theirOut.Close()
		out.Close()
		return nil, err
	}
	c := exec.Command("/bin/sh", "-c", command)
	c.Stdin, c.Stdout, c.Stderr = theirOut, theirIn, os.Stderr
	c.SysProcAttr = ownGroup()
	err = c.Start()
	theirOut.Close()
	theirIn.Close()
	if err != nil {
		in.Close()
		out.Close()
		return nil, err
	}
	return &piped{c, in, out}, nil
}

func (p *piped) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p *piped) Write(b []byte) (int, error) { return p.out.Write(b) }

func (p *piped) SetDeadline(t time.Time) error {
	return errors.Join(p.in.SetReadDeadline(t), p.out.SetWriteDeadline(t))
}

// patience is the time in which a command must end after its input was closed. After that, the command and its children are killed.
const patience = 2 * time.Second

func (p *piped) Close() error {
	p.out.Close()
	p.in.Close()
	ended := make(chan error, 1)
	go func() { ended <- p.command.Wait() }()
	select {
	case <-ended:
	case <-time.After(patience):
		killGroup(p.command.Process)
		<-ended
	}
	return nil
}

// Limits on packets. A stub may announce a packet size up to maxPacket; gdbserver announces 16 KiB, lldb-server 128 KiB.
const (
	leastPacket = 400
	maxPacket   = 256 << 10
	maxNoise    = 4 << 10 // bytes between packets
	retries     = 3
)

// conn exchanges packets with a stub ("Overview", Appendix E of gdb's manual).
type conn struct {
	ctx     context.Context // ends all requests
	stream  stream
	in      *bufio.Reader
	timeout time.Duration // for each request
	end     time.Time     // deadline for all requests; zero if there is none
	acks    bool          // both sides acknowledge packets
	lost    error         // the first error after which the stream cannot be used
}

func newConn(ctx context.Context, s stream, timeout time.Duration, end time.Time) *conn {
	return &conn{ctx: ctx, stream: s, in: bufio.NewReaderSize(s, 64<<10), timeout: timeout, end: end, acks: true}
}

// ask sends a packet and returns the reply, with escapes and run lengths expanded.
func (c *conn) ask(request string) ([]byte, error) {
	if c.lost == nil && c.ctx.Err() != nil {
		c.lost = fmt.Errorf("%w: %w", holder.ErrLost, context.Cause(c.ctx))
	}
	if c.lost != nil {
		return nil, c.lost
	}
	reply, err := c.exchange(request)
	if err != nil {
		c.lost = fmt.Errorf("%w: %w", holder.ErrLost, c.explain(err))
		return nil, c.lost
	}
	return reply, nil
}

// skip returns the next packet. It is called after a packet that was not the reply to the last request.
func (c *conn) skip() ([]byte, error) {
	reply, err := c.reply()
	if err != nil {
		c.lost = fmt.Errorf("%w: %w", holder.ErrLost, c.explain(err))
	}
	return reply, c.lost
}

// errClosed is wrapped in the error of a lost connection if the stub has closed the connection.
var errClosed = errors.New("the stub closed the connection")

// explain returns an error that gives the reason why the stream failed: a time limit, the end of ctx, or the end of the connection.
func (c *conn) explain(err error) error {
	switch {
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case errors.Is(err, os.ErrDeadlineExceeded) && !c.end.IsZero() && !time.Now().Before(c.end):
		return errors.New("the time limit was reached (--timeout)")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("no reply within %v", c.timeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		return errClosed
	}
	if e := (*net.OpError)(nil); errors.As(err, &e) {
		err = e.Err
	}
	if e := (*os.SyscallError)(nil); errors.As(err, &e) {
		err = e.Err
	}
	return err
}

func (c *conn) exchange(request string) ([]byte, error) {
	if err := c.limit(); err != nil {
		return nil, err
	}
	if err := c.send(request); err != nil {
		return nil, err
	}
	return c.reply()
}

// limit starts the time limit of a request.
func (c *conn) limit() error {
	limit := time.Now().Add(c.timeout)
	if !c.end.IsZero() && c.end.Before(limit) {
		limit = c.end
	}
	return c.stream.SetDeadline(limit)
}

// reply returns the next packet from the stub.
func (c *conn) reply() ([]byte, error) {
	for range retries {
		reply, whole, err := c.receive()
		switch {
		case err != nil:
			return nil, err
		case whole:
			if c.acks {
				_, err = c.stream.Write([]byte{'+'})
			}
			return reply, err
		case !c.acks:
			return nil, errors.New("a reply has a wrong checksum")
		}
		if _, err := c.stream.Write([]byte{'-'}); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("replies have wrong checksums")
}

// send writes a packet. If packets are acknowledged, it waits for the acknowledgement.
func (c *conn) send(request string) error {
	packet := []byte{'$'}
	for i := range len(request) {
		switch b := request[i]; b {
		case '$', '#', '}', '*':
			packet = append(packet, '}', b^0x20)
		default:
			packet = append(packet, b)
		}
	}
	sum := byte(0)
	for _, b := range packet[1:] {
		sum += b
	}
	packet = fmt.Appendf(packet, "#%02x", sum)
	for range retries {
		if _, err := c.stream.Write(packet); err != nil {
			return err
		}
		if !c.acks {
			return nil
		}
		accepted, err := c.acknowledged()
		if accepted || err != nil {
			return err
		}
	}
	return errors.New("the stub does not accept a packet")
}

// acknowledged waits for + or -.
func (c *conn) acknowledged() (bool, error) {
	for range maxNoise {
		b, err := c.in.ReadByte()
		if err != nil {
			return false, err
		}
		switch b {
		case '+':
			return true, nil
		case '-':
			return false, nil
		case '$': // the reply came without an acknowledgement, because the stub sends none
			return true, c.in.UnreadByte()
		}
	}
	return false, errNoPacket
}

var errNoPacket = errors.New("it does not speak the remote serial protocol of gdb")

// receive reads the next packet. whole is false if its checksum is wrong.
func (c *conn) receive() (reply []byte, whole bool, err error) {
	for noise := 0; ; noise++ {
		b, err := c.in.ReadByte()
		switch {
		case err != nil:
			return nil, false, err
		case noise > maxNoise:
			return nil, false, errNoPacket
		}
		if b == '$' {
			break
		}
		if b == '%' { // a notification, which is not the reply to a request
			if _, _, err := c.body(); err != nil {
				return nil, false, err
			}
		}
	}
	return c.body()
}

// body reads the rest of a packet after the initial $: the data up to #, and the checksum.
func (c *conn) body() (data []byte, whole bool, err error) {
	sum := byte(0)
	for {
		b, err := c.in.ReadByte()
		if err != nil {
			return nil, false, err
		}
		if b == '#' {
			break
		}
		sum += b
		switch b {
		case '}':
			if b, err = c.in.ReadByte(); err != nil {
				return nil, false, err
			}
			sum += b
			data = append(data, b^0x20)
		case '*': // repeats the previous character
			if b, err = c.in.ReadByte(); err != nil {
				return nil, false, err
			}
			sum += b
			if len(data) == 0 || b < ' ' || b > '~' {
				return nil, false, errors.New("a reply has a malformed run length")
			}
			last := data[len(data)-1]
			for range b - 29 {
				data = append(data, last)
			}
		default:
			data = append(data, b)
		}
		if len(data) > maxPacket {
			return nil, false, fmt.Errorf("a reply has more than %d bytes", maxPacket)
		}
	}
	var hex [2]byte
	if _, err := io.ReadFull(c.in, hex[:]); err != nil {
		return nil, false, err
	}
	return data, strings.EqualFold(string(hex[:]), fmt.Sprintf("%02x", sum)), nil
}
