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

// denial holds facts about a process that cannot be traced and has no visible tracer.
type denial struct {
	self          bool   // the process is this process
	filtered      bool   // the kernel rejects all ptrace(2) requests of this process
	root, capable bool   // this process runs as root; this process has CAP_SYS_PTRACE
	inner         bool   // this process is in a user namespace that does not map all users
	foreign       bool   // the target belongs to another user
	undumpable    bool   // root owns the target's files in /proc, but the target does not run as root
	stronger      bool   // the target has capabilities that this process lacks
	scope         string // value of kernel.yama.ptrace_scope; "" if the kernel lacks it
}

// hint returns the rule by which the kernel denies tracing, with advice (ptrace(2), "Ptrace access mode checking";
// Documentation/admin-guide/LSM/Yama.rst).
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
		return "it is not dumpable (PR_SET_DUMPABLE of prctl(2)), for example because it ran a program that has more rights than its user, or that its user cannot read; run as root, or with the capability CAP_SYS_PTRACE"
	case d.scope != "" && d.scope != "0" && !d.root:
		return fmt.Sprintf("kernel.yama.ptrace_scope is %s; run as root, or let all of your processes be traced: sysctl kernel.yama.ptrace_scope=0", d.scope)
	case d.stronger:
		return "it has capabilities that this process lacks, and this process lacks CAP_SYS_PTRACE (in a container: --cap-add=SYS_PTRACE)"
	case d.root:
		return "root lacks the capability CAP_SYS_PTRACE here (in a container: --cap-add=SYS_PTRACE), or the kernel protects this process"
	}
	return "run as root, or with the capability CAP_SYS_PTRACE (in a container: --cap-add=SYS_PTRACE)"
}

// Capabilities of linux/capability.h.
const (
	capDACOverride = 1
	capSysPtrace   = 19
)

// denialOf determines why a process cannot be traced.
func denialOf(pid int) denial {
	own := os.Getpid()
	d := denial{self: pid == own, filtered: system.PtraceDenied(), root: os.Geteuid() == 0}
	if uid := strings.Fields(system.StatusField(pid, "Uid")); len(uid) > 1 {
		d.foreign = uid[0] != strconv.Itoa(os.Getuid())
		// If a process is not dumpable, root owns all of its files in /proc except the directories (task_dump_owner of Linux's fs/proc/base.c).
		owner, known := system.FileOwner(fmt.Sprintf("/proc/%d/stat", pid))
		d.undumpable = known && owner == 0 && uid[1] != "0"
	}
	have := capabilities(own, "CapEff")
	d.capable = have>>capSysPtrace&1 != 0
	d.stronger = capabilities(pid, "CapPrm")&^capabilities(own, "CapPrm") != 0
	if users, err := os.ReadFile("/proc/self/uid_map"); err == nil {
		// In the first namespace the file has one line, which maps all numbers to themselves (user_namespaces(7)).
		fields := strings.Fields(string(users))
		d.inner = len(fields) != 3 || fields[0] != "0" || fields[1] != "0" || fields[2] != "4294967295"
	}
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil {
		d.scope = strings.TrimSpace(string(scope))
	}
	return d
}

// capabilities returns a set of capabilities of a process (capabilities(7)), or an empty set if it cannot be read.
func capabilities(pid int, set string) uint64 {
	have, err := strconv.ParseUint(system.StatusField(pid, set), 16, 64)
	if err != nil {
		return 0
	}
	return have
}

// errFile is an [ErrPermission] for a file of /proc, or for a call that does not attach, so that another tracer cannot be the cause.
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

// hiddenHint returns the reason why /proc does not show an existing process, or "" if the process does not exist.
func hiddenHint(pid int) string {
	if !system.Exists(pid) {
		return ""
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return "/proc is not mounted here, and the process cannot be read without it: mount -t proc proc /proc"
	}
	if system.Exists(pid) { // it still exists: it has not just ended
		return "/proc hides it, as the mount option hidepid does; run as root, or with the capability CAP_SYS_PTRACE"
	}
	return ""
}
