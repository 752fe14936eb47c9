package cfi

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// compactObject is a __compact_unwind with one row, for 0x100 bytes of code at 0x1000.
func compactObject(encoding uint32) []byte {
	return le(uint64(0x1000), uint32(0x100), encoding, uint64(0), uint64(0))
}

// prologue is code at 0x1000 that pushes two registers and makes room for 0x12340 bytes.
var prologue = placed{0x1000, append([]byte{0x53, 0x41, 0x54, 0x48, 0x81, 0xec, 0x40, 0x23, 0x01, 0x00}, make([]byte, 0xf6)...)}

// printed formats a row: the CFA, and the place of each register relative to it.
func printed(arch *machine.Arch, row *Row) string {
	words := []string{fmt.Sprintf("%s%+d", arch.RegisterName(row.CFA.Register), row.CFA.Offset)}
	for reg, rule := range row.Rules() {
		if rule.Kind != RuleOffset {
			return "a rule that is no offset"
		}
		words = append(words, fmt.Sprintf("%s=c%+d", arch.RegisterName(reg), rule.Offset))
	}
	return strings.Join(words, " ")
}

// TestCompactEncodings requires the rows of the diagrams and comments in mach-o/compact_unwind_encoding.h.
func TestCompactEncodings(t *testing.T) {
	for _, test := range []struct {
		arch     *machine.Arch
		encoding uint32
		row, err string
	}{
		{machine.AMD64, 0x01000000, "rbp+16 rbp=c-16 rip=c-8", ""},
		{machine.AMD64, 0xf1000000, "rbp+16 rbp=c-16 rip=c-8", ""}, // not the start, exception table, personality 3
		{machine.AMD64, 0x01010001, "rbp+16 rbx=c-24 rbp=c-16 rip=c-8", ""},
		{machine.AMD64, 0x01020021, "rbp+16 rbx=c-32 rbp=c-16 r14=c-24 rip=c-8", ""},
		{machine.AMD64, 0x010558d1, "rbp+16 rbx=c-56 rbp=c-16 r12=c-48 r13=c-40 r14=c-32 r15=c-24 rip=c-8", ""},
		{machine.AMD64, 0x01ff0005, "rbp+16 rbp=c-16 r15=c-2056 rip=c-8", ""},
		{machine.AMD64, 0x01030081, "rbp+16 rbx=c-40 rbp=c-16 r12=c-24 rip=c-8", ""}, // an unrelated slot between those of rbx and r12
		{machine.AMD64, 0x01030041, "", "rbx is saved twice"},
		{machine.AMD64, 0x01010006, "", "register 6 in slot 0"},
		{machine.AMD64, 0x01010000 | 1<<3, "", "slot 1 of 1 words below the frame pointer"},
		{machine.AMD64, 0x01000001, "", "slot 0 of 0 words below the frame pointer"},
		{machine.AMD64, 0x01010007, "", "register 7 in slot 0"},
		{machine.AMD64, 0x01018001, "", "bits 0x8000 are undefined in its mode"},

		{machine.AMD64, 0x02010000, "rsp+8 rip=c-8", ""},
		{machine.AMD64, 0x02020400, "rsp+16 rbx=c-16 rip=c-8", ""},
		{machine.AMD64, 0x02020405, "rsp+16 rbp=c-16 rip=c-8", ""},
		{machine.AMD64, 0x02ff0c00, "rsp+2040 rbx=c-32 r12=c-24 r13=c-16 rip=c-8", ""},
		{machine.AMD64, 0x02081800, "rsp+64 rbx=c-56 rbp=c-16 r12=c-48 r13=c-40 r14=c-32 r15=c-24 rip=c-8", ""},
		{machine.AMD64, 0x02081800 | 719, "rsp+64 rbx=c-16 rbp=c-56 r12=c-24 r13=c-32 r14=c-40 r15=c-48 rip=c-8", ""},
		{machine.AMD64, 0x02000000, "", "1 saved words in a frame of 0 bytes"},
		{machine.AMD64, 0x02020800, "", "3 saved words in a frame of 16 bytes"},
		{machine.AMD64, 0x02020406, "", "invalid permutation 6 of 1 registers"},
		{machine.AMD64, 0x02090000 | 6<<10 | 720, "", "invalid permutation 720 of 6 registers"},
		{machine.AMD64, 0x02090001, "", "invalid permutation 1 of 0 registers"},
		{machine.AMD64, 0x02091c00, "", "invalid permutation 0 of 7 registers"},
		{machine.AMD64, 0x02022000, "", "bits 0x2000 are undefined in its mode"},

		{machine.AMD64, 0x03066801, "rsp+74584 rbx=c-24 r13=c-16 rip=c-8", ""}, // 0x12340 bytes and 3 words
		{machine.AMD64, 0x03060000, "rsp+74560 rip=c-8", ""},
		{machine.AMD64, 0x03056801, "", "no subq $imm32, %rsp is at +2 of 0x1000"},
		{machine.AMD64, 0x03020000, "", "no subq $imm32, %rsp can have its operand at +2 of 0x1000"},
		{machine.AMD64, 0x03fd0000, "", "no subq $imm32, %rsp can have its operand at +253 of 0x1000"},
		{machine.AMD64, 0x83060000, "", "and the range does not start there"},

		{machine.AMD64, 0, "", "no unwind information covers this address"},
		{machine.AMD64, 0x00000001, "", "bits 0x1 are undefined in its mode"},
		{machine.AMD64, 0x04000018, "", "compact unwind refers to __eh_frame"},
		{machine.AMD64, 0x05000000, "", "unknown mode 5 of x86-64"},
		{machine.AMD64, 0x0f000000, "", "unknown mode 15 of x86-64"},

		{machine.ARM64, 0x02000000, "sp+0", ""},
		{machine.ARM64, 0x02fff000, "sp+65520", ""},
		{machine.ARM64, 0x02002101, "sp+32 x19=c-8 x20=c-16 v8=c-24 v9=c-32", ""},
		{machine.ARM64, 0x02001101, "", "32 bytes of saved registers in a frame of 16"},
		{machine.ARM64, 0x04000000, "x29+16 x29=c-16 x30=c-8", ""},
		{machine.ARM64, 0x04000011, "x29+16 x19=c-24 x20=c-32 x27=c-40 x28=c-48 x29=c-16 x30=c-8", ""},
		{machine.ARM64, 0x04000f1f, "x29+16 x19=c-24 x20=c-32 x21=c-40 x22=c-48 x23=c-56 x24=c-64 x25=c-72 x26=c-80 x27=c-88 x28=c-96" +
			" x29=c-16 x30=c-8 v8=c-104 v9=c-112 v10=c-120 v11=c-128 v12=c-136 v13=c-144 v14=c-152 v15=c-160", ""},
		{machine.ARM64, 0x04001000, "", "bits 0x1000 are undefined in its mode"},
		{machine.ARM64, 0x04000020, "", "bits 0x20 are undefined in its mode"},
		{machine.ARM64, 0x02000080, "", "bits 0x80 are undefined in its mode"},
		{machine.ARM64, 0, "", "no unwind information covers this address"},
		{machine.ARM64, 0x00000100, "", "bits 0x100 are undefined in its mode"},
		{machine.ARM64, 0x03000070, "", "compact unwind refers to __eh_frame"},
		{machine.ARM64, 0x01000000, "", "unknown mode 1 of arm64"},
		{machine.ARM64, 0x05000000, "", "unknown mode 5 of arm64"},
	} {
		c, err := ReadCompactUnwind(test.arch, compactObject(test.encoding))
		require.NoError(t, err)
		e, err := c.Find(0x10ff)
		require.NoError(t, err)
		require.Equal(t, test.encoding, e.Encoding)
		row, err := e.AtCalls(prologue)
		if test.err != "" {
			require.ErrorContains(t, err, test.err, "%#x", test.encoding)
			require.Nil(t, row)
			if test.encoding&compactMode != 0 && e.inFDE() {
				require.ErrorIs(t, err, ErrInFDE)
			} else if test.encoding != 0 {
				require.ErrorContains(t, err, "__LD,__compact_unwind at offset 0xc: encoding ")
			}
			continue
		}
		require.NoError(t, err, "%#x", test.encoding)
		require.Equal(t, test.row, printed(test.arch, row), "%#x", test.encoding)
		require.Equal(t, machine.Addr(0x1000), row.Start)
		require.Equal(t, machine.Addr(0x1100), row.End)
	}
}

// TestCompactFrameSize requires an error if the code that contains the size of a frame is wrong or cannot be read.
func TestCompactFrameSize(t *testing.T) {
	c, err := ReadCompactUnwind(machine.AMD64, compactObject(0x03030000))
	require.NoError(t, err)
	e, err := c.Find(0x1000)
	require.NoError(t, err)
	for _, test := range []struct {
		imm  int32
		size int64
		err  string
	}{
		{0x1000, 0x1000, ""},
		{math.MaxInt32 &^ 7, math.MaxInt32 &^ 7, ""},
		{8, 8, ""},
		{0, 0, "1 saved words in a frame of 0 bytes"},
		{-8, 0, "subq $-8, %rsp at +0 of 0x1000 allocates no frame"},
		{12, 0, "subq $12, %rsp at +0 of 0x1000 allocates no frame"},
	} {
		row, err := e.AtCalls(placed{0x1000, binary.LittleEndian.AppendUint32([]byte{0x48, 0x81, 0xec}, uint32(test.imm))})
		if test.err != "" {
			require.ErrorContains(t, err, test.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, test.size, row.CFA.Offset)
	}
	_, err = e.AtCalls(placed{0x1000, []byte{0x48, 0x81, 0xec}})
	require.ErrorContains(t, err, "the size of the frame is in the code: 7 bytes at 0x1000: not in the code")
	_, err = e.AtCalls(nil)
	require.ErrorContains(t, err, "the frame size is in the code, which is not available")
}

// TestCompactRows requires that rows may be in any order, and an error for rows that contradict each other.
func TestCompactRows(t *testing.T) {
	row := func(start uint64, length, encoding uint32) []byte {
		return le(start, length, encoding, uint64(1), uint64(2))
	}
	c, err := ReadCompactUnwind(machine.ARM64, le(row(0x3000, 8, 3), row(0x1000, 0x10, 1), row(0x1010, 0x20, 2), row(0x2000, 0, 4)))
	require.NoError(t, err)
	for pc, want := range map[machine.Addr]uint32{0xfff: 0, 0x1000: 1, 0x100f: 1, 0x1010: 2, 0x102f: 2, 0x1030: 0, 0x2000: 0, 0x2fff: 0, 0x3007: 3, 0x3008: 0} {
		e, err := c.Find(pc)
		if want == 0 {
			require.ErrorIs(t, err, ErrNoFDE, "%v", pc)
			continue
		}
		require.NoError(t, err, "%v", pc)
		require.Equal(t, want, e.Encoding, "%v", pc)
	}
	for _, test := range []struct {
		data []byte
		err  string
	}{
		{le(row(0x1000, 0x11, 1), row(0x1010, 0x20, 2)), "at offset 0x2c: the code at 0x1010 is part of that at 0x1000, whose encoding is at offset 0xc"},
		{le(row(0x1000, 8, 1), row(0x1000, 8, 1)), "at offset 0x2c: the code at 0x1000 is part of that at 0x1000"},
		{row(1<<64-8, 9, 1), "at offset 0xc: invalid code range: 0x9 bytes at 0xfffffffffffffff8"},
		{make([]byte, 33), "at offset 0x21: 33 bytes; expected a multiple of 32"},
	} {
		_, err := ReadCompactUnwind(machine.ARM64, test.data)
		require.ErrorContains(t, err, test.err)
		var format *FormatError
		require.ErrorAs(t, err, &format)
	}
	_, err = ReadCompactUnwind(machine.PPC64LE, nil)
	require.ErrorContains(t, err, "compact unwind is not supported for ")
	_, err = ReadCompactUnwind(nil, nil)
	require.ErrorContains(t, err, "compact unwind is not supported for an unknown architecture")
}
