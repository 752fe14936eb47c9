//go:build !linux

package files

import (
	"errors"
	"os"
	"syscall"
)

// OpenRegular opens a regular file; inode is 0, as for the files that a core names. It checks the file before it is opened, and again after that,
// since the path may have led to another file in between.
func OpenRegular(path string, inode uint64) (*os.File, error) {
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

// Nonblocking and Owner are for the files of processes, of which none is looked at here.
const Nonblocking = 0

func Owner(os.FileInfo) (uid int, ok bool) { return -1, false }

// onDisk reports whether a file is on a file system of a block device: files of running targets are read on Linux alone.
func onDisk(os.FileInfo) bool { return true }
