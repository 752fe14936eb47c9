package unwind

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// ways compiles testdata/ways.c and stops it in trap. The frames are trap, the function in the first argument, calls, linked if there is a second
// argument, main, two of the C library and _start.
func ways(t *testing.T, args []string, flags ...string) (s stop, program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "ways")
	livetest.Make(t, "gcc", append(flags, "-O2", "-fno-optimize-sibling-calls", "-fPIE", "-pie", "-o", program, "testdata/ways.c")...)
	s = stops(t, []string{"run"}, program, args...)[0]
	require.Len(t, s.want, 6+len(args))
	require.Equal(t, args[0], s.want[1].Name)
	return s, program
}

// sizeOf returns the size of a frame as in stack maps, from gdb's data.
func (s stop) sizeOf(t *testing.T, i int) uint64 {
	return uint64(address(t, s.want[i].CFA) - address(t, s.want[i].Registers["rsp"]) - 8)
}

const (
	scannedGuess = "the end of the stack of frame #1 is unknown: this is the first word on it that follows a call and can be unwound further, which an earlier call may have left there"
	linkedGuess  = "frame #1 is assumed to have a frame pointer: if it has none, frames are missing here"
)

// TestWays unwinds a frame whose function has no CFI by each rule, without the data for the rules that are tried earlier. It requires that
// exactly the results that may be wrong are marked as guesses.
func TestWays(t *testing.T) {
	livetest.Slow(t)
	withFP := []string{"-fno-omit-frame-pointer"}
	for _, test := range []struct {
		name    string
		flags   []string
		start   bool  // the start of the function is known
		size    bool  // the frame size is known,
		wrong   int64 // and is wrong by this number of bytes
		rule    Rule
		guess   string
		unknown []machine.DWARFReg // unknown registers of its caller
	}{
		{name: "code", start: true, rule: FromCode},
		{name: "code before size", start: true, size: true, wrong: 8, rule: FromCode},
		{name: "size", size: true, rule: FromStackSize, unknown: []machine.DWARFReg{rbx, rbp, 12, 13, 14, 15}},
		{name: "size with a frame pointer", flags: withFP, size: true, rule: FromStackSize, unknown: []machine.DWARFReg{rbx, 12, 13, 14, 15}},
		{name: "wrong size", size: true, wrong: 8, rule: FromScan, guess: scannedGuess, unknown: []machine.DWARFReg{rbx, rbp, 12, 13, 14, 15}},
		{name: "small size", size: true, wrong: -8, rule: FromScan, guess: scannedGuess, unknown: []machine.DWARFReg{rbx, rbp, 12, 13, 14, 15}},
		{name: "no size", size: true, wrong: 1 << 20, rule: FromScan, guess: scannedGuess, unknown: []machine.DWARFReg{rbx, rbp, 12, 13, 14, 15}},
		{name: "size of all memory", size: true, wrong: -1 << 20, rule: FromScan, guess: scannedGuess, unknown: []machine.DWARFReg{rbx, rbp, 12, 13, 14, 15}},
		{name: "wrong size with a frame pointer", flags: withFP, size: true, wrong: 8, rule: FromFramePointer, guess: linkedGuess, unknown: []machine.DWARFReg{rbx, 12, 13, 14, 15}},
		{name: "frame pointer", flags: withFP, rule: FromFramePointer, guess: linkedGuess, unknown: []machine.DWARFReg{rbx, 12, 13, 14, 15}},
		{name: "scan", rule: FromScan, guess: scannedGuess, unknown: []machine.DWARFReg{rbx, rbp, 12, 13, 14, 15}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, program := ways(t, []string{"endless"}, test.flags...)
			known := symbols{nameless: !test.start}
			if test.size {
				known.frame = s.sizeOf(t, 1) + uint64(test.wrong)
			}
			s.core.hideKnowing(program, "endless", known)
			stack := s.walk()
			f := stack.Frames
			require.True(t, stack.End.Complete, stack.End.Reason)
			require.Len(t, f, len(s.want))
			for i := range f {
				require.Equal(t, s.want[i].PC, f[i].PC.String())
				require.Equal(t, s.want[i].Registers["rsp"], addrOf(t, f[i], rsp))
				if i < 6 {
					require.Equal(t, address(t, s.want[i].CFA), f[i].CFA)
				}
				rule, guess := FromCFI, ""
				switch i {
				case 0:
					rule = FromRegisters
				case 2:
					rule, guess = test.rule, test.guess
				}
				require.Equal(t, rule, f[i].Rule)
				require.Equal(t, guess, f[i].Guess)
			}
			for _, reg := range keptRegisters {
				if _, err := f[2].Registers.Uint(reg); err != nil {
					require.Contains(t, test.unknown, reg)
					require.EqualError(t, err, "frame #1 was unwound by "+test.rule.means()+", which does not give the place where "+machine.AMD64.RegisterName(reg)+" was saved")
					continue
				}
				require.NotContains(t, test.unknown, reg)
				require.Equal(t, s.want[2].Registers[machine.AMD64.RegisterName(reg)], addrOf(t, f[2], reg))
			}
		})
	}
}

// TestWrongWays has frames whose frame pointer belongs to a frame further out, or whose stack has a word left over from an earlier call. No check
// can prove a caller right there, so the test requires that it is marked as a guess.
func TestWrongWays(t *testing.T) {
	livetest.Slow(t)
	t.Run("frame pointer of another", func(t *testing.T) {
		s, program := ways(t, []string{"endless", "linked"})
		s.core.hide(program, "endless")
		f := s.walk().Frames
		// The frame pointer is that of the function linked, which called another function, so following it would skip the frame of the function
		// calls.
		require.Equal(t, s.want[2].PC, f[2].PC.String())
		require.Equal(t, FromScan, f[2].Rule)
		require.Equal(t, scannedGuess, f[2].Guess)
		require.Zero(t, f[2].Skipped)
	})
	for _, left := range []struct {
		function string
		rule     Rule
		guess    string
	}{
		// Returned functions ran where the frame is now, and called another function.
		{"roomy", FromScan, scannedGuess},
		// A returned function had the same frame pointer, and called another function.
		{"kept", FromFramePointer, linkedGuess},
	} {
		t.Run("left over in "+left.function, func(t *testing.T) {
			s, program := ways(t, []string{left.function})
			s.core.hide(program, left.function)
			stack := s.walk()
			require.Equal(t, s.want[2].PC, stack.Frames[2].PC.String())
			require.Equal(t, left.rule, stack.Frames[2].Rule)
			require.Equal(t, left.guess, stack.Frames[2].Guess)
			require.True(t, stack.End.Complete, stack.End.Reason)
		})
	}
	t.Run("without the frame pointer of another", func(t *testing.T) {
		s, program := ways(t, []string{"endless", "linked"})
		s.core.hideKnowing(program, "endless", symbols{nameless: true, frame: s.sizeOf(t, 1)})
		stack := s.walk()
		// The CFI of frame 3 needs the frame pointer, which is unknown.
		require.Equal(t, FromScan, stack.Frames[4].Rule)
		require.Len(t, stack.Frames, len(s.want))
		for i, f := range stack.Frames {
			require.Equal(t, s.want[i].PC, f.PC.String())
		}
	})
	t.Run("zeros", func(t *testing.T) {
		// A register that is not a frame pointer and points to zeros does not mark the outermost frame.
		s, program := ways(t, []string{"roomy"})
		s.core.hide(program, "roomy")
		regs := s.registers()
		size := machine.Addr(s.sizeOf(t, 1))
		zeros := machine.Addr(0)
		for at := valueOf(t, s.walk().Frames[1], rsp); zeros == 0 && size > 0; at, size = at+8, size-8 {
			var b, none [16]byte
			if s.core.ReadMemory(b[:], at) == nil && b == none {
				zeros = at
			}
		}
		require.NotZero(t, zeros)
		regs.SetUint(rbp, uint64(zeros))
		stack := s.walk()
		require.NotEqual(t, FromFramePointer, stack.Frames[2].Rule)
		require.NotEmpty(t, stack.Frames[2].Guess)
	})
}

// sized is code without CFI whose stack map gives this frame size for every pc.
type sized uint64

func (s sized) Code(machine.Addr) *Code                             { return &Code{Functions: s} }
func (s sized) Function(machine.Addr) (start, end machine.Addr)     { return 0, 0 }
func (s sized) Entry(machine.Addr) bool                             { return false }
func (s sized) Linkage(machine.Addr) bool                           { return false }
func (s sized) FrameSize(machine.Addr) (size uint64, constant bool) { return uint64(s), true }

// TestRefused requires the reason for rejecting each rule, for a frame at a call in code without CFI that leads to no return.
func TestRefused(t *testing.T) {
	const begins = "frame #1 has no unwind information for 0x2010; tried code: it leads to no return; "
	inner := words{0x6fe0: 0x7000, 0x6fe8: 0x2010} // the frame that stopped: rbp 0x7000, and sp 0x6ff0
	for _, test := range []struct {
		name  string
		size  sized
		stack words
		end   string
		pcs   []machine.Addr
	}{
		{name: "size of nothing", size: 0, stack: words{0x6ff0: 0x6000}, pcs: []machine.Addr{0x2004, 0x2010},
			end: "cut short: " + begins + "stack size: 0x6000, which would be its return address, is not in executable memory; " +
				"frame pointer: rbp 0x7000 does not point to a frame: the return address: the place where frame #1 saved rip cannot be read: 8 bytes at 0x7008: not mapped; " +
				"scan: no word from 0x6ff0 on, as far as the stack can be read, is a return address"},
		{name: "no call", size: 8, stack: words{0x6ff0: 0, 0x6ff8: 0x2018}, pcs: []machine.Addr{0x2004, 0x2010},
			end: "cut short: " + begins + "stack size: no call ends at 0x2018, which would be its return address; " +
				"frame pointer: rbp 0x7000 does not point to a frame: the return address: the place where frame #1 saved rip cannot be read: 8 bytes at 0x7008: not mapped; " +
				"scan: no word from 0x6ff0 on, as far as the stack can be read, is a return address"},
		{name: "zero by size", size: 8, stack: words{0x6ff0: 0x2030, 0x6ff8: 0}, pcs: []machine.Addr{0x2004, 0x2010},
			end: "cut short: " + begins + "stack size: its return address would be zero, as most of memory is; " +
				"frame pointer: rbp 0x7000 does not point to a frame: the return address: the place where frame #1 saved rip cannot be read: 8 bytes at 0x7008: not mapped; " +
				"scan: no word from 0x6ff0 on, as far as the stack can be read, is a return address"},
		{name: "zero by frame pointer", size: 1 << 40, stack: words{0x6ff0: 0, 0x6ff8: 0, 0x7000: 0, 0x7008: 0}, pcs: []machine.Addr{0x2004, 0x2010},
			end: "cut short: " + begins + "frame pointer: rbp 0x7000 does not point to a frame: its return address would be zero, as most of memory is; " +
				"scan: no word from 0x6ff0 on, as far as the stack can be read, is a return address"},
		{name: "unreadable", size: 0x800, stack: words{}, pcs: []machine.Addr{0x2004, 0x2010},
			end: "cut short: " + begins + "stack size: the return address: the place where frame #1 saved rip cannot be read: 8 bytes at 0x77f0: not mapped; " +
				"frame pointer: rbp 0x7000 does not point to a frame: the return address: the place where frame #1 saved rip cannot be read: 8 bytes at 0x7008: not mapped; " +
				"scan: no word from 0x6ff0 on, as far as the stack can be read, is a return address"},
		{name: "too far", size: 1 << 40, stack: far(0x6ff0, 0x6ff0+scanned), pcs: []machine.Addr{0x2004, 0x2010},
			end: "cut short: " + begins + "frame pointer: rbp 0x7000 does not point to a frame: its return address would be zero, as most of memory is; " +
				"scan: no word in the 32768 bytes from 0x6ff0 on is a return address"},
		{name: "just in reach", size: 1 << 40, stack: far(0x6ff0, 0x6ff0+scanned-8), pcs: []machine.Addr{0x2004, 0x2010, 0x2020},
			end: "cut short: frame #2 has no unwind information for 0x2020; tried code: it leads to no return; " +
				"frame pointer: frame #1 was unwound by a scan of its stack, which does not give the place where rbp was saved; " +
				"scan: no word from 0xeff0 on, as far as the stack can be read, is a return address"},
		{name: "too many", size: 1 << 40, stack: filled(0x6ff0, 0x6ff0+scanned, 0x2018), pcs: []machine.Addr{0x2004, 0x2010},
			end: "cut short: " + begins + "frame pointer: rbp 0x7000 does not point to a frame: no call ends at 0x2018, which would be its return address; " +
				"scan: none of the first 1024 words from 0x6ff0 on that point into code is a return address"},
	} {
		t.Run(test.name, func(t *testing.T) {
			stack := words{}
			for at, v := range inner {
				stack[at] = v
			}
			for at, v := range test.stack {
				stack[at] = v
			}
			u := Unwinder{Arch: machine.AMD64, Memory: code(stack), Executable: executable, Finder: test.size}
			frames, end := u.framesOf(registers(map[machine.DWARFReg]uint64{rip: 0x2004, rsp: 0x6fd8, rbp: 0x6fe0}))
			requireEnd(t, End{Code: frame.NoUnwindInfo, Reason: test.end}, end)
			var pcs []machine.Addr
			for _, f := range frames {
				pcs = append(pcs, f.PC)
			}
			require.Equal(t, test.pcs, pcs)
			require.Equal(t, end.Reason, frames[len(frames)-1].NoCFA)
		})
	}
}

// filled returns a stack with the same word everywhere.
func filled(from, to machine.Addr, v uint64) words {
	w := words{}
	for at := from; at <= to; at += 8 {
		w[at] = v
	}
	return w
}

// far returns a stack of zeros with one return address.
func far(from, at machine.Addr) words {
	w := filled(from, at, 0)
	w[at] = 0x2020
	return w
}

// TestZeroAfterGuess requires that a zero return address after a guessed frame does not mark the outermost frame.
func TestZeroAfterGuess(t *testing.T) {
	u := Unwinder{
		Arch: machine.AMD64, Executable: executable, Finder: tables{table: tableOf(t, simpleFDE())},
		Memory: code(words{0x7000: 0, 0x7008: 0x1010, 0x7010: 0}),
	}
	// Put a call before 0x1010, which is in the code of the FDE.
	u.Memory.(words)[0x1008] = 0xd0ff909090909090
	frames, end := u.framesOf(registers(map[machine.DWARFReg]uint64{rip: 0x2004, rsp: 0x7000, rbp: 1}))
	require.Len(t, frames, 2)
	require.Equal(t, FromScan, frames[1].Rule)
	requireEnd(t, End{Code: frame.ReturnToZero, Reason: "cut short: frame #1: its return address is zero, and frame #1 was found by a guess"}, end)
}
