package progspace

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/ptrace"
)

// Objfile is one source of code: a module, a registered JIT object, or memory in which a scan found a stack map. Its contents are read once.
type Objfile struct {
	Name  string
	Image *object.Image // nil if a scan found it
	JIT   bool

	Records *stackmap.Index
	Data    []byte            // stack map section of an unlinked object, as in the image
	Section *stackmap.Section // the readable part of the stack maps, even if MapsErr is set
	Maps    []*stackmap.Map
	MapsErr error // the reason why a stack map section has no records, or nil
	Unwind  *unwind.Code
	// Relocations holds the relocations of an unlinked object's code by address; nil until needed.
	Relocations map[machine.Addr]object.Relocation
	named       map[machine.Addr]Symbol // cache by address: recursion looks up the same addresses often
	starts      []machine.Addr          // starts of the functions of maps, sorted; nil until needed
	rows        map[machine.Addr]rows   // functions of maps by address; nil until needed
}

// Symbol is the function that contains an address.
type Symbol struct {
	Name  string
	Start machine.Addr
	Size  uint64
	Known bool // there is a symbol
	// Owner is the start of the function whose records may describe the address. It is the start of the symbol. Without a symbol, it is the start of
	// the nearest function with records before the address.
	Owner machine.Addr
}

// Space finds the code at the addresses of one target.
type Space struct {
	Target  *ptrace.Target
	Modules map[*ptrace.Module]*Objfile
	Objects map[*object.Image]*Objfile
	Found   *Objfile // the code of the stack maps that a scan of memory found, or nil
	unknown *unwind.Code
	lost    map[string]*unwind.Code // unusable objects, by reason
}

// New returns the code of a target. Nothing has been read yet.
func New(t *ptrace.Target) *Space {
	s := &Space{Target: t, Modules: map[*ptrace.Module]*Objfile{}, Objects: map[*object.Image]*Objfile{},
		unknown: &unwind.Code{}, lost: map[string]*unwind.Code{}}
	s.Found = s.scanned()
	return s
}

// At returns the code that contains addr, or nil.
func (s *Space) At(addr machine.Addr) *Objfile {
	if img, _ := s.Target.JITObjectAt(addr); img != nil {
		return s.OfObject(img)
	}
	if m := s.Target.ModuleAt(addr); m != nil && m.Image != nil { // a memfd with code has no image
		return s.OfModule(m)
	}
	if s.Found != nil && s.Found.covers(s.Target, addr) {
		return s.Found
	}
	return nil
}

// OfObject returns the code of a registered object.
func (s *Space) OfObject(img *object.Image) *Objfile {
	c := s.Objects[img]
	if c == nil {
		c = NewObjfile(img, nil)
		s.Objects[img] = c
	}
	return c
}

// OfModule returns the code of a module that has an image.
func (s *Space) OfModule(m *ptrace.Module) *Objfile {
	c := s.Modules[m]
	if c == nil {
		c = NewObjfile(m.Image, m.StackMaps)
		s.Modules[m] = c
	}
	return c
}

// NewObjfile reads stack maps and unwind information of an image. loaded is the stack map section in memory; nil means the object's own section.
func NewObjfile(img *object.Image, loaded []byte) *Objfile {
	c := &Objfile{Name: img.Name, Image: img, JIT: img.Registered}
	c.readMaps(loaded)
	table, err := cfi.TableOf(img)
	// Go's functions preserve no registers, and its linker's tables do not show that.
	compiledByGo := img.CompiledByGo()
	start, _ := img.Start()
	c.Unwind = &unwind.Code{Source: c.Name, Table: table, Err: err, Start: start, Functions: c, NoneKept: compiledByGo}
	return c
}

func (c *Objfile) readMaps(loaded []byte) {
	data := loaded
	if data == nil {
		sections := c.Image.StackMaps()
		if len(sections) == 0 || !c.Image.Registered {
			return
		}
		unresolved := 0
		for _, s := range sections { // concatenate the sections, aligned as stack maps must be
			part, done, err := s.Relocated()
			if c.MapsErr = err; err != nil {
				return
			}
			unresolved += object.Undefined(done)
			data = append(data, make([]byte, -len(data)&7)...)
			data = append(data, part...)
		}
		if c.Data = data; unresolved > 0 {
			c.MapsErr = fmt.Errorf("%s: %d functions of its stack map are not in it", c.Name, unresolved)
			return
		}
	}
	arch, err := c.Image.Arch()
	if err == nil {
		c.Section, err = stackmap.Parse(data, stackmap.Options{Order: arch.Order})
	}
	if c.Section != nil {
		c.Rebase(c.Section)
	}
	if err != nil {
		c.MapsErr = fmt.Errorf("%s: %w", c.Name, err)
		return
	}
	c.Maps = Entered(c.Image, c.Section.Maps)
	c.Records = stackmap.NewIndex(c.Maps...)
}

// Rebase adds the load bias to function addresses that are not in the code of the image. lld without -z notext leaves the link-time addresses in the
// memory of a position-independent module.
func (c *Objfile) Rebase(s *stackmap.Section) {
	for _, m := range s.Maps {
		for i := range m.Functions {
			f := &m.Functions[i]
			if c.Image.CodeAt(f.Addr) == nil && c.Image.CodeAt(f.Addr+c.Image.Bias) != nil {
				f.Addr += c.Image.Bias
			}
		}
	}
}

// Entered returns maps whose function addresses are the addresses of the code. They differ from the recorded ones if functions have descriptors.
func Entered(image *object.Image, maps []*stackmap.Map) []*stackmap.Map {
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

// scanned makes one Objfile of the results of a scan: those that parse as a stack map whose functions are all in executable memory. It makes one
// Objfile because memory does not show which code belongs to which map. A function with records in two maps is omitted: one of them may be left over
// from freed code.
func (s *Space) scanned() *Objfile {
	var maps []*stackmap.Map
	seen := map[string]bool{}
	in := map[machine.Addr]int{}
	for _, f := range s.Target.Found {
		m, n, err := stackmap.ParseOne(f.Data, stackmap.Options{Order: s.Target.Arch().Order})
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
	c := &Objfile{Name: "stack maps found in memory", JIT: true, Maps: maps, Section: &stackmap.Section{Maps: maps, Dialect: stackmap.V3}, Records: stackmap.NewIndex(maps...)}
	c.Unwind = &unwind.Code{Functions: c}
	if twice > 0 {
		c.MapsErr = fmt.Errorf("%d functions have several stack maps in memory, of which at most one can be right", twice)
	}
	return c
}

// runs reports whether all functions of a map are in executable memory.
func (s *Space) runs(m *stackmap.Map) bool {
	for i := range m.Functions {
		if r, ok := s.Target.Mapping(m.Functions[i].Addr); !ok || !r.Exec {
			return false
		}
	}
	return true
}

// covers reports whether addr is in a mapping that contains one of the functions.
func (c *Objfile) covers(t *ptrace.Target, addr machine.Addr) bool {
	r, ok := t.Mapping(addr)
	if !ok || !r.Exec {
		return false
	}
	for _, m := range c.Maps {
		for i := range m.Functions {
			if r.Contains(m.Functions[i].Addr) {
				return true
			}
		}
	}
	return false
}

// NameAt returns the name and start of the function that contains addr.
func (c *Objfile) NameAt(addr machine.Addr) (name string, start machine.Addr, ok bool) {
	s := c.SymbolAt(addr)
	return s.Name, s.Start, s.Known
}

// SymbolAt returns the function that contains addr, or only its Owner if no symbol covers addr.
func (c *Objfile) SymbolAt(addr machine.Addr) Symbol {
	s, known := c.named[addr]
	if !known {
		s = c.find(addr)
		c.remember(addr, s)
	}
	return s
}

func (c *Objfile) remember(addr machine.Addr, s Symbol) {
	if c.named == nil {
		c.named = map[machine.Addr]Symbol{}
	}
	c.named[addr] = s
}

func (c *Objfile) find(addr machine.Addr) (s Symbol) {
	if c.Image != nil {
		if sym, ok := c.Image.SymbolAt(addr); ok {
			return Symbol{sym.Name, sym.Addr, sym.Size, true, sym.Addr}
		}
	}
	if c.starts == nil {
		for _, m := range c.Maps {
			for i := range m.Functions {
				c.starts = append(c.starts, m.Functions[i].Addr)
			}
		}
		slices.Sort(c.starts)
	}
	n, found := slices.BinarySearch(c.starts, addr)
	switch {
	case found:
		s.Owner = addr
	case n > 0:
		s.Owner = c.starts[n-1]
	}
	return s
}

// Code implements [unwind.Finder].
func (s *Space) Code(pc machine.Addr) *unwind.Code {
	if _, why := s.Target.JITObjectAt(pc); why != "" {
		if s.lost[why] == nil {
			s.lost[why] = &unwind.Code{Err: errors.New("the JIT object registered here cannot be used: " + why)}
		}
		return s.lost[why]
	}
	if c := s.At(pc); c != nil {
		return c.Unwind
	}
	return s.unknown
}

// pltEntry is the size of the entries of a procedure linkage table of x86-64.
const pltEntry = 16

// linkageAt returns the procedure linkage table that contains an address, or nil.
func (c *Objfile) linkageAt(addr machine.Addr) *object.Section {
	if s := c.Image.CodeAt(addr); s != nil && strings.HasPrefix(s.Name, ".plt") {
		return s
	}
	return nil
}

// Linkage implements [unwind.Functions].
func (c *Objfile) Linkage(addr machine.Addr) bool { return c.Image != nil && c.linkageAt(addr) != nil }

// Function implements [unwind.Functions]. Without a symbol it returns the nearest function with records before pc; the caller must check by its
// instructions that it extends to pc.
func (c *Objfile) Function(pc machine.Addr) (start, end machine.Addr) {
	if c.Image != nil {
		if s := c.linkageAt(pc); s != nil {
			start = s.Loaded() + (pc-s.Loaded())/pltEntry*pltEntry
			return start, start + pltEntry
		}
	}
	s := c.SymbolAt(pc)
	switch {
	case s.Known && isPart(s.Name):
		return 0, 0 // the part runs in the frame that its function has set up
	case s.Known:
		return s.Start, s.Start + machine.Addr(s.Size)
	}
	return s.Owner, 0
}

// Entry implements [unwind.Functions].
func (c *Objfile) Entry(addr machine.Addr) bool {
	s := c.SymbolAt(addr)
	return s.Known && s.Start == addr && !isPart(s.Name)
}

// isPart reports whether a symbol names a part that gcc or LLVM split off a function. Such a symbol is the function's name with a suffix. The suffix
// of LLVM's basic block sections is .__part.1.
func isPart(symbol string) bool {
	return strings.HasSuffix(symbol, ".cold") || strings.Contains(symbol, ".cold.") || strings.Contains(symbol, ".__part.")
}

// FrameSize implements [unwind.Functions]. It returns the frame size of the last function with records before pc, if a symbol shows that pc is in it,
// or if there are no symbols.
func (c *Objfile) FrameSize(pc machine.Addr) (bytes uint64, ok bool) {
	s := c.SymbolAt(pc)
	for _, m := range c.Maps {
		for i := range m.Functions {
			if f := &m.Functions[i]; s.Owner != 0 && f.Addr == s.Owner && f.StackSize != stackmap.DynamicStack {
				return f.StackSize, true
			}
		}
	}
	return 0, false
}

// Executable reports whether addr is in executable memory.
func (s *Space) Executable(addr machine.Addr) bool {
	r, ok := s.Target.Mapping(addr)
	return ok && r.Exec
}

// Blobs implements [sites.Namer].
func (c *Objfile) Blobs() []*stackmap.Map { return c.Maps }

// File implements [sites.Namer].
func (c *Objfile) File() *object.Image { return c.Image }

// Symbols implements [sites.Namer].
func (c *Objfile) Symbols(m *stackmap.Map, n int) []string {
	if c.Image == nil {
		return nil
	}
	return SymbolsAt(c.Image, m.Functions[n].Addr)
}

// SymbolsAt returns the names of the symbols that start at an address.
func SymbolsAt(image *object.Image, addr machine.Addr) []string {
	var names []string
	for _, s := range image.SymbolsStarting(addr) {
		names = append(names, s.Name)
	}
	return names
}

// All returns the code read so far.
func (s *Space) All() []*Objfile {
	var out []*Objfile
	if s.Found != nil {
		out = append(out, s.Found)
	}
	for _, c := range s.Modules {
		out = append(out, c)
	}
	for _, c := range s.Objects {
		out = append(out, c)
	}
	return out
}

// WithRecords returns all code of the target that has records: registered objects, files, and the results of a search of memory.
func (s *Space) WithRecords() []*Objfile {
	var out []*Objfile
	seen := map[*Objfile]bool{}
	add := func(addr machine.Addr) {
		if c := s.At(addr); c != nil && c.Records != nil && !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	for _, img := range s.Target.Given() {
		for _, code := range img.Code() {
			add(code.Loaded())
		}
	}
	for _, r := range s.Target.Registries {
		for _, e := range r.Entries {
			if img := e.Image(); img != nil && len(img.StackMaps()) > 0 {
				for _, code := range img.Code() {
					add(code.Loaded())
				}
			}
		}
	}
	for _, m := range s.Target.Modules {
		if m.Image != nil && m.StackMaps != nil {
			for _, code := range m.Image.Code() {
				add(code.Loaded())
			}
		}
	}
	if s.Found != nil {
		out = append(out, s.Found)
	}
	return out
}

// WithID yields the records with an id.
func (c *Objfile) WithID(id uint64) iter.Seq[sites.RecordEntry] {
	return func(yield func(sites.RecordEntry) bool) {
		for _, m := range c.Maps {
			for n := range m.Functions {
				f := &m.Functions[n]
				for rec := range m.Records(f) {
					at := stackmap.Entry{Addr: f.Addr + machine.Addr(rec.Offset), Map: m, Function: f}
					if uint64(rec.ID) == id && !yield(sites.RecordEntry{Entry: at, Record: rec.Clone()}) {
						return
					}
				}
			}
		}
	}
}

// Within returns the function that contains addr. It first tries the given function, which is usually right.
func (c *Objfile) Within(function Symbol, addr machine.Addr) Symbol {
	if function.Known && function.Start <= addr && uint64(addr-function.Start) < function.Size {
		return function
	}
	return c.SymbolAt(addr)
}

// Starting is SymbolAt for an address at which a function should start. It is faster in an unlinked object, in which a search for the symbol that
// covers an address takes time proportional to the number of symbols.
func (c *Objfile) Starting(addr machine.Addr) Symbol {
	if _, known := c.named[addr]; !known && c.Image != nil {
		if list := c.Image.SymbolsStarting(addr); len(list) > 0 && list[0].Size > 0 {
			c.remember(addr, Symbol{list[0].Name, addr, list[0].Size, true, addr})
		}
	}
	return c.SymbolAt(addr)
}
