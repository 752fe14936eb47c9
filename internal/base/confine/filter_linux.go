//go:build linux && (amd64 || arm64)

package confine

import "golang.org/x/sys/unix"

// rule says when a system call is permitted: always, if its argument has none of some bits, or if it has all of them, or if it is a number.
type rule struct {
	call     uint32
	argument int
	test     uint16 // a jump of classic BPF on the low 32 bits of the argument; 0: none
	value    uint32
	not      bool // permitted where the test fails
}

// writing are the flags of open(2) by which a file could be changed or made.
const writing = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC | unix.O_TMPFILE&^unix.O_DIRECTORY | unix.O_APPEND

// calls are the system calls that are permitted on every architecture: to start, to read, to write to what is open, to use memory, and to end.
var calls = []uint32{
	unix.SYS_EXECVE, unix.SYS_READ, unix.SYS_READV, unix.SYS_PREAD64, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_STATX,
	unix.SYS_LSEEK, unix.SYS_GETDENTS64, unix.SYS_READLINKAT, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_GETCWD, unix.SYS_STATFS, unix.SYS_FSTATFS,
	unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PPOLL,
	unix.SYS_MMAP, unix.SYS_MPROTECT, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_BRK, unix.SYS_MEMBARRIER,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
	unix.SYS_FUTEX, unix.SYS_SET_TID_ADDRESS, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_YIELD,
	unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_NANOSLEEP, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRANDOM,
	unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_GETTID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETRUSAGE,
	unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// rules are all that is permitted to a process, whose number remains when it becomes the program.
func rules(pid uint32) (list []rule) {
	for _, call := range append(calls, ownCalls...) {
		list = append(list, rule{call: call})
	}
	list = append(list,
		rule{call: unix.SYS_OPENAT, argument: 2, test: unix.BPF_JSET, value: writing, not: true},
		rule{call: unix.SYS_CLONE, argument: 0, test: unix.BPF_JSET, value: unix.CLONE_THREAD},
		rule{call: unix.SYS_TGKILL, argument: 0, test: unix.BPF_JEQ, value: pid},
		rule{call: unix.SYS_PRLIMIT64, argument: 0, test: unix.BPF_JEQ, value: 0},
	)
	for _, command := range []uint32{unix.F_GETFL, unix.F_GETFD, unix.F_SETFD, unix.F_DUPFD, unix.F_DUPFD_CLOEXEC} {
		list = append(list, rule{call: unix.SYS_FCNTL, argument: 1, test: unix.BPF_JEQ, value: command})
	}
	return append(list, ownRules...)
}

// Offsets in struct seccomp_data of linux/seccomp.h.
const (
	offsetOfCall = 0
	offsetOfArch = 4
	offsetOfArgs = 16
)

// SECCOMP_RET_ERRNO of linux/seccomp.h has the error in its low 16 bits.
const (
	denied  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	unknown = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// filter is a program of classic BPF that permits what the rules do and denies all else. clone3(2), whose flags lie in memory, is unknown: C libraries
// then call clone(2).
func filter(pid uint32) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	end := func(with uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with} }
	jump := func(test uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, Jt: yes, Jf: no, K: k}
	}
	p := []unix.SockFilter{
		load(offsetOfArch), jump(unix.BPF_JEQ, arch, 1, 0), end(denied), // the calls of other ABIs have other numbers
		load(offsetOfCall), jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), end(unknown),
	}
	for _, r := range rules(pid) {
		if r.test == 0 {
			p = append(p, jump(unix.BPF_JEQ, r.call, 0, 1), end(unix.SECCOMP_RET_ALLOW))
			continue
		}
		yes, no := uint8(0), uint8(1)
		if r.not {
			yes, no = 1, 0
		}
		p = append(p, jump(unix.BPF_JEQ, r.call, 0, 4), load(offsetOfArgs+8*uint32(r.argument)), jump(r.test, r.value, yes, no), end(unix.SECCOMP_RET_ALLOW), load(offsetOfCall))
	}
	return append(p, end(denied))
}
