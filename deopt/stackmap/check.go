package stackmap

import (
	"fmt"
	"slices"

	"example.com/reframe/internal/machine"
)

// Code provides [Check] with the code that the maps describe.
type Code interface {
	// Function describes the function that starts at addr: whether addr is in executable memory, and an upper bound of the function's end. endKnown
	// means that end is exact. An end of 0 means unknown.
	Function(addr machine.Addr) (end machine.Addr, executable, endKnown bool)
	// Placed reports whether a function's address is known; pos is the position of its address field in the section. In an unlinked object the
	// bytes alone do not give the address.
	Placed(pos int64) bool
	// Pointer returns the size of an address in bytes. A 32-bit ABI on a 64-bit architecture has smaller addresses than the architecture.
	Pointer() int
	machine.Memory
}

// Rule is a property that every map must have.
type Rule struct {
	Name string
	Fact string // why every map has the property, with the source
}

// Violation is one violation of a rule.
type Violation struct {
	Rule     string
	Map      int          // index of the blob in the section
	Function machine.Addr // address of the function, 0 if none
	Record   RecordID
	Index    int   // index of the record in its function; -1 if the violation is not in a record
	Pos      int64 // position of the violation in the section; -1 if something is missing
	What     string
}

// maxViolations is the maximum number of violations of a rule that are stored. All are counted.
const maxViolations = 100

// Result is the outcome of checking one rule.
type Result struct {
	Rule       Rule
	Checked    int // number of checks of the rule
	Broken     int // number of checks that found a violation
	Unknown    int // number of checks without a result; Skipped has the reasons
	Violations []Violation
	Skipped    []string // why the rule was not checked, or not completely; each reason once
}

// Add counts a violation, and stores it unless maxViolations are stored.
func (r *Result) Add(v Violation) {
	r.Broken++
	if v.Rule = r.Rule.Name; len(r.Violations) < maxViolations {
		r.Violations = append(r.Violations, v)
	}
}

// AddUnknown counts a check without a result, and records the reason. The reason must not name the checked record or function, so that few reasons
// differ.
func (r *Result) AddUnknown(why string) {
	r.Unknown++
	r.Skip(why)
}

// Skip records why a rule was not checked, or not completely. It records each reason once.
func (r *Result) Skip(why string) {
	if !slices.Contains(r.Skipped, why) {
		r.Skipped = append(r.Skipped, why)
	}
}

// Check checks the maps of a section against all rules, and returns one result per rule, in a fixed order. arch is nil if the architecture is
// unknown, and code is nil if no code is available. Check then skips the rules that need them. A section satisfies a rule if the rule was checked,
// and no check found a violation or had an unknown result.
//
// The functions of s must be those that Parse found, but their addresses may have been relocated.
//
// Check reads the code of each function up to its last record, once. If functions overlap, it reads a bounded amount of code again.
func Check(s *Section, arch *machine.Arch, code Code) []Result {
	c := &checker{arch: arch, code: code}
	for _, rule := range rules {
		c.results = append(c.results, &Result{Rule: rule})
	}
	if arch == nil {
		for _, r := range []int{ruleRegisters, ruleSizes, ruleBoundary} {
			c.results[r].Skip("the architecture is not known")
		}
	}
	if code == nil {
		for _, r := range []int{ruleAddress, ruleInside} {
			c.results[r].Skip("no code is available")
		}
	}
	for n, m := range s.Maps {
		c.section(n, m)
	}
	c.functions()
	out := make([]Result, len(c.results))
	for i, r := range c.results {
		out[i] = *r
	}
	return out
}

type checker struct {
	arch    *machine.Arch
	code    Code
	results []*Result // indexed by rule
	starts  []start   // functions of all maps whose addresses are known
}

// start is a function of a map, with its start address.
type start struct {
	addr machine.Addr
	mapN int
	m    *Map
	f    *Function
}

// spot is the part of a map that the checker checks.
type spot struct {
	mapN   int
	m      *Map
	f      *Function // nil for an unattributed record
	record *Record   // nil outside of records
	index  int
	pos    int64
}

// broken counts a violation of a rule at p.
func (c *checker) broken(rule int, p spot, format string, args ...any) {
	v := Violation{Map: p.mapN, Index: -1, Pos: p.pos, What: fmt.Sprintf(format, args...)}
	if p.f != nil {
		v.Function = p.f.Addr
	}
	if p.record != nil {
		v.Record, v.Index = p.record.ID, p.index
	}
	c.results[rule].Add(v)
}

// section checks everything in a map that does not depend on code.
func (c *checker) section(n int, m *Map) {
	c.counts(spot{mapN: n, m: m})
	for i := range m.Functions {
		f := &m.Functions[i]
		pos := m.FunctionPos(f)
		c.records(n, m, f)
		c.prologue(spot{mapN: n, m: m, f: f, pos: pos}, i)
		if c.code != nil && !c.code.Placed(pos) {
			c.nowhere(m, f)
			continue
		}
		c.starts = append(c.starts, start{f.Addr, n, m, f})
	}
	if loose := m.Unattributed(); loose > 0 {
		c.records(n, m, nil)
		about := []int{ruleInside, ruleBoundary}
		if c.code == nil {
			about = about[1:]
		}
		for range loose {
			c.unplaced("layout v1 does not say which function a record belongs to", about...)
		}
	}
}

// nowhere counts the checks that have no result because the address of f is unknown: of f and of its records.
func (c *checker) nowhere(m *Map, f *Function) {
	const why = "the address of a function is unknown"
	c.results[ruleAddress].Checked++
	c.results[ruleAddress].AddUnknown(why)
	for range m.Records(f) {
		c.unplaced(why, ruleInside, ruleBoundary)
	}
}

// unplaced counts, for one record, a check without a result of each of the rules, with the reason.
func (c *checker) unplaced(why string, rules ...int) {
	for _, rule := range rules {
		if rule == ruleBoundary && c.arch == nil {
			continue // Check has skipped the rule for the whole section
		}
		c.results[rule].Checked++
		c.results[rule].AddUnknown(why)
	}
}

// counts checks the record counts of p's map. It reads them from the bytes, because a caller may have changed Functions.
func (c *checker) counts(p spot) {
	m, r := p.m, c.results[ruleCounts]
	r.Checked++
	if !m.layout.counted {
		if m.loose > 0 {
			r.AddUnknown("layout v1 has no record counts")
		}
		return
	}
	var sum uint64
	for i := range m.first {
		sum += u64(m.data, headerSize+i*m.layout.functionSize+16, m.big)
	}
	if header := u32(m.data, 12, m.big); sum != uint64(header) {
		p.pos = m.Offset + 12
		c.broken(ruleCounts, p, "the functions have %d records, the header says %d", sum, header)
	}
}

// records checks the records of f, or the unattributed ones if f is nil.
func (c *checker) records(n int, m *Map, f *Function) {
	p := spot{mapN: n, m: m, f: f}
	for rec := range m.Records(f) {
		p.record, p.pos = rec, rec.Pos
		c.record(p)
		p.index++
	}
	// Reserved yields the fields of all records of f. Report them without a record: the message names the field, and p.pos is its position.
	p.record, p.index = nil, 0
	for b := range m.Reserved(f) {
		p.pos = b.Pos
		c.broken(ruleReserved, p, "%s is %#x", b.Name, b.Value)
	}
}
