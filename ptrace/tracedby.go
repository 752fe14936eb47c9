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
