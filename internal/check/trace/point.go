package trace

import (
	"fmt"
	"math"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/progspace"
	"example.com/reframe/ptrace"
)

// Tracepoint is a place in the code with a breakpoint that reports an exit.
type Tracepoint struct {
	Addr     machine.Addr // address of the breakpoint
	Record   uint64
	Site     string       // its kind: stackmap, patchpoint, statepoint, deoptimize or unknown
	Moment   frame.Moment // the state of the site when a thread is stopped at Addr: before, in or after its call
	Function string       // the function that contains Addr; "" if it has no symbol
	Offset   uint64       // offset of Addr in Function
	Module   string       // name of the file or JIT object
	Note     string       // the reason why Addr is not the usual place for the kind of site, or ""
	// Symbol is set if the breakpoint is at the entry of that symbol and reports the calling frame. Such a breakpoint has no record.
	Symbol string
	// Entry reports that the breakpoint is at the entry of Function. Such a breakpoint has no record and no exit.
	Entry bool

	code     *progspace.Objfile
	match    *deopt.Match
	reads    []ptrace.Read
	whole    bool // the record's values require memory or registers that do not come with an event
	naming   bool // functions of a layout compute the names of its VM frames
	wide     bool // the record has values in vector registers
	patching patching

	owners []string      // the functions that start at the map's address of its function
	folded []*Tracepoint // tracepoints of other functions with the same code, to which a hit may also belong

	by int // for a breakpoint at a symbol: the index of the pattern in [Options].At that selected it

	// These are set with Options.WatchCalls for a place to which jumps lead: the call that ends there (0: not watched), the direct jumps, and the jumps
	// that may lead to any place of the function.
	call            machine.Addr
	jumps, computed []machine.Addr

	ready bool        // base, why and doubt are known
	base  frame.Frame // the parts of the frame that are the same at each hit
	why   string      // the note for a frame that may not have passed the site
	doubt bool        // result of Doubtful
}

// Doubtful reports whether the place may be reached without its site. At such a place no values are read, unless the trace saw that the thread passed
// the site.
func (p *Tracepoint) Doubtful() bool { return p.doubt }

// Match returns the record that describes the place; nil for a breakpoint at a symbol or an entry.
func (p *Tracepoint) Match() *deopt.Match { return p.match }

// ExitFilter selects exits. Empty fields select all.
type ExitFilter struct {
	Records  []uint64
	Function *names.Pattern // nil: any
	Sites    []string

	AtReturn bool // set the breakpoint of a statepoint at the return address of its call
	// AtPatchpointReturn sets the breakpoint of a patchpoint at the return address of its call, if the innermost VM frame waits for that call. Only the
	// return gives the result of the call, which the VM's interpreter needs.
	AtPatchpointReturn bool
}

func (x *ExitFilter) wantsRecord(id uint64) bool {
	return len(x.Records) == 0 || slices.Contains(x.Records, id)
}

func (x *ExitFilter) wantsFunction(name string) bool {
	return x.Function == nil || x.Function.Match(name)
}

func (x *ExitFilter) wantsSite(kind string) bool {
	return len(x.Sites) == 0 || slices.Contains(x.Sites, kind)
}

// filters is a list of one or more filters. It selects the places that at least one of them selects.
type filters []ExitFilter

func (l filters) wantsRecord(id uint64) bool {
	return slices.ContainsFunc(l, func(x ExitFilter) bool { return x.wantsRecord(id) })
}

func (l filters) wantsFunction(name string) bool {
	return slices.ContainsFunc(l, func(x ExitFilter) bool { return x.wantsFunction(name) })
}

func (l filters) selects(p *Tracepoint) bool {
	return slices.ContainsFunc(l, func(x ExitFilter) bool { return x.selects(p) })
}

func (x *ExitFilter) selects(p *Tracepoint) bool {
	return x.wantsRecord(p.Record) && x.wantsSite(p.Site) && slices.ContainsFunc(p.owners, x.wantsFunction)
}

// SelectedBy reports whether a filter selects the place. If at is not nil, it reports whether the place is for calls of a function that at matches.
func (p *Tracepoint) SelectedBy(x *ExitFilter, at *names.Pattern) bool {
	if at != nil || p.Symbol != "" {
		return at != nil && p.Symbol != "" && at.Match(p.Symbol)
	}
	return x.selects(p)
}

// SiteKinds lists the values that [ExitFilter].Sites may hold.
var SiteKinds = []string{string(ir.StackMapSite), string(ir.PatchPointSite), string(ir.StatepointSite), string(ir.DeoptimizeSite), deopt.UnknownSite}

// survey finds the places at which exits can be seen.
type survey struct {
	view    *deopt.View
	filters filters
	entries func(string, uint64) bool // as in [Options]
	// fresh means that the objects were registered just now. MCJIT registers them before it makes the code executable; in other objects, memory that
	// is not executable is no longer code.
	fresh   bool
	points  []*Tracepoint
	known   int            // number of records that were read, selected or not
	refused map[string]int // number of records without a breakpoint, by reason
	reasons []string       // the keys of refused, in the order in which they were added
	misfits []string       // reasons why modules differ from the compiled code

	watchCalls bool                              // as in [Options]
	jumps      map[machine.Addr]*progspace.Jumps // the jumps of each function, by its start; nil: unknown
}

func (s *survey) refuse(why string) {
	if s.refused == nil {
		s.refused = map[string]int{}
	}
	if s.refused[why]++; s.refused[why] == 1 {
		s.reasons = append(s.reasons, why)
	}
}

// addObject adds the exits of all records of an object file. The kind of a site determines the record's address: for a stackmap and a patchpoint it
// is the start of the site, for a statepoint and a deoptimize call the return address (LLVM, "Stack maps and patch points"). A deoptimize call does
// not return, and a statepoint's callee may change the live values. So the breakpoint is at the call, where all recorded values are already in place.
func (s *survey) addObject(c *progspace.Objfile) error {
	if c.Records == nil {
		return nil
	}
	text := isa.NewWindow(s.view.Target(), isa.Of(s.view.Target().Arch()))
	ways := map[*stackmap.Function]*sweep{} // nil for a function that is not selected
	entered := map[*stackmap.Function]bool{}
	all := c.Records.Range(0, math.MaxUint64)
	s.known += all.Len()
	for n := range all.Len() {
		e := all.Entry(n)
		way, known := ways[e.Function]
		if !known {
			if slices.ContainsFunc(ownersOf(c, e.Function.Addr), s.filters.wantsFunction) {
				way = &sweep{text: text, at: e.Function.Addr}
			}
			ways[e.Function] = way
		}
		if way == nil {
			continue
		}
		rec := e.Record()
		if !s.filters.wantsRecord(uint64(rec.ID)) {
			continue
		}
		p, why, err := s.tracepoint(c, sites.RecordEntry{Entry: e, Record: rec}, way)
		switch {
		case err != nil:
			return err
		case why != "":
			s.refuse(why)
		case s.filters.selects(p):
			if name := c.Starting(e.Function.Addr).Name; s.entries != nil && !entered[e.Function] && s.entries(name, p.Record) {
				entered[e.Function] = true
				s.points = append(s.points, &Tracepoint{Addr: e.Function.Addr, Entry: true, Function: name, Module: c.Name, code: c, whole: true, wide: true})
			}
			if !s.join(p) {
				s.points = append(s.points, p)
			}
		}
	}
	return nil
}

// tracepoint finds the place of one record's site, or returns the reason why there can be no breakpoint. The place must be in the function that the
// map names, at the start of an instruction: otherwise the breakpoint would corrupt the code.
func (s *survey) tracepoint(c *progspace.Objfile, e sites.RecordEntry, way *sweep) (p *Tracepoint, why string, err error) {
	v := s.view
	function := c.SymbolAt(e.Function.Addr)
	if function.Owner != e.Function.Addr || v.Space().At(e.Function.Addr) != c {
		return nil, "no function starts at the address in the map", nil
	}
	const outside = "the address is outside of the function"
	if e.Addr < e.Function.Addr || e.Addr > e.Function.Addr && c.Within(function, e.Addr-1).Owner != e.Function.Addr {
		return nil, outside, nil
	}
	inside, call := way.to(e.Addr)
	if inside {
		return nil, "the address is inside of an instruction", nil
	}
	p = &Tracepoint{Addr: e.Addr, Record: uint64(e.Record.ID), Module: c.Name, code: c, owners: ownersOf(c, e.Function.Addr)}
	if err := s.matchSite(p, e, call, way.lost); err != nil {
		return nil, "", err
	}
	if p.match.Kind == ir.PatchPointSite && p.match.Moment == frame.Before && s.filters[0].AtPatchpointReturn {
		call = s.moveToReturn(p, e)
	}
	at := c.Within(function, p.Addr)
	switch {
	case at.Owner != e.Function.Addr || v.Space().At(p.Addr) != c:
		return nil, outside, nil
	case !v.Space().Executable(p.Addr) && !(s.fresh && c.JIT):
		return nil, "the address is not executable", nil
	}
	p.Offset = uint64(p.Addr - e.Function.Addr)
	if at.Known {
		p.Function, p.Offset = at.Name, uint64(p.Addr-at.Start)
	}
	if p.Site = string(p.match.Kind); p.Site == "" {
		p.Site = deopt.UnknownSite
	}
	p.Moment, p.patching = p.match.Moment, s.patching(p)
	s.watchReach(p, e.Function.Addr, call)
	p.plan(v.Target().Arch())
	if len(v.VMs()) > 0 {
		f := s.recordFrame(p)
		p.whole, p.naming = p.whole || f.Follows(), f.NamedByVM()
	}
	p.wide = p.wide || s.filters[0].AtReturn && p.Moment == frame.After // the call may have returned a float
	return p, "", nil
}

// recordFrame returns a frame at a place, without values.
func (s *survey) recordFrame(p *Tracepoint) *deopt.Frame {
	f := s.view.FrameAt(p.code, p.Addr, p.match)
	f.Function, f.Record = p.code.SymbolAt(p.Addr).Name, &frame.Record{ID: p.Record, Site: string(p.match.Kind), Moment: p.match.Moment}
	if f.Record.Site == "" {
		f.Record.Site = deopt.UnknownSite
	}
	return f
}

// moveToReturn moves the place of a patchpoint to the return address of the call that LLVM put there, if the innermost VM frame waits for that call.
// It returns the address of the call, or 0.
func (s *survey) moveToReturn(p *Tracepoint, e sites.RecordEntry) (call machine.Addr) {
	f := s.recordFrame(p)
	if !f.WaitsInVM() {
		return 0
	}
	end := f.Matcher(f.Function, e.Function.Addr).PatchpointCall(e.Addr)
	if end == 0 {
		return 0
	}
	p.Addr, p.match.Moment = end, frame.After
	way := &sweep{text: isa.NewWindow(s.view.Target(), isa.Of(s.view.Target().Arch())), at: e.Addr}
	_, call = way.to(end)
	return call
}

// matchSite determines the kind of a record's site, the site in the modules, and its start. call is the call that ends at the record's address, or 0;
// lost means that the instructions up to there could not be decoded.
func (s *survey) matchSite(p *Tracepoint, e sites.RecordEntry, call machine.Addr, lost bool) error {
	f := s.view.FrameAt(p.code, e.Addr, nil)
	m := f.Matcher(p.code.SymbolAt(e.Function.Addr).Name, e.Function.Addr)
	got, _, err := m.Try(e, e.Addr, false)
	if err != nil {
		return err
	}
	// A process may run several versions of a function, one of which is the module's.
	if r := got.Refused; r != nil && !r.Func.Module.Found && len(s.misfits) <= maxWarnings {
		s.misfits = append(s.misfits, r.Why)
	}
	p.match = got
	returns := got.Moment == frame.After || got.Moment == frame.Unknown // the record has the shape of a statepoint
	switch {
	case returns && call != 0:
		if len(got.Sites) > 1 {
			f.Physical().Return = true // with Return set, the call before pc identifies the site
			if again, _, err := m.Try(e, e.Addr, true); err != nil {
				return err
			} else if again != nil {
				got = again
			}
		}
		if got.Kind == "" {
			got.Kind = ir.StatepointSite
		}
		p.match = got
		if got.Moment = frame.After; got.Kind == ir.DeoptimizeSite || !s.filters[0].AtReturn {
			p.Addr, got.Moment = call, frame.Before
		}
	case got.Moment == frame.After:
		why := "no call ends at its return address"
		if lost {
			why = "not all instructions before its return address are known"
		}
		p.Note = fmt.Sprintf("%s: the breakpoint is at the return address of the %s", why, got.Kind)
	case got.Kind == "" && m.PatchpointCall(e.Addr) != 0:
		got.Kind, got.Moment = ir.PatchPointSite, frame.Before
	}
	return nil
}

// isGeneral reports whether a register is a general register, whose value comes with every hit.
func isGeneral(arch *machine.Arch, reg machine.DWARFReg) bool {
	info, known := arch.Register(reg)
	return known && info.Class == machine.General
}

// Two ranges of memory with at most this distance, in bytes, are read as one.
const joinDistance = 64

// plan selects the registers and the memory that must come with a hit to read the record's values.
func (p *Tracepoint) plan(arch *machine.Arch) {
	for _, l := range p.match.Entry.Record.Locations {
		switch {
		case l.Kind == stackmap.Indirect && l.Size > 0 && isGeneral(arch, l.Reg):
			p.reads = append(p.reads, ptrace.Read{Reg: l.Reg, Offset: int64(l.Offset), Size: int(l.Size)})
		case l.Kind == stackmap.Register:
			p.wide = p.wide || !isGeneral(arch, l.Reg)
		}
	}
	slices.SortFunc(p.reads, func(a, b ptrace.Read) int {
		if a.Reg != b.Reg {
			return int(a.Reg) - int(b.Reg)
		}
		return int(a.Offset - b.Offset) // both are of 32 bits
	})
	n := 0
	for _, r := range p.reads {
		if n > 0 {
			last := &p.reads[n-1]
			end := max(last.Offset+int64(last.Size), r.Offset+int64(r.Size))
			if r.Reg == last.Reg && r.Offset <= last.Offset+int64(last.Size)+joinDistance && end-last.Offset <= ptrace.MaxRead {
				last.Size = int(end - last.Offset)
				continue
			}
		}
		p.reads[n] = r
		n++
	}
	p.reads = p.reads[:n]
	p.whole = n > ptrace.MaxReads || slices.ContainsFunc(p.reads, func(r ptrace.Read) bool { return r.Size > ptrace.MaxRead })
}
