package interp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"example.com/reframe/internal/machine"
)

// stream is a FILE of the program: standard input, output or error. All three behave as pipes.
type stream struct {
	addr   machine.Addr // address of its FILE, 0 before the program uses it
	pushed []byte       // bytes pushed back by ungetc; the last one is read next
	flags  uint64       // streamEOF and streamError
}

// The bits of FILE._flags that glibc's macros read (its struct_FILE.h).
const (
	streamEOF   = 0x10
	streamError = 0x20
	fileSize    = 216 // sizeof(FILE)
)

// streamAddr returns the address of the FILE of stream fd. All members but the flags are zero, so that the inline functions of <stdio.h> find empty
// buffers and call __uflow and __overflow.
func (in *Interp) streamAddr(fd int) (uint64, error) {
	s := &in.clib.streams[fd]
	if s.addr == 0 {
		a, err := in.names.globals.take(fileSize, 16, true)
		if err != nil {
			return 0, err
		}
		s.addr = a
	}
	return uint64(s.addr), nil
}

// streamCall implements the functions that read and write the standard streams.
type streamCall struct{ *ccall }

// noStream is returned for a FILE that is no standard stream.
const noStream = -1

// stream returns the number of the stream whose FILE argument i points to.
func (c streamCall) stream(i int) int {
	a := c.addr(i)
	if c.err != nil {
		return noStream
	}
	for fd := range c.in.clib.streams {
		if s := c.in.clib.streams[fd].addr; s != 0 && s == a || c.targetStream(fd) == a && a != 0 {
			return fd
		}
	}
	switch {
	case a == 0:
		c.err = troublef(KindFault, "@%s got a null pointer as its FILE", c.Name)
	case c.foreign(a):
		c.err = unsupported("only the target's own C library can use it", "@%s of %v, a stream of the target,", c.Name, a)
	default:
		c.err = troublef(KindFault, "@%s got %v, which is not stdin, stdout or stderr", c.Name, a)
	}
	return noStream
}

// targetStream returns the address in the target of glibc's FILE for stream fd, or 0.
func (c streamCall) targetStream(fd int) machine.Addr {
	a, _ := c.in.names.symbol(c.in.mods[0], []string{"_IO_2_1_stdin_", "_IO_2_1_stdout_", "_IO_2_1_stderr_"}[fd])
	return a
}

func (c streamCall) mark(fd int, flags uint64) {
	s := &c.in.clib.streams[fd]
	s.flags = flags
	if s.addr != 0 {
		c.put(s.addr, 4, flags)
	}
}

// flushAt is the number of buffered bytes at which output is flushed.
const flushAt = 1 << 15

// emit writes to standard output or standard error. Output is not lost if the program aborts, as if stdout had no buffer.
func (in *Interp) emit(fd int, p []byte) error {
	if err := in.work(uint64(len(p))); err != nil {
		return err
	}
	if err := in.view.charge(uint64(len(p))); err != nil {
		return err
	}
	if fd == 2 {
		in.run.errors = append(in.run.errors, p...)
		return in.pass(&in.run.errors, in.opt.Stderr)
	}
	in.run.output = append(in.run.output, p...)
	if len(in.run.output) < flushAt {
		return nil
	}
	return in.pass(&in.run.output, in.opt.Stdout)
}

// pass writes buffered output to its writer, if there is one.
func (in *Interp) pass(buffer *[]byte, w io.Writer) error {
	if w == nil || len(*buffer) == 0 {
		return nil
	}
	p := *buffer
	*buffer = p[:0]
	in.view.release(uint64(len(p)))
	if _, err := w.Write(p); err != nil {
		return &trouble{KindContext, fmt.Errorf("the program's output cannot be written: %w", err)}
	}
	return nil
}

func (in *Interp) flush() error { return in.pass(&in.run.output, in.opt.Stdout) }

// print writes to a stream, and reports success. For standard input it sets the stream's error flag and errno EBADF.
func (c streamCall) print(fd int, p []byte) bool {
	if c.err != nil {
		return false
	}
	if fd == 0 {
		c.mark(0, c.in.clib.streams[0].flags|streamError)
		c.setErrno(errBadFile)
		return false
	}
	c.err = c.in.emit(fd, p)
	return c.err == nil
}

// eof is EOF, and the -1 that POSIX functions return.
const eof = ^uint64(0)

// streamFuncs holds the output functions of <stdio.h> other than printf (C17 7.21.7, 7.21.8), and the functions for whole streams.
var streamFuncs = streamTable()

func streamTable() map[string]Builtin {
	table := map[string]Builtin{
		"puts": scalar(puts), "perror": procedure(perror),
		"putchar": scalar(func(c streamCall) uint64 { return c.putByte(0, 1) }),
		"fflush":  scalar(fflush), "fclose": scalar(fclose),
		"write":     scalar(write),
		"setvbuf":   scalar(func(c streamCall) uint64 { c.stream(0); return 0 }),
		"setbuf":    procedure(func(c streamCall) { c.stream(0) }),
		"setbuffer": procedure(func(c streamCall) { c.stream(0) }), "setlinebuf": procedure(func(c streamCall) { c.stream(0) }),
		"fileno": scalar(func(c streamCall) uint64 { return uint64(int64(c.stream(0))) }),
		"isatty": scalar(func(c streamCall) uint64 { c.setErrno(errNoTTY); return 0 }),
		"fseek":  scalar(seekPipe), "ftell": scalar(seekPipe), "lseek": scalar(seekPipe), "lseek64": scalar(seekPipe),
		"feof": scalar(func(c streamCall) uint64 { return c.flag(streamEOF) }), "ferror": scalar(func(c streamCall) uint64 { return c.flag(streamError) }),
		"clearerr": procedure(clearerr),
		"close":    scalar(closeDescriptor),
	}
	for _, suffix := range []string{"", "_unlocked"} {
		table["putchar"+suffix] = table["putchar"]
		table["puts"+suffix] = table["puts"]
		table["fflush"+suffix] = table["fflush"]
		table["feof"+suffix] = table["feof"]
		table["ferror"+suffix] = table["ferror"]
		table["clearerr"+suffix] = table["clearerr"]
		table["fputs"+suffix] = scalar(fputs)
		table["fwrite"+suffix] = scalar(fwrite)
	}
	for _, name := range []string{"fputc", "putc", "fputc_unlocked", "putc_unlocked", "_IO_putc"} {
		table[name] = scalar(func(c streamCall) uint64 { return c.putByte(0, c.stream(1)) })
	}
	table["__overflow"] = scalar(func(c streamCall) uint64 { return c.putByte(1, c.stream(0)) })
	return table
}

const (
	errNoTTY = 25
	errSeek  = 29
)

// putByte writes the byte in argument i.
func (c streamCall) putByte(i, fd int) uint64 {
	b := byte(c.uint(i))
	if !c.print(fd, []byte{b}) {
		return eof
	}
	return uint64(b)
}

func puts(c streamCall) uint64 {
	s := append(c.text(0), '\n')
	if !c.print(1, s) {
		return eof
	}
	return uint64(len(s)) // C only requires a number that is not negative; glibc returns the number of bytes
}

func fputs(c streamCall) uint64 {
	if !c.print(c.stream(1), c.text(0)) {
		return eof
	}
	return 1
}

func fwrite(c streamCall) uint64 {
	size, n := c.uint(1), c.uint(2)
	total := c.product(1, 2)
	if total == 0 {
		return 0
	}
	p := c.bytes(c.addr(0), total)
	if !c.print(c.stream(3), p) {
		return 0
	}
	return total / max(size, 1) * truth(n > 0)
}

func fflush(c streamCall) uint64 {
	if c.uint(0) != 0 {
		c.stream(0)
	}
	if c.err == nil {
		c.err = c.in.flush()
	}
	return 0
}

// fclose flushes a stream. It does not close a standard stream, because later output still needs it.
func fclose(c streamCall) uint64 {
	c.stream(0)
	return fflush(c)
}

// closeDescriptor implements close(2). It does not close the three standard descriptors.
func closeDescriptor(c streamCall) uint64 {
	if fd := c.int(0); fd < 0 || fd > 2 {
		return c.failed(errBadFile)
	}
	return 0
}

// seekPipe implements functions that set or return a file position. They fail, because a pipe has none.
func seekPipe(c streamCall) uint64 { return c.failed(errSeek) }

// perror writes its argument and the text for errno to standard error (C17 7.21.10.4).
func perror(c streamCall) {
	var line bytes.Buffer
	if c.uint(0) != 0 {
		if s := c.text(0); len(s) > 0 {
			line.Write(s)
			line.WriteString(": ")
		}
	}
	line.WriteString(errorText(int64(int32(c.get(c.errnoAddr(), 4)))))
	line.WriteByte('\n')
	c.print(2, line.Bytes())
}

// write implements POSIX's write for descriptors 1 and 2.
func write(c streamCall) uint64 {
	fd, n := c.int(0), c.uint(2)
	if fd != 1 && fd != 2 {
		return c.failed(errBadFile)
	}
	c.print(int(fd), c.bytes(c.addr(1), n))
	return n
}

func (c streamCall) flag(bit uint64) uint64 {
	fd := c.stream(0)
	if c.err != nil {
		return 0
	}
	return truth(c.in.clib.streams[fd].flags&bit != 0)
}

func clearerr(c streamCall) {
	if fd := c.stream(0); c.err == nil {
		c.mark(fd, 0)
	}
}

// input returns the reader of standard input.
func (in *Interp) input() *bufio.Reader {
	if in.clib.stdin == nil {
		r := in.opt.Stdin
		if r == nil {
			r = strings.NewReader("")
		}
		in.clib.stdin = bufio.NewReader(r)
	}
	return in.clib.stdin
}
