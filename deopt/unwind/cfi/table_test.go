package cfi

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

func tableOf(t *testing.T, frame []byte) *Table {
	t.Helper()
	table, err := NewTable(Sections{Arch: machine.AMD64, EHFrame: Section{
		Addr: 0x8000, Data: bytes.NewReader(frame), Size: int64(len(frame)),
	}})
	require.NoError(t, err)
	return table
}

// rowsOf prints the rows of the FDE at 0x1000, in readelf's notation.
func rowsOf(table *Table) ([]string, error) {
	f, err := table.Find(0x1000)
	if err != nil {
		return nil, err
	}
	var out []string
	for pc := f.Start; pc < f.End; {
		row, err := f.Rules(pc)
		if err != nil {
			return out, err
		}
		var words []string
		for name, rule := range asReadelf(table.sections[0].arch, row) {
			words = append(words, name+"="+rule)
		}
		slices.Sort(words)
		out = append(out, fmt.Sprintf("%x %s", uint64(row.Start), strings.Join(words, " ")))
		pc = row.End
	}
	return out, nil
}

func TestInstructions(t *testing.T) {
	for _, test := range []struct {
		name    string
		program []byte
		rows    []string
		err     string
	}{
		{"nothing", nil, []string{"1000 CFA=rsp+8 ra=c-8"}, ""},
		{"nop", []byte{0, 0, 0}, []string{"1000 CFA=rsp+8 ra=c-8"}, ""},
		{"advance_loc", []byte{0x43, 0x0e, 24}, []string{"1000 CFA=rsp+8 ra=c-8", "100c CFA=rsp+24 ra=c-8"}, ""},
		{"advance_loc1", []byte{2, 0x20, 0x0e, 24}, []string{"1000 CFA=rsp+8 ra=c-8", "1080 CFA=rsp+24 ra=c-8"}, ""},
		{"advance_loc2", []byte{3, 0x21, 0, 0x0e, 24}, []string{"1000 CFA=rsp+8 ra=c-8", "1084 CFA=rsp+24 ra=c-8"}, ""},
		{"advance_loc4", []byte{4, 0x22, 0, 0, 0, 0x0e, 24}, []string{"1000 CFA=rsp+8 ra=c-8", "1088 CFA=rsp+24 ra=c-8"}, ""},
		{"set_loc", []byte{1, 0x10, 0x10, 0, 0, 0, 0, 0, 0, 0x0e, 24}, []string{"1000 CFA=rsp+8 ra=c-8", "1010 CFA=rsp+24 ra=c-8"}, ""},
		{"past the end", []byte{2, 0xff, 0x0e, 24}, []string{"1000 CFA=rsp+8 ra=c-8"}, ""},
		{"def_cfa", []byte{0x0c, 6, 0x90, 1}, []string{"1000 CFA=rbp+144 ra=c-8"}, ""},
		{"def_cfa_sf", []byte{0x12, 6, 0x7e}, []string{"1000 CFA=rbp+16 ra=c-8"}, ""},
		{"def_cfa_register", []byte{0x0d, 10}, []string{"1000 CFA=r10+8 ra=c-8"}, ""},
		{"def_cfa_offset", []byte{0x0e, 0x80, 2}, []string{"1000 CFA=rsp+256 ra=c-8"}, ""},
		{"def_cfa_offset_sf", []byte{0x13, 0x7d}, []string{"1000 CFA=rsp+24 ra=c-8"}, ""},
		{"def_cfa_expression", []byte{0x0f, 2, 0x77, 8}, []string{"1000 CFA=exp ra=c-8"}, ""},
		{"undefined", []byte{7, 16}, []string{"1000 CFA=rsp+8 ra=u"}, ""},
		{"same_value", []byte{8, 3}, []string{"1000 CFA=rsp+8 ra=c-8 rbx=s"}, ""},
		{"offset", []byte{0x83, 2}, []string{"1000 CFA=rsp+8 ra=c-8 rbx=c-16"}, ""},
		{"offset_extended", []byte{5, 12, 3}, []string{"1000 CFA=rsp+8 r12=c-24 ra=c-8"}, ""},
		{"offset_extended_sf", []byte{0x11, 12, 0x7f}, []string{"1000 CFA=rsp+8 r12=c+8 ra=c-8"}, ""},
		{"GNU_negative_offset_extended", []byte{0x2f, 12, 4}, []string{"1000 CFA=rsp+8 r12=c+32 ra=c-8"}, ""},
		{"val_offset", []byte{0x14, 6, 4}, []string{"1000 CFA=rsp+8 ra=c-8 rbp=v-32"}, ""},
		{"val_offset_sf", []byte{0x15, 6, 0x7b}, []string{"1000 CFA=rsp+8 ra=c-8 rbp=v+40"}, ""},
		{"register", []byte{9, 3, 14}, []string{"1000 CFA=rsp+8 ra=c-8 rbx=r14"}, ""},
		{"expression", []byte{0x10, 3, 2, 0x77, 8}, []string{"1000 CFA=rsp+8 ra=c-8 rbx=exp"}, ""},
		{"val_expression", []byte{0x16, 3, 1, 0x30}, []string{"1000 CFA=rsp+8 ra=c-8 rbx=vexp"}, ""},
		{"restore, rule of the CIE", []byte{7, 16, 0x41, 0xd0}, []string{"1000 CFA=rsp+8 ra=u", "1004 CFA=rsp+8 ra=c-8"}, ""},
		{"restore, no rule", []byte{0x83, 2, 0x41, 0xc3}, []string{"1000 CFA=rsp+8 ra=c-8 rbx=c-16", "1004 CFA=rsp+8 ra=c-8"}, ""},
		{"restore_extended", []byte{0x83, 2, 0x41, 6, 3}, []string{"1000 CFA=rsp+8 ra=c-8 rbx=c-16", "1004 CFA=rsp+8 ra=c-8"}, ""},
		{"remember and restore", []byte{0x83, 2, 0x0a, 0x41, 0xc3, 0x0c, 6, 16, 0x41, 0x0b}, []string{
			"1000 CFA=rsp+8 ra=c-8 rbx=c-16", "1004 CFA=rbp+16 ra=c-8", "1008 CFA=rsp+8 ra=c-8 rbx=c-16"}, ""},
		{"remember twice", []byte{0x0a, 0x0e, 16, 0x0a, 0x0e, 24, 0x41, 0x0b, 0x41, 0x0b}, []string{
			"1000 CFA=rsp+24 ra=c-8", "1004 CFA=rsp+16 ra=c-8", "1008 CFA=rsp+8 ra=c-8"}, ""},
		{"GNU_args_size", []byte{0x2e, 16}, []string{"1000 CFA=rsp+8 ra=c-8"}, ""},

		{"restore too often", []byte{0x0b}, nil, "DW_CFA_restore_state without DW_CFA_remember_state"},
		{"remember too often", bytes.Repeat([]byte{0x0a}, 65), nil, "more than 64 remembered states"},
		{"backwards", []byte{0x48, 1, 0x10, 0x10, 0, 0, 0, 0, 0, 0, 0}, []string{"1000 CFA=rsp+8 ra=c-8"},
			"the code location goes back from 0x1020 to 0x1010"},
		{"unknown", []byte{0x3c}, nil, ".eh_frame at offset 0x2a: unsupported call frame instruction 0x3c"},
		{"truncated operand", []byte{0x0e}, nil, ".eh_frame at offset 0x2b: truncated"},
		{"truncated expression", []byte{0x0f, 9, 0x30}, nil, ".eh_frame at offset 0x2c: truncated"},
		{"offset of an expression", []byte{0x0f, 1, 0x30, 0x0e, 8}, nil, "which must be a register plus an offset"},
		{"offset overflows", []byte{5, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f}, nil, "overflows"},
		{"number too long", []byte{0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, nil, "does not fit in 64 bits"},
		{"register number too large", []byte{7, 0x80, 0x80, 0x04}, nil, "register number 65536"},
		{"def_cfa_register after an expression", []byte{0x0f, 1, 0x30, 0x0d, 8}, nil, "which must be a register plus an offset"},
		{"negate_ra_state elsewhere than on aarch64", []byte{0x2d}, nil, ".eh_frame at offset 0x2a: unsupported call frame instruction 0x2d"},
		{"too many instructions", make([]byte, 100_001), nil, "more than 100000 instructions"},
		{"too many registers", manyRegisters(), nil, "more than 128 registers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rows, err := rowsOf(tableOf(t, simpleFDE(test.program...)))
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				var format *FormatError
				require.ErrorAs(t, err, &format)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, test.rows, rows)
		})
	}
}

// TestSignedState follows the signing state of aarch64's return address. DW_CFA_remember_state saves it, but DW_CFA_restore does not restore it.
func TestSignedState(t *testing.T) {
	cie := entry(uint32(0), 1, "", 4, 0x78, 30, 0x0c, 31, 0)
	frame := slices.Concat(cie, entry(uint32(len(cie)+4), uint64(0x1000), uint64(0x100),
		0x41, 0x2d, 0x41, 0x0a, 0x2d, 0x41, 0x0b, 0x41, 0x2c, 0x41, 0x2d, 0xde))
	table, err := NewTable(Sections{Arch: machine.ARM64, EHFrame: Section{
		Addr: 0x8000, Data: bytes.NewReader(frame), Size: int64(len(frame))}})
	require.NoError(t, err)
	f, err := table.Find(0x1000)
	require.NoError(t, err)
	var signed []bool
	for pc := f.Start; pc < 0x1018; pc += 4 {
		row, err := f.Rules(pc)
		require.NoError(t, err)
		signed = append(signed, row.Signed)
	}
	require.Equal(t, []bool{false, true, false, true, false, true}, signed)
}

// TestRiscVStart reads the CIE of GNU as for RISC-V. Its CFA rule begins with a register without an offset.
func TestRiscVStart(t *testing.T) {
	cie := entry(uint32(0), 1, "", 1, 0x7c, 1, 0x0d, 2)
	frame := slices.Concat(cie, entry(uint32(len(cie)+4), uint64(0x1000), uint64(0x100), 0x42, 0x0e, 16))
	table, err := NewTable(Sections{Arch: machine.RISCV64, EHFrame: Section{
		Addr: 0x8000, Data: bytes.NewReader(frame), Size: int64(len(frame))}})
	require.NoError(t, err)
	rows, err := rowsOf(table)
	require.NoError(t, err)
	require.Equal(t, []string{"1000 CFA=sp+0", "1002 CFA=sp+16"}, rows)
}

func manyRegisters() []byte {
	var b []byte
	for i := range 200 {
		b = append(b, 8, byte(i)|0x80, byte(i>>7))
	}
	return b
}

func TestArgsSize(t *testing.T) {
	f, err := tableOf(t, simpleFDE(0x41, 0x2e, 0x90, 1)).Find(0x1000)
	require.NoError(t, err)
	for pc, want := range map[machine.Addr]uint64{0x1000: 0, 0x1004: 144} {
		row, err := f.Rules(pc)
		require.NoError(t, err)
		require.Equal(t, want, row.ArgsSize)
	}
	_, err = f.Rules(0x1100)
	require.ErrorIs(t, err, ErrNoFDE)
}

// TestEntries reads CIEs of all versions and augmentations, with all forms of lengths and pointers. The section is loaded at 0x8000.
func TestEntries(t *testing.T) {
	rules := []byte{0x0c, 7, 8, 0x90, 1}
	pair := func(cie []byte, fde ...any) []byte {
		return slices.Concat(cie, entry(append([]any{uint32(len(cie) + 4)}, fde...)...))
	}
	pointers := func(enc byte, fde ...any) []byte {
		return pair(entry(uint32(0), 1, "zR", 1, 0x78, 16, 1, []byte{enc}, rules), append(fde, 0)...)
	}
	for _, test := range []struct {
		name   string
		frame  []byte
		err    string
		signal bool
	}{
		{name: "version 1", frame: pair(entry(uint32(0), 1, "", 1, 0x78, 16, rules), uint64(0x1000), uint64(0x20))},
		{name: "version 3", frame: pair(entry(uint32(0), 3, "", 1, 0x78, 0x90, 0, rules), uint64(0x1000), uint64(0x20))},
		{name: "version 4", frame: pair(entry(uint32(0), 4, "", 8, 0, 1, 0x78, 16, rules), uint64(0x1000), uint64(0x20))},
		{name: "version 2", frame: pair(entry(uint32(0), 2, "", 1, 0x78, 16, rules), uint64(0x1000), uint64(0x20)), err: "CIE version 2"},
		{name: "short addresses", frame: pair(entry(uint32(0), 4, "", 4, 0, 1, 0x78, 16, rules), uint64(0x1000), uint64(0x20)), err: "addresses of 4 bytes"},
		{name: "segments", frame: pair(entry(uint32(0), 4, "", 8, 2, 1, 0x78, 16, rules), uint64(0x1000), uint64(0x20)), err: "segment selectors of 2 bytes"},
		{name: "signal", frame: pair(entry(uint32(0), 1, "zRS", 1, 0x78, 16, 1, 0, rules), uint64(0x1000), uint64(0x20), 0), signal: true},
		{name: "B", frame: pair(entry(uint32(0), 1, "zRB", 1, 0x78, 16, 1, 0, rules), uint64(0x1000), uint64(0x20), 0)},
		{name: "personality and table", frame: pair(entry(uint32(0), 1, "zPLR", 1, 0x78, 16, 7, 0x9b, uint32(77), 0x1b, 0, rules),
			uint64(0x1000), uint64(0x20), 4, uint32(99))},
		{name: "aligned personality", frame: pair(entry(uint32(0), 1, "zPR", 1, 0x78, 16, 16, 0x50, []byte{0, 0, 0, 0, 0, 0}, uint64(5), 0, rules),
			uint64(0x1000), uint64(0x20), 0)},
		{name: "unknown letter", frame: pair(entry(uint32(0), 1, "zX", 1, 0x78, 16, 1, 0, rules), uint64(0x1000), uint64(0x20), 0), err: `augmentation "zX"`},
		{name: "eh", frame: pair(entry(uint32(0), 1, "eh", uint64(77), 1, 0x78, 16, rules), uint64(0x1000), uint64(0x20))},
		{name: "ehz", frame: pair(entry(uint32(0), 1, "ehzR", uint64(77), 1, 0x78, 16, 1, 3, rules), uint32(0x1000), uint32(0x20), 0)},
		{name: "G", frame: pair(entry(uint32(0), 1, "zRG", 1, 0x78, 16, 1, 0, rules), uint64(0x1000), uint64(0x20), 0)},
		{name: "no z", frame: pair(entry(uint32(0), 1, "R", 1, 0x78, 16, 1, 0, rules), uint64(0x1000), uint64(0x20)), err: `augmentation "R"`},
		{name: "augmentation data too short", frame: pair(entry(uint32(0), 1, "zR", 1, 0x78, 16, 0, rules), uint64(0x1000), uint64(0x20)), err: "truncated"},
		{name: "64-bit format", frame: slices.Concat(
			le(uint32(0xffffffff), uint64(16), uint32(0), 1, "", 1, 0x78, 16, rules, 0, 0),
			le(uint32(0xffffffff), uint64(20), uint32(40), uint64(0x1000), uint64(0x20)))},
		{name: "after the CIE of another", frame: slices.Concat(
			entry(uint32(0), 1, "", 1, 0x78, 16, 0x0c, 7, 99, 0x90, 3),
			pair(entry(uint32(0), 1, "", 1, 0x78, 16, rules), uint64(0x1000), uint64(0x20)))},

		{name: "absptr", frame: pointers(0x00, uint64(0x1000), uint64(0x20))},
		{name: "uleb128", frame: pointers(0x01, 0x80, 0x20, 0x20)},
		{name: "udata2", frame: pointers(0x02, uint16(0x1000), uint16(0x20))},
		{name: "udata4", frame: pointers(0x03, uint32(0x1000), uint32(0x20))},
		{name: "udata8", frame: pointers(0x04, uint64(0x1000), uint64(0x20))},
		{name: "sleb128", frame: pointers(0x09, 0x80, 0xa0, 0x00, 0x20)},
		{name: "sdata2", frame: pointers(0x0a, uint16(0x1000), uint16(0x20))},
		{name: "sdata4 pcrel", frame: pointers(0x1b, uint32(0xffff8fe2), uint32(0x20))}, // the field is at 0x801e
		{name: "sdata8 pcrel", frame: pointers(0x1c, ^uint64(0x701d), uint64(0x20))},
		{name: "textrel", frame: pointers(0x2b, uint32(0xf00), uint32(0x20))},
		{name: "datarel", frame: pointers(0x3b, uint32(0xe00), uint32(0x20))},
		{name: "aligned", frame: pointers(0x50, 0, 0, uint64(0x1000), uint64(0x20))}, // to 0x8020
		{name: "funcrel", frame: pointers(0x4b, uint32(0), uint32(0x20)), err: "pointer encoding 0x4b"},
		{name: "indirect", frame: pointers(0x80, uint64(0), uint64(0x20)), err: "cannot be indirect"},
		{name: "omitted", frame: pointers(0xff, uint64(0), uint64(0x20)), err: "is omitted"},
		{name: "no such form", frame: pointers(0x07, uint64(0), uint64(0x20)), err: "pointer encoding 0x07"},
		{name: "range wraps", frame: pointers(0x00, uint64(0x1000), ^uint64(0)), err: "invalid code range: 0xffffffffffffffff bytes at 0x1000"},

		{name: "longer than the section", frame: le(uint32(1000), uint32(0)), err: "an entry of 1000 bytes, but the section has only 4 left"},
		{name: "too long", frame: le(uint32(1<<24), uint32(0)), err: "an entry of 16777216 bytes; the limit is 1048576"},
		{name: "reserved length", frame: le(uint32(0xfffffff5), uint32(0)), err: "reserved length 0xfffffff5"},
		{name: "too short", frame: le(uint32(3), uint32(0)), err: "an entry of 3 bytes"},
		{name: "no CIE", frame: entry(uint32(400), uint64(0x1000), uint64(0x20)), err: "the FDE refers to offset -0x18c, which has no valid CIE"},
		{name: "an FDE for a CIE", frame: entry(uint32(4), uint64(0x1000), uint64(0x20)), err: "the FDE refers to offset 0x0, which has no valid CIE"},
	} {
		t.Run(test.name, func(t *testing.T) {
			table, err := NewTable(Sections{
				Arch:    machine.AMD64,
				EHFrame: Section{Addr: 0x8000, Data: bytes.NewReader(test.frame), Size: int64(len(test.frame))},
				Text:    0x100, Data: 0x200,
			})
			require.NoError(t, err)
			f, err := table.Find(0x101f)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.signal, f.Signal)
			rows, err := rowsOf(table)
			require.NoError(t, err)
			require.Equal(t, []string{"1000 CFA=rsp+8 ra=c-8"}, rows)
			for _, pc := range []machine.Addr{0xfff, 0x1020} {
				_, err = table.Find(pc)
				require.ErrorIs(t, err, ErrNoFDE)
			}
		})
	}
}

// TestUnknownBase requires an error for a pointer relative to a base that was not given.
func TestUnknownBase(t *testing.T) {
	cie := entry(uint32(0), 1, "zR", 1, 0x78, 16, 1, 0x3b)
	_, err := tableOf(t, slices.Concat(cie, entry(uint32(len(cie)+4), uint32(0xe00), uint32(0x20), 0))).Find(0x1000)
	require.ErrorContains(t, err, "relative to an unknown data base")
}

// TestTerminator requires that .eh_frame ends at its zero word.
func TestTerminator(t *testing.T) {
	frame := slices.Concat(simpleCIE, make([]byte, 4), entry(uint32(len(simpleCIE)+8), uint64(0x1000), uint64(0x100)))
	_, err := tableOf(t, frame).Find(0x1000)
	require.Equal(t, ErrNoFDE, err)
}

// TestDamagedNeighbour requires that a lookup finds a valid FDE next to a damaged one. For the code of the damaged FDE, it must not return
// ErrNoFDE.
func TestDamagedNeighbour(t *testing.T) {
	bad := entry(uint32(0), 9, "", 1, 0x78, 16)
	frame := slices.Concat(simpleFDE(), bad, entry(uint32(len(bad)+4), uint64(0x2000), uint64(0x100)))
	table := tableOf(t, frame)
	_, err := table.Find(0x1000)
	require.NoError(t, err)
	_, err = table.Find(0x2000)
	require.ErrorContains(t, err, "CIE version 9")
}

func TestNewTable(t *testing.T) {
	frame := Section{Addr: 0x8000, Data: bytes.NewReader(simpleFDE()), Size: int64(len(simpleFDE()))}
	// The section is loaded at 0x9000; the pointer to .eh_frame is pc-relative from 0x9004.
	hdr := func(parts ...any) Section {
		b := le(parts...)
		return Section{Addr: 0x9000, Data: bytes.NewReader(b), Size: int64(len(b))}
	}
	row := le(int32(-0x8000), int32(-0x1000+int32(len(simpleCIE))))
	for _, test := range []struct {
		name string
		s    Sections
		err  string
	}{
		{"no section", Sections{Arch: machine.AMD64}, "neither .eh_frame nor .debug_frame"},
		{"no architecture", Sections{EHFrame: frame}, "only architectures"},
		{"no header", Sections{Arch: machine.AMD64, EHFrame: frame}, ""},
		{"header", Sections{Arch: machine.AMD64, EHFrame: frame, EHFrameHdr: hdr(1, 0x1b, 3, 0x3b, int32(-0x1004), uint32(1), row)}, ""},
		{"header without table", Sections{Arch: machine.AMD64, EHFrame: frame, EHFrameHdr: hdr(1, 0x1b, 0xff, 0xff, int32(-0x1004))}, ""},
		{"header of absolute addresses", Sections{Arch: machine.AMD64, EHFrame: frame,
			EHFrameHdr: hdr(1, 0x1b, 3, 4, int32(-0x1004), uint32(1), uint64(0x1000), uint64(0x8000))}, ""},
		{"header of another", Sections{Arch: machine.AMD64, EHFrame: frame, EHFrameHdr: hdr(1, 0x1b, 3, 0x3b, int32(-0x2004), uint32(1), row)}, ""},
		{"too many rows", Sections{Arch: machine.AMD64, EHFrame: frame, EHFrameHdr: hdr(1, 0x1b, 3, 0x3b, int32(-0x1004), uint32(2), row)}, ""},
		{"version", Sections{Arch: machine.AMD64, EHFrame: frame, EHFrameHdr: hdr(2, 0x1b, 3, 0x3b, int32(-0x1004), uint32(1), row)}, ""},
		{"truncated", Sections{Arch: machine.AMD64, EHFrame: frame, EHFrameHdr: hdr(1, 0x1b)}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			table, err := NewTable(test.s)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			rows, err := rowsOf(table)
			require.NoError(t, err)
			require.Equal(t, []string{"1000 CFA=rsp+8 ra=c-8"}, rows)
			for _, pc := range []machine.Addr{0, 0xfff, 0x1100, 1 << 63} {
				_, err = table.Find(pc)
				require.ErrorIs(t, err, ErrNoFDE)
			}
		})
	}
}

// unreadable is memory that cannot be read.
type unreadable struct{}

func (unreadable) ReadAt([]byte, int64) (int, error) { return 0, io.ErrClosedPipe }

func TestUnreadable(t *testing.T) {
	table, err := NewTable(Sections{Arch: machine.AMD64, EHFrame: Section{Addr: 0x8000, Data: unreadable{}, Size: 1 << 62}})
	require.NoError(t, err)
	_, err = table.Find(0x1000)
	require.ErrorIs(t, err, io.ErrClosedPipe)

	table, err = NewTable(Sections{Arch: machine.AMD64, DebugFrame: Section{Data: unreadable{}, Size: -1 << 63}})
	require.NoError(t, err)
	_, err = table.Find(0x1000)
	require.EqualError(t, err, ".debug_frame at offset 0x0: invalid section size: 9223372036854775808 bytes")
}
