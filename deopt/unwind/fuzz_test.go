package unwind

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reframe/deopt/machine"
)

// surveyed has return addresses into the code of the FDE wherever a stack may be.
var surveyed = code(endlessStack())

// survey asks a table for everything it may be asked: it must answer with rows
// or with an error that says where, in bounded time.
func survey(t *testing.T, frame, hdr []byte) {
	s := Sections{Arch: machine.AMD64, EHFrame: Section{Addr: 0x8000, Data: bytes.NewReader(frame), Size: int64(len(frame))}}
	if len(hdr) > 0 {
		s.EHFrameHdr = Section{Addr: 0x9000, Data: bytes.NewReader(hdr), Size: int64(len(hdr))}
	}
	sound := func(err error) {
		var format *FormatError
		if err != nil && !errors.Is(err, ErrNoFDE) && !errors.As(err, &format) {
			require.NoError(t, err)
		}
	}
	table, err := NewTable(s)
	if err != nil {
		sound(err)
		return
	}
	regs := registers(nil)
	for _, pc := range []machine.Addr{0, 0x1000, 0x1018, 0x10ff, 0x2000, 1<<64 - 1} {
		f, err := table.Find(pc)
		sound(err)
		if err != nil {
			continue
		}
		require.LessOrEqual(t, f.Start, pc)
		require.Less(t, pc, f.End)
		row, err := f.Rules(pc)
		sound(err)
		if err != nil {
			continue
		}
		require.LessOrEqual(t, row.Start, pc)
		require.Less(t, pc, row.End)
		row.CFA.Expression.evaluate(regs, words{})
		for _, reg := range row.Columns() {
			row.Rule(reg).Expression.evaluate(regs, words{}, 0x7000)
		}
		u := Unwinder{Arch: machine.AMD64, Max: 8, Memory: surveyed, Executable: executable, Finder: tables{table: table}}
		regs := registers(map[machine.DWARFReg]uint64{rip: uint64(pc), rsp: 0x7000, rbp: 0x7010})
		frames, end := u.Unwind(regs)
		require.NotEmpty(t, frames)
		require.NotEmpty(t, end.Reason)
	}
}

// seed is an .eh_frame with most of what there is, and its header.
func seed() (frame, hdr []byte) {
	cie := entry(uint32(0), 1, "zPLR", 4, 0x78, 16, 7, 0x9b, uint32(77), 0x1b, 0x1b, 0x0c, 7, 8, 0x90, 1)
	at := int32(len(cie) + 8)
	fde := entry(uint32(len(cie)+4), 0x1000-0x8000-at, uint32(0x100), 4, uint32(0),
		0x42, 0x0e, 16, 0x86, 2, 0x41, 0x0d, 6, 0x0a, 0x41, 0x0c, 7, 8, 0xc6, 0x41, 0x0b,
		2, 1, 0x10, 3, 4, 0x77, 8, 0x23, 8, 0x41, 0x16, 12, 2, 0x76, 0, 0x41, 0x0f, 3, 0x77, 8, 0x06)
	frame = append(append(cie, fde...), 0, 0, 0, 0)
	hdr = le(1, 0x1b, 3, 0x3b, int32(-0x1004), uint32(1), int32(0x1000-0x9000), int32(-0x1000+len(cie)))
	return frame, hdr
}

// TestEveryByte changes each byte of a section into each other value.
func TestEveryByte(t *testing.T) {
	frame, hdr := seed()
	rows, err := rowsOf(tableOf(t, frame))
	require.NoError(t, err)
	require.Len(t, rows, 8)
	slowest := time.Duration(0)
	change := func(b []byte, ask func()) {
		for i := range b {
			old := b[i]
			for v := range 256 {
				b[i] = byte(v)
				start := time.Now()
				ask()
				slowest = max(slowest, time.Since(start))
			}
			b[i] = old
		}
	}
	change(frame, func() { survey(t, frame, hdr) })
	change(frame, func() { survey(t, frame, nil) })
	change(hdr, func() { survey(t, frame, hdr) })
	t.Logf("the slowest survey took %v", slowest)
}

func FuzzTable(f *testing.F) {
	frame, hdr := seed()
	f.Add(frame, hdr)
	f.Add(simpleFDE(0x83, 2, 0x0a, 0x41, 0xc3, 0x0c, 6, 16, 0x41, 0x0b), []byte(nil))
	f.Add(simpleFDE(0x0f, 4, 0x30, 0x2f, 0xfc, 0xff), []byte(nil))
	f.Fuzz(func(t *testing.T, frame, hdr []byte) { survey(t, frame, hdr) })
}
