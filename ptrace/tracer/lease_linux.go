package tracer

import (
	"os"

	"golang.org/x/sys/unix"
)

const leaseSize = 4096

// newLease returns a lease, and the file through which the tracer opens it.
func newLease() (*lease, *os.File, error) {
	fd, err := unix.MemfdCreate("rf-lease", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "lease")
	if err := f.Truncate(leaseSize); err != nil {
		f.Close()
		return nil, nil, err
	}
	l, err := mapLease(fd)
	if err != nil {
		f.Close()
	}
	return l, f, err
}

// openLease opens a lease that another process has created, and closes its file.
func openLease(fd int) (*lease, error) {
	defer unix.Close(fd)
	return mapLease(fd)
}

func mapLease(fd int) (*lease, error) {
	memory, err := unix.Mmap(fd, 0, leaseSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return &lease{memory}, os.NewSyscallError("mmap", err)
}

// close unmaps the memory.
func (l *lease) close() {
	if l.memory != nil {
		_ = unix.Munmap(l.memory)
		l.memory = nil
	}
}
