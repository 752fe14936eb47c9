package patched

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
	"example.com/reframe/internal/progspace"
)

// Bounds of the search for jumps that were written into shadows.
const (
	maxJumps      = 1 << 16
	maxReturns    = 1 << 20   // return addresses of the calls that the jumps lead to
	maxCompared   = 256 << 20 // bytes of code with records that are compared with the original
	maxRegistered = 1 << 12   // number of registered objects that are read for the search
	comparedChunk = 4 << 10
)

// stubs lists the places where f may have left its function: f returns to code that patched jumps lead to.
func (p *Finder) stubs(f *unwind.Frame) (list []unwind.Overwritten) {
	if p.Space.Target.Arch() != machine.AMD64 || !f.Return {
		return nil
	}
	p.jumps()
	for _, s := range p.returns[f.PC] {
		if k := slices.IndexFunc(list, func(o unwind.Overwritten) bool { return o.At == s.Left && o.From == s.Stub }); k >= 0 {
			list[k].By = append(list[k].By.([]*Code), s)
			continue
		}
		list = append(list, unwind.Overwritten{At: s.Left, From: s.Stub, End: s.End(), Called: s.called, Complete: !p.unknown, By: []*Code{s}})
	}
	return list
}

// jumps lists the shadows with a patched jump, by target. The search runs once, over all readable code with records.
func (p *Finder) jumps() []*Code {
	if p.jumped != nil {
		return p.jumped
	}
	p.jumped = []*Code{}
	p.readObjects()
	left := uint64(maxCompared)
	for _, c := range p.Space.WithRecords() {
		if c.Image == nil {
			continue
		}
		for _, s := range c.Image.Code() {
			for at := s.Loaded(); s.Contains(at) && left > comparedChunk && len(p.jumped) < maxJumps; at += comparedChunk {
				left -= comparedChunk
				p.jumpsIn(c, at)
			}
		}
	}
	p.returns = map[machine.Addr][]*Code{}
	calls := map[machine.Addr][]machine.Addr{}
	n := 0
	for _, s := range p.jumped {
		all, known := calls[s.Stub]
		if !known {
			var whole bool
			all, whole = p.Unwinder.CallsFrom(s.Stub)
			calls[s.Stub], p.unknown = all, p.unknown || !whole
		}
		if n += len(all); n > maxReturns {
			p.unknown = true
			break
		}
		for _, pc := range all {
			p.returns[pc] = append(p.returns[pc], s)
		}
	}
	return p.jumped
}

// regionsIn calls found with the code of each record in a chunk that may have been overwritten, until it returns false.
func (p *Finder) regionsIn(c *progspace.Objfile, at machine.Addr, found func(s *Code) bool) {
	near := c.Records.Range(at, at+comparedChunk)
	if near.Len() == 0 {
		return
	}
	from := max(c.Image.CodeAt(at).Loaded(), at-min(at, sites.MaxPatch)) // the region of a statepoint ends at its record, so start earlier
	all, err := p.Space.Original(from, int(at-from)+comparedChunk+sites.MaxPatch)
	if err != nil || all.Differing(all.Start, all.End()) == 0 {
		return
	}
	for n := range near.Len() {
		e := sites.RecordEntry{Entry: near.Entry(n)}
		if all.Differing(e.Addr-min(e.Addr, sites.MaxPatch), e.Addr+sites.MaxPatch) == 0 {
			continue
		}
		e.Record = e.Entry.Record()
		start, length, s := p.regionOf(c, e)
		if s == nil {
			continue
		}
		o, err := p.Space.Original(start, int(length))
		if err != nil {
			continue
		}
		s.Original = o
		if !found(s) {
			return
		}
	}
}

// jumpsIn adds the patched jumps in a chunk of code.
func (p *Finder) jumpsIn(c *progspace.Objfile, at machine.Addr) {
	p.regionsIn(c, at, func(s *Code) bool {
		exits, known := s.exits(p, c)
		p.unknown = p.unknown || !known
		for _, to := range exits {
			if len(p.jumped) == maxJumps {
				p.unknown = true
				return false
			}
			out := *s
			out.Stub, out.called, out.last, out.past = to.to, to.called, to.at, to.next
			p.jumped = append(p.jumped, &out)
		}
		return true
	})
}

// regionOf returns the code of a record that a runtime may overwrite with a jump: a shadow or, if a module gives it, the region of a patchpoint or
// statepoint. If several sites are possible, it returns the part that belongs to the region of each.
func (p *Finder) regionOf(c *progspace.Objfile, e sites.RecordEntry) (start machine.Addr, length uint64, s *Code) {
	siteList, least, most, ok := p.shadowBytes(c, e)
	switch kind := sites.KindOf(siteList.Sites); {
	case ok && least > 0:
		return e.Addr, least, &Code{Entry: e, Sites: siteList, Bytes: least}
	case ok:
		return e.Addr, most, &Code{Entry: e, Sites: siteList, Bytes: least}
	case kind == "" || kind == ir.StackMapSite:
		return 0, 0, nil
	default:
		least, _ = patchBytes(siteList.Sites)
		least = min(least, sites.MaxPatch)
		if start = e.Addr; kind != ir.PatchPointSite {
			start -= machine.Addr(least)
		}
		if least == 0 {
			return 0, 0, nil
		}
		return start, least, &Code{Entry: e, Sites: siteList, Bytes: least}
	}
}

// exit is a place where written code leaves a region.
type exit struct {
	at, next, to machine.Addr
	called       bool // left by a call whose target pops the return address
}

// exits lists the targets of the written code in a region. known is false if it may also lead to other places.
func (s *Code) exits(p *Finder, c *progspace.Objfile) (list []exit, known bool) {
	course := s.course(p)
	if !s.leave(course) {
		return nil, true
	}
	function := c.SymbolAt(s.Start)
	own := machine.Range{Start: function.Start, End: function.Start + machine.Addr(function.Size)}
	known = true
	for n, i := range course {
		if i.at < s.Left && n < s.prefix || !i.known {
			known = known && (i.known || s.Differing(i.at, s.End()) == 0) // unwritten code after it cannot lead to a stub
			continue
		}
		written := s.Differing(i.at, i.next) > 0 || !s.Known(i.at, i.next) // the relocated bytes are part of another instruction
		_, direct := i.inst.Args[0].(x86asm.Rel)
		jumps := i.inst.Op == x86asm.JMP || direct && !amd64.IsCall(i.inst) || i.inst.Op == x86asm.RET && i.to != 0
		switch {
		case jumps && i.to == 0:
			known = known && !written
		case jumps && !s.inside(i.to) && written && !own.Contains(i.to):
			list = append(list, exit{i.at, i.next, i.to, false})
		case amd64.IsCall(i.inst) && written && p.pops(i.to):
			list = append(list, exit{i.at, i.next, i.to, true})
		}
	}
	return list, known
}

// pops reports whether code pops the return address of its caller before it makes a call.
func (p *Finder) pops(at machine.Addr) bool {
	const most = 16 // number of instructions that are examined
	depth := int64(0)
	for n := 0; n < most && at != 0 && depth >= 0; n++ {
		inst, known, err := amd64.Read(p.Space.Target, at)
		if err != nil || !known || inst.Len == 0 || amd64.IsCall(inst) || inst.Op == x86asm.JMP || inst.Op == x86asm.RET {
			return false
		}
		number, _ := inst.Args[1].(x86asm.Imm)
		switch {
		case inst.Op == x86asm.PUSH || inst.Op == x86asm.PUSHFQ:
			depth += 8
		case inst.Op == x86asm.POP || inst.Op == x86asm.POPFQ:
			depth -= 8
		case inst.Op == x86asm.SUB && inst.Args[0] == x86asm.Arg(x86asm.RSP):
			depth += int64(number)
		case inst.Op == x86asm.ADD && inst.Args[0] == x86asm.Arg(x86asm.RSP):
			depth -= int64(number)
		}
		at += machine.Addr(inst.Len)
	}
	return depth < 0
}

// branchTarget returns the target of a jump or call that is direct or goes through a word at a fixed address, or 0 for others. next is the address
// after the instruction.
func (p *Finder) branchTarget(inst x86asm.Inst, next machine.Addr) machine.Addr {
	switch arg := inst.Args[0].(type) {
	case x86asm.Rel:
		return next + machine.Addr(int64(arg))
	case x86asm.Mem:
		if arg.Base == x86asm.RIP && arg.Index == 0 {
			to, err := machine.ReadAddr(p.Space.Target, p.Space.Target.Arch(), next+machine.Addr(arg.Disp))
			if err == nil {
				return to
			}
		}
	}
	return 0
}

// Undecided returns the reason why a frame has no record because a patched jump may have led to its code, or "" for every other frame.
func (p *Finder) Undecided(f *unwind.Frame) string {
	if !f.Undecided() {
		return ""
	}
	all := p.stubs(f)
	const named = 4
	var ids []uint64
	for _, o := range all {
		if s := o.By.([]*Code)[0]; !s.called {
			ids = append(ids, uint64(s.Entry.Record.ID))
		}
	}
	if len(ids) == 0 {
		return ""
	}
	if len(ids) == 1 {
		return fmt.Sprintf("the jump that was written into the code of record %d leads to the code here, and the stack does not show that the frame came from there", ids[0])
	}
	slices.Sort(ids)
	text := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ids[:min(len(ids), named)])), ", "), "[]")
	if len(ids) > named {
		text += fmt.Sprintf(" and %d more", len(ids)-named)
	}
	return fmt.Sprintf("jumps that were written into the code of records %s lead to the code here, and the stack does not show from which of them the frame came", text)
}
