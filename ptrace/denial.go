package ptrace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"example.com/reframe/ptrace/system"
)

// denial holds the facts about a process that may not be traced, and that has no visible tracer.
type denial struct {
	self          bool   // it is this process
	filtered      bool   // the kernel denies this process every ptrace(2)
	root, capable bool   // this process runs as root; it has CAP_SYS_PTRACE
	inner         bool   // this process is in a user namespace that does not have all users
	foreign       bool   // the other one belongs to another user
	undumpable    bool   // the other one's files in /proc belong to root, and it does not
	stronger      bool   // the other one has capabilities that this process has not
	scope         string // kernel.yama.ptrace_scope, "" if the kernel does not have it
}

// hint returns which of the kernel's rules (ptrace(2), "Ptrace access mode checking", Yama in Documentation/admin-guide/LSM/Yama.rst) applies, with
// advice.
func (d *denial) hint() string {
	switch {
	case d.self:
		return "it is this process, which cannot trace itself"
	case d.filtered:
		return "a filter of system calls (seccomp) denies ptrace to this process; in a container: --security-opt seccomp=unconfined"
	case d.scope == "3":
		return "kernel.yama.ptrace_scope is 3: nothing may be traced until this machine is started again"
	case d.capable && d.inner:
		return "CAP_SYS_PTRACE of this user namespace does not permit it: the process is of another user namespace, or protected, or traced from outside of this container, where the tracer cannot be seen; run outside of the namespace"
	case d.capable:
		return "the kernel protects this process, or it is of another user namespace, or traced from outside of this container, where the tracer cannot be seen"
	case d.foreign && !d.root:
		return "it belongs to another user; run as root, or with the capability CAP_SYS_PTRACE"
	case d.undumpable:
		return "it is not dumpable (PR_SET_DUMPABLE of prctl(2)), as after a program with more rights than its user, or that its user cannot read; run as root, or with the capability CAP_SYS_PTRACE"
	case d.scope != "" && d.scope != "0" && !d.root:
		return fmt.Sprintf("kernel.yama.ptrace_scope is %s; run as root, or let all of your processes be traced: sysctl kernel.yama.ptrace_scope=0", d.scope)
	case d.stronger:
		return "it has capabilities that this process has not, and this process is without CAP_SYS_PTRACE (in a container: --cap-add=SYS_PTRACE)"
	case d.root:
		return "root is without the capability CAP_SYS_PTRACE here (in a container: --cap-add=SYS_PTRACE), or the kernel protects this process"
	}
	return "run as root, or with the capability CAP_SYS_PTRACE (in a container: --cap-add=SYS_PTRACE)"
}

// Capabilities of linux/capability.h.
const (
	capDACOverride = 1
	capSysPtrace   = 19
)

// denialOf finds the facts.
func denialOf(pid int) denial {
	own := os.Getpid()
	d := denial{self: pid == own, filtered: system.PtraceDenied(), root: os.Geteuid() == 0}
	if uid := strings.Fields(system.StatusField(pid, "Uid")); len(uid) > 1 {
		d.foreign = uid[0] != strconv.Itoa(os.Getuid())
		// Of a process that is not dumpable all files but the folders are root's (task_dump_owner of Linux's fs/proc/base.c).
		owner, known := system.FileOwner(fmt.Sprintf("/proc/%d/stat", pid))
		d.undumpable = known && owner == 0 && uid[1] != "0"
	}
	have := capabilities(own, "CapEff")
	d.capable = have>>capSysPtrace&1 != 0
	d.stronger = capabilities(pid, "CapPrm")&^capabilities(own, "CapPrm") != 0
	if users, err := os.ReadFile("/proc/self/uid_map"); err == nil {
		// The first namespace has one line: all numbers, unchanged (user_namespaces(7)).
		fields := strings.Fields(string(users))
		d.inner = len(fields) != 3 || fields[0] != "0" || fields[1] != "0" || fields[2] != "4294967295"
	}
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil {
		d.scope = strings.TrimSpace(string(scope))
	}
	return d
}

// capabilities returns a set of capabilities of a process (capabilities(7)), or none where it cannot be read.
func capabilities(pid int, set string) uint64 {
	have, err := strconv.ParseUint(system.StatusField(pid, set), 16, 64)
	if err != nil {
		return 0
	}
	return have
}

// errFile is [ErrPermission] of a file of /proc, or of a call that needs no attaching: another tracer does not cause it.
var errFile = fmt.Errorf("%w", ErrPermission)

// denied returns the error of an operation that failed for lack of permission, with the reason and advice.
func denied(pid int, op string, err error) *Error {
	own, file := denialOf(pid), (*fs.PathError)(nil)
	if !errors.As(err, &file) {
		if h := holderOf(pid); h.pid != 0 {
			return &Error{pid, op, ErrPermission, h.hint()}
		}
		return &Error{pid, op, ErrPermission, own.hint()}
	}
	overrides := capabilities(os.Getpid(), "CapEff")>>capDACOverride&1 != 0
	if owner, known := system.FileOwner(file.Path); known && own.capable && !overrides && owner != os.Geteuid() {
		return &Error{pid, op, errFile, fmt.Sprintf("%v: user %d alone may open that file, and this process is without the capability CAP_DAC_OVERRIDE; run as that user, or as root (in a container: --cap-add=DAC_OVERRIDE)", err, owner)}
	}
	return &Error{pid, op, errFile, own.hint()}
}

// hiddenHint returns the reason why /proc does not show a process that exists, or "" where none exists.
func hiddenHint(pid int) string {
	if !system.Exists(pid) {
		return ""
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return "/proc is not mounted here, and the process cannot be read without it: mount -t proc proc /proc"
	}
	if system.Exists(pid) { // still: it has not just ended
		return "/proc hides it, as the mount option hidepid does; run as root, or with the capability CAP_SYS_PTRACE"
	}
	return ""
}
