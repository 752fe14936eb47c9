package cfi

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// promised fails on an error that is not one of the documented errors.
func promised(t *testing.T, err error) {
	if err == nil || err == ErrNoFDE || err == ErrInFDE {
		return
	}
	var format *FormatError
	require.ErrorAs(t, err, &format)
}

// surveyCompact looks up the addresses in every way that compact unwind supports: each lookup must return a row, or an error with the place of the
// fault.
func surveyCompact(t *testing.T, c *Compact, memory machine.Memory, table *Table, pcs []machine.Addr) {
	for _, pc := range pcs {
		e, err := c.Find(pc)
		promised(t, err)
		if err != nil {
			continue
		}
		if pc < e.Start || pc >= e.End {
			require.Failf(t, "an entry for other code", "%v: %+v", pc, e)
		}
		if table != nil && e.inFDE() {
			_, err = e.FDE(table)
			promised(t, err)
		}
		row, err := e.AtCalls(memory)
		promised(t, err)
		if err == nil && !possible(c.arch, row) {
			require.Failf(t, "a row that saves registers where there is no frame", "%v: %+v, %s", pc, e, printed(c.arch, row))
		}
	}
}

// possible reports whether all saved registers of a row are inside its frame.
func possible(arch *machine.Arch, row *Row) bool {
	for _, rule := range row.Rules() {
		if rule.Kind != RuleOffset || rule.Offset >= 0 || row.CFA.Register == arch.SP && rule.Offset < -row.CFA.Offset {
			return false
		}
	}
	return row.CFA.Kind == CFARegister && row.CFA.Offset >= 0
}

var compactArches = []*machine.Arch{machine.AMD64, machine.ARM64}

// compactPlaces are addresses around the code of the seeds.
var compactPlaces = []machine.Addr{0, 0xfff, 0x1000, 0x1003, 0x1018, 0x10ff, 0x1100, 0x2000, 0x3004, 1<<32 + 0x1000, 1<<64 - 1}

func surveyObject(t *testing.T, data []byte) {
	for _, arch := range compactArches {
		c, err := ReadCompactUnwind(arch, data)
		promised(t, err)
		if err == nil {
			surveyCompact(t, c, prologue, nil, compactPlaces)
		}
	}
}

func surveyInfo(t *testing.T, data []byte) {
	for _, arch := range compactArches {
		c, err := OpenUnwindInfo(arch, Section{Addr: 0x9000, Data: bytes.NewReader(data), Size: int64(len(data))}, 0x800)
		promised(t, err)
		if err == nil {
			surveyCompact(t, c, prologue, nil, compactPlaces)
		}
	}
}

// compactSeed is a __compact_unwind with every mode.
func compactSeed() []byte {
	var b []byte
	for i, encoding := range []uint32{0x03066801, 0x01020021, 0x02081800, 0x04000000, 0x04000f1f} {
		b = append(b, le(uint64(0x1000+i*0x100), uint32(0x100), encoding, uint64(0), uint64(0))...)
	}
	return b
}

// infoSeed is an __unwind_info of an image whose header is at 0x800: a regular page for two
// functions at 0x1000 and 0x1080, and a compressed one for 0x2000 and 0x3000, which end at 0x3010.
func infoSeed() []byte {
	return le(
		uint32(1), uint32(28), uint32(1), uint32(32), uint32(0), uint32(32), uint32(3), // header
		uint32(0x02020400),                                                                                                // 28: encoding of all pages
		uint32(0x800), uint32(68), uint32(0), uint32(0x1800), uint32(92), uint32(0), uint32(0x2810), uint32(0), uint32(0), // 32: index
		uint32(2), uint16(8), uint16(2), uint32(0x800), uint32(0x03066801), uint32(0x880), uint32(0x01020021), // 68
		uint32(3), uint16(12), uint16(2), uint16(20), uint16(1), uint32(0), uint32(1<<24|0x1000), uint32(0x02081800)) // 92
}

func TestUnwindInfoPages(t *testing.T) {
	data := infoSeed()
	c, err := OpenUnwindInfo(machine.AMD64, Section{Data: bytes.NewReader(data), Size: int64(len(data))}, 0x800)
	require.NoError(t, err)
	for _, want := range []CompactEntry{
		{Range: machine.Range{Start: 0x1000, End: 0x1080}, Encoding: 0x03066801, Offset: 80},
		{Range: machine.Range{Start: 0x1080, End: 0x2000}, Encoding: 0x01020021, Offset: 88},
		{Range: machine.Range{Start: 0x2000, End: 0x3000}, Encoding: 0x02020400, Offset: 28},
		{Range: machine.Range{Start: 0x3000, End: 0x3010}, Encoding: 0x02081800, Offset: 112},
	} {
		want.Section, want.arch = "__TEXT,__unwind_info", machine.AMD64
		for _, pc := range []machine.Addr{want.Start, want.Start + 1, want.End - 1} {
			e, err := c.Find(pc)
			require.NoError(t, err, "%v", pc)
			require.Equal(t, &want, e)
		}
	}
	for _, pc := range []machine.Addr{0, 0x7ff, 0x800, 0xfff, 0x3010, 0x3011, 1 << 32, 1<<32 + 0x1000, 1<<64 - 1} {
		_, err := c.Find(pc)
		require.ErrorIs(t, err, ErrNoFDE, "%v", pc)
	}
}

// TestUnwindInfoErrors requires that errors name the place of the fault in the section.
func TestUnwindInfoErrors(t *testing.T) {
	for _, test := range []struct {
		at    int
		value uint32
		err   string
	}{
		{0, 2, "__TEXT,__unwind_info at offset 0x0: version 2"},
		{4, 113, "at offset 0x71: 1 rows of 4 bytes in a section of 116"},
		{8, 1 << 31, "2147483648 rows of 4 bytes in a section of 116"},
		{24, 1 << 31, "2147483648 rows of 12 bytes in a section of 116"},
		{20, 1<<32 - 1, "at offset 0xffffffff: 3 rows of 12 bytes"},
		{24, 0, "no unwind information covers"},
		{24, 1, "no unwind information covers"},
		{32, 0x1801, "no unwind information covers"},
		{36, 1 << 30, "at offset 0x40000000: truncated"},
		{36, 0, "no unwind information covers"},
		{68, 4, "at offset 0x44: unknown page kind 4"},
		{72, 8, "at offset 0x44: the index refers to this page for code before its start"},
		{72, 0xffff<<16 | 8, "truncated"},
		{72, 2<<16 | 0xffff, "at offset 0x1004b: truncated"},
		{76, 0x801, "at offset 0x44: the index refers to this page for code before its start"},
	} {
		data := infoSeed()
		binary.LittleEndian.PutUint32(data[test.at:], test.value)
		c, err := OpenUnwindInfo(machine.AMD64, Section{Data: bytes.NewReader(data), Size: int64(len(data))}, 0x800)
		if err == nil {
			_, err = c.Find(0x1000)
		}
		require.ErrorContains(t, err, test.err, "%d", test.at)
	}
	_, err := OpenUnwindInfo(machine.PPC64, Section{}, 0)
	require.ErrorContains(t, err, "compact unwind is not supported for ")
	_, err = OpenUnwindInfo(machine.ARM64, Section{Data: bytes.NewReader(infoSeed()), Size: 20}, 0)
	require.ErrorContains(t, err, "at offset 0x0: truncated")
}

// everyByte sets each byte to each other value, and calls ask.
func everyByte(b []byte, ask func()) {
	for i := range b {
		old := b[i]
		for v := range 256 {
			b[i] = byte(v)
			ask()
		}
		b[i] = old
	}
}

// TestCompactEveryByte changes every byte of the output of llc and lld, with valid code and __eh_frame, and of the seed.
func TestCompactEveryByte(t *testing.T) {
	livetest.Slow(t)
	info := infoSeed()
	everyByte(info, func() { surveyInfo(t, info) })
	for triple, trap := range map[string]string{"x86_64-apple-macosx11": "int3", "arm64-apple-macosx11": "brk #0x7b"} {
		t.Run(triple, func(t *testing.T) {
			t.Parallel()
			path := livetest.Object(t, 19, module(t, "frames.ll", framesModule(trap, [][]string{nil}, "")), "-mtriple="+triple)
			arch, _, _ := strings.Cut(triple, "-")
			object, linked := openMachO(t, path), openMachO(t, dylib(t, arch, path))
			require.Greater(t, len(object.compact.rows), 10)
			section := bytes.Clone(object.section.data)
			everyByte(section, func() {
				c, err := ReadCompactUnwind(object.arch, section)
				promised(t, err)
				if err == nil {
					surveyCompact(t, c, object.code, object.table, object.places)
				}
			})
			section = bytes.Clone(linked.section.data)
			used := bytes.TrimRight(section, "\x00") // lld pads the page
			everyByte(used, func() {
				c, err := OpenUnwindInfo(linked.arch, Section{Data: bytes.NewReader(section), Size: int64(len(section))}, linked.image)
				promised(t, err)
				if err == nil {
					surveyCompact(t, c, linked.code, linked.table, linked.places)
				}
			})
		})
	}
}

func FuzzCompact(f *testing.F) {
	f.Add(compactSeed())
	f.Fuzz(surveyObject)
}

func FuzzUnwindInfo(f *testing.F) {
	f.Add(infoSeed())
	f.Fuzz(surveyInfo)
}
