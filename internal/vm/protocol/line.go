package protocol

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"
)

// These bound the lines that wait to be handled. An interpreter may send requests without waiting for answers; above these bounds it waits until some
// are answered.
const (
	maxLine  = 16 << 20
	maxAhead = 4 << 20
)

// lines reads lines in the background, so that the two sides never wait for each other with full pipes.
type lines struct {
	mu    sync.Mutex
	room  *sync.Cond
	ready chan struct{} // receives a value when a line has arrived or the input has ended
	queue [][]byte
	bytes int
	err   error // the reason why there are no more lines
	done  bool  // the reader must stop
}

var errLine = errors.New("a line of over 16 MiB")

func readLines(from io.Reader) *lines {
	l := &lines{ready: make(chan struct{}, 1)}
	l.room = sync.NewCond(&l.mu)
	go l.run(bufio.NewReaderSize(from, 64<<10))
	return l
}

func (l *lines) run(from *bufio.Reader) {
	for {
		line, err := oneLine(from)
		l.mu.Lock()
		for l.bytes > maxAhead && !l.done {
			l.room.Wait()
		}
		if err == nil {
			l.queue, l.bytes = append(l.queue, line), l.bytes+len(line)
		} else if l.err = err; err == io.EOF && len(line) > 0 {
			l.err = fmt.Errorf("it ends within a line: %.60q", line)
		}
		done := l.done
		l.mu.Unlock()
		select {
		case l.ready <- struct{}{}:
		default:
		}
		if err != nil || done {
			return
		}
	}
}

// oneLine reads a line, and removes its end.
func oneLine(from *bufio.Reader) (line []byte, err error) {
	for {
		part, err := from.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxLine {
			return nil, errLine
		}
		if err != bufio.ErrBufferFull {
			if err == nil {
				line = line[:len(line)-1]
			}
			return line, err
		}
	}
}

// next returns a line if one has arrived; more reports whether others may follow later.
func (l *lines) next() (line []byte, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 {
		line, l.queue = l.queue[0], l.queue[1:]
		l.bytes -= len(line)
		l.room.Signal()
		return line, true
	}
	return nil, l.err == nil
}

// end stops the reader.
func (l *lines) end() {
	l.mu.Lock()
	l.done = true
	l.mu.Unlock()
	l.room.Signal()
}

func (l *lines) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
