package unwind

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// TestCallOfWhatIsNext requires that the return address of a call is found if the called function begins directly after the call, at that address.
func TestCallOfWhatIsNext(t *testing.T) {
	code := segments{{0x1000, []byte{
		0x53,                         // push %rbx
		0xe8, 0x00, 0x00, 0x00, 0x00, // call 0x1006
		0x53,       // push %rbx
		0x0f, 0x0b, // ud2
	}}}
	r := newReading(code, 0, math.MaxUint64, 100)
	for from := []machine.Addr{0x1000}; len(from) > 0; {
		from = r.follow(from...)
	}
	p := partOf(r, everyInstruction)
	require.True(t, p.has(place{pc: 0x1006, returned: true}))
	require.False(t, p.has(place{pc: 0x1001, returned: true}), "behind a push of a register")
	require.False(t, p.has(place{pc: 0x1007, returned: true}))
}

// TestReadingOfACallOfWhatIsNext requires a row at the return address of a call of the next instruction when a whole function is read.
func TestReadingOfACallOfWhatIsNext(t *testing.T) {
	code := []byte{
		0x53,                         // push %rbx
		0xe8, 0x00, 0x00, 0x00, 0x00, // call 0x1006
	}
	rows, err := readFunction(elfText{0x1000, code}, 0x1000, 0x1006)
	require.NoError(t, err)
	row, err := rows.row(0x1006, true)
	require.NoError(t, err)
	require.Equal(t, cfi.CFARule{Kind: cfi.CFARegister, Register: rsp, Offset: 16}, row.CFA)
	require.Equal(t, cfi.RegisterRule{Kind: cfi.RuleOffset, Offset: -16}, row.Rule(rbx))

	w := newWalk(&Unwinder{Arch: machine.AMD64, Memory: segments{{0x1000, code}}})
	_, m, err := w.leave(&Overwritten{At: 0x1000, End: 0x1006, From: 0x1000}, 0x1006, machine.Range{})
	require.NoError(t, err)
	n, known := m.regs[machine.AMD64.SP].from(initially(machine.AMD64.SP))
	require.True(t, known)
	require.EqualValues(t, -8, n)
}
