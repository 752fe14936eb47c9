package object

import "example.com/reframe/internal/machine"

// covering is a result of [Image.SymbolAt], with Bias subtracted.
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

// remembered returns the cached symbol at an address; known is false if there is none.
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

// The kinds of lookup by name: any definition, one that other images may use, or only a unique one.
const (
	anyone uint8 = iota
	others
	alone
)

// answered looks up a name, and caches the result: binding a module's names looks them up at each stop.
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

// Rebase reuses an image that was read for one target for another one, with another load address. The data read from its file are kept, and the
// addresses computed from them are dropped.
func (i *Image) Rebase(bias machine.Addr) {
	i.Bias, i.separate, i.debug = bias, nil, nil
	i.answers = nil
	i.starts, i.described, i.named, i.namedBytes = nil, nil, nil, 0
}

// Held returns about how many bytes of memory an image's symbols take, which grow with its file.
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
