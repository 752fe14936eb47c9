package ptrace

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"reframe/ptrace/system"
	"reframe/ptrace/tracer"
)

// holder is a process that traces another. The zero value means none.
type holder struct {
	pid   int
	name  string // of its program, 15 bytes at most (proc_pid_comm(5))
	whose int    // of a tracer, the process that it works for; 0 if that has ended
	does  string // the command line of that process
}

// ours reports whether it is a tracer that reframe started.
func (h *holder) ours() bool { return h.name == tracer.Name }

// leaving reports whether it detaches as soon as it has restored everything.
func (h *holder) leaving() bool { return h.ours() && h.whose == 0 }

// holderOf returns the tracer of a process, or of one of its threads. A tracer outside of the PID namespace is invisible (proc_pid_status(5),
// TracerPid is 0 then).
func holderOf(pid int) holder {
	tids, _ := system.ThreadIDs(pid)
	for _, tid := range tids {
		field := system.StatusField(tid, "TracerPid")
		if field == "" || field == "0" {
			continue
		}
		// It is the number of the tracing thread, and its process may have others.
		thread, _ := strconv.Atoi(field)
		process, err := strconv.Atoi(system.StatusField(thread, "Tgid"))
		if err != nil {
			continue // it has ended, and let go by that
		}
		h := holder{pid: process, name: system.ThreadName(process, process)}
		if h.ours() {
			h.whose = employer(process)
			h.does = system.CommandLine(h.whose)
		}
		return h
	}
	return holder{}
}

// employer is the process that started a tracer, or 0 where that has ended: a parent that runs another program has only
// inherited it.
func employer(pid int) int {
	parent, err := strconv.Atoi(system.StatusField(pid, "PPid"))
	if err != nil {
		return 0
	}
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return 0
	}
	if other, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", parent)); err != nil || other != own {
		return 0
	}
	return parent
}

// How often, and for how long, a session retries to attach to a process that another tracer is just detaching from.
const (
	leavingPatience = 5 * time.Second
	leavingPause    = 5 * time.Millisecond
	unseenTracers   = 3
)

// pastLeaving tries an operation that another tracer prevents, and tries again if that tracer is about to detach, or has detached by the time of
// the search for it.
func pastLeaving(pid int, try func() error) error {
	begin, unseen := time.Now(), 0
	for {
		err := try()
		if !errors.Is(err, ErrPermission) {
			return err
		}
		switch h := holderOf(pid); {
		case h.pid == 0:
			if unseen++; unseen == unseenTracers {
				return err
			}
		case !h.leaving() || time.Since(begin) > leavingPatience:
			return &Error{pid, "cannot attach", ErrPermission, h.hint()}
		}
		time.Sleep(leavingPause)
	}
}

// hint returns the name of the tracer of a process, with advice.
func (h *holder) hint() string {
	text := fmt.Sprintf("process %d (%s) traces it already", h.pid, h.name)
	switch {
	case h.leaving():
		return text + ", the guard of a reframe that has ended: it is still putting back what was overwritten; try again"
	case h.ours():
		return fmt.Sprintf("%s, the guard of process %d: %s; end that first: kill %d", text, h.whose, h.does, h.whose)
	case h.name == "gdb":
		return text + "; have it detach, or write a core, (gdb) gcore FILE, and look at that: reframe frames --core FILE"
	}
	return text + "; have it detach first"
}

// denial holds the facts about a process that may not be traced, and that has no visible tracer.
type denial struct {
	root, capable bool   // this process runs as root; it has CAP_SYS_PTRACE
	foreign       bool   // the other one belongs to another user
	scope         string // kernel.yama.ptrace_scope, "" if the kernel does not have it
}

// hint returns which of the kernel's rules (ptrace(2), "Ptrace access mode checking", Yama in Documentation/admin-guide/LSM/Yama.rst) applies, with
// advice.
func (d *denial) hint() string {
	switch {
	case d.scope == "3":
		return "kernel.yama.ptrace_scope is 3: nothing may be traced until this machine is started again"
	case d.foreign && !d.root:
		return "it belongs to another user; run as root"
	case d.scope != "" && d.scope != "0" && !d.root && !d.capable:
		return fmt.Sprintf("kernel.yama.ptrace_scope is %s; run as root, or let all of your processes be traced: sysctl kernel.yama.ptrace_scope=0", d.scope)
	case d.capable:
		return "the kernel protects this process, or it is of another user namespace, or traced from outside of this container, where the tracer cannot be seen"
	case d.root:
		return "root is without the capability CAP_SYS_PTRACE here (in a container: --cap-add=SYS_PTRACE), or the kernel protects this process"
	}
	return "run as root, or with the capability CAP_SYS_PTRACE (in a container: --cap-add=SYS_PTRACE)"
}

// permissionHint returns what prevents a process from being traced, with advice.
func permissionHint(pid int) string {
	if h := holderOf(pid); h.pid != 0 {
		return h.hint()
	}
	d := denial{root: os.Geteuid() == 0}
	if uid := strings.Fields(system.StatusField(pid, "Uid")); len(uid) > 0 {
		d.foreign = uid[0] != strconv.Itoa(os.Getuid())
	}
	const sysPtrace = 19 // CAP_SYS_PTRACE of linux/capability.h
	if have, err := strconv.ParseUint(system.StatusField(os.Getpid(), "CapEff"), 16, 64); err == nil {
		d.capable = have>>sysPtrace&1 != 0
	}
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil {
		d.scope = strings.TrimSpace(string(scope))
	}
	return d.hint()
}
