package maps

import (
	"cmp"
	"fmt"
	"slices"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
)

// Rules on which a runtime that uses a module's sites depends.
var (
	allocasAreAddresses = stackmap.Rule{Name: "allocas are recorded by address",
		Fact: "an operand that is an alloca of the entry block is recorded as an address (Direct), which a runtime may check (\"Direct Stack Map Entries\")"}
	shadowsAreApart = stackmap.Rule{Name: "shadows are apart",
		Fact: "the shadow of a stackmap, which a runtime may overwrite, contains no other stackmap or patchpoint (\"llvm.experimental.stackmap\", Semantics)"}
	shadowsEnd = stackmap.Rule{Name: "shadows end with their function",
		Fact: "the bytes of a stackmap's shadow, which a runtime may overwrite, are the function's own (\"llvm.experimental.stackmap\", Semantics)"}
)

// stackOfS390X is the stack alignment on s390x, in bytes. LLVM does not realign the stack there: an alloca with a larger alignment is compiled like
// one of run-time size.
const stackOfS390X = 8

// alloca compares an operand that is an alloca of the entry block with its location.
func (c *irCheck) alloca(v ir.Value, k int, l stackmap.Location, broken func(stackmap.Rule, string)) {
	i, ok := v.(*ir.Instr)
	if !ok || !sites.OnFrame(i) || c.image.Arch == machine.S390X && i.Align > stackOfS390X {
		return
	}
	c.results[allocasAreAddresses.Name].Checked++
	if l.Kind != stackmap.Direct {
		broken(allocasAreAddresses, fmt.Sprintf("has %v for operand %d, the alloca %s", l.Kind, k, i.Ref()))
	}
}

// placedSite is a site with a known record.
type placedSite struct {
	id     stackmap.RecordID
	offset uint32
	pos    int64  // offset of the record in the section
	shadow uint64 // size of a stackmap's shadow
	kind   ir.SiteKind
}

// shadows compares the sites of one function with each other.
func (c *irCheck) shadows(f *Function, sites []placedSite) {
	slices.SortStableFunc(sites, func(a, b placedSite) int { return cmp.Compare(a.offset, b.offset) })
	for n, s := range sites {
		if s.kind != ir.StackMapSite {
			continue
		}
		c.results[shadowsAreApart.Name].Checked++
		c.shadowEnd(f, s)
		for _, next := range sites[n+1:] {
			if next.kind == ir.StackMapSite || next.kind == ir.PatchPointSite {
				if uint64(next.offset-s.offset) < s.shadow {
					c.broken(shadowsAreApart, stackmap.Violation{Map: f.Number, Function: f.Addr, Record: s.id, Pos: s.pos,
						What: fmt.Sprintf("record %d of @%s has a shadow of %d bytes, and record %[5]d is %[4]d bytes after it",
							uint64(s.id), f.Source, s.shadow, next.offset-s.offset, uint64(next.id))})
				}
				break
			}
		}
	}
}

// shadowEnd compares the shadow of a stackmap with the end of its function. LLVM does not always fill a shadow with nops where its block ends
// (llvm-project issue 219750).
func (c *irCheck) shadowEnd(f *Function, s placedSite) {
	r := c.results[shadowsEnd.Name]
	r.Checked++
	code := c.image.code()
	if code == nil || !f.CodeKnown {
		r.Unknown++
		return
	}
	end, executable, known := code.Function(f.Code)
	site := f.Code + machine.Addr(s.offset)
	if !executable || end < site {
		r.Unknown++
		return
	}
	left := uint64(end - site)
	switch {
	case left >= s.shadow:
		if !known { // the end is unknown: code of an unknown function may follow
			r.Unknown++
		}
	default:
		c.broken(shadowsEnd, stackmap.Violation{Map: f.Number, Function: f.Addr, Record: s.id, Pos: s.pos,
			What: fmt.Sprintf("record %d of @%s has a shadow of %d bytes, and the function ends %d bytes after the record",
				uint64(s.id), f.Source, s.shadow, left)})
	}
}
