package patched

import (
	"fmt"

	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
	"example.com/reframe/internal/machine/isa/amd64"
	"example.com/reframe/internal/progspace"
)

// Code is the shadow of a stackmap's record, or the region of a patchpoint or statepoint, that a runtime has overwritten to invalidate the compiled
// code. The runtime wrote a call, or a jump to code that calls (LLVM, "Stack maps and patch points", llvm.experimental.stackmap).
type Code struct {
	Entry sites.RecordEntry
	Sites sites.Candidates
	// Bytes is the length of the shadow or region, or 0 if no module gives it.
	Bytes uint64
	*progspace.Original
	Left machine.Addr // first overwritten instruction; those before it have run
	last machine.Addr // the address of the call or the jump
	past machine.Addr // the address after that instruction
	Stub machine.Addr // the target of the jump, or of a call whose target pops the return address; 0 for other calls
	// Changed holds the registers that the instructions between the record and Left have written.
	Changed amd64.Set
	Stored  bool // instructions before Left wrote slots of the frame, or moved the stack pointer above some of them
	// Trapped is set if the frame made no call: its thread got a signal or was stopped in the written code.
	Trapped bool
	called  bool // the written code calls Stub, which pops the return address
	prefix  int  // number of instructions of the course before Left
	arm64   bool // arm64 code
}

// Finder finds the frames in patched code.
type Finder struct {
	Space    *progspace.Space
	Modules  *sites.Modules
	Unwinder *unwind.Unwinder

	jumped   []*Code                      // result of [Finder.jumps]; nil until it is needed
	returns  map[machine.Addr][]*Code     // the elements of jumped by the return addresses of the calls to which their jumps lead
	unknown  bool                         // jumped may lack shadows
	onARM64  []arm64Site                  // result of [Finder.arm64Sites]; nil until it is needed
	arm64At  map[machine.Addr][]arm64Site // the elements of onARM64 by the return addresses of the calls to which they lead; nil if there are too many
	branches *arm64Branches               // result of [Finder.Branches]; nil until it is needed
}

// Forget clears the caches, after the process has run.
func (p *Finder) Forget() {
	p.jumped, p.returns, p.unknown, p.onARM64, p.arm64At, p.branches = nil, nil, false, nil, nil, nil
}

// movabs is the length of the instruction that loads a register with 64 bits.
const movabs = 10

// maxShadow bounds the length of a shadow if no module gives it.
const maxShadow = 64

// Covering lists the shadows that contain the call to which f returns; their records have the same address. notes explain why other records near f do
// not match. doubt is set if f may have been in another call that ended at the same address.
func (p *Finder) Covering(f, callee *unwind.Frame) (found []*Code, notes []string, doubt bool) {
	if p.Space.Target.Arch() != machine.AMD64 || !f.Return {
		return nil, nil, false
	}
	c := p.Space.At(f.PC - 1)
	if c == nil || c.Records == nil {
		return nil, nil, false
	}
	owner := c.SymbolAt(f.PC - 1).Owner
	near := c.Records.Range(f.PC-min(f.PC, sites.MaxPatch), f.PC)
	var at machine.Addr // address of the nearest record before pc; the shadow of an earlier record ends there
	for n := near.Len() - 1; n >= max(0, near.Len()-sites.MaxNear); n-- {
		e := near.Entry(n)
		if e.Function.Addr != owner || len(found) > 0 && e.Addr != at {
			break
		}
		s, note := p.shadowOf(c, sites.RecordEntry{Entry: e, Record: e.Record()}, f.PC, at == 0 || at == e.Addr)
		at = e.Addr
		if s == nil {
			if note != "" {
				notes = append(notes, fmt.Sprintf("record %d does not match: %s", uint64(e.Record().ID), note))
			}
			continue
		}
		own, note := false, ""
		if s.endsOriginal(f.PC) {
			own, note = p.mayBeOwn(s, f, callee)
		}
		if note == "" {
			note = p.inRegion(c, s, f.PC, owner)
		}
		switch {
		case note == "":
			found = append(found, s)
		default:
			notes, doubt = append(notes, fmt.Sprintf("record %d %s", uint64(e.Record().ID), note)), doubt || !own
		}
	}
	return found, notes, doubt
}

// inRegion returns the reason why a call that was written into a shadow may belong to a statepoint whose region contains it too, or "".
func (p *Finder) inRegion(c *progspace.Objfile, s *Code, pc, owner machine.Addr) string {
	near := c.Records.Range(pc, pc+sites.MaxPatch)
	for n := range min(near.Len(), sites.MaxNear) {
		e := sites.RecordEntry{Entry: near.Entry(n), Record: near.Entry(n).Record()}
		name, _, _ := c.NameAt(owner)
		sites, err := p.Modules.OfRecord(c, e, name)
		_, shaped := e.Record.AsStatepoint()
		unsure := len(sites.Sites) == 0 && shaped && e.Addr == pc && s.Bytes == 0
		if e.Function.Addr == owner && err == nil && (unsure || inRegion(sites.Sites, e.Addr, s.last)) {
			return fmt.Sprintf("is not certain: the call that was written here lies in the region of the statepoint of record %d too", uint64(e.Record.ID))
		}
	}
	return ""
}

// inRegion reports whether a call at an address is in the region of one of the statepoints whose record is at end.
func inRegion(sites []*ir.Site, end, call machine.Addr) bool {
	for _, s := range sites {
		if (s.Kind == ir.StatepointSite || s.Kind == ir.DeoptimizeSite) && call < end && uint64(end-call) <= s.PatchBytes {
			return true
		}
	}
	return false
}

// Places lists the places where f may have left its function, for the unwinder. Several records at one address are one place.
func (p *Finder) Places(f, callee *unwind.Frame) (list []unwind.Overwritten) {
	if p.Space.Target.Arch() == machine.ARM64 {
		return p.arm64Places(f)
	}
	if !f.Return {
		return p.traps(f)
	}
	found, _, _ := p.Covering(f, callee)
	if len(found) == 0 {
		found = p.moved(f)
	}
	if len(found) > 0 {
		return []unwind.Overwritten{{At: found[0].Left, From: found[0].Left, End: found[0].past, Sure: true, By: found}}
	}
	return p.stubs(f)
}

// shadowOf returns the shadow of a record if a call that was written into it ends at pc. Otherwise note may give the reason.
func (p *Finder) shadowOf(c *progspace.Objfile, e sites.RecordEntry, pc machine.Addr, nearest bool) (s *Code, note string) {
	sites, least, most, ok := p.shadowBytes(c, e)
	if !ok || uint64(pc-e.Addr) > most || least == 0 && !nearest {
		return nil, ""
	}
	o, err := p.Space.Original(e.Addr, int(pc-e.Addr))
	switch {
	case err != nil && least > 0:
		return nil, "this return address is in its shadow, and " + err.Error()
	case err != nil || o.End() < pc:
		return nil, ""
	}
	s = &Code{Entry: e, Sites: sites, Bytes: least, Original: o}
	ends, written := s.follow(pc)
	if !ends {
		ends, written = s.reaches(p, pc)
	}
	switch {
	case !ends || written || o.Known(s.last, pc):
	case s.Left != 0 && !s.endsOriginal(pc): // the relocated bytes are part of another instruction
		written = true
	default:
		// The relocated bytes contain the target of the call.
		own, now := p.ownTarget(o, e.Addr, pc), directTarget(writtenCode{o}, s.last)
		if own == 0 || now == 0 {
			return nil, ""
		}
		if written = !p.leadsTo(now, own); written && s.Left == 0 {
			s.Left = s.last
		}
	}
	switch {
	case !ends && least > 0:
		return nil, "this return address is in its shadow, but no call ends here now: a patch here was removed or overwritten"
	case !ends || !written:
		return nil, "" // there is no call, or it is the compiler's
	case uint64(pc-e.Addr) > least && least > 0:
		return nil, fmt.Sprintf("of the sites that it may be, some have a shadow of %d bytes and others of %d", least, most)
	}
	return s, ""
}

// shadowBytes returns the smallest and the greatest possible length of a record's shadow. If no module gives it, these are 0 and the bound of the
// search.
func (p *Finder) shadowBytes(c *progspace.Objfile, e sites.RecordEntry) (siteList sites.Candidates, least, most uint64, ok bool) {
	name, _, _ := c.NameAt(e.Function.Addr)
	siteList, err := p.Modules.OfRecord(c, e, name)
	switch {
	case err != nil:
		return siteList, 0, 0, false
	case len(siteList.Sites) > 0 && sites.KindOf(siteList.Sites) == ir.StackMapSite:
		least, most = patchBytes(siteList.Sites)
		return siteList, least, min(most, sites.MaxPatch), most > 0
	case len(siteList.Sites) > 0 || len(e.Record.LiveOuts) > 0: // stackmaps record no live-outs
		return siteList, 0, 0, false
	}
	most = maxShadow
	if later := c.Records.Range(e.Addr+1, e.Addr+maxShadow); later.Len() > 0 {
		most = uint64(later.Entry(0).Addr - e.Addr) // the shadow ends before the next record
	}
	_, shaped := e.Record.AsStatepoint()
	return siteList, 0, most, !shaped || !sites.ByDefault(e.Record.ID)
}

// patchBytes returns the smallest and the greatest number of patch bytes of the sites.
func patchBytes(sites []*ir.Site) (least, most uint64) {
	least = sites[0].PatchBytes
	for _, s := range sites {
		least, most = min(least, s.PatchBytes), max(most, s.PatchBytes)
	}
	return least, most
}

// follow reads the current instructions from the record up to pc. It reports whether a call ends at pc, and whether a runtime wrote it.
func (s *Code) follow(pc machine.Addr) (ends, written bool) {
	now := writtenCode{s.Original}
	loads := false // the instruction before was written and only sets a register
	for at := s.Start; at < pc; {
		inst, known, err := amd64.Read(now, at)
		next := at + machine.Addr(inst.Len)
		if err != nil || inst.Len == 0 || next > pc {
			return false, false
		}
		differs := s.Differing(at, next) > 0
		if differs && s.Left == 0 {
			s.Left = at
		}
		if next == pc {
			_, through := inst.Args[0].(x86asm.Reg)
			s.last, s.past = at, next
			ends = known && amd64.IsCall(inst)
			return ends, ends && (differs || through && loads)
		}
		if s.Left == 0 {
			s.ran(inst, known)
		}
		if s.Bytes == 0 && !differs && !amd64.IsFiller(inst) {
			return false, false // without a module, the shadow may end at the function's own code
		}
		loads = differs && known && inst.Op == x86asm.MOV
		at = next
	}
	return false, false
}

// ran records the effects of an instruction that ran before the written code.
func (s *Code) ran(inst x86asm.Inst, known bool) {
	const all = ^amd64.Set(0)
	switch _, _, stores := amd64.Stores(inst); {
	case !known:
		s.Changed, s.Stored = all, true
	case amd64.IsCall(inst):
		s.Changed, s.Stored = s.Changed|amd64.NotKept, true
	case amd64.IsFiller(inst):
	case stores || amd64.Writes(inst).Has(machine.AMD64.SP):
		s.Stored = true // writes a slot of the frame, or moves the stack pointer above some of them
		fallthrough
	default:
		s.Changed |= amd64.Writes(inst)
	}
}

// writtenCode is the current memory of a [progspace.Original].
type writtenCode struct{ *progspace.Original }

// ReadMemory implements [machine.Memory].
func (w writtenCode) ReadMemory(p []byte, addr machine.Addr) error {
	if addr < w.Start || uint64(addr-w.Start)+uint64(len(p)) > uint64(len(w.Now)) {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "outside of what was read"}
	}
	copy(p, w.Now[addr-w.Start:])
	return nil
}

// Called reports whether Stub was called rather than jumped to.
func (s *Code) Called() bool { return s.called }

// Noun returns the noun for the code in messages.
func (s *Code) Noun() string {
	if kind := sites.KindOf(s.Sites.Sites); kind != "" && kind != ir.StackMapSite {
		return "region"
	}
	return "shadow"
}

// WasSled reports whether the compiled code up to the end of the written call was only nops.
func (s *Code) WasSled() bool {
	if s.arm64 {
		return s.arm64Sled()
	}
	for at := s.Start; at < s.past; {
		inst, _, err := amd64.Read(s.Original, at)
		if err == nil && inst.Len == 0 {
			return true // the last nop extends past the written call
		}
		if err != nil || !amd64.IsFiller(inst) {
			return false
		}
		at += machine.Addr(inst.Len)
	}
	return true
}

// endsOriginal reports whether a call of the compiled code also ended at pc. A thread that made that call earlier may still be in it.
func (s *Code) endsOriginal(pc machine.Addr) bool { return amd64.CallFrom(s.Original, s.Start, pc) }

// mayBeOwn decides between two calls that end at the same address: the function's own call, and the call that overwrote it. is reports whether the
// frame is certainly in the own call. why is "" if the frame is certainly in the other call; otherwise it is the reason not to use the record. The
// decision is certain if only one of the two calls has the running function as its target.
func (p *Finder) mayBeOwn(s *Code, f, callee *unwind.Frame) (is bool, why string) {
	runs, own := p.Space.FunctionOf(callee), p.ownTarget(s.Original, s.Start, f.PC)
	now := p.targetNow(s)
	switch {
	case runs != 0 && own != 0 && own != now && p.leadsTo(own, runs):
		return true, "does not match: the call that was here before it was overwritten is still running"
	case runs != 0 && own != 0 && now != 0 && p.leadsTo(now, runs):
		return false, ""
	}
	return false, "is not certain: a call was written over the function's own, which ended here too and may still be running"
}

// targetNow returns the target of the written call, or 0 if it is unknown.
func (p *Finder) targetNow(s *Code) machine.Addr {
	now, loaded := writtenCode{s.Original}, map[x86asm.Arg]machine.Addr{}
	for at := s.Left; at <= s.last; {
		inst, known, err := amd64.Read(now, at)
		if err != nil || !known || inst.Len == 0 {
			return 0
		}
		next := at + machine.Addr(inst.Len)
		number, isNumber := inst.Args[1].(x86asm.Imm)
		switch to, through := loaded[inst.Args[0]]; {
		case at == s.last && through:
			return to
		case at == s.last:
			return p.branchTarget(inst, next)
		case isNumber && inst.Op == x86asm.MOV:
			loaded[inst.Args[0]] = machine.Addr(number)
		case !amd64.IsFiller(inst):
			clear(loaded)
		}
		at = next
	}
	return 0
}

// directTarget returns the target of the direct call at an address, or 0 for other code.
func directTarget(code machine.Memory, at machine.Addr) machine.Addr {
	inst, known, err := amd64.Read(code, at)
	to, direct := inst.Args[0].(x86asm.Rel)
	if err != nil || !known || !direct {
		return 0
	}
	return at + machine.Addr(inst.Len) + machine.Addr(int64(to))
}

// ownTarget returns the target of the compiled call that ended at pc, from the instructions at start on, or 0 if it is unknown. The target may be
// relocated, or loaded by an earlier instruction.
func (p *Finder) ownTarget(o *progspace.Original, start, pc machine.Addr) machine.Addr {
	loaded := map[x86asm.Arg]machine.Addr{}
	for at := start; at < pc; {
		inst, known, err := amd64.Read(o, at)
		next := at + machine.Addr(inst.Len)
		switch {
		case err != nil || inst.Len == 0:
			return 0
		case next == pc && inst.Len == 5 && directTarget(o, at) != 0:
			if o.Known(at, next) {
				return directTarget(o, at)
			}
			return p.Space.RelocatedTo(at + 1)
		case next == pc:
			return loaded[inst.Args[0]]
		}
		number, isNumber := inst.Args[1].(x86asm.Imm)
		switch {
		case known && amd64.IsFiller(inst):
		case isNumber && inst.Op == x86asm.MOV && inst.Len == movabs && o.Known(at, next):
			loaded[inst.Args[0]] = machine.Addr(number)
		case isNumber && inst.Op == x86asm.MOV && inst.Len == movabs:
			loaded[inst.Args[0]] = p.Space.RelocatedTo(at + movabs - 8)
		default:
			clear(loaded)
		}
		at = next
	}
	return 0
}

// leadsTo reports whether an address is the start of a function, or of a stub that jumps to it.
func (p *Finder) leadsTo(at, function machine.Addr) bool {
	if at == function {
		return true
	}
	for to := range p.Unwinder.Stubs(at) {
		if to == function {
			return true
		}
	}
	return false
}

// Convention returns the evidence for assigning a record to a frame whose function has left its own code here.
func (s *Code) Convention(space *progspace.Space) string {
	of := fmt.Sprintf("its %s of %d bytes", s.Noun(), s.Bytes)
	if s.Bytes == 0 {
		of = "the code after it, which no module describes as its shadow,"
	}
	lead := "a call in it ends at the pc"
	switch {
	case s.Trapped:
		lead = "the pc is in that, or after a trap in it"
	case s.called:
		lead = fmt.Sprintf("a call in it leads to %v, which pops the return address, and from there a call ends at the pc", s.Stub)
	case s.Stub != 0:
		lead = fmt.Sprintf("a jump in it leads to %v, and from there a call ends at the pc", s.Stub)
	}
	return fmt.Sprintf("%s was overwritten at %s, and %s: %s in the process, %s in %s, compared while it was stopped; the frame was unwound by the rules of %s",
		of, orAddress(space, s.Left), lead, isa.Spaced(s.Now[s.Left-s.Start:s.past-s.Start]), isa.Spaced(s.Was[s.Left-s.Start:s.past-s.Start]), s.Of, orAddress(space, s.Left))
}

// orAddress returns the function at an address, or the address itself.
func orAddress(space *progspace.Space, addr machine.Addr) string {
	if name := space.Named(addr); name != "" {
		return name
	}
	return addr.String()
}
