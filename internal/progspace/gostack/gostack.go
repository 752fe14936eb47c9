package gostack

import (
	"errors"
	"maps"
	"strings"

	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/progspace"
	"example.com/reframe/ptrace"
)

// Finder finds the functions of Go's run time on the stacks of one target.
type Finder struct{ Space *progspace.Space }

// Walk implements [unwind.Unwinder.Switches] for one walk, which reads memory through m.
func (f *Finder) Walk(m machine.Memory) unwind.SwitchFinder {
	w := &walk{finder: f, memory: view{Memory: m, arch: f.Space.Target.Arch()}}
	return w.switchAt
}

// walk is the state of one walk: the effects of the functions that it has passed.
type walk struct {
	finder *Finder
	memory view
	g      *uint64 // the running goroutine at the frame, as the thread-local variable holds it; nil until it is needed
	// schedules is set after a frame of runtime.schedule, which never returns: the thread no longer runs a goroutine.
	schedules bool
}

func (w *walk) switchAt(f *unwind.Frame) (*unwind.Switch, error) {
	space := w.finder.Space
	code := space.At(f.Lookup())
	if code == nil || space.Target.Arch() != machine.AMD64 {
		return nil, nil
	}
	symbol := code.SymbolAt(f.Lookup())
	if !symbol.Known {
		return nil, nil
	}
	switch strings.TrimSuffix(symbol.Name, ".abi0") {
	case "runtime.schedule":
		w.schedules = true
	case "runtime.goexit":
		return &unwind.Switch{Kind: unwind.FirstOnStack}, nil
	case "runtime.rt0_go", "runtime.clone": // the first thread begins in rt0_go, all others in clone
		if f.Return {
			return &unwind.Switch{Kind: unwind.FirstOnStack}, nil
		}
	case "runtime.mcall":
		if f.Return {
			return w.scheduler(f)
		}
	case "crosscall2":
		if f.Return {
			return &unwind.Switch{Kind: unwind.FromC}, nil
		}
	case "runtime.asmcgocall", "runtime.systemstack", "runtime.cgocallback":
		if f.Return {
			return w.returned(f)
		}
		if f.PC != symbol.Start {
			return nil, errSwitching
		}
	case "runtime.morestack":
		if f.Return && w.schedules { // runtime.newstack has preempted the goroutine
			return w.scheduler(f)
		}
		if f.Return {
			return nil, errors.New("the stack of its goroutine is growing, and its frames are not followed meanwhile")
		}
		if f.PC != symbol.Start {
			return nil, errSwitching
		}
	}
	return nil, nil
}

var errSwitching = errors.New("the thread is switching stacks")

// maxCallback bounds the size of the frame of cgocallback.
const maxCallback = 128

// scheduler returns the stack switch of mcall or morestack, which has left a goroutine and runs the scheduler on the thread's own stack, from g0's saved stack
// pointer on. If C called Go on that stack, the frame of cgocallback is there, with a return address in crosscall2. Otherwise the next frame is that
// of mstart.
func (w *walk) scheduler(f *unwind.Frame) (*unwind.Switch, error) {
	arch := w.memory.arch
	found, ok := ptrace.FindGoThread(arch, &w.memory, f.Registers.ThreadPointer())
	if !ok {
		return nil, errUnknown
	}
	system := found.System
	for at := machine.Addr(8); at < maxCallback; at += 8 {
		pc, err := machine.ReadAddr(&w.memory, arch, system.SP+at)
		if err != nil {
			return nil, err
		}
		if w.functionAt(pc-1) == "crosscall2" {
			fp, err := machine.ReadAddr(&w.memory, arch, system.SP+at-8)
			return &unwind.Switch{Kind: unwind.Returned, PC: pc, SP: system.SP + at + 8, FP: fp, KnownFP: err == nil, Left: true}, nil
		}
	}
	saved, err := machine.ReadAddr(&w.memory, arch, system.SP)
	if err != nil {
		return nil, err
	}
	if saved > system.SP && saved < system.Stack.End || !strings.HasPrefix(w.functionAt(system.PC-1), "runtime.mstart") {
		return nil, errors.New("its thread runs the scheduler, and may have called Go from C")
	}
	return &unwind.Switch{Kind: unwind.Returned, PC: system.PC, SP: system.SP, Left: true}, nil
}

// functionAt returns the name of the function that contains addr, or "".
func (w *walk) functionAt(addr machine.Addr) string {
	if code := w.finder.Space.At(addr); code != nil {
		return code.SymbolAt(addr).Name
	}
	return ""
}

var errUnknown = errors.New("the goroutine of its thread is unknown")

// returned returns the registers after the function of f has returned.
func (w *walk) returned(f *unwind.Frame) (*unwind.Switch, error) {
	if w.g == nil {
		found, ok := ptrace.FindGoThread(w.memory.arch, &w.memory, f.Registers.ThreadPointer())
		if !ok {
			return nil, errUnknown
		}
		w.g = new(uint64(found.Current))
	}
	sp, err := f.Registers.Uint(w.memory.arch.SP)
	if err != nil {
		return nil, err
	}
	e := emulator{memory: &w.memory, g: *w.g, pc: uint64(f.PC), registers: map[register]uint64{rsp: sp}}
	if fp, err := f.Registers.Uint(w.memory.arch.FP); err == nil {
		e.registers[rbp] = fp
	}
	if err := e.run(); err != nil {
		return nil, err
	}
	*w.g = e.g
	out := &unwind.Switch{Kind: unwind.Returned, PC: machine.Addr(e.pc), SP: machine.Addr(e.registers[rsp])}
	if fp, ok := e.registers[rbp]; ok {
		out.FP, out.KnownFP = machine.Addr(fp), true
	}
	return out, nil
}

// maxWords bounds the words that the functions of one walk replace.
const maxWords = 1 << 12

// view is memory whose words can be replaced.
type view struct {
	machine.Memory
	arch  *machine.Arch
	words map[machine.Addr]word
}

// word is a replaced word.
type word struct {
	value uint64
	known bool
}

// ReadMemory implements [machine.Memory]. A read of bytes that were replaced is an error, unless it reads exactly one known word.
func (v *view) ReadMemory(p []byte, addr machine.Addr) error {
	if w, ok := v.words[addr]; ok && w.known && len(p) == 8 && !v.overlaps(addr-7, 7) && !v.overlaps(addr+1, 7) {
		v.arch.Order.PutUint64(p, w.value)
		return nil
	}
	if len(v.words) > 0 && v.overlaps(addr-7, len(p)+7) {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "replaced by an unknown value"}
	}
	return v.Memory.ReadMemory(p, addr)
}

// overlaps reports whether a replaced word starts at one of n addresses.
func (v *view) overlaps(from machine.Addr, n int) bool {
	if n > len(v.words) {
		for at := range v.words {
			if at-from < machine.Addr(n) {
				return true
			}
		}
		return false
	}
	for i := range machine.Addr(n) {
		if _, ok := v.words[from+i]; ok {
			return true
		}
	}
	return false
}

// clone returns a view with its own copy of the words.
func (v *view) clone() *view { return &view{v.Memory, v.arch, maps.Clone(v.words)} }

// write replaces up to 8 bytes.
func (v *view) write(addr machine.Addr, w word) error {
	if v.words == nil {
		v.words = map[machine.Addr]word{}
	}
	if len(v.words) >= maxWords {
		return errors.New("the functions of the stack replace too many words")
	}
	v.words[addr] = w
	return nil
}
