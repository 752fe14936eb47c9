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

// asked is a name that was looked for.
type asked struct {
	name string
	as   uint8
}

// As what a name was looked for: whoever has it, as others may use it, as the only one.
const (
	anyone uint8 = iota
	others
	alone
)

// answered looks for a name, or remembers what came of that: whoever binds a module's names does so at each stop.
func (i *Image) answered(a asked, find func() (Symbol, bool)) (Symbol, bool) {
	c, known := i.answers[a]
	if !known {
		c.symbol, c.ok = find()
		if len(a.name) > maxAsked || i.Relocatable() {
			return c.symbol, c.ok
		}
		if i.answers == nil || len(i.answers) == maxAnswers {
			i.answers = map[asked]covering{}
		}
		i.answers[a] = c
	}
	return c.symbol, c.ok
}

// Bounds of what is remembered: the bytes of a name, and how many names.
const (
	maxAsked   = 256
	maxAnswers = 1 << 14
)

// Rebase has an image that was read for one target serve another one, where it lies elsewhere. What was read of
// its file is kept, and the addresses that were made of it are not.
func (i *Image) Rebase(bias machine.Addr) {
	i.Bias, i.separate, i.debug = bias, nil, nil
	i.answers = nil
	i.starts, i.described, i.named, i.namedBytes = nil, nil, nil, 0
}

// Held returns about how many bytes an image has in memory of its symbols, which is what grows with its file.
func (i *Image) Held() int64 {
	n := i.coveredBytes + 64*int64(len(i.answers))
	for _, t := range i.tables {
		n += int64(len(t.strings)) + 8*int64(len(t.others))
		if t.held != nil {
			n += t.held()
		}
	}
	return n
}
