package files

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// OpenRegular opens a regular file that has the inode; 0 means any. Opening a device or a pipe could block or have effects, and the target determines
// where a path leads. Therefore OpenRegular first opens the path with O_PATH, checks the type, and only then opens the file.
func OpenRegular(path string, inode uint64) (*os.File, error) {
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
	// os.Open would add the file to the epoll instance of Go's run time, for which the kernel asks the server of a FUSE file whether the file is
	// ready. Until the server answers, no signal ends the call, and all threads that poll other files wait. os.NewFile does not add the file.
	path = fmt.Sprintf("/proc/self/fd/%d", fd)
	for {
		opened, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			return os.NewFile(uintptr(opened), path), nil
		}
		if err != unix.EINTR {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// Nonblocking is a flag of open(2): do not wait for the writer of a pipe.
const Nonblocking = syscall.O_NONBLOCK

// Owner returns the user who owns a file.
func Owner(info os.FileInfo) (uid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, false
	}
	return int(st.Uid), true
}

// onDisk reports whether a file is on a file system of a block device. Others, such as FUSE, NFS and overlays, have devices with major number 0
// (Documentation/admin-guide/devices.txt of Linux).
func onDisk(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && unix.Major(uint64(st.Dev)) != 0
}
