package machine

// plan gives the registers that a frame usually knows places in a register file: those of
// the size of an address, and those of which a callee keeps as much. A walk copies them
// with every frame, and reads a few.
type plan struct {
	near  [128]int8        // 1 + place, by number; 0 for none
	far   map[DWARFReg]int // those with higher numbers
	kept  uint64           // places of callee-saved registers, or their first 8 bytes
	count int
}

// word is the size of a place in bytes.
const word = 8

func newPlan(a *Arch) plan {
	p := plan{far: map[DWARFReg]int{}}
	if a.Pointer != word {
		return p
	}
	named := map[string]int{} // places, for registers that have two numbers
	for _, r := range a.order {
		info := a.row(r)
		if i, again := named[info.Name]; again {
			p.far[r] = i // numbers that come again are high ones
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
		return // the rest are kept by number
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

// place returns where r is, and false where it has no place.
func (p *plan) place(r DWARFReg) (int, bool) {
	if int(r) < len(p.near) {
		i := int(p.near[r]) - 1
		return i, i >= 0
	}
	i, ok := p.far[r]
	return i, ok
}
