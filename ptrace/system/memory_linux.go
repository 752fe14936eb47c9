//go:build linux

package system

import (
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"example.com/reframe/internal/machine"
)

// Memory is the memory of another process.
type Memory struct {
	tid    int
	mutex  sync.Mutex
	opened bool
	file   *os.File
	failed error // the error of opening the file
	late   bool  // a call of process_vm_readv(2) has not yet returned
}

// NewMemory returns the memory of a thread's process. It does not read anything.
func NewMemory(tid int) *Memory { return &Memory{tid: tid} }

// Open opens /proc/PID/mem, unless it is open. It returns ESRCH if the process has ended.
func (m *Memory) Open() error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.opened {
		return m.failed
	}
	var err error
	m.file, err = os.Open(fmt.Sprintf("/proc/%d/mem", m.tid))
	if err != nil && !os.IsPermission(err) {
		if os.IsNotExist(err) {
			err = unix.ESRCH
		}
		return err
	}
	m.opened, m.failed = true, err
	return err
}

// Read reads through /proc/PID/mem, up to the first byte that cannot be read. It ignores the protection of pages. It never waits for a page that
// userfaultfd provides: get_user_pages_remote of Linux's mm/gup.c does not permit waiting there, so that handle_userfault of fs/userfaultfd.c fails
// immediately. For a page of a file it waits until the file system answers; no signal ends that wait, not even SIGKILL.
func (m *Memory) Read(p []byte, addr machine.Addr) (int, error) {
	if err := m.Open(); err != nil {
		return 0, err
	}
	n, err := m.read(p, addr)
	if err != unix.ESRCH {
		return n, err
	}
	m.Close() // the process may have executed another program, which has other memory
	if err := m.Open(); err != nil {
		return 0, err
	}
	return m.read(p, addr)
}

// Close closes the file. A later read opens it again.
func (m *Memory) Close() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.file != nil {
		m.file.Close()
	}
	m.opened, m.file = false, nil
}

func (m *Memory) read(p []byte, addr machine.Addr) (int, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.file == nil {
		return 0, unix.ESRCH
	}
	got := 0
	for got < len(p) {
		n, err := unix.Pread(int(m.file.Fd()), p[got:], int64(addr)+int64(got))
		got += max(n, 0)
		switch {
		case n > 0 || err == unix.EINTR:
		case got > 0:
			return got, nil
		case err == nil: // the process's memory no longer exists (mem_rw of Linux's fs/proc/base.c)
			return 0, unix.ESRCH
		case err == unix.EIO: // the page is not mapped, or not yet present
			return 0, unix.EFAULT
		default:
			return 0, &fs.PathError{Op: "read", Path: m.file.Name(), Err: err}
		}
	}
	return got, nil
}

// ReadWithin reads ranges one after another with process_vm_readv(2), up to the first byte that cannot be read or that the process may not read. That
// call waits for pages that userfaultfd or a file system must provide, until the page is present or this process is killed. Therefore ReadWithin
// calls it on another thread, which it abandons after the limit. Until that call has returned, every ReadWithin fails with [ErrLate].
func (m *Memory) ReadWithin(limit time.Duration, wants []Want) (int, error) {
	type result struct {
		n   int
		err error
	}
	m.mutex.Lock()
	late := m.late
	m.mutex.Unlock()
	if late {
		return 0, ErrLate
	}
	size := 0
	for _, w := range wants {
		size += len(w.Buf)
	}
	copied := make([]byte, size)
	done := make(chan result, 1)
	go func() {
		n, err := readVM(m.tid, copied, wants)
		done <- result{n, err}
		m.mutex.Lock()
		m.late = false
		m.mutex.Unlock()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var r result
	select {
	case r = <-done:
	case <-timer.C:
		m.mutex.Lock()
		defer m.mutex.Unlock()
		select {
		case r = <-done: // the call returned exactly at the limit
		default:
			m.late = true
			return 0, ErrLate
		}
	}
	for at, i := 0, 0; at < r.n; i++ {
		at += copy(wants[i].Buf, copied[at:r.n])
	}
	return r.n, r.err
}

// readVM reads ranges into one buffer. It uses only the addresses and sizes of wants.
func readVM(tid int, into []byte, wants []Want) (int, error) {
	remote := make([]unix.RemoteIovec, len(wants))
	for i, w := range wants {
		remote[i] = unix.RemoteIovec{Base: uintptr(w.Addr), Len: len(w.Buf)}
	}
	if len(into) == 0 {
		return 0, nil
	}
	local := []unix.Iovec{{Base: &into[0]}}
	local[0].SetLen(len(into))
	n, err := unix.ProcessVMReadv(tid, local, remote, 0)
	switch err {
	case nil, unix.EFAULT, unix.ESRCH:
		return max(n, 0), err
	}
	return 0, os.NewSyscallError("process_vm_readv", err)
}
