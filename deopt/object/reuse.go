package object

import "reframe/deopt/machine"

// covering is what [Image.SymbolAt] has found: as if Bias were 0.
type covering struct {
	symbol Symbol
	ok     bool
}

// maxCovering bounds how many addresses an image remembers the symbols of.
const maxCovering = 512

// remember keeps what lies at an address of a linked image: the stacks of one program, and of its cores, lead
// to the same places. Every symbol of a large table may have to be looked at to find it.
func (i *Image) remember(addr machine.Addr, found Symbol, ok bool) {
	if i.Relocatable() {
		return // its sections may be given other places
	}
	if i.covered == nil || len(i.covered) == maxCovering {
		i.covered, i.coveredBytes = map[machine.Addr]covering{}, 0
	}
	if ok {
		found.Addr -= i.Bias
	}
	i.covered[addr-i.Bias] = covering{found, ok}
	i.coveredBytes += int64(len(found.Name))
}

// remembered returns what lies at an address, if it was asked for before.
func (i *Image) remembered(addr machine.Addr) (found Symbol, ok, known bool) {
	c, known := i.covered[addr-i.Bias]
	if c.ok {
		c.symbol.Addr += i.Bias
	}
	return c.symbol, c.ok, known
}

// Rebase has an image that was read for one target serve another one, where it lies elsewhere. What was read of
// its file is kept, and the addresses that were made of it are not.
func (i *Image) Rebase(bias machine.Addr) {
	i.Bias, i.separate, i.debug = bias, nil, nil
	i.starts, i.described, i.named, i.namedBytes = nil, nil, nil, 0
}

// Held returns about how many bytes an image has in memory of its symbols, which is what grows with its file.
func (i *Image) Held() int64 {
	n := i.coveredBytes
	for _, t := range i.tables {
		n += int64(len(t.strings)) + 8*int64(len(t.others))
		if t.held != nil {
			n += t.held()
		}
	}
	return n
}
