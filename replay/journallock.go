//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package replay

import (
	"errors"
	"os"
	"syscall"
)

// lock locks a journal against other runs while it is open (flock(2)). A file system without locks is not an error.
func lock(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return errors.New("another run writes its results there")
	}
	return nil
}
