package unwind

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/deopt/unwind/internal/unwindtest"
	"example.com/reframe/internal/machine"
)

// tables has one table for the code of simpleFDE; other code has no CFI.
type tables struct {
	table *cfi.Table
	err   error
}

func (f tables) Code(pc machine.Addr) *Code {
	if f.table == nil || pc < 0x1000 || pc >= 0x1100 {
		return &Code{Err: f.err}
	}
	return &Code{Source: "jit object 7", Table: f.table, Err: f.err}
}

// executable reports whether addr is in the code of simpleFDE or in the page after it, which has no code.
func executable(addr machine.Addr) bool { return addr >= 0x1000 && addr < 0x3000 }

// registers returns the registers of a stopped thread: r0 = 0x100, r1 = 0x101, … unless given.
func registers(given map[machine.DWARFReg]uint64) *machine.Registers {
	regs := machine.NewRegisters(machine.AMD64, "not read")
	for reg := range machine.DWARFReg(16) {
		regs.SetUint(reg, 0x100+uint64(reg))
	}
	for reg, v := range given {
		regs.SetUint(reg, v)
	}
	return regs
}

const (
	rbx = 3
	rbp = 6
	rsp = 7
	rip = 16
)

// code is memory with a call that ends at 0x2010 and another at 0x2020, and
// with a stack at 0x7000 that a test fills.
func code(stack words) words {
	w := words{
		0x2000: 0x9090909090909090, 0x2008: 0xfffffff0e8909090, // call rel32 in bytes 3 to 7
		0x2010: 0x9090909090909090, 0x2018: 0xd0ff909090909090, // call *%rax in bytes 6 and 7
		0x2020: 0x9090909090909090, 0x2028: 0x9090909090909090,
	}
	maps.Copy(w, stack)
	return w
}

// framesOf walks a stack without reusing frames of an earlier walk.
func (u *Unwinder) framesOf(regs *machine.Registers) ([]Frame, End) {
	s := u.Walk(regs, nil)
	return s.Frames, s.End
}

// requireEnd compares ends without their causes.
func requireEnd(t *testing.T, want, got End) {
	t.Helper()
	require.Equal(t, want, End{Complete: got.Complete, Reason: got.Reason, Code: got.Code})
}

func TestWalk(t *testing.T) {
	nowhere := func(sp string) string {
		return "; scan: no word from " + sp + " on, as far as the stack can be read, is a return address"
	}
	type regs = map[machine.DWARFReg]uint64
	for _, test := range []struct {
		name   string
		cfi    []byte // instructions of the FDE of [0x1000, 0x1100)
		regs   regs
		stack  words
		pcs    []machine.Addr
		end    string
		finish bool
		code   frame.Code // code of an unfinished walk, "" for NoUnwindInfo
	}{
		{name: "undefined return address", cfi: []byte{7, 16}, regs: regs{rip: 0x1000, rsp: 0x7000}, stack: words{0x7000: 0},
			pcs: []machine.Addr{0x1000}, end: "frame #0 is the outermost: its CFI says that it has no return address", finish: true},
		{name: "zero return address", regs: regs{rip: 0x1000, rsp: 0x7000}, stack: words{0x7000: 0},
			pcs: []machine.Addr{0x1000}, end: "frame #0 is the outermost: its return address is zero", finish: true},
		{name: "return address in data", regs: regs{rip: 0x1000, rsp: 0x7000}, stack: words{0x7000: 0x7000},
			pcs: []machine.Addr{0x1000}, end: "cut short: frame #0: its return address 0x7000 is not in executable memory", code: frame.ReturnToNoCode},
		{name: "return address unreadable", regs: regs{rip: 0x1000, rsp: 0x7000},
			pcs: []machine.Addr{0x1000},
			end: "cut short: frame #0: jit object 7: the return address: the place where frame #0 saved rip cannot be read: 8 bytes at 0x7000: not mapped", code: frame.MemoryUnreadable},
		{name: "no rule for the return address", cfi: []byte{8, 16}, regs: regs{rip: 0x1000, rsp: 0x7000},
			pcs: []machine.Addr{0x1000}, end: "cut short: frame #0: jit object 7: no rule says where the return address is", code: frame.CFIUnusable},
		{name: "CFA of an unknown register", cfi: []byte{0x0d, 90}, regs: regs{rip: 0x1000, rsp: 0x7000},
			pcs: []machine.Addr{0x1000}, end: "cut short: frame #0: jit object 7: the CFA: dwarf register 90: not read", code: frame.NotCaptured},
		{name: "damaged program", cfi: []byte{0x0b}, regs: regs{rip: 0x1000, rsp: 0x7000}, pcs: []machine.Addr{0x1000},
			end: "cut short: frame #0: jit object 7: .eh_frame at offset 0x2b: DW_CFA_restore_state without DW_CFA_remember_state", code: frame.CFIUnusable},
		{name: "CFA that does not grow", cfi: []byte{0x0c, rbx, 0}, regs: regs{rip: 0x1000, rbx: 0x7008},
			stack: words{0x7000: 0x1010}, pcs: []machine.Addr{0x1000, 0x1010},
			end: "cut short: frame #1: its CFA 0x7008 is not above that of frame #0, 0x7008", code: frame.StackLoop},
		// Each activation has a frame of eight bytes and returns into the same function.
		{name: "too many frames", regs: regs{rip: 0x1000, rsp: 0x7000}, stack: endlessStack(), pcs: nil,
			end: "cut short: there are more than 512 frames", code: frame.FrameLimit},

		{name: "frame pointers", regs: regs{rip: 0x2004, rsp: 0x6ff0, rbp: 0x7000},
			stack: words{0x7000: 0x7020, 0x7008: 0x2010, 0x7020: 0, 0x7028: 0x2020},
			pcs:   []machine.Addr{0x2004, 0x2010, 0x2020}, end: "frame #2 is the outermost: its frame pointer is zero, and nothing else leads further", finish: true},
		{name: "zero frame pointer of frame 0", regs: regs{rip: 0x2004, rsp: 0x6ff0, rbp: 0},
			pcs: []machine.Addr{0x2004}, end: "cut short: frame #0 has no unwind information for 0x2004; tried code: it leads to no return; frame pointer: rbp 0x0 lies below the stack pointer 0x6ff0" + nowhere("0x6ff0")},
		{name: "misaligned", regs: regs{rip: 0x2004, rsp: 0x6ff0, rbp: 0x7001},
			pcs: []machine.Addr{0x2004}, end: "cut short: frame #0 has no unwind information for 0x2004; tried code: it leads to no return; frame pointer: rbp 0x7001 is not aligned to 8 bytes" + nowhere("0x6ff0")},
		{name: "unmapped", regs: regs{rip: 0x2004, rsp: 0x6ff0, rbp: 0x8000},
			pcs: []machine.Addr{0x2004}, end: "cut short: frame #0 has no unwind information for 0x2004; tried code: it leads to no return; frame pointer: rbp 0x8000 does not point to a frame: the return address: the place where frame #0 saved rip cannot be read: 8 bytes at 0x8008: not mapped" + nowhere("0x6ff0")},
		{name: "end of memory", regs: regs{rip: 0x2004, rsp: 0x6ff0, rbp: 1<<64 - 16},
			pcs: []machine.Addr{0x2004}, end: "cut short: frame #0 has no unwind information for 0x2004; tried code: it leads to no return; frame pointer: rbp 0xfffffffffffffff0 lies at the end of memory" + nowhere("0x6ff0")},
		{name: "no call before", regs: regs{rip: 0x2004, rsp: 0x6ff0, rbp: 0x7000}, stack: words{0x7000: 0x7020, 0x7008: 0x2018},
			pcs: []machine.Addr{0x2004},
			end: "cut short: frame #0 has no unwind information for 0x2004; tried code: it leads to no return; frame pointer: rbp 0x7000 does not point to a frame: " +
				"no call ends at 0x2018, which would be its return address" + nowhere("0x6ff0")},
		{name: "data before", regs: regs{rip: 0x2004, rsp: 0x6ff0, rbp: 0x7000}, stack: words{0x7000: 0x7020, 0x7008: 0x6000},
			pcs: []machine.Addr{0x2004}, end: "cut short: frame #0 has no unwind information for 0x2004; tried code: it leads to no return; frame pointer: rbp 0x7000 does not point to a frame: 0x6000, which would be its return address, is not in executable memory" + nowhere("0x6ff0")},
		{name: "code that cannot be read", regs: regs{rip: 0x2004, rsp: 0x6ff0, rbp: 0x7000}, stack: words{0x7000: 0x7100, 0x7008: 0x2800},
			pcs: []machine.Addr{0x2004, 0x2800},
			end: "cut short: frame #1 has no unwind information for 0x2800; tried code: it leads to no return; frame pointer: rbp 0x7100 does not point to a frame: the return address: the place where frame #1 saved rip cannot be read: 8 bytes at 0x7108: not mapped" + nowhere("0x7010")},
		{name: "a chain that loops", regs: regs{rip: 0x2004, rsp: 0x6ff0, rbp: 0x7000}, stack: words{0x7000: 0x7000, 0x7008: 0x2010},
			pcs: []machine.Addr{0x2004, 0x2010},
			end: "cut short: frame #1 has no unwind information for 0x2010; tried code: it leads to no return; frame pointer: rbp 0x7000 lies below the stack pointer 0x7010" + nowhere("0x7010")},
		{name: "from CFI to frame pointers", regs: regs{rip: 0x1000, rsp: 0x6ff8, rbp: 0x7010},
			stack: words{0x6ff8: 0x2020, 0x7010: 0, 0x7018: 0x2010},
			pcs:   []machine.Addr{0x1000, 0x2020, 0x2010}, end: "frame #2 is the outermost: its frame pointer is zero, and nothing else leads further", finish: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := Unwinder{
				Arch: machine.AMD64, Memory: code(test.stack), Executable: executable,
				Finder: tables{table: tableOf(t, simpleFDE(test.cfi...))},
			}
			frames, end := u.framesOf(registers(test.regs))
			if test.code == "" && !test.finish {
				test.code = frame.NoUnwindInfo
			}
			requireEnd(t, End{Complete: test.finish, Reason: test.end, Code: test.code}, end)
			if test.pcs == nil {
				require.Len(t, frames, 512)
				return
			}
			var pcs []machine.Addr
			for i, f := range frames {
				require.Equal(t, i, f.Index)
				require.Equal(t, i > 0, f.Return)
				pcs = append(pcs, f.PC)
			}
			require.Equal(t, test.pcs, pcs)
			if last := frames[len(frames)-1]; last.NoCFA != "" {
				require.Equal(t, test.end, last.NoCFA)
			}
		})
	}
}

func endlessStack() words {
	w := words{}
	for i := range machine.Addr(2000) {
		w[0x7000+8*i] = 0x1010
	}
	return w
}

// TestCallersRegisters requires the registers of a caller: those that rules restore, those that the convention preserves, and reasons for the rest.
func TestCallersRegisters(t *testing.T) {
	// rbx saved at CFA-16, r12 in r9, r13 undefined, r14 is CFA+8, rdi explicitly the same, xmm1 and st0 saved, r15 saved in unreadable memory; no
	// rule for rbp.
	cfi := []byte{0x83, 2, 9, 12, 9, 7, 13, 0x15, 14, 0x7f, 8, 5, 0x80 + 18, 2, 0x80 + 33, 2, 0x10, 15, 1, 0x30}
	regs := registers(map[machine.DWARFReg]uint64{rip: 0x1000, rsp: 0x7008})
	regs.Set(18, make([]byte, 64))
	u := Unwinder{
		Arch: machine.AMD64, Executable: executable, Finder: tables{table: tableOf(t, simpleFDE(cfi...))},
		Memory: words{0x7000: 0xb0b, 0x7008: 0x2010},
	}
	frames, _ := u.framesOf(regs)
	require.Len(t, frames, 2)
	require.Equal(t, machine.Addr(0x7010), frames[0].CFA)
	require.Empty(t, frames[0].NoCFA)
	require.Equal(t, FromRegisters, frames[0].Rule)
	require.Equal(t, machine.Addr(0x1000), frames[0].FDE.Start)
	require.Equal(t, machine.Addr(0x1100), frames[0].FDE.End)
	require.Equal(t, "jit object 7", frames[0].Source)
	require.Equal(t, FromCFI, frames[1].Rule)
	require.Empty(t, frames[1].Source)
	require.Empty(t, frames[1].Guess)

	up := frames[1].Registers
	for reg, want := range map[machine.DWARFReg]uint64{
		rbx: 0xb0b, 12: 0x109, 14: 0x7018, 5: 0x105, rbp: 0x106, rsp: 0x7010, rip: 0x2010,
	} {
		v, err := up.Uint(reg)
		require.NoError(t, err)
		require.Equal(t, want, v, machine.AMD64.RegisterName(reg))
	}
	// 16 bytes of a saved vector register are available.
	b, err := up.Bytes(18)
	require.NoError(t, err)
	require.Equal(t, append(binary.LittleEndian.AppendUint64(nil, 0xb0b), binary.LittleEndian.AppendUint64(nil, 0x2010)...), b)
	for reg, want := range map[machine.DWARFReg]string{
		0:  "rax is caller-saved and frame #0 does not preserve it",
		11: "r11 is caller-saved and frame #0 does not preserve it",
		17: "xmm0 is caller-saved and frame #0 does not preserve it",
		67: "xmm16 is caller-saved and frame #0 does not preserve it",
		13: "the CFI of frame #0 marks r13 as not preserved",
		15: "the place where frame #0 saved r15 cannot be read: 8 bytes at 0x0: not mapped",
		33: "frame #0 saved st0 at 0x7000, and the number of saved bytes is unknown",
	} {
		_, err := up.Bytes(reg)
		require.EqualError(t, err, want)
		var missing *frame.Reason
		require.ErrorAs(t, err, &missing)
	}
}

// TestFramePointerRegisters requires the registers that remain known after a frame without CFI.
func TestFramePointerRegisters(t *testing.T) {
	u := Unwinder{
		Arch: machine.AMD64, Executable: executable, Finder: tables{},
		Memory: code(words{0x7000: 0x7020, 0x7008: 0x2010, 0x7020: 0x7040, 0x7028: 0x2020}),
	}
	frames, _ := u.framesOf(registers(map[machine.DWARFReg]uint64{rip: 0x2004, rsp: 0x6ff0, rbp: 0x7000}))
	require.Len(t, frames, 3)
	require.Equal(t, []machine.Addr{0x7010, 0x7030}, []machine.Addr{frames[0].CFA, frames[1].CFA})
	require.Equal(t, "frame #0 may not have set up its frame pointer yet, or may have released it: then its caller is missing here", frames[1].Guess)
	require.Equal(t, "frame #1 is assumed to have a frame pointer: if it has none, frames are missing here", frames[2].Guess)
	for i, want := range []struct{ rbp, rsp uint64 }{1: {0x7020, 0x7010}, 2: {0x7040, 0x7030}} {
		if i == 0 {
			continue
		}
		regs := frames[i].Registers
		require.Equal(t, FromFramePointer, frames[i].Rule)
		v, err := regs.Uint(rbp)
		require.NoError(t, err)
		require.Equal(t, want.rbp, v)
		v, err = regs.Uint(rsp)
		require.NoError(t, err)
		require.Equal(t, want.rsp, v)
	}
	for reg, want := range map[machine.DWARFReg]string{
		rbx: "frame #1 was unwound by its frame pointer, which does not give the place where rbx was saved",
		15:  "frame #1 was unwound by its frame pointer, which does not give the place where r15 was saved",
		0:   "rax is caller-saved and frame #1 does not preserve it",
	} {
		_, err := frames[2].Registers.Bytes(reg)
		require.EqualError(t, err, want)
	}
}

// TestSignalLoop has a signal trampoline whose frame leads back to itself.
func TestSignalLoop(t *testing.T) {
	cie := entry(uint32(0), 1, "zRS", 1, 0x78, 16, 1, 0, []byte{0x0c, rbx, 0, 0x90, 0})
	table := tableOf(t, slices.Concat(cie, entry(uint32(len(cie)+4), uint64(0x1000), uint64(0x100), 0)))
	u := Unwinder{Arch: machine.AMD64, Memory: words{0x7000: 0x1000}, Executable: executable, Finder: tables{table: table}}
	frames, end := u.framesOf(registers(map[machine.DWARFReg]uint64{rip: 0x1000, rbx: 0x7000}))
	requireEnd(t, End{Code: frame.StackLoop, Reason: "cut short: frame #1: a signal frame with CFA 0x7000 for the second time: a loop"}, end)
	require.Len(t, frames, 2)
	require.True(t, frames[0].Signal)
	require.False(t, frames[1].Return)
	_, err := frames[1].Registers.Bytes(0)
	require.EqualError(t, err, "frame #0 is a signal frame in which no place of rax is known")
}

func TestNoPC(t *testing.T) {
	u := Unwinder{Arch: machine.AMD64, Memory: words{}, Executable: executable, Finder: tables{}}
	frames, end := u.framesOf(machine.NewRegisters(machine.AMD64, "the thread was gone"))
	require.Empty(t, frames)
	requireEnd(t, End{Code: frame.NotCaptured, Reason: "cut short: frame #0 has no pc: rip: the thread was gone"}, end)
}

// TestFinderFails requires that a walk stops at code with unusable unwind information: its frame pointer may be anything.
func TestFinderFails(t *testing.T) {
	u := Unwinder{Arch: machine.AMD64, Memory: code(nil), Executable: executable, Finder: tables{err: errors.New("libx.so is not the file that was mapped")}}
	frames, end := u.framesOf(registers(map[machine.DWARFReg]uint64{rip: 0x2004, rsp: 0x6ff0, rbp: 0x7000}))
	require.Len(t, frames, 1)
	require.Equal(t, "cut short: frame #0: unwind information of 0x2004: libx.so is not the file that was mapped", end.Reason)
}

// tableOf returns the table of a handwritten .eh_frame.
func tableOf(t *testing.T, frame []byte) *cfi.Table {
	t.Helper()
	table, err := cfi.NewTable(byHand(frame))
	require.NoError(t, err)
	return table
}

func byHand(frame []byte) cfi.Sections {
	return cfi.Sections{Arch: machine.AMD64, EHFrame: cfi.Section{
		Addr: unwindtest.SimpleAddr, Data: bytes.NewReader(frame), Size: int64(len(frame)),
	}}
}

// sectionsOf takes the unwind sections out of an ELF file that is loaded at bias.
func sectionsOf(t testing.TB, path string, bias machine.Addr) cfi.Sections {
	t.Helper()
	s, err := cfi.SectionsOf(unwindtest.Image(t, path, bias))
	require.NoError(t, err)
	return s
}

// Short names for those of [unwindtest].
type words = unwindtest.Words

var (
	run       = unwindtest.Run
	address   = unwindtest.Address
	le        = unwindtest.LE
	entry     = unwindtest.Entry
	simpleFDE = unwindtest.SimpleFDE
)
