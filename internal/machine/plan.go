package machine

// plan assigns indexes in a register file to the registers that a frame usually knows: address-sized registers and those with 8 callee-saved bytes. An
// unwinder copies them for every frame and reads only a few, so they are kept in one small slice.
type plan struct {
	near  [128]int8        // for each register number, the index plus 1; 0 for none
	far   map[DWARFReg]int // indexes of registers with higher numbers
	kept  uint64           // bit set of the indexes of registers whose 8 bytes are callee-saved
	count int
}

// word is the size of an entry in bytes.
const word = 8

func newPlan(a *Arch) plan {
	p := plan{far: map[DWARFReg]int{}}
	if a.Pointer != word {
		return p
	}
	named := map[string]int{} // indexes by name, for registers that have two numbers
	for _, r := range a.order {
		info := a.row(r)
		if i, again := named[info.Name]; again {
			p.far[r] = i // the second number of a register is always a high one
			continue
		}
		if info.Size == word && info.Class == General || r == a.Link || info.Kept == word {
			p.add(r, info.Kept == word)
			if i, ok := p.place(r); ok {
				named[info.Name] = i
			}
		}
	}
	if _, ok := p.place(a.PC); !ok {
		p.add(a.PC, false)
	}
	return p
}

func (p *plan) add(r DWARFReg, kept bool) {
	if p.count == 64 {
		return // the plan is full: [Registers] keeps further registers in a map
	}
	if int(r) < len(p.near) {
		p.near[r] = int8(p.count + 1)
	} else {
		p.far[r] = p.count
	}
	if kept {
		p.kept |= 1 << p.count
	}
	p.count++
}

// place returns the index of r, and false if it has none.
func (p *plan) place(r DWARFReg) (int, bool) {
	if int(r) < len(p.near) {
		i := int(p.near[r]) - 1
		return i, i >= 0
	}
	i, ok := p.far[r]
	return i, ok
}
