//go:build linux

package tracer

import (
	"encoding/binary"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memory accesses the memory of a traced process through /proc/PID/mem. If that file cannot be opened, memory uses ptrace(2) requests for a stopped
// thread. The file belongs to the user of the process: CAP_SYS_PTRACE, which permits tracing, does not permit opening it (CAP_DAC_OVERRIDE of
// capabilities(7) does).
type memory struct {
	file    int           // -1 if it is not open
	pages   *os.File      // /proc/PID/pagemap; nil if it is not open
	threads iter.Seq[int] // threads that share the memory, stopped ones first
	served  *served       // nil if no page must be fetched before it is read
}

// openMemory opens the memory of a thread. path is the path of its mem file.
func openMemory(path string, threads iter.Seq[int]) (memory, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	switch err {
	case nil:
		pages, _ := os.Open(filepath.Join(filepath.Dir(path), "pagemap")) // if this fails, writeProtected returns true
		return memory{file: fd, pages: pages, threads: threads}, nil
	case unix.EACCES, unix.EPERM:
		return memory{file: -1, threads: threads}, nil
	}
	return memory{file: -1}, err
}

// close closes the files. Afterwards m has neither files nor threads.
func (m *memory) close() {
	m.pages.Close() // Close of a nil file is safe
	if m.file >= 0 {
		unix.Close(m.file)
	}
	*m = memory{file: -1}
}

// read reads up to the first byte that cannot be read, like pread(2). If the file cannot read a page, ptrace requests cannot either.
func (m memory) read(p []byte, addr uint64) (int, error) {
	n, err := m.fetch(addr, len(p))
	if err != nil {
		return 0, err
	}
	p = p[:n]
	if m.file >= 0 {
		return unix.Pread(m.file, p, int64(addr))
	}
	return m.access(unix.Pread, readTraced, p, addr)
}

// write writes like pwrite(2). It can also write to memory that the process itself may not write.
func (m memory) write(p []byte, addr uint64) (int, error) {
	n, err := m.fetch(addr, len(p))
	if err != nil {
		return 0, err
	}
	return m.access(unix.Pwrite, writeTraced, p[:n], addr)
}

// access first uses the file, and then the threads until one of them is stopped. A kernel may deny writing through the file to memory that the
// process may not write (proc_mem.force_override of Linux's kernel-parameters.txt, since 6.12).
func (m memory) access(file func(int, []byte, int64) (int, error), thread func(int, []byte, uint64) (int, error), p []byte, addr uint64) (int, error) {
	first := error(unix.ESRCH)
	if m.file >= 0 {
		n, err := file(m.file, p, int64(addr))
		if err == nil {
			return n, nil
		}
		first = err
	}
	if m.threads == nil || len(p) == 0 {
		return 0, first
	}
	for tid := range m.threads {
		if n, err := thread(tid, p, addr); err != unix.ESRCH { // ESRCH: the thread is not stopped, or has ended
			return n, err
		}
	}
	return 0, first
}

// wordSize is the number of bytes that one ptrace(2) request reads or writes.
const wordSize = 8

// readTraced reads the memory of a stopped thread by PTRACE_PEEKDATA, which never waits for a page that userfaultfd must provide. It reads the memory
// of a running thread by process_vm_readv(2), which waits for such a page; but the page of a breakpoint was present when the breakpoint was set.
func readTraced(tid int, p []byte, addr uint64) (n int, err error) {
	for n < len(p) && err == nil {
		at := addr + uint64(n)
		var word [wordSize]byte
		if word, err = peek(tid, at&^(wordSize-1)); err == nil {
			n += copy(p[n:], word[at%wordSize:])
		}
	}
	if n > 0 || err != unix.ESRCH {
		return n, partly(n, err)
	}
	local := [1]unix.Iovec{{Base: &p[0]}}
	local[0].SetLen(len(p))
	remote := [1]unix.RemoteIovec{{Base: uintptr(addr), Len: len(p)}}
	for range maxInterrupts {
		if n, err = unix.ProcessVMReadv(tid, local[:], remote[:], 0); err != unix.EINTR {
			break
		}
	}
	return max(n, 0), err
}

// maxInterrupts bounds how often process_vm_readv(2) is repeated. The kernel does not interrupt the call itself. But in some containers a supervisor
// must first permit it (seccomp_unotify(2)), and the signal that wakes the tracer interrupts that wait. Such signals do not arrive this often in
// succession.
const maxInterrupts = 100

// peek reads an aligned word of the memory of a stopped thread.
func peek(tid int, addr uint64) (word [wordSize]byte, err error) {
	return word, ptraceAt(unix.PTRACE_PEEKDATA, tid, uintptr(addr), unsafe.Pointer(&word))
}

// writeTraced writes the memory of a stopped thread by PTRACE_POKEDATA. It writes aligned words, so that no word crosses a page boundary.
func writeTraced(tid int, p []byte, addr uint64) (int, error) {
	for n := 0; n < len(p); {
		at := addr + uint64(n)
		word, err := peek(tid, at&^(wordSize-1))
		if err != nil {
			return n, partly(n, err)
		}
		size := copy(word[at%wordSize:], p[n:])
		if _, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_POKEDATA, uintptr(tid), uintptr(at&^(wordSize-1)), uintptr(binary.NativeEndian.Uint64(word[:])), 0, 0); errno != 0 {
			return n, partly(n, errno)
		}
		n += size
	}
	return len(p), nil
}

// partly returns the error of an access that failed after n bytes. Like read(2), it returns nil if n > 0.
func partly(n int, err error) error {
	if n > 0 {
		return nil
	}
	return err
}

// memoryOf returns the path of a thread's mem file.
func memoryOf(pid, tid int) string { return fmt.Sprintf("/proc/%d/task/%d/mem", pid, tid) }
