package ptrace

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openRegular opens a regular file that has the inode, or any if that is 0. Opening a device or a pipe could
// block or act, and what a path leads to is up to the target: it is taken hold of without
// being opened (O_PATH) until it is known what it is.
func openRegular(path string, inode uint64) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.New("not a regular file")
	}
	if inode != 0 && st.Ino != inode {
		return nil, errors.New("another file")
	}
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
}
