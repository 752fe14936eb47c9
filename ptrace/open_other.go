//go:build !linux

package ptrace

import (
	"errors"
	"os"
	"syscall"
)

// openRegular opens a regular file; inode is 0, as it is of what a core names. What the path leads to is looked at before it
// is opened, and again after that, since it may have become another file in between.
func openRegular(path string, inode uint64) (*os.File, error) {
	if inode != 0 {
		return nil, errors.ErrUnsupported
	}
	irregular := errors.New("not a regular file")
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, irregular
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, irregular
	}
	return f, nil
}
