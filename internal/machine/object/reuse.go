package object

import "example.com/reframe/internal/machine"

// covering is a result of [Image.SymbolAt], with Bias subtracted.
type covering struct {
	symbol Symbol
	ok     bool
}

// maxCovering limits the addresses whose symbols an image caches.
const maxCovering = 512

// remember caches the symbol at an address of a linked image. A lookup may have to read every symbol of a large table, and the stacks of a program and of
// its cores contain the same addresses again and again.
func (i *Image) remember(addr machine.Addr, found Symbol, ok bool) {
	if i.Relocatable() {
		return // its sections may be placed again
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

// asked is the key of a cached lookup by name.
type asked struct {
	name string
	as   uint8
}

// These are the kinds of lookup by name: any definition, one that other images may use, or a unique one.
const (
	anyone uint8 = iota
	others
	alone
)

// answered looks up a name and caches the result. The cache matters because a module's names are looked up again at each stop.
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

// These limit the cache of lookups: the length of a name in bytes, and the number of names.
const (
	maxAsked   = 256
	maxAnswers = 1 << 14
)

// Rebase sets another load address, to reuse an image for another target. It keeps the data read from the file and drops the addresses computed from it.
func (i *Image) Rebase(bias machine.Addr) {
	i.Bias, i.separate, i.debug = bias, nil, nil
	i.answers = nil
	i.starts, i.described, i.named, i.namedBytes = nil, nil, nil, 0
}

// Held returns the approximate size of the image's symbols in memory, in bytes. It grows with the file.
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
