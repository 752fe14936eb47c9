package unwind

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// TestSurroundings unwinds from a function with unknown start and no returns. The caller follows from the call that led to the function, or from
// the function that owns the frame pointer, and must not be a guess.
func TestSurroundings(t *testing.T) {
	livetest.Slow(t)
	for _, test := range []struct {
		how  string
		rule Rule
	}{
		{"owner", FromFramePointer},
		{"loads", FromCode},
		{"loads_r11", FromCode},
		{"through", FromCode},
	} {
		t.Run(test.how, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "field")
			livetest.Make(t, "gcc", "-O2", "-fno-optimize-sibling-calls", "-fPIE", "-pie", "-Wl,-z,notext", "-o", program, "testdata/field.c")
			s := stops(t, []string{"run"}, program, test.how)[0]
			require.Equal(t, "endless", s.want[1].Name)
			require.Equal(t, test.how, s.want[2].Name)
			s.core.hide(program, "endless")
			stack := s.walk()
			require.True(t, stack.End.Complete, stack.End.Reason)
			require.Len(t, stack.Frames, len(s.want))
			for i, f := range stack.Frames {
				require.Equal(t, s.want[i].PC, f.PC.String())
				require.Equal(t, s.want[i].Registers["rsp"], addrOf(t, f, rsp))
				require.Empty(t, f.Guess)
			}
			require.Equal(t, address(t, s.want[1].CFA), stack.Frames[1].CFA)
			require.Equal(t, test.rule, stack.Frames[2].Rule)
			require.Equal(t, s.want[2].Registers["rbp"], addrOf(t, stack.Frames[2], rbp))
		})
	}
}

// TestScansEnd scans a stack of unrelated return addresses, each of which gives a frame.
func TestScansEnd(t *testing.T) {
	stack := filled(0x7000, 0x8000, 0x2020)
	u := Unwinder{Arch: machine.AMD64, Memory: code(stack), Executable: executable, Finder: tables{}}
	frames, end := u.framesOf(registers(map[machine.DWARFReg]uint64{rip: 0x2004, rsp: 0x7000, rbp: 1}))
	require.Equal(t, 1+maxScans, len(frames)) // not require.Len, which would print all frames
	for _, f := range frames[1:] {
		require.Equal(t, FromScan, f.Rule)
		require.NotEmpty(t, f.Guess)
	}
	requireEnd(t, End{Code: frame.NoUnwindInfo, Reason: "cut short: frame #32 has no unwind information for 0x2020; tried code: it leads to no return; " +
		"frame pointer: frame #31 was unwound by a scan of its stack, which does not give the place where rbp was saved; " +
		"scan: it has already found 32 frames without reaching the end of the stack"}, end)
}

// TestScanGoesOn requires that a scan skips addresses after calls that cannot be return addresses, because the CFI of the frame that they lead to
// contradicts the stack. The code with CFI is that of simpleFDE, whose frames have one word.
func TestScanGoesOn(t *testing.T) {
	const called, none = 0x1010, 0x2018 // a call ends at the first address, and no call at the second
	for _, test := range []struct {
		name  string
		stack words
		pcs   []machine.Addr
	}{
		{"a return address in data", words{0x7000: 0, 0x7008: called, 0x7010: 0x7000, 0x7018: called, 0x7020: 0x2020}, []machine.Addr{0x2004, called, 0x2020}},
		{"a return address that follows no call", words{0x7000: 0, 0x7008: called, 0x7010: none, 0x7018: called, 0x7020: 0x2020}, []machine.Addr{0x2004, called, 0x2020}},
		{"a stack that is not aligned", words{0x7000: called, 0x7008: 0x6000, 0x7010: 0, 0x7018: called, 0x7020: 0x2020}, []machine.Addr{0x2004, called, 0x2020}},
		{"zero", words{0x7000: 0, 0x7008: called, 0x7010: 0, 0x7018: called, 0x7020: 0x2020}, []machine.Addr{0x2004, called, 0x2020}},
		{"nothing but zero", words{0x7000: 0, 0x7008: called, 0x7010: 0, 0x7018: 0}, []machine.Addr{0x2004, called}},
		{"none", words{0x7000: 0, 0x7008: called, 0x7010: none, 0x7018: 0}, []machine.Addr{0x2004}},
	} {
		t.Run(test.name, func(t *testing.T) {
			memory := code(test.stack)
			memory[0x1008] = 0xd0ff909090909090
			u := Unwinder{Arch: machine.AMD64, Memory: memory, Executable: executable, Finder: tables{table: tableOf(t, simpleFDE())}}
			frames, end := u.framesOf(registers(map[machine.DWARFReg]uint64{rip: 0x2004, rsp: 0x7000, rbp: 1}))
			var pcs []machine.Addr
			for _, f := range frames {
				pcs = append(pcs, f.PC)
			}
			require.Equal(t, test.pcs, pcs)
			require.False(t, end.Complete, end.Reason)
		})
	}
}
