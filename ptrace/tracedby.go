package ptrace

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"example.com/reframe/ptrace/system"
	"example.com/reframe/ptrace/tracer"
)

// tracedBy is a process that traces another one. The zero value means no process.
type tracedBy struct {
	pid   int
	name  string // name of its program, at most 15 bytes (proc_pid_comm(5))
	whose int    // if it is a tracer of reframe: the process that started it, or 0 if that process has ended
	does  string // command line of that process
}

// ours reports whether the process is a tracer of reframe.
func (h *tracedBy) ours() bool { return h.name == tracer.Name }

// leaving reports whether the tracer is about to detach: it is a tracer of reframe, and the process that started it has ended.
func (h *tracedBy) leaving() bool { return h.ours() && h.whose == 0 }

// holderOf returns the tracer of a process, or of one of its threads. A tracer outside of the PID namespace is not visible: TracerPid is then 0
// (proc_pid_status(5)).
func holderOf(pid int) tracedBy {
	tids, _ := system.ThreadIDs(pid)
	for _, tid := range tids {
		field := system.StatusField(tid, "TracerPid")
		if field == "" || field == "0" {
			continue
		}
		// TracerPid is the number of the tracing thread, whose process may have other threads.
		thread, _ := strconv.Atoi(field)
		process, err := strconv.Atoi(system.StatusField(thread, "Tgid"))
		if err != nil {
			continue // the tracer has ended and has released the thread
		}
		h := tracedBy{pid: process, name: system.ThreadName(process, process)}
		if h.ours() {
			h.whose = employer(process)
			h.does = system.CommandLine(h.whose)
		}
		return h
	}
	return tracedBy{}
}

// employer returns the process that started a tracer, or 0 if that process has ended. A parent that runs another program has not started the tracer,
// but inherited it.
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

// Limits on the attempts to attach to a process from which another tracer is detaching.
const (
	leavingPatience = 5 * time.Second
	leavingPause    = 5 * time.Millisecond
	unseenTracers   = 3
)

// pastLeaving calls try, which another tracer may prevent. It calls try again if that tracer is about to detach or is no longer visible.
func pastLeaving(pid int, try func() error) error {
	begin, unseen := time.Now(), 0
	for {
		err := try()
		if !errors.Is(err, ErrPermission) || errors.Is(err, errFile) {
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
func (h *tracedBy) hint() string {
	text := fmt.Sprintf("process %d (%s) traces it already", h.pid, h.name)
	switch {
	case h.leaving():
		return text + ", the guard of a reframe that has ended, is still restoring the code: try again"
	case h.ours():
		return fmt.Sprintf("%s, the guard of process %d: %s; end that first: kill %d", text, h.whose, h.does, h.whose)
	case h.name == "gdb":
		return text + "; have it detach, or write a core, (gdb) gcore FILE, and read that: reframe frames --core FILE"
	}
	return text + "; have it detach first"
}
