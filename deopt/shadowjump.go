package deopt

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

// scratch are the registers that code on its way to a stub may change: no caller's value is in them.
var scratch = amd64.Of(0, 1, 2, 4, 5, 8, 9, 10, 11)

// stubs are the places where a function may stand whose frame f returns to a stub: a jump that was written into a shadow leads there. What
// has unwind information of its own is taken to be no stub.
func (v *View) stubs(f *unwind.Frame) (list []unwind.Overwritten) {
	if v.target.Arch() != machine.AMD64 || !f.Return || v.described(f.PC-1) {
		return nil
	}
	jumps := v.jumps()
	end, _ := slices.BinarySearchFunc(jumps, f.PC, func(s *shadow, pc machine.Addr) int { return cmp.Compare(s.stub, pc) })
	for n := end - 1; n >= 0 && f.PC-jumps[n].stub <= maxStub && len(list) < maxStubs; n-- {
		s := jumps[n]
		if k := slices.IndexFunc(list, func(o unwind.Overwritten) bool { return o.At == s.left && o.From == s.stub }); k >= 0 {
			list[k].By = append(list[k].By.([]*shadow), s)
			continue
		}
		list = append(list, unwind.Overwritten{At: s.left, From: s.stub, By: []*shadow{s}})
	}
	return list
}

// maxStubs bounds the stubs that are tried of one frame, the nearest first.
const maxStubs = 32

// described says whether call frame information covers an address.
func (v *View) described(at machine.Addr) bool {
	known, asked := v.covered[at]
	if !asked {
		if c := v.space.At(at); c != nil && c.Unwind.Table != nil {
			_, err := c.Unwind.Table.Find(at)
			known = !errors.Is(err, cfi.ErrNoFDE)
		}
		if v.covered == nil || len(v.covered) >= maxJumps {
			v.covered = map[machine.Addr]bool{}
		}
		v.covered[at] = known
	}
	return known
}

// jumps lists the shadows into which a jump was written, by where that leads. They are looked for once, in the code that can be read of all
// that has records.
func (v *View) jumps() []*shadow {
	if v.jumped != nil {
		return v.jumped
	}
	v.jumped = []*shadow{}
	registered := 0
	for _, r := range v.target.Registries {
		registered += len(r.Entries)
	}
	if registered <= maxRegistered {
		v.target.ReadObjects()
	}
	left := uint64(maxCompared)
	for _, c := range v.space.WithRecords() {
		if c.Image == nil {
			continue
		}
		for _, s := range c.Image.Code() {
			for at := s.Loaded(); s.Contains(at) && left > comparedChunk && len(v.jumped) < maxJumps; at += comparedChunk {
				left -= comparedChunk
				v.jumpsIn(c, at)
			}
		}
	}
	slices.SortStableFunc(v.jumped, func(a, b *shadow) int { return cmp.Compare(a.stub, b.stub) })
	return v.jumped
}

// jumpsIn adds those of the records in a chunk of code.
func (v *View) jumpsIn(c *progspace.Objfile, at machine.Addr) {
	near := c.Records.Range(at, at+comparedChunk)
	if near.Len() == 0 {
		return
	}
	from := max(c.Image.CodeAt(at).Loaded(), at-min(at, MaxPatch)) // the region of a statepoint lies before its record
	all, err := v.space.Original(from, int(at-from)+comparedChunk+MaxPatch)
	if err != nil || all.Differing(all.Start, all.End()) == 0 {
		return
	}
	for n := range near.Len() {
		e := sites.RecordEntry{Entry: near.Entry(n)}
		if all.Differing(e.Addr-min(e.Addr, MaxPatch), e.Addr+MaxPatch) == 0 {
			continue
		}
		e.Record = e.Entry.Record()
		start, length, s := v.regionOf(c, e)
		if s == nil {
			continue
		}
		o, err := v.space.Original(start, int(length))
		if err != nil {
			continue
		}
		s.Original = o
		if s.stub = s.jump(v); s.stub != 0 && len(v.jumped) < maxJumps {
			v.jumped = append(v.jumped, s)
		}
	}
}

// regionOf is the code of a record that a runtime may write a jump over: a shadow, or as a module says the region of a patchpoint or a
// statepoint. Of several that it may be all agree on so much.
func (v *View) regionOf(c *progspace.Objfile, e sites.RecordEntry) (start machine.Addr, length uint64, s *shadow) {
	siteList, least, most, ok := v.shadowBytes(c, e)
	switch kind := sites.KindOf(siteList.Sites); {
	case ok && least > 0:
		return e.Addr, least, &shadow{entry: e, sites: siteList, bytes: least}
	case ok:
		return e.Addr, most, &shadow{entry: e, sites: siteList, bytes: least}
	case kind == "" || kind == ir.StackMapSite:
		return 0, 0, nil
	default:
		least, _ = patchBytes(siteList.Sites)
		least = min(least, MaxPatch)
		if start = e.Addr; kind != ir.PatchPointSite {
			start -= machine.Addr(least)
		}
		if least == 0 {
			return 0, 0, nil
		}
		return start, least, &shadow{entry: e, sites: siteList, bytes: least}
	}
}

// jump goes through the instructions as they are now, from the record on, and returns where one jumps that was written there; 0 where there
// is none, or what leads to it does more than to load an address.
func (s *shadow) jump(v *View) machine.Addr {
	now := writtenCode{s.Original}
	loaded := map[x86asm.Arg]machine.Addr{} // by what was written
	for at := s.Start; at < s.End(); {
		inst, known, err := amd64.Read(now, at)
		next := at + machine.Addr(inst.Len)
		if err != nil || !known || inst.Len == 0 || next > s.End() {
			return 0
		}
		differs := s.Differing(at, next) > 0
		if differs && s.left == 0 {
			s.left = at
		}
		number, isNumber := inst.Args[1].(x86asm.Imm)
		switch to, through := loaded[inst.Args[0]]; {
		case inst.Op == x86asm.JMP && through:
			s.last, s.past = at, next
			return to
		case inst.Op == x86asm.JMP && (differs || s.left != 0 && !s.Known(at, next)): // what was relocated is part of another instruction
			s.last, s.past = at, next
			return v.branchTarget(inst, next)
		case s.left == 0 && s.bytes == 0 && !amd64.IsFiller(inst):
			return 0
		case s.left == 0:
			s.ran(inst, known)
		case inst.Op == x86asm.MOV && isNumber && amd64.Writes(inst)&^scratch == 0 && differs:
			loaded[inst.Args[0]] = machine.Addr(number)
			s.changed |= amd64.Writes(inst)
		case !amd64.IsFiller(inst):
			return 0
		}
		at = next
	}
	return 0
}

// branchTarget is where a jump or a call leads that says so, or that goes through a word at a place that it says; 0 for others. next is the address
// behind it.
func (v *View) branchTarget(inst x86asm.Inst, next machine.Addr) machine.Addr {
	switch arg := inst.Args[0].(type) {
	case x86asm.Rel:
		return next + machine.Addr(int64(arg))
	case x86asm.Mem:
		if arg.Base == x86asm.RIP && arg.Index == 0 {
			to, err := machine.ReadAddr(v.target, v.target.Arch(), next+machine.Addr(arg.Disp))
			if err == nil {
				return to
			}
		}
	}
	return 0
}

// undecided says of a frame in what may be a stub why no record is its.
func (v *View) undecided(f *unwind.Frame) string {
	all := v.stubs(f)
	if f.Overwritten != nil || len(all) == 0 {
		return ""
	}
	const named = 4
	var ids []uint64
	for _, o := range all {
		ids = append(ids, uint64(o.By.([]*shadow)[0].entry.Record.ID))
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
