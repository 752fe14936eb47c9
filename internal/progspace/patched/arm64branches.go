package patched

import (
	"encoding/binary"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/arm64"
)

// maxBranchCode bounds the code that is read for branches.
const maxBranchCode = 64 << 20 // bytes

// arm64Branches holds the branches in the code of a target.
type arm64Branches struct {
	list []machine.Addr
	all  bool
}

// Branches lists the calls in the executable memory of an arm64 target and the jumps that leave their function, by the addresses behind them. all is
// false if some of the memory was not read.
func (p *Finder) Branches() (list []machine.Addr, all bool) {
	if p.branches == nil {
		p.branches = &arm64Branches{}
		p.readBranches(p.branches)
	}
	return p.branches.list, p.branches.all
}

// readBranches reads the code of all executable mappings.
func (p *Finder) readBranches(to *arm64Branches) {
	mappings, err := p.Space.Target.Mappings()
	if err != nil {
		return
	}
	p.Space.Target.ReadObjects()
	left := uint64(maxBranchCode)
	for _, m := range mappings {
		if !m.Exec {
			continue
		}
		if m.End > ^machine.Addr(0)-comparedChunk { // addresses would wrap
			return
		}
		if size := uint64(m.End - m.Start); size > left {
			return
		} else {
			left -= size
		}
		for at := m.Start; at < m.End; {
			part := p.codeFrom(at, m.End)
			if !p.branchesIn(part, to) {
				return
			}
			at = part.End
		}
	}
	to.all = true
}

// codeFrom returns the code in a mapping that begins at or after an address. Bytes of an image that are in none of its sections with code are no code.
func (p *Finder) codeFrom(at, end machine.Addr) machine.Range {
	c := p.Space.At(at)
	if c == nil || c.Image == nil || len(c.Image.Code()) == 0 {
		next := at
		for next < end && (next == at || p.Space.At(next) == nil) {
			next = min(end, (next+comparedChunk)&^(comparedChunk-1))
		}
		return machine.Range{Start: at, End: next}
	}
	if s := c.Image.CodeAt(at); s != nil {
		return machine.Range{Start: at, End: min(end, s.Loaded()+machine.Addr(s.Size))}
	}
	next := end
	for _, s := range c.Image.Code() {
		if s.Loaded() > at {
			next = min(next, s.Loaded())
		}
	}
	return machine.Range{Start: next, End: next}
}

// branchesIn adds the branches in a range of code. It returns false if the code cannot be read or has more branches than are kept.
func (p *Finder) branchesIn(r machine.Range, to *arm64Branches) bool {
	var room [comparedChunk]byte
	for at := (r.Start + arm64.Size - 1) &^ (arm64.Size - 1); at+arm64.Size <= r.End; at += comparedChunk {
		code := room[:min(comparedChunk, (r.End-at)&^(arm64.Size-1))]
		if p.Space.Target.ReadMemory(code, at) != nil {
			return false
		}
		for n := 0; n < len(code); n += arm64.Size {
			if p.leaves(code[n:n+arm64.Size], at+machine.Addr(n)) {
				to.list = append(to.list, at+machine.Addr(n)+arm64.Size)
			}
		}
		if len(to.list) > maxReturns {
			return false
		}
	}
	return true
}

// leaves reports whether an instruction calls, jumps out of its function, or jumps to an address in a register.
func (p *Finder) leaves(code []byte, at machine.Addr) bool {
	to, jumps := arm64.Jump(code, at)
	switch {
	case !jumps:
		const branch = 0xd61f0000 // br, and those that authenticate the address
		return arm64.IsCall(code) || binary.LittleEndian.Uint32(code)&0xfeff0000 == branch
	case p.Space.Code(at).Table == nil:
		return true
	}
	fde, err := p.Space.Code(at).Table.Find(at)
	return err != nil || !fde.Contains(to)
}
