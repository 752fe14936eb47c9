package deopt

import (
	"fmt"

	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
	"example.com/reframe/internal/machine/isa/amd64"
	"example.com/reframe/internal/progspace/patched"
	"example.com/reframe/internal/vm/vmlayout"
)

// Match is a record that was found for the pc of a frame, with the sites that it may belong to.
type Match struct {
	Entry   sites.RecordEntry
	Site    *ir.Site    // nil if no module identifies the site
	Kind    ir.SiteKind // "" if unknown
	Moment  frame.Moment
	also    []*Match      // other matches at the same address
	patched *patched.Code // the place at which a runtime wrote a call, or a jump to a stub; nil for other matches
	// written holds the registers that the code in a site's region changes before its call.
	written amd64.Set
	sites.Candidates
	Moves []x86asm.Inst // instructions between the pending call of the frame and the stackmap after it; nil for none

	compared bool
	agreed   []sites.Agreed // the types and names on which all its sites agree; nil if they were not compared yet

	repeats [][]int // the slots of each SSA value that the record has more than once; nil if not computed yet

	read   *vmlayout.Reading // the result of reading the record by a VM layout, cached
	readAt frame.Moment      // the moment for which read was made
}

// UnknownSite is the kind of a site in [frame.Record] if no module identifies the site.
const UnknownSite = "unknown"

// Matcher finds the record of one frame. [Frame.Matcher] makes one.
type Matcher struct {
	Arch    *machine.Arch
	Memory  machine.Memory // contains the code
	Records *stackmap.Index
	// Function is the start of the frame's function. Records of other functions do not describe the frame.
	Function machine.Addr
	// calls reports whether the call that returns to ret may call the function with this name in a module. A nil calls permits any function.
	calls func(by *ir.Func, name string, ret machine.Addr) bool
	// Sites returns the sites of the modules that a record may belong to. It fails if the module cannot belong to the process.
	Sites func(sites.RecordEntry) (sites.Candidates, error)
}

// RecordNote is a note about a record at or near the pc of a frame.
type RecordNote struct {
	Record uint64 // the record's id
	Text   string
}

// refused returns the note that says why a record does not match.
func refused(e sites.RecordEntry, why string) RecordNote {
	id := uint64(e.Record.ID)
	return RecordNote{id, fmt.Sprintf("record %d does not match: %s", id, why)}
}

// Find returns the record of the frame at pc. ret is set if pc is a return address. If there is no record, notes list the nearby records and the
// reasons for rejecting them.
//
// The meaning of a record's offset depends on the kind of its site (LLVM, "Stack maps and patch points"): the point itself for a stackmap, the start
// of the patchable region for a patchpoint, the return address for a statepoint and a deoptimize call. Neither the kind nor the length of the region
// is recorded.
func (m *Matcher) Find(pc machine.Addr, ret bool) (found *Match, notes []RecordNote, err error) {
	if m.Records == nil {
		return nil, nil, nil
	}
	var matches []*Match
	refuse := func(e sites.RecordEntry, why string) {
		notes = append(notes, refused(e, why))
	}
	near := m.Records.Range(pc-min(pc, sites.MaxPatch), pc+1)
	for n := max(0, near.Len()-sites.MaxNear); n < near.Len(); n++ { // entries at pc come last
		if near.Entry(n).Function.Addr != m.Function {
			continue
		}
		e := sites.RecordEntry{Entry: near.Entry(n), Record: near.Entry(n).Record()}
		got, why, err := m.Try(e, pc, ret)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case got != nil:
			matches = append(matches, got)
		case why != "":
			refuse(e, why)
		}
	}
	if len(matches) == 0 {
		more, others, err := m.inRegion(pc, ret)
		if err != nil {
			return nil, nil, err
		}
		matches, notes = more, append(notes, others...)
	}
	if len(matches) == 0 && !ret {
		if matches, err = m.atCall(pc); err != nil {
			return nil, nil, err
		}
	}
	if len(matches) == 0 && ret && len(notes) == 0 {
		if matches, err = m.afterCall(pc); err != nil {
			return nil, nil, err
		}
	}
	if len(matches) == 0 {
		if e, ok := m.Records.Nearest(pc); ok && len(notes) == 0 && e.Function.Addr == m.Function {
			notes = append(notes, RecordNote{uint64(e.Record().ID), "no record here; nearest is record " + nearest(e, pc)})
		}
		return nil, notes, nil
	}
	matches[0].also = matches[1:]
	return matches[0], notes, nil
}

// inRegion returns the statepoints whose region of nops contains pc. A runtime has written a call over the nops, and the record is after them. Only a
// module gives the size of the region.
func (m *Matcher) inRegion(pc machine.Addr, ret bool) (matches []*Match, notes []RecordNote, err error) {
	ahead := m.Records.Range(pc+1, pc+sites.MaxPatch+1)
	for n := range min(ahead.Len(), sites.MaxNear) {
		if ahead.Entry(n).Function.Addr != m.Function {
			continue
		}
		e := sites.RecordEntry{Entry: ahead.Entry(n), Record: ahead.Entry(n).Record()}
		got, why, err := m.Try(e, pc, ret)
		switch {
		case err != nil:
			return nil, nil, err
		case got != nil:
			matches = append(matches, got)
		case why != "":
			notes = append(notes, refused(e, why))
		}
	}
	return matches, notes, nil
}

// tryStatepoint checks whether pc is at the start of the patchable region before the record, or after a call that a runtime wrote into that region.
func (m *Matcher) tryStatepoint(got *Match, pc machine.Addr, ret bool) (*Match, string, error) {
	if got.Kind != ir.StatepointSite && got.Kind != ir.DeoptimizeSite || len(got.Sites) == 0 {
		return nil, "", nil
	}
	start := got.Entry.Addr - machine.Addr(regionBytes(got.Sites))
	of := isa.Of(m.Arch)
	switch {
	case pc < start || pc == start && ret || of == nil:
		return nil, "", nil
	case pc == start:
		got.Moment = frame.Before // nothing in the region has run
	case !of.CallFrom(m.Memory, start, pc):
		return nil, "this address is in its region, but no call in the region ends here", nil
	case ret:
		got.Moment, got.written = frame.InCall, m.writes(start, pc)
	default:
		got.Moment = frame.After
	}
	return got, "", nil
}

// regionBytes returns the smallest region among the statepoint sites that fit.
func regionBytes(fit []*ir.Site) uint64 {
	bytes := uint64(sites.MaxPatch)
	for _, s := range fit {
		bytes = min(bytes, s.PatchBytes)
	}
	return bytes
}

// atCall returns the records of statepoints and deoptimize calls whose call instruction is at pc. The call has not run yet, so all recorded values
// are in place.
func (m *Matcher) atCall(pc machine.Addr) (matches []*Match, err error) {
	of := isa.Of(m.Arch)
	if of == nil {
		return nil, nil
	}
	code, err := machine.ReadSome(m.Memory, pc, make([]byte, of.Longest))
	if err != nil || !of.IsCall(code) {
		return nil, nil
	}
	end := pc + machine.Addr(of.Length(code))
	at := m.Records.Range(end, end+1)
	for n := range min(at.Len(), sites.MaxNear) {
		if at.Entry(n).Function.Addr != m.Function {
			continue
		}
		got, _, err := m.Try(sites.RecordEntry{Entry: at.Entry(n), Record: at.Entry(n).Record()}, end, false)
		if err != nil {
			return nil, err
		}
		if got == nil || got.Kind != ir.StatepointSite && got.Kind != ir.DeoptimizeSite {
			continue // this may be a stackmap after the call, whose values are not in place yet
		}
		got.Moment = frame.Before
		matches = append(matches, got)
	}
	return matches, nil
}

func nearest(e stackmap.Entry, pc machine.Addr) string {
	id := uint64(e.Record().ID)
	if e.Addr <= pc {
		return fmt.Sprintf("%d, %d bytes before", id, uint64(pc-e.Addr))
	}
	return fmt.Sprintf("%d, %d bytes after", id, uint64(e.Addr-pc))
}

// Try checks whether one record describes a frame at pc. got is nil if it does not. why is then the reason, if the record is at or near pc.
func (m *Matcher) Try(e sites.RecordEntry, pc machine.Addr, ret bool) (got *Match, why string, err error) {
	c, err := m.Sites(e)
	if err != nil {
		return nil, "", err
	}
	got = &Match{Entry: e, Kind: sites.KindOf(c.Sites), Candidates: c}
	if len(c.Sites) == 1 {
		got.Site = c.Sites[0]
	}
	_, shaped := e.Record.AsStatepoint()
	if got.Kind == "" && shaped && e.Addr == pc && sites.ByDefault(e.Record.ID) {
		// The record has the shape of a statepoint's, is at pc, and has LLVM's default id for statepoints. Without the id this is not certain: the
		// record of a stackmap after a call may also begin with three constants.
		got.Kind = ir.StatepointSite
	}
	unknown := got.Kind == ""
	isStatepoint := got.Kind == ir.StatepointSite || got.Kind == ir.DeoptimizeSite
	switch {
	case e.Addr > pc:
		return m.tryStatepoint(got, pc, ret)
	case e.Addr != pc:
		return m.tryPatchpoint(got, pc, ret)
	case isStatepoint && ret:
		got.Moment = frame.InCall
		if bytes := regionBytes(c.Sites); len(c.Sites) > 0 && bytes > 0 {
			got.written = m.writes(pc-machine.Addr(bytes), pc)
		}
	case isStatepoint:
		got.Moment = frame.After
	case ret && (got.Kind == ir.PatchPointSite || unknown && m.PatchpointCall(e.Addr) != 0):
		return nil, "its patchpoint starts at this return address, and the call before it is still running", nil
	case ret && !shaped && m.calledNot(pc):
		return nil, "no call ends at this return address now: a patch here was removed or overwritten", nil
	case unknown && (ret || shaped):
		// This is a statepoint whose callee is running or has returned, or a stackmap right after that call. Without a module the two cannot be
		// distinguished.
		got.Moment = frame.Unknown
	default:
		// A stackmap right after a running call has not run yet, but its values are in place. Only the values in caller-saved registers may be lost,
		// and these registers are unavailable in the frame.
		got.Moment = frame.Before
	}
	return got, "", nil
}

// tryPatchpoint checks whether the record before pc is a patchpoint whose call ends at pc.
func (m *Matcher) tryPatchpoint(got *Match, pc machine.Addr, ret bool) (*Match, string, error) {
	if got.Kind != "" && got.Kind != ir.PatchPointSite {
		return nil, "", nil
	}
	start := got.Entry.Addr
	if got.Site != nil {
		// The size of the region is known, and the runtime may have patched any call into it. On arm64 LLVM's own call may be longer than the region.
		if uint64(pc-start) > got.Site.PatchBytes && m.PatchpointCall(start) != pc {
			return nil, "", nil
		}
		if of := isa.Of(m.Arch); of == nil || !of.CallFrom(m.Memory, start, pc) {
			return nil, "this address is in its region, but no call in the region ends here", nil
		}
	} else {
		if m.PatchpointCall(start) != pc {
			return nil, "", nil
		}
		got.Kind = ir.PatchPointSite
	}
	got.Moment, got.written = frame.InCall, m.writes(start, pc)
	if !ret {
		got.Moment = frame.After
	}
	return got, "", nil
}

// PatchpointCall returns the address after the call that LLVM puts at the start of a patchpoint's region, or 0.
func (m *Matcher) PatchpointCall(start machine.Addr) machine.Addr {
	of := isa.Of(m.Arch)
	if of == nil {
		return 0
	}
	var b [isa.LongestPatchpointCall]byte
	code, err := machine.ReadSome(m.Memory, start, b[:])
	if err != nil {
		return 0
	}
	n := of.PatchpointCall(code)
	if n == 0 {
		return 0
	}
	return start + machine.Addr(n)
}

// calledNot reports whether the code before pc is known not to end in a call.
func (m *Matcher) calledNot(pc machine.Addr) bool {
	if m.Arch != machine.AMD64 {
		return false
	}
	called, err := amd64.CallBefore(m.Memory, pc)
	return err == nil && !called
}

// counted reports whether the live values among the record's locations are known, so that live value k has a known location. A statepoint's record
// counts them; for other kinds the module's sites show it.
func (m *Match) counted() bool {
	if m.Kind == "" {
		return false
	}
	if m.Site == nil && m.agreements() == nil {
		for _, s := range m.Sites {
			if a, _ := sites.Align(s, m.Entry); a.At != nil {
				return false
			}
		}
	}
	if m.Kind == ir.StatepointSite || m.Kind == ir.DeoptimizeSite {
		return true
	}
	for _, s := range m.Sites {
		if sites.ShapeOf(s) != sites.ShapeOf(m.Sites[0]) {
			return false
		}
	}
	return len(m.Sites) > 0
}

// recorded returns the locations of the live values, or all locations if the live values are not known.
func (m *Match) recorded() []stackmap.Location {
	switch {
	case !m.counted():
	case len(m.Sites) > 0:
		a, _ := sites.Align(m.Sites[0], m.Entry)
		if a.At != nil {
			return nil // operand k is not at location k
		}
		return m.Entry.Record.Locations[a.First+a.Head:][:a.Live]
	default:
		if sp, ok := m.Entry.Record.AsStatepoint(); ok {
			return sp.Deopt
		}
	}
	return m.Entry.Record.Locations
}

// clobber makes caller-saved registers unavailable: the frame is at the return address of a site whose call has returned.
func clobber(regs *machine.Registers, arch *machine.Arch, kind ir.SiteKind) *machine.Registers {
	out := regs.Clone()
	for _, reg := range arch.Registers() {
		if !arch.Preserved(reg) && reg != arch.PC {
			out.Forget(reg, frame.Because(frame.CallReturned, arch.RegisterName(reg), kind))
		}
	}
	return out
}

// registersAt returns the registers to read the record's locations from: those that have not changed since the record.
func (m *Match) registersAt(f *unwind.Frame, arch *machine.Arch) *machine.Registers {
	regs := f.Registers
	if m.Moment == frame.InCall && arch.Link != arch.PC {
		regs = regs.Clone()
		regs.Forget(arch.Link, frame.Because(frame.LinkRegister, arch.RegisterName(arch.Link)))
	}
	switch {
	case m.Moment == frame.After:
		return clobber(f.AtCall(), arch, m.Kind)
	case m.patched != nil:
		return without(regs, arch, m.patched.Changed, "between the record and the patched call after it")
	}
	return without(regs, arch, m.written, "by the code of its region, before the call")
}

// without returns regs, in which the registers in changed (x86-64) are unavailable. where is a part of the reason.
func without(regs *machine.Registers, arch *machine.Arch, changed amd64.Set, where string) *machine.Registers {
	if changed == 0 {
		return regs
	}
	regs = regs.Clone()
	for reg := range machine.DWARFReg(16) {
		if changed.Has(reg) {
			regs.Forget(reg, frame.Because(frame.MayHaveChanged, arch.RegisterName(reg), where))
		}
	}
	return regs
}

// writes returns the registers that the instructions from start up to the call that ends at pc change.
func (m *Matcher) writes(start, pc machine.Addr) (changed amd64.Set) {
	for at := start; m.Arch == machine.AMD64 && at < pc; {
		inst, known, err := amd64.Read(m.Memory, at)
		next := at + machine.Addr(inst.Len)
		switch {
		case err != nil || inst.Len == 0:
			return ^amd64.Set(0)
		case next == pc:
			return changed // the call itself
		case !known:
			changed = ^amd64.Set(0)
		case !amd64.IsFiller(inst):
			changed |= amd64.Writes(inst)
		}
		at = next
	}
	return changed
}

// memoryAt returns the memory to read the record's locations from: without stack slots that patched code has changed since the record.
func (m *Match) memoryAt(f *unwind.Frame, memory machine.Memory) machine.Memory {
	switch {
	case m.patched == nil:
	case m.patched.Stored:
		return staleMemory{}
	case f.Overwritten != nil && len(f.Overwritten.Stored) > 0:
		return storedMemory{memory, f.Overwritten.Stored}
	}
	return memory
}

// storedMemory is the memory of a frame without the ranges that patched code in the function has changed.
type storedMemory struct {
	machine.Memory
	stored []machine.Range
}

// ReadMemory implements [machine.Memory].
func (s storedMemory) ReadMemory(p []byte, addr machine.Addr) error {
	for _, r := range s.stored {
		if addr < r.End && r.Start < addr+machine.Addr(len(p)) {
			return &machine.MemoryError{Addr: addr, Len: len(p), Why: "the code that was written over the function's has changed it", Code: frame.PatchChanged}
		}
	}
	return s.Memory.ReadMemory(p, addr)
}

// staleMemory fails every read: the frame's slots have changed since its record.
type staleMemory struct{}

// ReadMemory implements [machine.Memory].
func (staleMemory) ReadMemory(p []byte, addr machine.Addr) error {
	return &machine.MemoryError{Addr: addr, Len: len(p), Why: "code between the record and the patched call after it has changed the frame", Code: frame.MayHaveChanged}
}
