package patched

import (
	"encoding/binary"
	"errors"
	"fmt"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/arm64"
)

const (
	maxBranches = 1 << 20   // number of branches that are kept
	branchChunk = 128 << 10 // number of bytes that are read at once
)

// arm64Branches holds the branches in the code of a target.
type arm64Branches struct {
	list    []machine.Addr
	missing error // why some of the code was not read, or nil
}

// Branches lists the calls in the executable memory of an arm64 target and the jumps that leave their function, in order, by the addresses after
// them. It reads at most [unwind.SearchBytes]. missing is the reason why some of the memory was not read, or nil.
func (p *Finder) Branches() (list []machine.Addr, missing error) {
	if p.branches == nil {
		p.branches = &arm64Branches{}
		p.branches.missing = p.readBranches(p.branches)
	}
	return p.branches.list, p.branches.missing
}

// readBranches reads the code of all executable mappings. It returns the reason why it did not read some of it, or nil.
func (p *Finder) readBranches(to *arm64Branches) error {
	mappings, err := p.Space.Target.Mappings()
	if err != nil {
		return err
	}
	p.readObjects()
	left := uint64(unwind.SearchBytes)
	for _, m := range mappings {
		if !m.Exec {
			continue
		}
		if m.End > ^machine.Addr(0)-comparedChunk {
			return errors.New("addresses would wrap at the end of memory")
		}
		for at := m.Start; at < m.End; {
			part := p.codeFrom(at, min(m.End, at+machine.Addr(left)+comparedChunk)) // a JIT may have reserved a much larger mapping
			size := uint64(part.End - part.Start)
			if size > left {
				return frame.Because(frame.SearchBudget, fmt.Sprintf("%d bytes of code", unwind.SearchBytes))
			}
			left -= size
			if err := p.branchesIn(part, to); err != nil {
				return err
			}
			at = part.End
		}
	}
	return nil
}

// readObjects reads the registered objects. If there are more than maxRegistered, their code counts as unknown.
func (p *Finder) readObjects() {
	registered := 0
	for _, r := range p.Space.Target.Registries {
		registered += len(r.Entries)
	}
	if registered <= maxRegistered {
		p.Space.Target.ReadObjects()
	}
}

// codeFrom returns the code in a mapping that begins at or after an address. It skips bytes of an image that are outside of its code sections.
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

// branchesIn adds the branches in a range of code. It returns an error if the code cannot be read or has more branches than are kept.
func (p *Finder) branchesIn(r machine.Range, to *arm64Branches) error {
	in := branchCode{table: func(at machine.Addr) *cfi.Table { return p.Space.Code(at).Table }}
	room := make([]byte, min(branchChunk, r.End-r.Start))
	for at := (r.Start + arm64.Size - 1) &^ (arm64.Size - 1); at+arm64.Size <= r.End; at += branchChunk {
		code := room[:min(branchChunk, (r.End-at)&^(arm64.Size-1))]
		if err := p.Space.Target.ReadMemory(code, at); err != nil {
			return err
		}
		for n := 0; n < len(code); n += arm64.Size {
			if in.leaves(code[n:n+arm64.Size], at+machine.Addr(n)) {
				to.list = append(to.list, at+machine.Addr(n)+arm64.Size)
			}
		}
		if len(to.list) > maxBranches {
			return frame.Because(frame.SearchBudget, fmt.Sprintf("%d branches", maxBranches))
		}
	}
	return nil
}

// branchCode is code that is searched for branches. Several objects may be in one range, each with its own table.
type branchCode struct {
	table func(at machine.Addr) *cfi.Table // nil for code without CFI
	of    *cfi.Table
	last  machine.Range // the function that was found last, in the table of
}

// leaves reports whether an instruction calls, jumps out of its function, or jumps to an address in a register.
func (c *branchCode) leaves(code []byte, at machine.Addr) bool {
	const class = 5 // the class of branches, exceptions and system instructions
	if code[3]>>2&7 != class {
		return false
	}
	to, jumps := arm64.Jump(code, at)
	if !jumps {
		const branch = 0xd61f0000 // br, and those that authenticate the address
		return arm64.IsCall(code) || binary.LittleEndian.Uint32(code)&0xfeff0000 == branch
	}
	table := c.table(at)
	if table == nil {
		return true
	}
	if table != c.of || !c.last.Contains(at) {
		fde, err := table.Find(at)
		if err != nil {
			return true
		}
		c.of, c.last = table, fde.Range
	}
	return !c.last.Contains(to) || c.table(to) != table // the table may also claim code of an object that was loaded later
}
