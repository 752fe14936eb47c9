package cfi

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// TestDebugFrame reads the forms of .debug_frame (DWARF 5 §6.4.1, §7.4). The
// image is loaded at 0x400000; its function is at 0x1000 in the file.
func TestDebugFrame(t *testing.T) {
	const bias = 0x400000
	const none = ^uint32(0)
	rules := []byte{0x0c, 7, 8, 0x90, 1}
	cie := entry(none, 3, "", 1, 0x78, 16, rules)
	for _, test := range []struct {
		name   string
		frame  []byte
		err    string
		signal bool
	}{
		{name: "version 1", frame: slices.Concat(entry(none, 1, "", 1, 0x78, 16, rules), entry(uint32(0), uint64(0x1000), uint64(0x20)))},
		{name: "version 3", frame: slices.Concat(cie, entry(uint32(0), uint64(0x1000), uint64(0x20)))},
		{name: "version 4", frame: slices.Concat(entry(none, 4, "", 8, 0, 1, 0x78, 16, rules), entry(uint32(0), uint64(0x1000), uint64(0x20)))},
		{name: "the CIE of another before", frame: slices.Concat(
			entry(none, 1, "", 1, 0x78, 16, 0x0c, 7, 99), cie, entry(uint32(0x10), uint64(0x1000), uint64(0x20)))},
		{name: "64-bit format", frame: slices.Concat(
			le(none, uint64(18), ^uint64(0), 3, "", 1, 0x78, 16, rules),
			le(none, uint64(24), uint64(0), uint64(0x1000), uint64(0x20)))},
		{name: "signal without z", frame: slices.Concat(entry(none, 3, "S", 1, 0x78, 16, rules), entry(uint32(0), uint64(0x1000), uint64(0x20))), signal: true},
		{name: "padding", frame: slices.Concat(cie, make([]byte, 8), entry(uint32(0), uint64(0x1000), uint64(0x20)), make([]byte, 4))},
		{name: "code that was left out", frame: slices.Concat(cie,
			entry(uint32(0), uint64(0), uint64(0x2000)), entry(uint32(0), ^uint64(0), uint64(0x20)), entry(uint32(0), ^uint64(0)-1, uint64(0x20)),
			entry(uint32(0), uint64(0x1000), uint64(0x20)))},
		{name: "encoded pointers", frame: slices.Concat(entry(none, 3, "zR", 1, 0x78, 16, 1, 3, rules), entry(uint32(0), uint32(0x1000), uint32(0x20), 0))},

		{name: "no CIE", frame: slices.Concat(cie, entry(uint32(4), uint64(0x1000), uint64(0x20))), err: "the FDE refers to offset 0x4, which has no valid CIE"},
		{name: "CIE past the section", frame: slices.Concat(cie, entry(uint32(0xfffffffe), uint64(0x1000), uint64(0x20))), err: "the FDE refers to offset 0xfffffffe, which has no valid CIE"},
		{name: "id of the 32-bit format", frame: slices.Concat(le(none, uint64(18), uint64(none), 3, "", 1, 0x78, 16, rules)), err: "which has no valid CIE"},
		{name: "too short for its id", frame: le(none, uint64(7), uint64(0)), err: "an entry of 7 bytes"},
		{name: "short addresses", frame: slices.Concat(entry(none, 4, "", 4, 0, 1, 0x78, 16, rules), entry(uint32(0), uint32(0x1000), uint32(0x20))), err: "addresses of 4 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			table, err := NewTable(Sections{Arch: machine.AMD64,
				DebugFrame: Section{Bias: bias, Data: bytes.NewReader(test.frame), Size: int64(len(test.frame))}})
			require.NoError(t, err)
			f, err := table.Find(bias + 0x101f)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				require.ErrorContains(t, err, ".debug_frame at offset ")
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.signal, f.Signal)
			require.Equal(t, debugFrame, f.Section)
			row, err := f.Rules(bias + 0x1010)
			require.NoError(t, err)
			require.Equal(t, readelfRow{"CFA": "rsp+8", "ra": "c-8"}, asReadelf(machine.AMD64, row))
			require.Equal(t, []machine.Addr{bias + 0x1000, bias + 0x1020}, []machine.Addr{row.Start, row.End})
			for _, pc := range []machine.Addr{0x1000, 0x101f, bias, bias + 0xfff, bias + 0x1020, ^machine.Addr(0)} {
				_, err = table.Find(pc)
				require.Equal(t, ErrNoFDE, err)
			}
		})
	}
}

// TestFirstSound requires that a lookup returns the first valid FDE if both sections describe a function and one of them is damaged.
func TestFirstSound(t *testing.T) {
	eh := simpleFDE(0x0e, 16)
	debug := slices.Concat(entry(^uint32(0), 3, "", 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1), entry(uint32(0), uint64(0x1000), uint64(0x100), 0x0e, 24))
	damaged := bytes.Clone(eh)
	damaged[8] = 9 // the version
	for _, test := range []struct {
		name      string
		eh, debug []byte
		section   string
		err       string
	}{
		{"both", eh, debug, ehFrame, ""},
		{"one is damaged", damaged, debug, debugFrame, ""},
		{"nothing else has it", damaged, debug[:4], "", ".eh_frame at offset 0x9: unsupported CIE version 9"},
	} {
		t.Run(test.name, func(t *testing.T) {
			table, err := NewTable(Sections{Arch: machine.AMD64,
				EHFrame:    Section{Addr: 0x8000, Data: bytes.NewReader(test.eh), Size: int64(len(test.eh))},
				DebugFrame: Section{Data: bytes.NewReader(test.debug), Size: int64(len(test.debug))}})
			require.NoError(t, err)
			f, err := table.Find(0x1010)
			if test.err != "" {
				require.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.section, f.Section)
		})
	}
}
