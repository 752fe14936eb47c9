package goroutine

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"

	"github.com/go-delve/delve/pkg/logflags"
	"github.com/go-delve/delve/pkg/proc"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// maxExecutable bounds the size of an executable whose debug information is read.
const maxExecutable = 1 << 30

// ErrNotGo is the error for a target that runs no Go program.
var ErrNotGo = errors.New("the target runs no Go program")

// ErrNoDWARF is the error for a Go program without debug information (go build -ldflags=-w).
var ErrNoDWARF = errors.New("the Go program has no DWARF")

// Reader reads the goroutines of one target.
type Reader struct {
	target  *ptrace.Target
	process *process
	group   *proc.Target
	layout  *layout                 // nil until it is needed
	starts  map[machine.Addr]string // first functions by the address in g.startpc
	run     map[int64]bool          // the goroutines that threads run
}

// quiet turns off Delve's log, which goes to standard error.
var quiet = sync.OnceFunc(func() {
	logflags.SetLoggerFactory(func(bool, logflags.Fields, io.Writer) logflags.Logger { return silent{} })
})

type silent struct{}

func (silent) Debugf(string, ...any) {}
func (silent) Infof(string, ...any)  {}
func (silent) Warnf(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Debug(...any)          {}
func (silent) Info(...any)           {}
func (silent) Warn(...any)           {}
func (silent) Error(...any)          {}

// Open reads the debug information of the Go program in a target. The error is [ErrNotGo] if the target does not run a Go program.
func Open(t *ptrace.Target) (_ *Reader, err error) {
	defer recovered(&err)
	m := t.GoProgram()
	if m == nil {
		return nil, ErrNotGo
	}
	path, size := m.File()
	entry, known := m.Image.Start()
	switch {
	case path == "" || !known:
		return nil, fmt.Errorf("%s cannot be opened", m.Path)
	case size > maxExecutable:
		return nil, fmt.Errorf("%s has %d MiB; up to %d MiB are read", m.Path, size>>20, maxExecutable>>20)
	case t.Arch() != machine.AMD64:
		return nil, fmt.Errorf("goroutines on %s are not supported", t.Arch().Title)
	}
	if err := hasDWARF(path); err != nil {
		return nil, err
	}
	quiet()
	p := &process{memory: memory{t}, entry: entry, info: proc.NewBinaryInfo("linux", t.Arch().Name, false), breakpoints: proc.NewBreakpointMap()}
	p.thread = &thread{process: p}
	_, add := proc.NewGroup(p, proc.NewTargetGroupConfig{})
	group, err := add(p, t.PID, p.thread, path, proc.StopAttached, "")
	if err != nil {
		_ = p.info.Close()
		return nil, err
	}
	return &Reader{target: t, process: p, group: group, starts: map[machine.Addr]string{}, run: map[int64]bool{}}, nil
}

// hasDWARF returns an error if Delve would look for debug information elsewhere, warn on standard error, or allocate more than maxExecutable bytes.
func hasDWARF(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	total := uint64(0)
	for _, s := range f.Sections {
		switch {
		case strings.HasPrefix(s.Name, ".zdebug_"):
			return errors.New("compressed debug information in .zdebug sections is not supported")
		case strings.HasPrefix(s.Name, ".debug_"):
			total += min(s.Size, maxExecutable+1)
		}
	}
	if total > maxExecutable {
		return fmt.Errorf("its debug information has more than %d MiB", maxExecutable>>20)
	}
	if f.Section(".debug_info") == nil {
		return ErrNoDWARF
	}
	_, err = f.DWARF()
	return err
}

// recovered turns a panic of Delve into an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("reading the goroutines with Delve failed: %v", p)
	}
}

// Close closes the files that Delve has opened.
func (r *Reader) Close() { _ = r.process.info.Close() }

// ErrNone is the error for a thread that runs no goroutine, or whose goroutine cannot be found.
var ErrNone = errors.New("the thread runs no goroutine")

// OfThread reads the goroutine that a thread runs, also while the thread runs C code. The error is [ErrNone] if the thread runs no goroutine.
func (r *Reader) OfThread(th machine.Thread) (_ *frame.Goroutine, err error) {
	defer recovered(&err)
	if th.Registers == nil {
		return nil, errors.New(th.Missing)
	}
	pc, err := th.Registers.Addr(r.target.Arch().PC)
	if err != nil {
		return nil, err
	}
	found, ok := ptrace.FindGoThread(r.target.Arch(), r.target, th.Registers.ThreadPointer())
	if !ok {
		return nil, ErrNone
	}
	g, err := r.byDelve(th.ID, registers{pc, found.Current})
	switch none := (proc.ErrNoGoroutine{}); {
	case errors.As(err, &none) || err == nil && g == nil:
		return nil, ErrNone
	case err != nil:
		return nil, err
	case g.Unreadable != nil:
		return nil, g.Unreadable
	}
	r.run[g.ID] = true
	return r.describe(g), nil
}

// byDelve returns the goroutine that a thread with these registers runs.
func (r *Reader) byDelve(tid int, at registers) (*proc.G, error) {
	r.group.ClearCaches()
	r.process.thread = &thread{process: r.process, id: tid, registers: at}
	return proc.GetG(r.process.thread)
}

// whole reports whether Delve has read all of a label's string. Delve reads at most 64 bytes, and returns "" if it cannot read the string.
func whole(s string) bool { return 0 < len(s) && len(s) < 64 }

// states names the values of a goroutine's status (runtime/runtime2.go).
var states = map[uint64]string{
	proc.Gidle: "idle", proc.Grunnable: "runnable", proc.Grunning: "running", proc.Gsyscall: "syscall", proc.Gwaiting: "waiting", proc.Gdead: "dead",
	proc.Gcopystack: "copystack", 9: "preempted", 10: "leaked", 11: "dead",
}

// scanBit is set in the status while the garbage collector scans the stack (_Gscan in runtime/runtime2.go).
const scanBit = 0x1000

func stateOf(status uint64) string {
	if name, ok := states[status&^scanBit]; ok {
		return name
	}
	return fmt.Sprintf("status %d", status)
}

func (r *Reader) describe(g *proc.G) *frame.Goroutine {
	out := &frame.Goroutine{ID: g.ID, State: stateOf(g.Status), Labels: g.Labels()}
	maps.DeleteFunc(out.Labels, func(key, value string) bool { return !whole(key) || !whole(value) })
	if at := g.StartLoc(r.group); at.Fn != nil {
		out.Start = at.Fn.Name
	}
	return out
}
