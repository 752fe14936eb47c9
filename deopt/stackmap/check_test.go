package stackmap

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// text is code at an address, with the ends of functions where they are known.
type text struct {
	base  machine.Addr
	code  []byte
	ends  map[machine.Addr]machine.Addr
	reads int // number of bytes read

	unplaced int64 // position of the address field of a function whose address is unknown; 0 for none
	narrow   bool  // addresses have 4 bytes
}

func (c *text) Placed(pos int64) bool { return pos != c.unplaced }

func (c *text) Pointer() int {
	if c.narrow {
		return 4
	}
	return 8
}

func (c *text) Function(addr machine.Addr) (end machine.Addr, executable, endKnown bool) {
	last := c.base + machine.Addr(len(c.code))
	if addr < c.base || addr >= last {
		return 0, false, false
	}
	if end, ok := c.ends[addr]; ok {
		return end, true, true
	}
	return last, true, false
}

func (c *text) ReadMemory(p []byte, addr machine.Addr) error {
	if addr < c.base || uint64(addr-c.base)+uint64(len(p)) > uint64(len(c.code)) {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not mapped"}
	}
	c.reads += len(p)
	copy(p, c.code[addr-c.base:])
	return nil
}

// sampleText is code for sampleBlob: at 0x1000 push, mov of 3 bytes, call, pop, ret; at 0x1010 nops and ret.
func sampleText() *text {
	code := []byte{0x55, 0x48, 0x89, 0xe5, 0xe8, 0, 0, 0, 0, 0x5d, 0xc3}
	code = append(code, make([]byte, 5)...)
	code = append(code, 0x66, 0x90, 0x90, 0xc3)
	return &text{base: 0x1000, code: code, ends: map[machine.Addr]machine.Addr{0x1000: 0x100b, 0x1010: 0x1014}}
}

// sampleBlob is a map of x86-64 that uses every feature and breaks no rule.
func sampleBlob() *Blob {
	return &Blob{Version: 3, Dialect: V3, Constants: []uint64{1 << 40}, Functions: []BlobFunction{
		{Addr: 0x1000, StackSize: 8, Records: []Record{
			{ID: 7, Offset: 9, Locations: []Location{
				{Register, 1, 0, 8}, {Register, 16, 17, 0}, {Register, 8, 3, 0}, {Direct, 8, 6, -8},
				{Indirect, 4, 7, 16}, {Constant, 8, 0, -1}, {ConstantIndex, 8, 0, 0},
			}, LiveOuts: []LiveOut{{3, 8}, {6, 8}, {17, 64}}},
			{ID: 8, Offset: 11}, // a return address at the end
		}},
		{Addr: 0x1010, StackSize: 8, Records: []Record{{ID: 9, Offset: 2}, {ID: 9, Offset: 0}}},
	}}
}

func parsedBlob(t testing.TB, blob *Blob) *Section {
	t.Helper()
	data, err := AppendBlob(nil, binary.LittleEndian, blob)
	require.NoError(t, err)
	s, err := Parse(data, Options{Order: binary.LittleEndian, Dialect: blob.Dialect})
	require.NoError(t, err)
	return s
}

func TestCheckKept(t *testing.T) {
	s := parsedBlob(t, sampleBlob())
	want := map[int]int{ruleCounts: 1, ruleReserved: 4*4 + 2*7 + 3, ruleAddress: 2, ruleInside: 4, ruleBoundary: 4, ruleRegisters: 5 + 3,
		ruleSizes: 3 + 3, ruleFields: 4, ruleConstants: 1, ruleLiveOuts: 1}
	results := Check(s, machine.AMD64, sampleText())
	require.Len(t, results, len(rules))
	for i, r := range results {
		require.Equal(t, Result{Rule: rules[i], Checked: want[i]}, r)
		require.NotEmpty(t, r.Rule.Name)
		require.NotEmpty(t, r.Rule.Fact)
	}
}

// TestCheckBroken violates each rule in turn, and requires that Check reports only that rule.
func TestCheckBroken(t *testing.T) {
	const first, second = 16 + 2*24 + 8, 16 + 2*24 + 8 + 16 + 7*12 + 4 + 4 + 3*4 // offsets of the records; the locations have 4 bytes of padding
	location := func(i int, l Location) func(*Blob) {
		return func(b *Blob) { b.Functions[0].Records[0].Locations[i] = l }
	}
	liveOut := func(i int, l LiveOut) func(*Blob) {
		return func(b *Blob) { b.Functions[0].Records[0].LiveOuts[i] = l }
	}
	for _, c := range []struct {
		rule   int
		change func(b *Blob)
		want   Violation
	}{
		{ruleReserved, func(b *Blob) { b.Functions[0].Records[0].Flags = 2 },
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "the flags of record 7 are 0x2"}},
		{ruleAddress, func(b *Blob) { b.Functions[1].Addr = 0x1014 },
			Violation{Function: 0x1014, Index: -1, Pos: 16 + 24, What: "the function at 0x1014 is not in executable memory"}},
		{ruleInside, func(b *Blob) { b.Functions[0].Records[1].Offset = 12 },
			Violation{Function: 0x1000, Record: 8, Index: 1, Pos: second, What: "offset 0xc of record 8: the function has 0xb bytes"}},
		{ruleBoundary, func(b *Blob) { b.Functions[0].Records[1].Offset = 3 },
			Violation{Function: 0x1000, Record: 8, Index: 1, Pos: second, What: "offset 0x3 of record 8 is inside the instruction of 3 bytes at offset 0x1"}},
		{ruleRegisters, location(1, Location{Register, 16, 49, 0}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "location 1 of record 7: x86-64 has no register with number 49"}},
		{ruleRegisters, location(2, Location{Register, 8, 16, 0}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "location 2 of record 7: rip cannot hold values"}},
		{ruleRegisters, location(3, Location{Direct, 8, 17, 0}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "location 3 of record 7: xmm0 cannot hold an address"}},
		{ruleRegisters, location(4, Location{Indirect, 4, 118, 0}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "location 4 of record 7: k0 cannot hold an address"}},
		{ruleRegisters, liveOut(2, LiveOut{500, 8}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "live-out 2 of record 7: x86-64 has no register with number 500"}},
		{ruleSizes, location(2, Location{Register, 16, 3, 0}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "location 2 of record 7: 16 bytes of rbx, which has 8"}},
		{ruleSizes, location(2, Location{Register, 0, 3, 0}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "location 2 of record 7: 0 bytes of rbx, which has 8"}},
		{ruleSizes, location(0, Location{Register, 8, 0, 8}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "location 0 of record 7: 8 bytes from bit 8 of rax, which has 64 bits"}},
		{ruleSizes, location(0, Location{Register, 1, 0, -8}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "location 0 of record 7: 1 bytes from bit -8 of rax, which has 64 bits"}},
		{ruleSizes, liveOut(0, LiveOut{3, 9}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "live-out 0 of record 7: 9 bytes of rbx, which has 8"}},
		{ruleSizes, liveOut(0, LiveOut{3, 0}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "live-out 0 of record 7: 0 bytes of rbx, which has 8"}},
		{ruleFields, location(3, Location{Direct, 4, 6, 0}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "location 3 of record 7: an address of 4 bytes; a pointer has 8"}},
		{ruleFields, location(4, Location{Indirect, 0, 7, 0}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "location 4 of record 7: an Indirect location of 0 bytes"}},
		{ruleFields, location(5, Location{Constant, 4, 0, 0}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "location 5 of record 7: a constant of 4 bytes"}},
		{ruleFields, location(6, Location{ConstantIndex, 8, 1, 0}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "location 6 of record 7: a constant with register 1"}},
		{ruleConstants, location(6, Location{ConstantIndex, 8, 0, 1}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "location 6 of record 7: constant index 1 is out of range; the table has 1 entries"}},
		{ruleConstants, location(6, Location{ConstantIndex, 8, 0, -1}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "location 6 of record 7: constant index -1 is out of range; the table has 1 entries"}},
		{ruleLiveOuts, liveOut(1, LiveOut{3, 8}),
			Violation{Function: 0x1000, Record: 7, Pos: first, What: "live-out 1 of record 7 is register 3, after register 3"}},
	} {
		t.Run(c.want.What, func(t *testing.T) {
			blob := sampleBlob()
			c.change(blob)
			for i, r := range Check(parsedBlob(t, blob), machine.AMD64, sampleText()) {
				if i != c.rule {
					require.Zero(t, r.Broken, "%+v", r)
					continue
				}
				c.want.Rule = rules[c.rule].Name
				require.Equal(t, 1, r.Broken)
				require.Equal(t, []Violation{c.want}, r.Violations)
			}
		})
	}
}

// TestCheckReserved requires a violation for each kind of reserved byte that is not zero.
func TestCheckReserved(t *testing.T) {
	data, err := AppendBlob(nil, binary.LittleEndian, sampleBlob())
	require.NoError(t, err)
	const record = 16 + 2*24 + 8
	const tail = record + 16 + 7*12 + 4 // after the locations and their padding
	for at, what := range map[int]string{
		record + 17:       "the byte after a location's kind is 0x80",
		record + 16 + 6:   "the half-word after a location's register is 0x80",
		record + 16 + 7:   "the half-word after a location's register is 0x8000",
		record + 16 + 84:  "the padding after the locations is 0x80",
		tail:              "the half-word before the number of live-outs is 0x80",
		tail + 4 + 2:      "the byte after a live-out's register is 0x80",
		tail + 4 + 12 + 8: "", // the id of the next record is not reserved
	} {
		changed := slices.Clone(data)
		changed[at] = 0x80
		s, err := Parse(changed, Options{Order: binary.LittleEndian, Dialect: V3})
		require.NoError(t, err)
		r := Check(s, machine.AMD64, sampleText())[ruleReserved]
		if what == "" {
			require.Zero(t, r.Broken)
			continue
		}
		require.Len(t, r.Violations, 1)
		require.Equal(t, what, r.Violations[0].What)
		require.LessOrEqual(t, r.Violations[0].Pos, int64(at))
		require.Greater(t, r.Violations[0].Pos+2, int64(at))
	}
}

// TestCheckCounts requires a violation if the header of a map counts other records than its functions.
func TestCheckCounts(t *testing.T) {
	data, err := AppendBlob(nil, binary.LittleEndian, sampleBlob())
	require.NoError(t, err)
	s, err := Parse(data, Options{Order: binary.LittleEndian})
	require.NoError(t, err)
	data[16+16] = 3
	r := Check(s, machine.AMD64, sampleText())[ruleCounts]
	require.Equal(t, []Violation{{Rule: "record counts add up", Index: -1, Pos: 12, What: "the functions have 5 records, the header says 4"}}, r.Violations)
}

// TestCheckUnknown requires that a rule that cannot be checked is reported as unknown, and never as satisfied.
func TestCheckUnknown(t *testing.T) {
	type result struct {
		checked, unknown int
		skipped          string
	}
	of := func(s *Section, arch *machine.Arch, code Code) map[int]result {
		out := map[int]result{}
		for i, r := range Check(s, arch, code) {
			require.Zero(t, r.Broken, "%+v", r)
			if len(r.Skipped) > 0 {
				out[i] = result{r.Checked, r.Unknown, strings.Join(r.Skipped, "; ")}
			} else {
				require.Zero(t, r.Unknown)
			}
		}
		return out
	}
	s := parsedBlob(t, sampleBlob())
	require.Equal(t, map[int]result{
		ruleAddress:  {0, 0, "no code is available"},
		ruleInside:   {0, 0, "no code is available"},
		ruleBoundary: {4, 4, "no code is available"},
	}, of(s, machine.AMD64, nil))
	require.Equal(t, map[int]result{
		ruleRegisters: {0, 0, "the architecture is not known"},
		ruleSizes:     {0, 0, "the architecture is not known"},
		ruleBoundary:  {0, 0, "the architecture is not known"},
		ruleFields:    {4, 1, "the size of a pointer is not known"},
	}, of(s, nil, sampleText()))
	require.Equal(t, map[int]result{
		ruleAddress:   {0, 0, "no code is available"},
		ruleInside:    {0, 0, "no code is available"},
		ruleRegisters: {0, 0, "the architecture is not known"},
		ruleSizes:     {0, 0, "the architecture is not known"},
		ruleBoundary:  {0, 0, "the architecture is not known"},
		ruleFields:    {4, 1, "the size of a pointer is not known"},
	}, of(s, nil, nil))

	open := sampleText()
	open.ends = nil
	require.Equal(t, map[int]result{ruleInside: {4, 4, "the end of a function is unknown"}}, of(s, machine.AMD64, open))

	bad := sampleText()
	bad.code[4] = 0x06 // push %es, which is invalid in 64-bit mode
	require.Equal(t, map[int]result{ruleBoundary: {4, 2, "after an unknown instruction"}}, of(s, machine.AMD64, bad))

	short := sampleText()
	short.code = short.code[:0x10]
	require.Equal(t, map[int]result{ruleBoundary: {4, 1, "for code that cannot be read"}}, of(s, machine.AMD64, hole{short}))

	other := *machine.AMD64
	other.Title = "another"
	require.Equal(t, map[int]result{ruleBoundary: {4, 4, "the instructions of another are not known"}}, of(s, &other, sampleText()))

	loose := sampleBlob()
	loose.Version, loose.Dialect = 1, V1
	loose.Unattributed = slices.Concat(loose.Functions[0].Records, loose.Functions[1].Records)
	loose.Functions[0].Records, loose.Functions[1].Records = nil, nil
	require.Equal(t, map[int]result{
		ruleCounts:   {1, 1, "layout v1 has no record counts"},
		ruleInside:   {4, 4, "layout v1 does not say which function a record belongs to"},
		ruleBoundary: {4, 4, "layout v1 does not say which function a record belongs to"},
	}, of(parsedBlob(t, loose), machine.AMD64, sampleText()))
}

// hole is a text whose functions extend past the readable bytes.
type hole struct{ *text }

func (h hole) Function(addr machine.Addr) (end machine.Addr, executable, endKnown bool) {
	return addr + 11, true, true
}

// TestCheckOutside requires that Check does not check instruction boundaries for an offset outside of its function, or for a function outside of
// executable memory.
func TestCheckOutside(t *testing.T) {
	blob := sampleBlob()
	blob.Functions[0].Addr = 0x5000
	blob.Functions[1].Records[0].Offset = math.MaxUint32
	results := Check(parsedBlob(t, blob), machine.AMD64, sampleText())
	require.Equal(t, 1, results[ruleAddress].Broken)
	require.Equal(t, Result{Rule: rules[ruleInside], Checked: 4, Broken: 1, Unknown: 2,
		Violations: []Violation{{Rule: rules[ruleInside].Name, Function: 0x1010, Record: 9, Pos: results[ruleInside].Violations[0].Pos, What: "offset 0xffffffff of record 9: the function has 0x4 bytes"}},
		Skipped:    []string{"for functions outside of executable memory"}}, results[ruleInside])
	require.Equal(t, Result{Rule: rules[ruleBoundary], Checked: 4, Unknown: 3,
		Skipped: []string{"for offsets outside of their function", "for functions outside of executable memory"}}, results[ruleBoundary])

	// If the end of the first function is unknown, the start of the second function is an upper bound.
	blob = sampleBlob()
	blob.Functions[0].Records[0].Offset = 0x11
	code := sampleText()
	delete(code.ends, 0x1000)
	r := Check(parsedBlob(t, blob), machine.AMD64, code)[ruleInside]
	require.Equal(t, 1, r.Broken)
	require.Equal(t, "offset 0x11 of record 7: 0x10 bytes after the function's start its code ends or another function starts", r.Violations[0].What)
}

// TestCheckNowhere requires that the rules about code have an unknown result for a function whose address is unknown.
func TestCheckNowhere(t *testing.T) {
	blob := sampleBlob()
	blob.Functions[1].Addr = 0 // as in an object that lost its relocations
	code := sampleText()
	code.unplaced = 16 + 24
	results := Check(parsedBlob(t, blob), machine.AMD64, code)
	const why = "the address of a function is unknown"
	require.Equal(t, Result{Rule: rules[ruleAddress], Checked: 2, Unknown: 1, Skipped: []string{why}}, results[ruleAddress])
	require.Equal(t, Result{Rule: rules[ruleInside], Checked: 4, Unknown: 2, Skipped: []string{why}}, results[ruleInside])
	require.Equal(t, Result{Rule: rules[ruleBoundary], Checked: 4, Unknown: 2, Skipped: []string{why}}, results[ruleBoundary])
}

// TestCheckNarrow checks a map of a 32-bit ABI on a 64-bit architecture, where addresses have 4 bytes.
func TestCheckNarrow(t *testing.T) {
	blob := sampleBlob()
	code := sampleText()
	code.narrow = true
	r := Check(parsedBlob(t, blob), machine.AMD64, code)[ruleFields]
	require.Len(t, r.Violations, 1)
	require.Equal(t, "location 3 of record 7: an address of 8 bytes; a pointer has 4", r.Violations[0].What)
	blob.Functions[0].Records[0].Locations[3].Size = 4
	require.Zero(t, Check(parsedBlob(t, blob), machine.AMD64, code)[ruleFields].Broken)
}
