package perfmap

import (
	"bytes"
	"fmt"
	"io"
	"strconv"

	"example.com/reframe/internal/machine"
)

// readText reads lines of START, SIZE and a name: two hexadecimal numbers, and the rest of the line, which may contain blanks. It ignores other lines, as perf
// does: some JITs write comments.
func (m *Map) readText(r io.ReaderAt, size int64) error {
	if size > maxText {
		return &Error{size, fmt.Errorf("%w: %d bytes; the limit is %d", ErrTooLarge, size, maxText)}
	}
	data := make([]byte, size-m.at)
	if n, err := r.ReadAt(data, m.at); n < len(data) {
		return &Error{m.at + int64(n), err}
	}
	for {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return nil
		}
		if f, ok := parseLine(line); ok {
			if err := m.add(f); err != nil {
				return &Error{m.at, err}
			}
		}
		m.at += int64(len(line)) + 1
		data = rest
	}
}

func parseLine(line []byte) (f Function, ok bool) {
	start, rest, ok := number(line)
	if !ok {
		return f, false
	}
	size, rest, ok := number(rest)
	name := bytes.TrimSpace(rest)
	if !ok || len(name) == 0 {
		return f, false
	}
	return Function{Name: string(name), Start: machine.Addr(start), Size: size}, true
}

// number reads a hexadecimal number and the blank after it.
func number(line []byte) (n uint64, rest []byte, ok bool) {
	word, rest, ok := bytes.Cut(bytes.TrimLeft(line, " \t"), []byte(" "))
	if !ok {
		return 0, nil, false
	}
	word = bytes.TrimPrefix(word, []byte("0x")) // some runtimes write the prefix 0x
	n, err := strconv.ParseUint(string(word), 16, 64)
	return n, rest, err == nil
}
