package unwind

import (
	"slices"
	"sync"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// maxUnsaved is the maximum size of a function that unsavedBy examines. A longer function that saves nothing is assumed to change every register.
const maxUnsaved = 64 << 10

// clobbered caches the registers that functions change, by code: many stacks and cores contain the same few functions.
var clobbered = clobbers{sets: map[string]amd64.Set{}}

// maxClobbers bounds the code in the cache.
const maxClobbers = 4 << 20

type clobbers struct {
	mu   sync.Mutex
	sets map[string]amd64.Set
	size int // total size of the code
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

// unsavedBy returns C's callee-saved registers that the code of a function changes although its CFI never says where it saved them. Functions with
// these conventions do that: ghccc, hhvmcc, preserve_nonecc, and cxx_fast_tlscc if it does not unwind. Only a module names the convention, but the
// code shows the changes.
func (u *codeReader) unsavedBy(s *step) []machine.DWARFReg {
	if u.Arch != machine.AMD64 || s.signal || s.partial {
		return nil
	}
	var silent []machine.DWARFReg // callee-saved registers without a rule
	for _, reg := range u.Arch.Registers() {
		if reg != u.Arch.SP && amd64.Every.Has(reg) && u.Arch.Kept(reg) > 0 && s.row.Rule(reg).Kind == cfi.RuleNone {
			silent = append(silent, reg)
		}
	}
	silent = s.fde.Unnamed(silent)
	size := s.End - s.Start
	if len(silent) == 0 || size > maxUnsaved {
		return silent
	}
	text := make([]byte, size)
	if u.Memory.ReadMemory(text, s.Start) != nil {
		return nil // a core without its program: assume C's convention
	}
	changed := clobbered.of(text)
	kept := func(reg machine.DWARFReg) bool { return !changed.Has(reg) }
	if silent = slices.DeleteFunc(silent, kept); len(silent) > 0 && u.Compiled != nil && u.Compiled(text, s.Start) == nil {
		changed = clobbered.of(text) // text is now the code without a runtime's patches
		silent = slices.DeleteFunc(silent, kept)
	}
	return silent
}
