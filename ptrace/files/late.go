package files

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// patience and closePatience bound the duration of a call to a file system. closePatience is shorter, because a close only waits for another call.
const (
	patience      = 2 * time.Second
	closePatience = patience / 10
)

// ErrLate reports that a call takes too long.
var ErrLate = errors.New("its file system does not answer")

// within calls f on another thread. If f exceeds the limit, within abandons that thread, because no signal ends a call that waits for a FUSE server.
// When f returns later, late is called with its result.
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

// OpenWithin opens a regular file like [OpenRegular], or fails with [ErrLate].
func OpenWithin(path string, inode uint64) (*os.File, error) {
	return within(patience, func() (*os.File, error) { return OpenRegular(path, inode) }, func(f *os.File, err error) {
		if err == nil {
			f.Close()
		}
	})
}

// StatWithin calls stat, which reads the description of a file. It returns [ErrLate] if that takes too long.
func StatWithin(stat func() (os.FileInfo, error)) (os.FileInfo, error) {
	return within(patience, stat, func(os.FileInfo, error) {})
}

// CloseWithin closes a file. If a read of the file is pending, it waits only for a short time.
func CloseWithin(f *os.File) {
	_, _ = within(closePatience, func() (struct{}, error) { return struct{}{}, f.Close() }, func(struct{}, error) {})
}

// Bounded returns a reader of a file whose reads return within a time limit. While a late read waits for the file system, all other reads fail with
// [ErrLate]. A file on a local disk is returned unchanged.
func Bounded(f *os.File, info os.FileInfo) io.ReaderAt {
	if onDisk(info) {
		return f
	}
	return &bounded{file: f}
}

// bounded is a file whose reads may take forever.
type bounded struct {
	file *os.File
	mu   sync.Mutex
	late bool // a read has not yet returned
}

// boundedRead is the maximum number of bytes of one read.
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

// part reads bytes into a new buffer, because a late read may still write to the old one.
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
