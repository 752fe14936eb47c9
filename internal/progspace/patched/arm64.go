package patched

import (
	"bytes"
	"encoding/binary"
	"slices"

	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/arm64"
	"example.com/reframe/internal/progspace"
)

// arm64Sites lists the overwritten code of records in an arm64 target, with the course from it.
func (p *Finder) arm64Sites() []arm64Site {
	if p.onARM64 != nil {
		return p.onARM64
	}
	p.onARM64 = []arm64Site{}
	p.readObjects()
	left := uint64(maxCompared)
	for _, c := range p.Space.WithRecords() {
		if c.Image == nil {
			continue
		}
		for _, s := range c.Image.Code() {
			for at := s.Loaded(); s.Contains(at) && left > comparedChunk && len(p.onARM64) < maxJumps; at += comparedChunk {
				left -= comparedChunk
				p.arm64In(c, at)
			}
		}
	}
	p.indexARM64()
	return p.onARM64
}

// indexARM64 fills the index of onARM64, unless it would have more than maxReturns entries.
func (p *Finder) indexARM64() {
	p.arm64At = map[machine.Addr][]arm64Site{}
	entries := 0
	for _, s := range p.onARM64 {
		if entries += len(s.course.Returns); entries > maxReturns {
			p.arm64At = nil
			return
		}
		for pc := range s.course.Returns {
			p.arm64At[pc] = append(p.arm64At[pc], s)
		}
	}
}

// arm64Site is the overwritten code of a record, with the course from it.
type arm64Site struct {
	*Code
	course *unwind.ARM64Course
}

// arm64In adds the overwritten code of the records in a chunk.
func (p *Finder) arm64In(c *progspace.Objfile, at machine.Addr) {
	p.regionsIn(c, at, func(s *Code) bool {
		s.arm64 = true
		if !s.arm64Written() {
			return true
		}
		function := c.SymbolAt(s.Start)
		own := machine.Range{Start: function.Start, End: function.Start + machine.Addr(function.Size)}
		course := p.Unwinder.CourseARM64(machine.Range{Start: s.Start, End: s.End()}, own)
		s.Stub = course.Exit
		p.onARM64 = append(p.onARM64, arm64Site{s, course})
		return true
	})
}

// arm64Written finds the first overwritten instruction. Without a module, the shadow may end at the first instruction of the function's own code.
func (s *Code) arm64Written() bool {
	for at := s.Start; at+arm64.Size <= s.End(); at += arm64.Size {
		if s.Differing(at, at+arm64.Size) > 0 {
			s.Left, s.last, s.past = at, at, at+arm64.Size
			return true
		}
		if s.Bytes == 0 && !isNop(s.Now[at-s.Start:]) {
			return false
		}
	}
	return false
}

// arm64Sled reports whether the compiled code up to the written code was only nops.
func (s *Code) arm64Sled() bool {
	for at := s.Start; at < s.past && at < s.End(); at += arm64.Size {
		if !isNop(s.Was[at-s.Start:]) {
			return false
		}
	}
	return true
}

// isNop reports whether code of arm64 starts with a nop.
func isNop(code []byte) bool {
	return len(code) >= arm64.Size && binary.LittleEndian.Uint32(code) == 0xd503201f
}

// arm64Places lists the places where f may have left its function: f is in, or returns to, code that was written over a record's code, or code that
// the written code jumps to.
func (p *Finder) arm64Places(f *unwind.Frame) (list []unwind.Overwritten) {
	all := p.arm64Sites()
	if f.Return && p.arm64At != nil {
		all = p.arm64At[f.PC]
	}
	for _, s := range all {
		inside := f.PC > s.Start && f.PC <= s.End()
		m := s.course.Returns[f.PC]
		if !f.Return {
			if m = s.course.At[f.PC]; !inside || f.PC == s.End() {
				m = nil
			}
		}
		if m == nil || f.Return && inside && s.own(f.PC) {
			continue
		}
		c := *s.Code
		c.Stored = c.Stored || m.Stored
		c.Trapped = !f.Return
		if c.last, c.past = s.Left, max(f.PC, s.Left+arm64.Size); !inside {
			c.past = s.End()
		}
		if k := slices.IndexFunc(list, func(o unwind.Overwritten) bool { return o.At == s.Start }); k >= 0 {
			list[k].By = append(list[k].By.([]*Code), &c)
			continue
		}
		if inside {
			c.Stub = 0
		}
		list = append(list, unwind.Overwritten{At: s.Start, From: c.Stub, End: s.End(), Sure: inside, Trap: !f.Return, By: []*Code{&c}})
	}
	return list
}

// own reports whether the compiled code has a call that ends at pc. The call may be overwritten now, but may still be running.
func (s *Code) own(pc machine.Addr) bool {
	at := pc - arm64.Size
	was := s.Was[at-s.Start : pc-s.Start]
	return arm64.IsCall(was) || bytes.Equal(was, s.Now[at-s.Start:pc-s.Start])
}
