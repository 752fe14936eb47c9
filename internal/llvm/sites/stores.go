package sites

import (
	"fmt"
	"slices"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// A record may place a live value in a wider register, so the record does not show the width of the value. Versions that differ in the width are
// distinguished by their stores: the numbers that the code stores to a variable must be those that the module's function stores.

// codeStore is the store of a number at an address relative to the program counter.
type codeStore struct {
	offset, end  int   // offsets of the instruction and its end in the function
	displacement int64 // distance from the instruction's end to the address
	size         int   // in bytes
	value        uint64
}

// variableStores holds the stores to variables in a block, before an instruction.
type variableStores struct {
	of  map[string][]*ir.Instr // stores by the name of the variable
	odd map[string]bool        // variables that other instructions may store to
}

// storesBefore returns the stores before an instruction in its block. ok is false if there may be others: in inlined calls, or through a pointer that may
// point to a variable.
func storesBefore(i *ir.Instr) (s *variableStores, ok bool) {
	s = &variableStores{map[string][]*ir.Instr{}, map[string]bool{}}
	for _, before := range i.Block.Instrs[:i.Index] {
		if before.Call != nil {
			if f, known := before.Call.Callee.(*ir.Func); !known || !f.Declared() {
				return nil, false
			}
		}
		to := ""
		if before.Op == ir.OpStore {
			var apart bool
			if to, apart = storedTo(before.Args[1]); !apart {
				return nil, false
			}
			if to != "" {
				s.of[to] = append(s.of[to], before)
			}
		}
		for n, v := range before.Args {
			accessed := before.Op == ir.OpLoad || to != "" && n == 1 // v is the address that is loaded from or stored to, not a value that escapes
			if !accessed {
				s.use(v)
			}
		}
		if before.Call != nil {
			for _, bundle := range before.Call.Bundles {
				for _, v := range bundle.Args {
					s.use(v)
				}
			}
		}
	}
	return s, true
}

// storedTo returns the name of the variable that a pointer points to, or "" for memory outside variables. apart is false if that is unknown.
func storedTo(pointer ir.Value) (variable string, apart bool) {
	whole := true
	for range maxNested {
		i, ok := pointer.(*ir.Instr)
		if !ok || i.Op != ir.OpGEP && i.Op != ir.OpBitCast {
			break
		}
		pointer, whole = i.Args[0], false // the pointer may point to a part of a variable
	}
	switch p := pointer.(type) {
	case *ir.Param:
		return "", true
	case *ir.Instr:
		return "", p.Op == ir.OpAlloca
	case *ir.Global:
		if whole {
			return p.Name, true
		}
	case *ir.Const:
		if g, ok := p.Target.(*ir.Global); ok && whole && p.Kind == ir.ConstRef {
			return g.Name, true
		}
	}
	return "", false
}

// use records the variables that an operand refers to.
func (s *variableStores) use(v ir.Value) {
	w := &nameWalk{named: s.odd, seen: map[ir.Value]bool{}}
	w.value(v, 0)
}

// storedAt returns the reason why the executed code does not store what the function stores before its site, or "".
func (m *calculation) storedAt(code *ordersCode, values calculated, s *ir.Site) string {
	if len(m.stores) == 0 {
		return ""
	}
	expected, ok := storesBefore(s.Instr)
	if !ok {
		return ""
	}
	for _, store := range m.stores {
		for _, name := range code.variable(store) {
			if why := expected.differs(name, store, values, s); why != "" {
				return why
			}
		}
	}
	return ""
}

// variable returns the possible names of the variable at the address of a store.
func (c *ordersCode) variable(s codeStore) (names []string) {
	if r, filled := c.relocation(s.offset, s.end-s.offset); filled {
		// S + A - P, where P is the relocated place (System V ABI, AMD64 supplement, 4.4.1).
		if r.Symbol() == "" || r.Addend+int64(s.end)-int64(r.Offset-c.at) != 0 {
			return nil
		}
		return spellings(c.image, r.Symbol())
	}
	for _, symbol := range c.image.SymbolsStarting(c.start + machine.Addr(s.end) + machine.Addr(s.displacement)) {
		names = append(names, spellings(c.image, symbol.Name)...)
	}
	return names
}

// differs returns the reason if the function stores no such number to a variable, or "".
func (s *variableStores) differs(name string, store codeStore, values calculated, at *ir.Site) string {
	all := s.of[name]
	if len(all) == 0 || s.odd[base(name)] {
		return ""
	}
	possible := slices.ContainsFunc(all, func(i *ir.Instr) bool {
		width := min(widthOf(i.Args[0].Type()), 8*store.size)
		want, known := values.of(i.Args[0], 0)
		return !known || width == 0 || (want^store.value)<<(64-width) == 0
	})
	if possible {
		return ""
	}
	return fmt.Sprintf("the code stores another value in @%s than line %d of %s", name, all[0].Line, at.Func.Module.Name)
}
