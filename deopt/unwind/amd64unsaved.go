package unwind

import (
	"slices"
	"sync"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// maxUnsaved bounds how much code of a function is looked at; a longer one that saves nothing is believed to change everything.
const maxUnsaved = 64 << 10

// clobbered keeps what functions change, by their code: many stacks, and many cores, go through the same few functions.
var clobbered = clobbers{sets: map[string]amd64.Set{}}

// maxClobbers bounds the code that is kept.
const maxClobbers = 4 << 20

type clobbers struct {
	mu   sync.Mutex
	sets map[string]amd64.Set
	size int // bytes of all code
}

func (c *clobbers) of(text []byte) amd64.Set {
	c.mu.Lock()
	set, known := c.sets[string(text)]
	c.mu.Unlock()
	if known {
		return set
	}
	set = amd64.Clobbers(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size+len(text) > maxClobbers {
		clear(c.sets)
		c.size = 0
	}
	c.sets[string(text)] = set
	c.size += len(text)
	return set
}

// unsavedBy finds the callee-saved registers of C that the code of a function changes though its CFI never says where it saved them. Functions of
// these conventions do that: ghccc, hhvmcc, preserve_nonecc, and cxx_fast_tlscc where it does not unwind. Only a module names their convention, but
// the code shows what it changes.
func (w *walk) unsavedBy(s *step) []machine.DWARFReg {
	if w.Arch != machine.AMD64 || s.signal || s.partial {
		return nil
	}
	var silent []machine.DWARFReg // of those that C's functions keep
	for _, reg := range w.Arch.Registers() {
		if reg != w.Arch.SP && amd64.Every.Has(reg) && w.Arch.Kept(reg) > 0 && s.row.Rule(reg).Kind == cfi.RuleNone {
			silent = append(silent, reg)
		}
	}
	silent = s.fde.Unnamed(silent)
	size := s.End - s.Start
	if len(silent) == 0 || size > maxUnsaved {
		return silent
	}
	text := make([]byte, size)
	if w.Memory.ReadMemory(text, s.Start) != nil {
		return nil // a core without its program: nothing shows that it is not C's convention
	}
	changed := clobbered.of(text)
	kept := func(reg machine.DWARFReg) bool { return !changed.Has(reg) }
	if silent = slices.DeleteFunc(silent, kept); len(silent) > 0 && w.Compiled != nil && w.Compiled(text, s.Start) == nil {
		changed = clobbered.of(text) // what a runtime has written over the code is not the function's
		silent = slices.DeleteFunc(silent, kept)
	}
	return silent
}
