//go:build !linux

package files

import (
	"errors"
	"os"
	"syscall"
)

// OpenRegular opens a regular file. inode must be 0, as it is for files that a core names. OpenRegular checks the type before and after opening,
// because the path may lead to another file meanwhile.
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

// Nonblocking and Owner are used for the files of processes, which are read only on Linux.
const Nonblocking = 0

func Owner(os.FileInfo) (uid int, ok bool) { return -1, false }

// onDisk returns true, because files of running targets are read only on Linux.
func onDisk(os.FileInfo) bool { return true }
