package files

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// Bounds of how long the file system of a file may take for one call. A close only waits for another call.
const (
	patience      = 2 * time.Second
	closePatience = patience / 10
)

// ErrLate is the error of a call that takes too long.
var ErrLate = errors.New("its file system does not answer")

// within calls f on another thread, which is left behind if f takes longer than the limit: no signal ends a call that waits for a server of FUSE.
// late is then called with the result, once f has returned.
func within[T any](limit time.Duration, f func() (T, error), late func(T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	returned, left := make(chan result), make(chan struct{})
	go func() {
		v, err := f()
		select {
		case returned <- result{v, err}:
		case <-left:
			late(v, err)
		}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case r := <-returned:
		return r.value, r.err
	case <-timer.C:
		close(left)
		var none T
		return none, ErrLate
	}
}

// OpenWithin opens a regular file as [OpenRegular] does, or fails with [ErrLate].
func OpenWithin(path string, inode uint64) (*os.File, error) {
	return within(patience, func() (*os.File, error) { return OpenRegular(path, inode) }, func(f *os.File, err error) {
		if err == nil {
			f.Close()
		}
	})
}

// StatWithin calls stat, which asks a file system for the description of a file. Its error is [ErrLate] if that takes too long.
func StatWithin(stat func() (os.FileInfo, error)) (os.FileInfo, error) {
	return within(patience, stat, func(os.FileInfo, error) {})
}

// CloseWithin closes a file. It does not wait long for a read of the file that has not returned.
func CloseWithin(f *os.File) {
	_, _ = within(closePatience, func() (struct{}, error) { return struct{}{}, f.Close() }, func(struct{}, error) {})
}

// Bounded returns a reader of a file of which no read takes long: while one waits for the file system, all fail with [ErrLate]. A file on a disk of
// this machine is returned unchanged.
func Bounded(f *os.File, info os.FileInfo) io.ReaderAt {
	if onDisk(info) {
		return f
	}
	return &bounded{file: f}
}

// bounded is a file that may never be read.
type bounded struct {
	file *os.File
	mu   sync.Mutex
	late bool // a read has not returned yet
}

// boundedRead is the number of bytes that are read at once.
const boundedRead = 1 << 20

// ReadAt implements [io.ReaderAt].
func (b *bounded) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && err == nil {
		var part []byte
		part, err = b.part(off+int64(n), min(len(p)-n, boundedRead))
		n += copy(p[n:], part)
	}
	return n, err
}

// part reads bytes into memory of its own, which a late read may still write.
func (b *bounded) part(off int64, size int) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.late {
		return nil, ErrLate
	}
	part, err := within(patience, func() ([]byte, error) {
		part := make([]byte, size)
		n, err := b.file.ReadAt(part, off)
		return part[:n], err
	}, func([]byte, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.late = false
	})
	b.late = err == ErrLate
	return part, err
}
