package patched

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"reframe/deopt/ir"
	"reframe/deopt/isa/amd64"
	"reframe/deopt/machine"
	"reframe/deopt/progspace"
	"reframe/deopt/sites"
	"reframe/deopt/unwind"
	"reframe/deopt/unwind/cfi"
)

// Bounds of the search for jumps that were written into shadows.
const (
	maxStub       = 4 << 10 // bytes from where a jump leads to where the call there ends
	maxJumps      = 1 << 16
	maxCompared   = 256 << 20 // bytes of code with records, held against what it was
	maxRegistered = 1 << 12   // objects that are read for it
	comparedChunk = 4 << 10
)

// stubs are the places where a function may stand whose frame f returns to a stub: a jump that was written into a shadow leads there. What
// has unwind information of its own is taken to be no stub.
func (p *Finder) stubs(f *unwind.Frame) (list []unwind.Overwritten) {
	if p.Space.Target.Arch() != machine.AMD64 || !f.Return || p.described(f.PC-1) {
		return nil
	}
	jumps := p.jumps()
	end, _ := slices.BinarySearchFunc(jumps, f.PC, func(s *Code, pc machine.Addr) int { return cmp.Compare(s.Stub, pc) })
	for n := end - 1; n >= 0 && f.PC-jumps[n].Stub <= maxStub && len(list) < maxStubs; n-- {
		s := jumps[n]
		if k := slices.IndexFunc(list, func(o unwind.Overwritten) bool { return o.At == s.Left && o.From == s.Stub }); k >= 0 {
			list[k].By = append(list[k].By.([]*Code), s)
			continue
		}
		list = append(list, unwind.Overwritten{At: s.Left, From: s.Stub, By: []*Code{s}})
	}
	return list
}

// maxStubs bounds the stubs that are tried of one frame, the nearest first.
const maxStubs = 32

// described says whether call frame information covers an address.
func (p *Finder) described(at machine.Addr) bool {
	known, asked := p.covered[at]
	if !asked {
		if c := p.Space.At(at); c != nil && c.Unwind.Table != nil {
			_, err := c.Unwind.Table.Find(at)
			known = !errors.Is(err, cfi.ErrNoFDE)
		}
		if p.covered == nil || len(p.covered) >= maxJumps {
			p.covered = map[machine.Addr]bool{}
		}
		p.covered[at] = known
	}
	return known
}

// jumps lists the shadows into which a jump was written, by where that leads. They are looked for once, in the code that can be read of all
// that has records.
func (p *Finder) jumps() []*Code {
	if p.jumped != nil {
		return p.jumped
	}
	p.jumped = []*Code{}
	registered := 0
	for _, r := range p.Space.Target.Registries {
		registered += len(r.Entries)
	}
	if registered <= maxRegistered {
		p.Space.Target.ReadObjects()
	}
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
	slices.SortStableFunc(p.jumped, func(a, b *Code) int { return cmp.Compare(a.Stub, b.Stub) })
	return p.jumped
}

// jumpsIn adds those of the records in a chunk of code.
func (p *Finder) jumpsIn(c *progspace.Objfile, at machine.Addr) {
	near := c.Records.Range(at, at+comparedChunk)
	if near.Len() == 0 {
		return
	}
	from := max(c.Image.CodeAt(at).Loaded(), at-min(at, sites.MaxPatch)) // the region of a statepoint lies before its record
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
		if s.Stub = s.jump(p); s.Stub != 0 && len(p.jumped) < maxJumps {
			p.jumped = append(p.jumped, s)
		}
	}
}

// regionOf is the code of a record that a runtime may write a jump over: a shadow, or as a module says the region of a patchpoint or a
// statepoint. Of several that it may be all agree on so much.
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

// jump goes through the instructions as they are now, from the record on, and returns where one jumps that was written there; 0 where there
// is none, or what leads to it does more than to load an address.
func (s *Code) jump(p *Finder) machine.Addr {
	now := writtenCode{s.Original}
	loaded := map[x86asm.Arg]machine.Addr{} // by what was written
	for at := s.Start; at < s.End(); {
		inst, known, err := amd64.Read(now, at)
		next := at + machine.Addr(inst.Len)
		if err != nil || !known || inst.Len == 0 || next > s.End() {
			return 0
		}
		differs := s.Differing(at, next) > 0
		if differs && s.Left == 0 {
			s.Left = at
		}
		number, isNumber := inst.Args[1].(x86asm.Imm)
		switch to, through := loaded[inst.Args[0]]; {
		case inst.Op == x86asm.JMP && through:
			s.last, s.past = at, next
			return to
		case inst.Op == x86asm.JMP && (differs || s.Left != 0 && !s.Known(at, next)): // what was relocated is part of another instruction
			s.last, s.past = at, next
			return p.branchTarget(inst, next)
		case s.Left == 0 && s.Bytes == 0 && !amd64.IsFiller(inst):
			return 0
		case s.Left == 0:
			s.ran(inst, known)
		case inst.Op == x86asm.MOV && isNumber && amd64.Writes(inst)&^amd64.NotKept == 0 && differs:
			loaded[inst.Args[0]] = machine.Addr(number)
			s.Changed |= amd64.Writes(inst)
		case !amd64.IsFiller(inst):
			return 0
		}
		at = next
	}
	return 0
}

// branchTarget is where a jump or a call leads that says so, or that goes through a word at a place that it says; 0 for others. next is the address
// behind it.
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

// Undecided says of a frame in what may be a stub why no record is its.
func (p *Finder) Undecided(f *unwind.Frame) string {
	all := p.stubs(f)
	if f.Overwritten != nil || len(all) == 0 {
		return ""
	}
	const named = 4
	var ids []uint64
	for _, o := range all {
		ids = append(ids, uint64(o.By.([]*Code)[0].Entry.Record.ID))
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
