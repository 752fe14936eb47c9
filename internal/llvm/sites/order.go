package sites

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
	"example.com/reframe/internal/machine/object"
)

// Sites that share an id, such as those that rewrite-statepoints-for-gc creates, are distinguished by their order: compiled code reaches its records in the
// order in which the module reaches their sites.

// ordered holds the possible sites of the records of one function, according to their order.
type ordered struct {
	sites map[int64]map[*ir.Site]bool // possible sites, by the offset of the record in the section
	why   string                      // the reason why the order does not restrict the sites, or ""
}

// ordering is the pair of a module's function and a stack map's function whose orders were compared.
type ordering struct {
	f        *ir.Func
	compiled *stackmap.Function
}

// inOrder drops candidate sites whose order contradicts that of the record.
func (ms *Modules) inOrder(of Namer, e RecordEntry, c Candidates) Candidates {
	if len(c.Sites) < 2 || c.Why != "" {
		return c
	}
	f := c.Sites[0].Func
	if slices.ContainsFunc(c.Sites, func(s *ir.Site) bool { return s.Func != f }) {
		return c
	}
	key := ordering{f, e.Function}
	o := ms.orders[key]
	if o == nil {
		o = ms.order(of, e, f)
		ms.orders[key] = o
	}
	if o.why != "" {
		c.order = "the order of its records does not determine the site: " + o.why
		return c
	}
	var left []*ir.Site
	for _, s := range c.Sites {
		if o.sites[e.Record.Pos][s] {
			left = append(left, s)
		}
	}
	if len(left) > 1 {
		c.order = "the order of its records does not determine the site: several sites are possible in this position"
	}
	if len(left) > 0 { // an empty result is not trusted, because each record has a site
		c.Sites = left
	}
	return c
}

// order compares the order of the records in a function's code with the order of the sites in the module.
func (ms *Modules) order(of Namer, e RecordEntry, f *ir.Func) *ordered {
	not := func(format string, args ...any) *ordered { return &ordered{why: fmt.Sprintf(format, args...)} }
	code, why := ms.stretchOf(of.File(), e.Function.Addr)
	if why != "" {
		return not("%s", why)
	}
	byID, err := ms.of(f)
	if err != nil {
		return not("%v", err)
	}
	sites := inProgram(byID, Reachable(f))
	if twice := returnsTwice(f); twice != "" {
		return not("@%s may return twice", twice)
	}
	records := e.Function.Len()
	if (records+1)*(len(sites)+1) > MaxPairs || records > MaxPairs {
		return not(tooMuch)
	}
	number := map[*ir.Site]int{}
	for k, s := range sites {
		number[s] = k + 1
	}
	may := [][]bool{make([]bool, len(sites)+1)}
	may[0][0] = true
	var points []point
	var positions []int64
	budget := min(MaxSteps, ms.steps)
	ms.steps -= budget
	defer func() { ms.steps += max(budget, 0) }()
	for rec := range e.Map.Records(e.Function) {
		row := make([]bool, len(sites)+1)
		p := point{offset: int(rec.Offset), called: true, starts: true}
		own := RecordEntry{stackmap.Entry{Map: e.Map, Function: e.Function}, rec}
		any := false
		for _, s := range byID[uint64(rec.ID)] {
			k, emitted := number[s]
			if budget--; !emitted || Misfit(s, own) != "" {
				continue
			}
			row[k], any = true, true
			p.called = p.called && StatepointLike(s)
			p.starts = p.starts && s.Kind == ir.PatchPointSite && s.PatchBytes > 0
		}
		if budget < 0 {
			return not(tooMuch)
		}
		if !any {
			return not("record %d at +%#x matches no site of @%s", uint64(rec.ID), rec.Offset, f.Name)
		}
		may, points, positions = append(may, row), append(points, p), append(positions, rec.Pos)
	}
	code.pads = invokes(f)
	ofCode, calls, why := code.course(points, &budget)
	if why != "" {
		return not("%s", why)
	}
	ofModule := CourseOfModule(f, sites)
	if ofModule == nil {
		return not(tooMuch)
	}
	code.dropOthersCallees(points, sites, calls, may)
	if !Together(ofCode, ofModule, may, &budget) {
		return not(tooMuch)
	}
	o := &ordered{sites: map[int64]map[*ir.Site]bool{}}
	found := make([]bool, len(sites)+1)
	for k, pos := range positions {
		o.sites[pos] = map[*ir.Site]bool{}
		for n, s := range sites {
			if may[k+1][n+1] {
				o.sites[pos][s], found[n+1] = true, true
			}
		}
		if len(o.sites[pos]) == 0 {
			return not("the order of the records in the code differs from that of the sites in the module")
		}
	}
	for n, s := range sites {
		if !found[n+1] && !isGuard(s) {
			return not("the site of line %d of the module has no record in its position", s.Instr.Line)
		}
	}
	return o
}

// inProgram returns the reachable sites of a function in program order.
func inProgram(byID map[uint64][]*ir.Site, reached map[*ir.Block]bool) []*ir.Site {
	var all []*ir.Site
	seen := map[*ir.Site]bool{}
	for _, list := range byID {
		for _, s := range list {
			if !seen[s] && reached[s.Instr.Block] {
				seen[s] = true
				all = append(all, s)
			}
		}
	}
	slices.SortFunc(all, func(a, b *ir.Site) int {
		return cmp.Or(a.Instr.Block.Index-b.Instr.Block.Index, a.Instr.Index-b.Instr.Index)
	})
	return all
}

// invokes reports whether a function has landing pads. A call may return to one, which no instruction of the code shows.
func invokes(f *ir.Func) bool {
	blocks, _ := f.Body()
	return slices.ContainsFunc(blocks, func(b *ir.Block) bool { return b.Instrs[len(b.Instrs)-1].Op == ir.OpInvoke })
}

// returnsTwice returns the name of a function that f calls and that may return twice, such as setjmp, or "".
func returnsTwice(f *ir.Func) string {
	blocks, _ := f.Body()
	for _, b := range blocks {
		for _, in := range b.Instrs {
			if in.Call == nil {
				continue
			}
			for _, v := range append([]ir.Value{in.Call.Callee}, in.Args...) { // the callee of a statepoint is an argument
				if g, ok := v.(*ir.Func); ok && slices.Contains(returningTwice, g.Name) {
					return g.Name
				}
			}
		}
	}
	return ""
}

var returningTwice = []string{"setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp", "vfork", "getcontext", "llvm.eh.sjlj.setjmp"}

// linkedCode is the relocated code of a section, and its relocations.
type linkedCode struct {
	code   []byte
	filled []object.Relocation // relocations of the section, in the order of their offsets
	err    error
}

// stretchOf returns the code of the function that starts at an address of an image.
func (ms *Modules) stretchOf(img *object.Image, start machine.Addr) (*ordersCode, string) {
	if img == nil {
		return nil, "its code is in no known object"
	}
	arch, err := img.Arch()
	set := isa.Of(arch)
	if err != nil || set == nil || set.Step == nil {
		return nil, "instructions of its architecture are not supported"
	}
	section := img.CodeAt(start)
	size := uint64(0)
	var names []string
	for _, s := range img.SymbolsStarting(start) {
		size = max(size, s.Size)
		names = append(names, s.Name)
	}
	if section == nil || size == 0 || size > MaxFunction || uint64(start-section.Loaded())+size > section.Size {
		return nil, "no symbol gives the size of its code"
	}
	c := &ordersCode{stretch: stretch{start: start, step: set.Step}, arch: arch, image: img, at: uint64(start - section.Loaded())}
	if !img.Relocatable() {
		c.code = make([]byte, size)
		if _, err := section.ReadAt(c.code, int64(c.at)); err != nil {
			return nil, err.Error()
		}
	} else {
		l := ms.linked[section]
		if l == nil {
			l = &linkedCode{}
			l.code, l.filled, l.err = section.Relocated()
			slices.SortStableFunc(l.filled, func(a, b object.Relocation) int { return cmp.Compare(a.Offset, b.Offset) })
			ms.linked[section] = l
		}
		if l.err != nil {
			return nil, l.err.Error()
		}
		c.code, c.filled = l.code[c.at:c.at+size], l.filled
	}
	c.moved = func(offset, size int) bool {
		r, ok := c.relocation(offset, size)
		return ok && !r.Defined
	}
	for _, name := range names {
		for _, ending := range []string{".cold", ".__part.1", ".__part.0"} {
			if _, ok := img.Lookup(name + ending); ok {
				c.parts = true
			}
		}
	}
	return c, ""
}

// ordersCode is the code of a function in an image.
type ordersCode struct {
	stretch
	arch   *machine.Arch
	image  *object.Image
	at     uint64 // offset in its section
	filled []object.Relocation
}

// relocation returns the relocation of a field in an instruction; ok is false if there is none.
func (c *ordersCode) relocation(offset, size int) (object.Relocation, bool) {
	from := c.at + uint64(offset)
	k, _ := slices.BinarySearchFunc(c.filled, from, func(r object.Relocation, at uint64) int { return cmp.Compare(r.Offset, at) })
	if k == len(c.filled) || c.filled[k].Offset >= from+uint64(size) {
		return object.Relocation{}, false
	}
	return c.filled[k], true
}

// callee returns the possible names of the function that a call in the code calls, or nil if unknown.
func (c *ordersCode) callee(offset int) []string {
	s := c.steps[offset]
	r, filled := c.relocation(offset, s.Size)
	if of := isa.Of(c.arch); !filled && s.Target == 0 && s.How == isa.StepCall && of.LoadedTarget != nil {
		if load, to, ok := of.LoadedTarget(c.code, c.start, offset); ok {
			r, filled = c.relocation(load, of.Length(c.code[load:]))
			s.Target = to
		}
	}
	switch {
	case filled && r.Symbol() != "":
		return spellings(c.image, r.Symbol())
	case filled && !r.Defined, s.Target == 0:
		return nil
	}
	var names []string
	for _, symbol := range c.image.SymbolsStarting(s.Target) {
		names = append(names, spellings(c.image, symbol.Name)...)
	}
	return names
}

// dropOthersCallees drops candidate sites that call another function than the call before the record.
func (c *ordersCode) dropOthersCallees(points []point, sites []*ir.Site, calls map[int]int, may [][]bool) {
	for k, p := range points {
		call, seen := calls[p.offset]
		if !p.called || !seen {
			continue
		}
		names := c.callee(call)
		row := may[k+1]
		calls := func(s *ir.Site) bool { name, known := calledBy(s); return known && slices.Contains(names, name) }
		// A linker may have inserted a stub, so drop sites only if one of them calls the callee.
		any := false
		for n, s := range sites {
			any = any || row[n+1] && calls(s)
		}
		for n, s := range sites {
			if _, known := calledBy(s); any && row[n+1] && known && s.PatchBytes == 0 && !calls(s) {
				row[n+1] = false
			}
		}
	}
}

// calledBy returns the name of the function that a site calls; known is false if the module does not name it.
func calledBy(s *ir.Site) (name string, known bool) {
	if LeavesFunction(s) {
		return "__llvm_deoptimize", true
	}
	f, direct := s.Callee.(*ir.Func)
	if !direct || strings.HasPrefix(f.Name, "llvm.") {
		return "", false
	}
	return f.Name, true
}
