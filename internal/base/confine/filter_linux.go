//go:build linux && (amd64 || arm64)

package confine

import "golang.org/x/sys/unix"

// rule permits a system call: always, or depending on a test of one argument.
type rule struct {
	call     uint32
	argument int
	test     uint16 // the BPF jump that tests the low 32 bits of the argument: any of some bits, all of them, or equality; 0: no test
	value    uint32
	not      bool // permit the call if the test fails
}

// writing holds the flags of open(2) with which a call may change or create a file.
const writing = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC | unix.O_TMPFILE&^unix.O_DIRECTORY | unix.O_APPEND

// calls holds the system calls that are permitted on every architecture: those to start, read, write to open files, use memory, and exit.
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

// rules returns the rules for a process. Its number pid stays the same after execve.
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

// These are offsets in struct seccomp_data of linux/seccomp.h.
const (
	offsetOfCall = 0
	offsetOfArch = 4
	offsetOfArgs = 16
)

// The low 16 bits of SECCOMP_RET_ERRNO (linux/seccomp.h) hold the error number.
const (
	denied  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	unknown = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// filter returns a classic BPF program that permits the calls that the rules permit and denies all others. clone3(2) fails with ENOSYS because its flags
// lie in memory, where the filter cannot read them; C libraries then call clone(2).
func filter(pid uint32) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	end := func(with uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with} }
	jump := func(test uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, Jt: yes, Jf: no, K: k}
	}
	p := []unix.SockFilter{
		load(offsetOfArch), jump(unix.BPF_JEQ, arch, 1, 0), end(denied), // other ABIs number their calls differently
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
