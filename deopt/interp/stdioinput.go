package interp

import (
	"errors"
	"fmt"
	"io"

	"example.com/reframe/internal/machine"
)

// inputFuncs holds the functions of <stdio.h> that read bytes and lines from standard input (C17 7.21.7, 7.21.8), and POSIX's read.
var inputFuncs = inputTable()

func inputTable() map[string]Builtin {
	table := map[string]Builtin{
		"ungetc": scalar(ungetc), "_IO_ungetc": scalar(ungetc), "read": scalar(read),
	}
	for _, name := range []string{"fgetc", "getc", "_IO_getc", "__uflow", "fgetc_unlocked", "getc_unlocked"} {
		table[name] = scalar(func(c streamCall) uint64 { return c.getChar(c.stream(0)) })
	}
	for _, name := range []string{"getchar", "getchar_unlocked"} {
		table[name] = scalar(func(c streamCall) uint64 { return c.getChar(0) })
	}
	for _, suffix := range []string{"", "_unlocked"} {
		table["fgets"+suffix] = scalar(func(c streamCall) uint64 { return c.gets(c.addr(0), c.int(1), c.stream(2)) })
		table["fread"+suffix] = scalar(func(c streamCall) uint64 { return c.fread(c.addr(0), 1, 2, c.stream(3)) })
	}
	return table
}

// next reads the next byte of a stream. It returns false at the end of the stream, and after an error.
func (c streamCall) next(fd int) (byte, bool) {
	if c.err == nil {
		c.err = c.in.work(64)
	}
	if c.err != nil {
		return 0, false
	}
	s := &c.in.clib.streams[fd]
	if n := len(s.pushed); n > 0 {
		b := s.pushed[n-1]
		s.pushed = s.pushed[:n-1]
		return b, true
	}
	if fd != 0 {
		c.mark(fd, s.flags|streamError)
		c.setErrno(errBadFile)
		return 0, false
	}
	if s.flags&streamEOF != 0 { // end of file is permanent (C17 7.21.7.1)
		return 0, false
	}
	c.beforeRead()
	b, err := c.in.input().ReadByte()
	if err != nil {
		c.ended(err)
		return 0, false
	}
	return b, true
}

// beforeRead flushes the output if the next read may block, so that a user sees a prompt.
func (c streamCall) beforeRead() {
	if c.in.input().Buffered() == 0 {
		c.fail(c.in.flush())
	}
}

// ended sets the end-of-file flag of standard input. For any other read error it also fails the call.
func (c streamCall) ended(err error) {
	if !errors.Is(err, io.EOF) {
		c.fail(&trouble{KindContext, fmt.Errorf("the program's input cannot be read: %w", err)})
	}
	c.mark(0, c.in.clib.streams[0].flags|streamEOF)
}

// back pushes a byte back, so that it is read next.
func (c streamCall) back(fd int, b byte) {
	s := &c.in.clib.streams[fd]
	s.pushed = append(s.pushed, b)
}

func (c streamCall) getChar(fd int) uint64 {
	if c.err != nil {
		return eof
	}
	b, ok := c.next(fd)
	if !ok {
		return eof
	}
	return uint64(b)
}

// maxPushed is the maximum number of bytes that ungetc pushes back; C guarantees one.
const maxPushed = 4096

func ungetc(c streamCall) uint64 {
	b, fd := c.int(0), c.stream(1)
	if c.err != nil || b == -1 || len(c.in.clib.streams[fd].pushed) == maxPushed {
		return eof
	}
	c.back(fd, byte(b))
	c.mark(fd, c.in.clib.streams[fd].flags&^streamEOF)
	return uint64(byte(b))
}

// gets implements fgets.
func (c streamCall) gets(to machine.Addr, size int64, fd int) uint64 {
	if c.err != nil || size <= 0 {
		return 0
	}
	line, ended := c.line(uint64(size-1), fd)
	if len(line) == 0 && ended && size > 1 || c.err != nil {
		return 0
	}
	return c.copyText(to, line)
}

// line reads a line including its newline, but at most limit bytes. ended reports whether it reached the end of the stream.
func (c streamCall) line(limit uint64, fd int) (line []byte, ended bool) {
	for uint64(len(line)) < limit && c.err == nil {
		b, ok := c.next(fd)
		if !ok {
			return line, true
		}
		line = append(line, b)
		if b == '\n' {
			break
		}
		if uint64(len(line)) > c.in.view.limit {
			c.err = troublef(KindMemory, "a line of more than %d bytes", c.in.view.limit)
		}
	}
	return line, false
}

// fread reads count elements of size bytes each.
func (c streamCall) fread(to machine.Addr, size, count, fd int) uint64 {
	total := c.product(size, count)
	if c.err != nil || total == 0 {
		return 0
	}
	if fd != 0 {
		c.next(fd)
		return 0
	}
	return c.readInto(to, total, true) / c.uint(size)
}

// read implements POSIX's read for descriptor 0.
func read(c streamCall) uint64 {
	if c.int(0) != 0 {
		return c.failed(errBadFile)
	}
	if c.err != nil {
		return 0
	}
	return c.readInto(c.addr(1), c.uint(2), false)
}

// readInto reads standard input into memory. If all is set, it reads until it has total bytes, else it returns the bytes of one read.
func (c streamCall) readInto(to machine.Addr, total uint64, all bool) uint64 {
	got := uint64(0)
	s := &c.in.clib.streams[0]
	for got < total && c.err == nil {
		if n := len(s.pushed); n > 0 {
			b, _ := c.next(0)
			c.write(to+machine.Addr(got), []byte{b})
			got++
			continue
		}
		if s.flags&streamEOF != 0 && all {
			break
		}
		c.beforeRead()
		block := make([]byte, min(total-got, flushAt))
		n, err := c.in.input().Read(block)
		c.write(to+machine.Addr(got), block[:n])
		got += uint64(n)
		if err == nil && n == 0 {
			err = c.in.work(64) // count steps, because a reader may return no bytes for some time
			c.fail(err)
			continue
		}
		if err != nil {
			c.ended(err)
			break
		}
		if !all {
			break
		}
	}
	return got
}
