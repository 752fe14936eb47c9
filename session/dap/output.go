package dap

import (
	"fmt"
	"os"
	"time"
	"unicode/utf8"
)

// grace is how long after the end of a program its pipe is read on, where another process has it still.
const grace = 200 * time.Millisecond

// stream is what a program writes, on its way into the client's console.
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

// cut is how many bytes at the end begin a character whose other bytes are yet to come.
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

// path is a file by which the program is given the pipe: nothing lies about where this process is killed.
func (s *stream) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.write.Fd()) }

// finish passes on what is left, when the program has ended.
func (s *stream) finish() {
	if s == nil {
		return
	}
	s.write.Close()
	_ = s.read.SetReadDeadline(time.Now().Add(grace)) // a pipe has them
	<-s.done
	s.read.Close()
}
