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
	case "runtime.goexit", "runtime.mcall":
		return &unwind.Switch{Kind: unwind.FirstOnStack}, nil
	case "crosscall2":
		if f.Return {
			return &unwind.Switch{Kind: unwind.FromC}, nil
		}
	case "runtime.asmcgocall", "runtime.systemstack", "runtime.cgocallback":
		if !f.Return {
			return nil, errors.New("the thread is switching stacks")
		}
		return w.returned(f)
	}
	return nil, nil
}

// returned returns the registers after the function of f has returned.
func (w *walk) returned(f *unwind.Frame) (*unwind.Switch, error) {
	if w.g == nil {
		found, ok := ptrace.FindGoThread(w.memory.arch, &w.memory, f.Registers.ThreadPointer())
		if !ok {
			return nil, errors.New("the goroutine of its thread is unknown")
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

// view is memory whose words can be replaced.
type view struct {
	machine.Memory
	arch  *machine.Arch
	words map[machine.Addr]uint64
}

// ReadMemory implements [machine.Memory].
func (v *view) ReadMemory(p []byte, addr machine.Addr) error {
	if w, ok := v.words[addr]; ok && len(p) == 8 {
		v.arch.Order.PutUint64(p, w)
		return nil
	}
	return v.Memory.ReadMemory(p, addr)
}

// clone returns a view with words of its own.
func (v *view) clone() *view { return &view{v.Memory, v.arch, maps.Clone(v.words)} }

// write replaces a word.
func (v *view) write(addr machine.Addr, word uint64) {
	if v.words == nil {
		v.words = map[machine.Addr]uint64{}
	}
	v.words[addr] = word
}
