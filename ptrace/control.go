package ptrace

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-delve/delve/pkg/proc"
	"github.com/go-delve/delve/pkg/proc/native"
	"golang.org/x/sys/unix"

	"reframe/deopt/machine"
)

// Control is a process that is controlled through Delve's native back end: it is
// stopped, and runs only when it is told to. Unlike a [Capture] this writes into the
// process: breakpoints that are asked for are written into code, and for a moment one of
// Delve's own into the dynamic linker. [Control.Detach] takes all of them out.
type Control struct {
	pid     int
	group   *proc.TargetGroup
	stopped bool // by SIGSTOP, before it was attached to
}

// Attach stops the process and takes control of it.
func Attach(pid int) (c *Control, err error) {
	if err := exists(pid); err != nil {
		return nil, err
	}
	if err := check64(pid); err != nil {
		return nil, err
	}
	err = guard(func() error {
		return quietly(func() error {
			stopped := threadState(pid, pid) == 'T'
			group, err := native.Attach(pid, nil, nil)
			if err != nil {
				return err
			}
			c = &Control{pid, group, stopped}
			return c.clearOwn()
		})
	})
	if err != nil {
		return nil, explain(pid, "cannot attach", err)
	}
	return c, nil
}

// clearOwn takes out the breakpoint that Delve sets where the dynamic linker tells of
// libraries. Delve's detach leaves it behind (1.27.2: ClearBreakpoint erases only what a user
// asked for), and the next library that the process loads would kill it.
func (c *Control) clearOwn() error {
	t := c.group.Selected
	for addr, bp := range t.Breakpoints().M {
		for _, b := range bp.Breaklets {
			b.Kind = proc.UserBreakpoint
		}
		if err := t.ClearBreakpoint(addr); err != nil {
			return err
		}
	}
	return nil
}

// guard turns a panic of Delve, which reads the target's own tables, into an error.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("delve: %v", p)
		}
	}()
	return f()
}

var stderr sync.Mutex

// quietly keeps Delve from writing to standard error, where it says of each program
// without DWARF information that it has none.
func quietly(f func() error) error {
	stderr.Lock()
	defer stderr.Unlock()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	real := os.Stderr
	os.Stderr = null
	defer func() { os.Stderr = real }()
	return f()
}

// RunTo lets the process run until a thread reaches one of the addresses, and returns that
// thread with its registers. A thread that stands at one of them already has to come there
// again. A process that ends before is [ErrGone].
func (c *Control) RunTo(addrs ...machine.Addr) (t machine.Thread, err error) {
	err = guard(func() error {
		target := c.group.Selected
		for _, addr := range addrs {
			if _, err := target.SetBreakpoint(0, uint64(addr), proc.UserBreakpoint, nil); err != nil {
				return err
			}
		}
		for {
			if err := quietly(c.group.Continue); err != nil {
				return err
			}
			thread := c.group.Selected.CurrentThread()
			regs, err := thread.Registers()
			if err != nil {
				return err
			}
			// Delve stops for reasons of its own too.
			if !slices.Contains(addrs, machine.Addr(regs.PC())) {
				continue
			}
			for _, addr := range addrs {
				if err := target.ClearBreakpoint(uint64(addr)); err != nil {
					return err
				}
			}
			t, err = controlled(c.pid, thread)
			return err
		}
	})
	var exited proc.ErrProcessExited
	if err != nil {
		// Delve may learn of the end by an error of whatever it was about to do.
		if errors.As(err, &exited) || c.ending(err) {
			c.collect()
			err = ErrGone
		}
	}
	if err != nil {
		return t, explain(c.pid, "cannot run it to "+strings.Trim(fmt.Sprint(addrs), "[]"), err)
	}
	return t, nil
}

// A killed process ends within this time: its threads go one after the other.
const endPatience = 1000 // milliseconds

// ending says whether the process has ended or was killed. An ESRCH of Delve's says that
// some thread is gone, which is how the end of the process begins.
func (c *Control) ending(err error) bool {
	for range endPatience {
		if exists(c.pid) != nil || ended(c.pid, c.pid) {
			return true
		}
		if !errors.Is(err, unix.ESRCH) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// collect takes the exit of the threads of a process that is ending: one that ended while
// it was traced stays until its tracer does, and the process is not over for its parent
// before that. Delve does not get to it when it learns of the end by an error. The first
// thread of a child of ours is left to whoever waits for the child.
func (c *Control) collect() {
	child := statusField(c.pid, "PPid") == strconv.Itoa(os.Getpid())
	for range endPatience {
		tids, err := threadIDs(c.pid)
		if child {
			tids = slices.DeleteFunc(tids, func(tid int) bool { return tid == c.pid })
		}
		if err != nil || len(tids) == 0 {
			return
		}
		for _, tid := range tids {
			_, _ = unix.Wait4(tid, nil, unix.WALL|unix.WNOHANG, nil) // not yet, or no longer
		}
		time.Sleep(time.Millisecond)
	}
}

// Target looks at the process where it stands. It stays stopped; the target is good
// until it runs again.
func (c *Control) Target() (*Target, error) {
	t := newTarget(c.pid)
	t.memory = live(t.via)
	if err := t.survey(); err != nil {
		t.Close()
		return nil, err
	}
	for _, r := range t.Registries {
		for n, e := range r.Entries {
			t.read(e, n+1)
		}
	}
	err := guard(func() error {
		for _, thread := range c.group.ThreadList() {
			out, err := controlled(c.pid, thread)
			if err != nil {
				return err
			}
			t.threads = append(t.threads, out)
		}
		return nil
	})
	if err != nil {
		t.Close()
		return nil, explain(c.pid, "cannot read its threads", err)
	}
	return t, nil
}

// Detach takes all breakpoints out and lets the process go on.
func (c *Control) Detach() error {
	err := guard(func() error { return quietly(func() error { return c.group.Detach(false) }) })
	if err == nil && c.stopped {
		// Delve continues what it finds stopped when it has let go.
		err = unix.Kill(c.pid, unix.SIGSTOP)
	}
	if err != nil {
		return explain(c.pid, "cannot detach", err)
	}
	return nil
}

// controlled makes a thread of one of Delve's.
func controlled(pid int, thread proc.Thread) (machine.Thread, error) {
	out := machine.Thread{ID: thread.ThreadID(), Name: threadName(pid, thread.ThreadID())}
	regs, err := thread.Registers()
	if err != nil {
		return out, err
	}
	list, err := regs.Slice(true)
	if err != nil {
		return out, err
	}
	numbers := map[string]machine.DWARFReg{}
	for _, reg := range arch.Registers() {
		numbers[arch.RegisterName(reg)] = reg
	}
	out.Registers = machine.NewRegisters(arch, "Delve does not give this register")
	for _, r := range list {
		// What a vector register has beyond its first 16 bytes comes in pieces, after these.
		name := strings.ToLower(r.Name)
		upper := strings.HasPrefix(name, "ymm") || strings.HasPrefix(name, "zmm")
		if upper {
			name = "x" + name[1:]
		}
		reg, ok := numbers[name]
		switch {
		case !ok || r.Reg == nil:
		case upper:
			if low, err := out.Registers.Bytes(reg); err == nil {
				out.Registers.Set(reg, slices.Concat(low, r.Reg.Bytes))
			}
		case r.Reg.Bytes != nil:
			out.Registers.Set(reg, r.Reg.Bytes)
		default:
			out.Registers.SetUint(reg, r.Reg.Uint64Val)
		}
	}
	return out, nil
}
