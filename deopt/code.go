package deopt

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reframe/deopt/machine"
	"reframe/deopt/object"
	"reframe/deopt/stackmap"
	"reframe/deopt/unwind"
	"reframe/ptrace"
)

// code is one place that code comes from: a module, a registered JIT object, or
// memory in which a scan found a stack map. What is read of it is read once.
type code struct {
	name  string
	image *object.Image // nil for a scan's find
	jit   bool

	records *stackmap.Index
	data    []byte            // the section of an unlinked object, as it stands there
	section *stackmap.Section // what could be read of it, even where mapsErr is set
	maps    []*stackmap.Map
	mapsErr error // why there are no records although there is a section
	unwind  *unwind.Code
	// relocations of its code, by where they are, of an object that is not linked; nil until one is asked for.
	relocations map[machine.Addr]object.Relocation
	named       map[machine.Addr]symbol // of addresses that were asked for: a recursion asks often
	starts      []machine.Addr          // of the functions of maps, sorted; nil until one is asked for
}

// symbol is the function that an address lies in.
type symbol struct {
	name  string
	start machine.Addr
	size  uint64
	ok    bool // there is a symbol
	// owner is where the function starts whose records may be about the address: that
	// of the symbol, else the nearest one with records before it.
	owner machine.Addr
}

// space finds the code behind the addresses of one target.
type space struct {
	target  *ptrace.Target
	modules map[*ptrace.Module]*code
	objects map[*object.Image]*code
	found   *code // what a scan found, or nil
	unknown *unwind.Code
	lost    map[string]*unwind.Code // objects that cannot be used, by the reason
}

func newSpace(t *ptrace.Target) *space {
	s := &space{target: t, modules: map[*ptrace.Module]*code{}, objects: map[*object.Image]*code{},
		unknown: &unwind.Code{}, lost: map[string]*unwind.Code{}}
	s.found = s.scanned()
	return s
}

// at returns the code that addr lies in, or nil.
func (s *space) at(addr machine.Addr) *code {
	if img, _ := s.target.JITObjectAt(addr); img != nil {
		return s.ofObject(img)
	}
	if m := s.target.ModuleAt(addr); m != nil {
		if m.Image == nil {
			return nil
		}
		return s.ofModule(m)
	}
	if s.found != nil && s.found.covers(s.target, addr) {
		return s.found
	}
	return nil
}

func (s *space) ofObject(img *object.Image) *code {
	c := s.objects[img]
	if c == nil {
		c = newImageCode(img, nil)
		s.objects[img] = c
	}
	return c
}

func (s *space) ofModule(m *ptrace.Module) *code {
	c := s.modules[m]
	if c == nil {
		c = newImageCode(m.Image, m.StackMaps)
		s.modules[m] = c
	}
	return c
}

// newImageCode reads stack maps and unwind information of an image. loaded is the
// stack map section as it lies in memory; nil stands for an object's own.
func newImageCode(img *object.Image, loaded []byte) *code {
	c := &code{name: img.Name, image: img, jit: img.Registered}
	c.readMaps(loaded)
	table, err := newTable(img)
	// Go's functions keep no registers, and its linker's tables do not say so.
	compiledByGo := img.Section(".gopclntab") != nil || img.Section(".data.rel.ro.gopclntab") != nil
	start, _ := img.Start()
	c.unwind = &unwind.Code{Source: c.name, Table: table, Err: err, Start: start, Functions: c, NoneKept: compiledByGo}
	return c
}

func (c *code) readMaps(loaded []byte) {
	data := loaded
	if data == nil {
		sections := c.image.StackMaps()
		if len(sections) == 0 || !c.image.Registered {
			return
		}
		unresolved := 0
		for _, s := range sections { // all as one, each where a map may start
			part, done, err := s.Relocated()
			if c.mapsErr = err; err != nil {
				return
			}
			unresolved += object.Undefined(done)
			data = append(data, make([]byte, -len(data)&7)...)
			data = append(data, part...)
		}
		if c.data = data; unresolved > 0 {
			c.mapsErr = fmt.Errorf("%s: %d functions of its stack map are not in it", c.name, unresolved)
			return
		}
	}
	arch, err := c.image.Arch()
	if err == nil {
		c.section, err = stackmap.Parse(data, stackmap.Options{Order: arch.Order})
	}
	if c.section != nil {
		c.rebase(c.section)
	}
	if err != nil {
		c.mapsErr = fmt.Errorf("%s: %w", c.name, err)
		return
	}
	c.maps = entered(c.image, c.section.Maps)
	c.records = stackmap.NewIndex(c.maps...)
}

// rebase adds the load bias to function addresses that lie in no code of the
// image as they are: lld without -z notext leaves the linker's own addresses in
// the memory of a position-independent module.
func (c *code) rebase(s *stackmap.Section) {
	for _, m := range s.Maps {
		for i := range m.Functions {
			f := &m.Functions[i]
			if c.image.CodeAt(f.Addr) == nil && c.image.CodeAt(f.Addr+c.image.Bias) != nil {
				f.Addr += c.image.Bias
			}
		}
	}
}

// entered returns maps with the addresses of functions where their code is, which differ where functions have descriptors.
func entered(image *object.Image, maps []*stackmap.Map) []*stackmap.Map {
	out := slices.Clone(maps)
	for n, m := range maps {
		for k, f := range m.Functions {
			code, ok := image.Entry(f.Addr)
			if !ok || code == f.Addr {
				continue
			}
			if out[n] == m {
				moved := *m
				moved.Functions = slices.Clone(m.Functions)
				out[n] = &moved
			}
			out[n].Functions[k].Addr = code
		}
	}
	return out
}

// newTable makes the unwind table of an image, or nil where it has none.
func newTable(img *object.Image) (*unwind.Table, error) {
	arch, err := img.Arch()
	if err != nil {
		return nil, err
	}
	sections := unwind.Sections{Arch: arch}
	for _, s := range []struct {
		name string // in ELF, or in Mach-O
		into *unwind.Section
	}{
		{".eh_frame", &sections.EHFrame}, {"__TEXT,__eh_frame", &sections.EHFrame},
		{".eh_frame_hdr", &sections.EHFrameHdr}, {".debug_frame", &sections.DebugFrame},
	} {
		section, err := unwindSection(img, s.name)
		if err != nil {
			return nil, err
		}
		if section.Data != nil {
			*s.into = section
		}
	}
	if sections.EHFrame.Data == nil && sections.DebugFrame.Data == nil {
		return nil, nil
	}
	return unwind.NewTable(sections)
}

// unwindSection is a section of unwind information, relocated where the image is not linked.
func unwindSection(img *object.Image, name string) (unwind.Section, error) {
	s := img.Section(name)
	if s == nil || !s.Bits || s.Size == 0 {
		return unwind.Section{}, nil
	}
	if !img.Relocatable() {
		return unwind.Section{Addr: s.Loaded(), Bias: img.Bias, Data: s, Size: int64(s.Size)}, nil
	}
	data, _, err := s.Relocated()
	if err != nil {
		return unwind.Section{}, err
	}
	return unwind.Section{Addr: s.Loaded(), Data: bytes.NewReader(data), Size: int64(len(data))}, nil
}

// scanned makes code of what a scan found: those that parse as a stack map all of whose
// functions lie in executable memory. They are one, as which code lies beside which map is
// not known. A function with records in two of them, of which one may be a leftover of code
// that was freed, is left out.
func (s *space) scanned() *code {
	var maps []*stackmap.Map
	seen := map[string]bool{}
	in := map[machine.Addr]int{}
	for _, f := range s.target.Found {
		m, n, err := stackmap.ParseOne(f.Data, stackmap.Options{Order: s.target.Arch().Order})
		if err != nil || m.Len() == 0 || seen[string(f.Data[:n])] || !s.runs(m) {
			continue
		}
		seen[string(f.Data[:n])] = true
		maps = append(maps, m)
		for i := range m.Functions {
			in[m.Functions[i].Addr]++
		}
	}
	if maps == nil {
		return nil
	}
	var twice int
	for _, m := range maps {
		m.Functions = slices.DeleteFunc(m.Functions, func(f stackmap.Function) bool {
			if in[f.Addr] > 1 {
				twice++
			}
			return in[f.Addr] > 1
		})
	}
	c := &code{name: "stack maps found in memory", jit: true, maps: maps, section: &stackmap.Section{Maps: maps, Dialect: stackmap.V3}, records: stackmap.NewIndex(maps...)}
	c.unwind = &unwind.Code{Functions: c}
	if twice > 0 {
		c.mapsErr = fmt.Errorf("%d functions have several stack maps in memory, of which at most one can be right", twice)
	}
	return c
}

// runs says whether all functions of a map lie in executable memory.
func (s *space) runs(m *stackmap.Map) bool {
	for i := range m.Functions {
		if r, ok := s.target.Mapping(m.Functions[i].Addr); !ok || !r.Exec {
			return false
		}
	}
	return true
}

// covers says whether addr lies in a mapping that holds one of the functions.
func (c *code) covers(t *ptrace.Target, addr machine.Addr) bool {
	r, ok := t.Mapping(addr)
	if !ok || !r.Exec {
		return false
	}
	for _, m := range c.maps {
		for i := range m.Functions {
			if r.Contains(m.Functions[i].Addr) {
				return true
			}
		}
	}
	return false
}

// function returns the name and start of the function that addr lies in.
func (c *code) function(addr machine.Addr) (name string, start machine.Addr, ok bool) {
	s := c.at(addr)
	return s.name, s.start, s.ok
}

// at returns the function that addr lies in, as far as it is known.
func (c *code) at(addr machine.Addr) symbol {
	s, known := c.named[addr]
	if !known {
		s = c.find(addr)
		c.remember(addr, s)
	}
	return s
}

func (c *code) remember(addr machine.Addr, s symbol) {
	if c.named == nil {
		c.named = map[machine.Addr]symbol{}
	}
	c.named[addr] = s
}

func (c *code) find(addr machine.Addr) (s symbol) {
	if c.image != nil {
		if sym, ok := c.image.SymbolAt(addr); ok {
			return symbol{sym.Name, sym.Addr, sym.Size, true, sym.Addr}
		}
	}
	if c.starts == nil {
		for _, m := range c.maps {
			for i := range m.Functions {
				c.starts = append(c.starts, m.Functions[i].Addr)
			}
		}
		slices.Sort(c.starts)
	}
	n, found := slices.BinarySearch(c.starts, addr)
	switch {
	case found:
		s.owner = addr
	case n > 0:
		s.owner = c.starts[n-1]
	}
	return s
}

// Code implements [unwind.Finder].
func (s *space) Code(pc machine.Addr) *unwind.Code {
	if _, why := s.target.JITObjectAt(pc); why != "" {
		if s.lost[why] == nil {
			s.lost[why] = &unwind.Code{Err: errors.New("the JIT object registered here cannot be used: " + why)}
		}
		return s.lost[why]
	}
	if c := s.at(pc); c != nil {
		return c.unwind
	}
	return s.unknown
}

// pltEntry is the size of the entries of a procedure linkage table of x86-64.
const pltEntry = 16

// Function implements [unwind.Functions]. Where there is no symbol, a function with records
// starts before; whether it goes on up to pc is for its instructions to say.
func (c *code) Function(pc machine.Addr) (start, end machine.Addr) {
	if c.image != nil {
		if s := c.image.CodeAt(pc); s != nil && strings.HasPrefix(s.Name, ".plt") {
			start = s.Loaded() + (pc-s.Loaded())/pltEntry*pltEntry
			return start, start + pltEntry
		}
	}
	s := c.at(pc)
	switch {
	case s.ok && isPart(s.name):
		return 0, 0 // it begins in the middle of a frame
	case s.ok:
		return s.start, s.start + machine.Addr(s.size)
	}
	return s.owner, 0
}

// Entry implements [unwind.Functions].
func (c *code) Entry(addr machine.Addr) bool {
	s := c.at(addr)
	return s.ok && s.start == addr && !isPart(s.name)
}

// isPart says whether a symbol is that of a part which gcc or LLVM split off a function: it
// has the function's name and an ending. That of LLVM's basic block sections is .__part.1.
func isPart(symbol string) bool {
	return strings.HasSuffix(symbol, ".cold") || strings.Contains(symbol, ".cold.") || strings.Contains(symbol, ".__part.")
}

// FrameSize implements [unwind.Functions]. It is that of the function with records which
// starts last before pc, when a symbol says that pc is in it, or there are no symbols.
func (c *code) FrameSize(pc machine.Addr) (bytes uint64, ok bool) {
	s := c.at(pc)
	for _, m := range c.maps {
		for i := range m.Functions {
			if f := &m.Functions[i]; s.owner != 0 && f.Addr == s.owner && f.StackSize != stackmap.DynamicStack {
				return f.StackSize, true
			}
		}
	}
	return 0, false
}

// Executable says whether addr lies in executable memory.
func (s *space) executable(addr machine.Addr) bool {
	r, ok := s.target.Mapping(addr)
	return ok && r.Exec
}
