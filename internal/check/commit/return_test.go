package commit

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/machine"
)

// physical returns a frame that was found by CFI, with a stack pointer and a canonical frame address.
func physical(index int, sp uint64, cfa machine.Addr) *deopt.Frame {
	f := &deopt.Frame{Frame: frame.Frame{Index: index, Function: string(rune('a' + index))}}
	*f.Physical() = unwind.Frame{Index: index, CFA: cfa, Rule: unwind.FromCFI, Registers: machine.NewRegisters(machine.AMD64, "nobody said")}
	f.Physical().Registers.SetUint(machine.AMD64.SP, sp)
	return f
}

// TestCertain requires that the last frame of a chain can be continued only if every frame is certain.
func TestCertain(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]*deopt.Frame)
		want   string
	}{
		"sure":              {func([]*deopt.Frame) {}, ""},
		"by registers":      {func(f []*deopt.Frame) { f[0].Physical().Rule = unwind.FromRegisters }, ""},
		"the last one's":    {func(f []*deopt.Frame) { f[2].Physical().NoCFA = "it has none" }, ""},
		"a signal":          {func(f []*deopt.Frame) { f[1].Physical().Signal = true }, "frame #1, b is a signal frame, and its handler has not returned"},
		"a guess":           {func(f []*deopt.Frame) { f[2].Physical().Guess = "a word on the stack" }, "frame #2, c may not be the caller of frame #1: a word on the stack"},
		"another rule":      {func(f []*deopt.Frame) { f[2].Physical().Rule = unwind.FromScan }, "the caller of frame #1, b was found by its scan, not by CFI, so the values of its registers are not certain"},
		"no CFA":            {func(f []*deopt.Frame) { f[1].Physical().NoCFA = "it has none" }, "the start of frame #1, b is unknown: it has none"},
		"no stack pointer":  {func(f []*deopt.Frame) { f[1].Physical().Registers.Forget(machine.AMD64.SP, errors.New("lost")) }, "the stack pointer of frame #1, b: lost"},
		"another stack":     {func(f []*deopt.Frame) { f[1].Physical().Registers.SetUint(machine.AMD64.SP, 0x100) }, "frame #1, b is not above the frames that it called, on the same stack"},
		"a backwards frame": {func(f []*deopt.Frame) { f[0].Physical().CFA = 0x800 }, "frame #0, a is not above"},
	} {
		t.Run(name, func(t *testing.T) {
			frames := []*deopt.Frame{physical(0, 0x1000, 0x1010), physical(1, 0x1010, 0x1040), physical(2, 0x1040, 0x1080)}
			c.change(frames)
			err := certain(frames)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}
