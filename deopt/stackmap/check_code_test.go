package stackmap

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// TestCheckFolded requires that code is decoded once if a linker has folded several functions into it.
func TestCheckFolded(t *testing.T) {
	blob := sampleBlob()
	blob.Functions[1] = BlobFunction{Addr: 0x1000, StackSize: 8, Records: []Record{{ID: 1, Offset: 3}, {ID: 1, Offset: 1}}}
	results := Check(parsedBlob(t, blob), machine.AMD64, sampleText())
	require.Equal(t, 4, results[ruleBoundary].Checked)
	require.Equal(t, 1, results[ruleBoundary].Broken)
	require.Equal(t, RecordID(1), results[ruleBoundary].Violations[0].Record)
	require.Equal(t, 0, results[ruleBoundary].Violations[0].Index)
}

// TestCheckOtherCode checks the rules about code for the architectures other than x86-64, with handwritten code. TestCheckLive checks objects
// from llc.
func TestCheckOtherCode(t *testing.T) {
	blob := func(offset uint32) *Blob {
		return &Blob{Version: 3, Dialect: V3, Functions: []BlobFunction{{Addr: 0x1000, Records: []Record{{ID: 1, Offset: offset}}}}}
	}
	for _, c := range []struct {
		arch *machine.Arch
		code []byte
		// the expected violation for each offset; "" for none
		want map[uint32]string
	}{
		{machine.ARM64, make([]byte, 16), map[uint32]string{4: "", 16: "", 6: "offset 0x6 of record 1: 0x1006 is not a multiple of 4, as instructions are"}},
		{machine.LOONG64, make([]byte, 16), map[uint32]string{8: "", 9: "offset 0x9 of record 1: 0x1009 is not a multiple of 4, as instructions are"}},
		// addi; pli, which is prefixed; addi
		{machine.PPC64LE, []byte{1, 0, 0x60, 0x38, 0, 0, 0, 6, 1, 0, 0x60, 0x38, 1, 0, 0x60, 0x38}, map[uint32]string{
			4: "", 12: "", 16: "", 8: "offset 0x8 of record 1 is inside the instruction of 8 bytes at offset 0x4",
			2: "offset 0x2 of record 1: 0x1002 is not a multiple of 4, as instructions are"}},
		{machine.PPC64, []byte{0x38, 0x60, 0, 1, 6, 0, 0, 0, 0x38, 0x60, 0, 1, 0x38, 0x60, 0, 1}, map[uint32]string{
			4: "", 12: "", 16: "", 8: "offset 0x8 of record 1 is inside the instruction of 8 bytes at offset 0x4"}},
		// c.nop; nop; an instruction of 48 bits
		{machine.RISCV64, []byte{1, 0, 0x13, 0, 0, 0, 0x1f, 0, 0, 0, 0, 0}, map[uint32]string{
			2: "", 6: "", 4: "offset 0x4 of record 1 is inside the instruction of 4 bytes at offset 0x2", 12: "?",
			3: "offset 0x3 of record 1: 0x1003 is not a multiple of 2, as instructions are"}},
		// lr, la, lg, brasl
		{machine.S390X, []byte{0x18, 0x12, 0x41, 0x20, 0x10, 0, 0xe3, 0x20, 0x10, 0, 0, 4, 0xc0, 0xe5, 0, 0, 0, 0}, map[uint32]string{
			2: "", 6: "", 12: "", 18: "", 4: "offset 0x4 of record 1 is inside the instruction of 4 bytes at offset 0x2",
			8: "offset 0x8 of record 1 is inside the instruction of 6 bytes at offset 0x6"}},
	} {
		for offset, want := range c.want {
			code := &text{base: 0x1000, code: c.code, ends: map[machine.Addr]machine.Addr{0x1000: 0x1000 + machine.Addr(len(c.code))}}
			r := Check(parsedBlob(t, blob(offset)), c.arch, code)[ruleBoundary]
			switch want {
			case "":
				require.Equal(t, Result{Rule: rules[ruleBoundary], Checked: 1}, r, "%s %d", c.arch.Name, offset)
			case "?":
				require.Equal(t, 1, r.Unknown, "%s %d", c.arch.Name, offset)
				require.Equal(t, []string{"after an unknown instruction"}, r.Skipped)
			default:
				require.Len(t, r.Violations, 1, "%s %d", c.arch.Name, offset)
				require.Equal(t, want, r.Violations[0].What)
			}
		}
	}
	// On an architecture whose instructions have one length, the check needs no code.
	require.Equal(t, Result{Rule: rules[ruleBoundary], Checked: 1}, Check(parsedBlob(t, blob(8)), machine.ARM64, nil)[ruleBoundary])
	require.Equal(t, 1, Check(parsedBlob(t, blob(7)), machine.ARM64, nil)[ruleBoundary].Broken)
	require.Equal(t, 1, Check(parsedBlob(t, blob(8)), machine.S390X, nil)[ruleBoundary].Unknown)
	require.Equal(t, 1, Check(parsedBlob(t, blob(7)), machine.S390X, nil)[ruleBoundary].Broken)
}

// TestCheckOddities requires that Check accepts valid output of LLVM that looks like a violation.
func TestCheckOddities(t *testing.T) {
	check := func(arch *machine.Arch, order binary.AppendByteOrder, dialect Dialect, r Record) []Result {
		f := BlobFunction{Records: []Record{r}}
		if dialect == Yk {
			f.Prologue = &Prologue{Saved: []SavedRegister{{Reg: 3}}}
		}
		data, err := AppendBlob(nil, order, &Blob{Version: 3, Dialect: dialect, Functions: []BlobFunction{f}})
		require.NoError(t, err)
		s, err := Parse(data, Options{Order: order.(binary.ByteOrder), Dialect: dialect})
		require.NoError(t, err)
		return Check(s, arch, nil)
	}
	kept := func(results []Result) {
		t.Helper()
		for _, r := range results {
			require.Zero(t, r.Broken, "%+v", r)
		}
	}
	// A bit of cr0, an i32 in r3, a pair of vector registers.
	kept(check(machine.PPC64, binary.BigEndian, V3, Record{
		Locations: []Location{{Register, 4, 68, 2}, {Register, 4, 1203, 0}}, LiveOuts: []LiveOut{{97, 32}}}))
	require.Equal(t, 1, check(machine.PPC64, binary.BigEndian, V3, Record{LiveOuts: []LiveOut{{98, 32}}})[ruleSizes].Broken)
	require.Equal(t, 1, check(machine.PPC64, binary.BigEndian, V3, Record{Locations: []Location{{Register, 4, 68, 32}}})[ruleSizes].Broken)
	// ykllvm stores the spill slot of a register in the field of the first bit.
	ykRecord := func(extra int16) Record {
		return Record{Locations: []Location{{Register, 8, 3, -16}}, Vars: []int{1}, Extra: [][]int16{{extra, -24}}}
	}
	kept(check(machine.AMD64, binary.LittleEndian, Yk, ykRecord(14)))
	r := check(machine.AMD64, binary.LittleEndian, Yk, ykRecord(300))[ruleRegisters]
	require.Equal(t, "an extra location of location 0 of record 0: x86-64 has no register with number 300", r.Violations[0].What)
}

// TestCheckMany requires that Check counts all violations of a rule, and stores only maxViolations of them.
func TestCheckMany(t *testing.T) {
	blob := &Blob{Version: 3, Dialect: V3, Functions: []BlobFunction{{}}}
	for range 250 {
		blob.Functions[0].Records = append(blob.Functions[0].Records, Record{Flags: 1})
	}
	r := Check(parsedBlob(t, blob), nil, nil)[ruleReserved]
	require.Equal(t, 4*250, r.Checked)
	require.Equal(t, 250, r.Broken)
	require.Len(t, r.Violations, 100)
}

// TestCheckWork requires that Check reads a bounded amount of code, even if functions overlap or their claimed ends are wrong.
func TestCheckWork(t *testing.T) {
	const size = 8 << 20
	code := &text{base: 0x10000, code: make([]byte, size), ends: map[machine.Addr]machine.Addr{}}
	for i := range code.code {
		code.code[i] = 0x90
	}
	blob := &Blob{Version: 3, Dialect: V3}
	for i := range 2000 {
		blob.Functions = append(blob.Functions, BlobFunction{Addr: machine.Addr(0x10000 + i), Records: []Record{{ID: 1, Offset: size - 2000}}})
	}
	s := parsedBlob(t, blob)
	results := Check(s, machine.AMD64, code)
	require.Equal(t, 1999, results[ruleInside].Broken, "functions do not overlap")
	require.Less(t, code.reads, size+1<<20)

	// With overlapping symbols, Check may read some code again, but not all of it.
	for i := range 2000 {
		code.ends[machine.Addr(0x10000+i)] = 0x10000 + size
	}
	code.reads = 0
	results = Check(s, machine.AMD64, code)
	require.Zero(t, results[ruleInside].Broken)
	require.Equal(t, []string{"where functions overlap"}, results[ruleBoundary].Skipped)
	require.Positive(t, results[ruleBoundary].Unknown)
	require.Less(t, code.reads, size+maxOverlap+16<<20)
}

// TestCheckHostile requires that a check of arbitrary bytes does not panic, and allocates memory in proportion to the section.
func TestCheckHostile(t *testing.T) {
	data, err := AppendBlob(nil, binary.LittleEndian, sampleBlob())
	require.NoError(t, err)
	code := sampleText()
	for at := range data {
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			changed := slices.Clone(data)
			changed[at] = v
			for _, d := range Dialects() {
				s, _ := Parse(changed, Options{Order: binary.LittleEndian, Dialect: d})
				if s == nil {
					continue
				}
				for _, arch := range []*machine.Arch{machine.AMD64, machine.RISCV64, nil} {
					for _, r := range Check(s, arch, code) {
						require.LessOrEqual(t, r.Broken+r.Unknown, r.Checked, "byte %d as %#x: %+v", at, v, r)
					}
				}
			}
		}
	}
	blob := &Blob{Version: 3, Dialect: V3, Functions: []BlobFunction{{Addr: 0x1000}}}
	for range 50000 {
		blob.Functions[0].Records = append(blob.Functions[0].Records, Record{Offset: 1 << 31, Flags: 1})
	}
	s := parsedBlob(t, blob)
	allocated := livetest.Allocated(func() { Check(s, machine.AMD64, code) })
	require.Less(t, allocated, uint64(24*50000*8))
}
