package dap

import (
	"fmt"
	"os"
	"time"
	"unicode/utf8"
)

// grace bounds the time for which the pipe of an ended program is still read. The pipe may have no end, because another process may have it open.
const grace = 200 * time.Millisecond

// stream passes the output of a program to the client's console.
type stream struct {
	read, write *os.File
	done        chan struct{}
}

func newStream(category string, w *writer) (*stream, error) {
	r, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s := &stream{r, in, make(chan struct{})}
	go func() {
		defer close(s.done)
		buffer, kept := make([]byte, 16<<10), 0
		for {
			n, err := s.read.Read(buffer[kept:])
			n += kept
			whole := n
			if err == nil {
				whole = n - cut(buffer[:n])
			}
			if whole > 0 {
				w.print(category, string(buffer[:whole]))
			}
			if err != nil {
				return
			}
			kept = copy(buffer, buffer[whole:n])
		}
	}()
	return s, nil
}

// cut returns the number of bytes at the end of b that are the beginning of an incomplete character.
func cut(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if utf8.RuneStart(b[len(b)-n]) {
			if utf8.FullRune(b[len(b)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}

// path returns a file name by which the program opens the pipe. It names a file descriptor, so that no file remains if this process is killed.
func (s *stream) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.write.Fd()) }

// finish passes on the remaining output when the program has ended.
func (s *stream) finish() {
	if s == nil {
		return
	}
	s.write.Close()
	_ = s.read.SetReadDeadline(time.Now().Add(grace)) // pipes support deadlines
	<-s.done
	s.read.Close()
}
