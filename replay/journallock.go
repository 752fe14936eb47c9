//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package replay

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps other runs from a journal while it is open (flock(2)). It is no error if the file system has no locks.
func lock(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return errors.New("another run keeps its results there")
	}
	return nil
}
