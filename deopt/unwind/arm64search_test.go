package unwind

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/deopt/unwind/internal/unwindtest"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/arm64"
)

// Functions of the programs of these tests. The thread is in handler, which stub has called. stub has lost its own return address.
const (
	armCaller  = 0x1040 // calls stub
	armOther   = 0x1000 // calls another function, and has the same frame as armCaller
	armRoot    = 0x1080 // calls through x8
	armStub    = 0x1100
	armHandler = 0x1180
	armWay     = 0x1200 // the function that armOther calls
	armPointer = 0x3000 // data
	armStack   = 0x7000 // the stack pointer of armCaller or armOther

	armNop, armRet, armTrap = 0xd503201f, 0xd65f03c0, 0xd4200020
)

// armBL returns a bl.
func armBL(at, to machine.Addr) uint32 { return 0x94000000 | uint32(to-at)>>2&0x03ffffff }

// An armFunction is a function of a program, with its unwind information.
type armFunction struct {
	code []uint32
	cfi  []byte
}

// armFrame has the instructions and the unwind information of a prologue that pushes x29 and x30 with 16 bytes of slots.
var (
	armPrologue = []uint32{0xa9be7bfd, 0x910003fd}                   // stp x29, x30, [sp, #-32]!; mov x29, sp
	armEpilogue = []uint32{0xa8c27bfd, armRet}                       // ldp x29, x30, [sp], #32; ret
	armPushed   = []byte{0x48, 0x0e, 32, 0x80 | 29, 4, 0x80 | 30, 3} // after 8 bytes: CFA is sp+32, x29 at CFA-32, x30 at CFA-24
)

// armCalls returns a function at an address that calls another one.
func armCalls(at, to machine.Addr) armFunction {
	return armFunction{slices.Concat(armPrologue, []uint32{armBL(at+8, to)}, armEpilogue), armPushed}
}

// armProgram returns the functions that all programs have.
func armProgram() map[machine.Addr]armFunction {
	return map[machine.Addr]armFunction{
		armCaller: armCalls(armCaller, armStub),
		armOther:  armCalls(armOther, armWay),
		armRoot: {[]uint32{
			0xd10103ff, 0xa9037bfd, 0x9100c3fd, // sub sp, sp, #64; stp x29, x30, [sp, #48]; add x29, sp, #48
			0xd63f0100, armTrap, // blr x8
		}, []byte{0x4c, 0x0e, 64, 0x80 | 29, 2, 0x80 | 30, 1}},
		armStub:    {[]uint32{0xd2800029, armBL(armStub+4, armHandler), armTrap}, nil}, // mov x9, #1
		armHandler: {[]uint32{armNop, armRet}, nil},
		armWay:     {[]uint32{armRet}, nil},
	}
}

// armCode is the code of a program with its unwind information.
type armCode struct {
	unwindtest.Words
	code     Code
	branches []machine.Addr
	regs     map[machine.DWARFReg]uint64 // values that replace those that walk sets
}

func (c *armCode) Code(machine.Addr) *Code { return &c.code }

// armLoad returns a program in memory. The functions at the addresses in pads have exception tables.
func armLoad(t *testing.T, program map[machine.Addr]armFunction, pads ...machine.Addr) *armCode {
	t.Helper()
	c := &armCode{Words: unwindtest.Words{}}
	for at := machine.Addr(armStack); at < armStack+0x60; at += 8 {
		c.Words[at] = 0x5555
	}
	c.Words[armStack], c.Words[armStack+8] = armStack+0x50, armRoot+16                // pushed by armCaller or armOther
	c.Words[armStack+0x50], c.Words[armStack+0x58] = 0, 0                             // pushed by armRoot, the outermost function
	table := unwindtest.Entry(uint32(0), 1, "", 1, 0x78, arm64Link, 0x0c, arm64SP, 0) // CFA is sp+0
	withPads := len(table)
	table = append(table, unwindtest.Entry(uint32(0), 1, "zL", 1, 0x78, arm64Link, 1, 0, 0x0c, arm64SP, 0)...)
	for _, start := range slices.Sorted(maps.Keys(program)) {
		f := program[start]
		for n, word := range f.code {
			at := start + machine.Addr(n*arm64.Size)
			c.Words[at&^7] |= uint64(word) << (8 * (at & 7))
			code := binary.LittleEndian.AppendUint32(nil, word)
			if arm64.IsCall(code) || word&^(31<<5) == 0xd61f0000 { // br
				c.branches = append(c.branches, at+arm64.Size)
			}
		}
		cie, augmentation := 0, []byte(nil)
		if slices.Contains(pads, start) {
			cie, augmentation = withPads, unwindtest.LE(8, uint64(armPointer))
		}
		table = append(table, unwindtest.Entry(uint32(len(table)+4-cie), uint64(start), uint64(len(f.code)*arm64.Size), augmentation, f.cfi)...)
	}
	var err error
	c.code.Table, err = cfi.NewTable(cfi.Sections{Arch: machine.ARM64, EHFrame: cfi.Section{
		Addr: unwindtest.SimpleAddr, Data: bytes.NewReader(table), Size: int64(len(table)),
	}})
	require.NoError(t, err)
	return c
}

// walk walks the stack of the thread, which is in armHandler. link is its return address in armStub.
func (c *armCode) walk(link machine.Addr, most int) *Stack {
	regs := machine.NewRegisters(machine.ARM64, "not read")
	for reg := range machine.DWARFReg(arm64FP) {
		regs.SetUint(reg, 0x100+uint64(reg))
	}
	for reg, v := range c.regs {
		regs.SetUint(reg, v)
	}
	regs.SetUint(arm64FP, armStack)
	regs.SetUint(arm64Link, uint64(link))
	regs.SetUint(arm64SP, armStack)
	regs.SetUint(machine.ARM64.PC, armHandler)
	u := Unwinder{
		Arch: machine.ARM64, Memory: c, Finder: c, MaxSearched: most,
		Executable: func(addr machine.Addr) bool { return addr >= armOther && addr < armPointer },
		Branches:   func() ([]machine.Addr, error) { return c.branches, nil },
	}
	return u.Walk(regs, nil)
}

// certainPCs returns the pcs of frames that are certain, from the innermost.
func certainPCs(s *Stack) (list []machine.Addr) {
	for _, f := range s.Frames {
		if f.Guess != "" {
			break
		}
		list = append(list, f.PC)
	}
	return list
}

// TestOnlyCallOfLinkLoser requires that a function that has lost its return address gets a certain caller if only one call may have led to it.
func TestOnlyCallOfLinkLoser(t *testing.T) {
	s := armLoad(t, armProgram()).walk(armStub+8, 0)
	require.True(t, s.End.Complete, s.End.Reason)
	require.Equal(t, []machine.Addr{armHandler, armStub + 8, armCaller + 12, armRoot + 16}, certainPCs(s))
	require.Equal(t, FromCode, s.Frames[2].Rule)
}

// TestOtherWayToLinkLoser requires that no caller is certain if the call of another function may have led to the function as well.
func TestOtherWayToLinkLoser(t *testing.T) {
	for _, test := range []struct {
		name    string
		changes map[machine.Addr]armFunction
		link    machine.Addr
		pointer uint64
	}{
		{"another stub in the range of the same FDE", map[machine.Addr]armFunction{
			armOther: armCalls(armOther, armStub+16),
			armStub: {[]uint32{
				0xd2800029, armBL(armStub+4, armHandler), armTrap, armNop,
				0xd2800029, armBL(armStub+20, armHandler), armTrap,
			}, nil},
		}, armStub + 24, 0},
		{"a jump after an epilogue that the CFI does not describe", map[machine.Addr]armFunction{
			armWay: {slices.Concat(armPrologue, []uint32{
				armBL(armWay+8, armHandler), armEpilogue[0],
				0xd2822010, 0xd61f0200, // mov x16, #0x1100; br x16
			}), armPushed},
		}, armStub + 8, 0},
		{"a pointer that was loaded from data, which has another number now", map[machine.Addr]armFunction{
			armWay: {[]uint32{
				0xd2860011, 0xf9400231, // mov x17, #0x3000; ldr x17, [x17]
				0xaa1103f0, 0xd2800009, 0xd61f0200, // mov x16, x17; mov x9, #0; br x16
			}, nil},
		}, armStub + 8, armHandler},
		{"a thunk that loads a pointer from data, which has another number now", map[machine.Addr]armFunction{
			armWay: {[]uint32{0xd2860010, 0xf9400210, 0xd61f0200}, nil}, // mov x16, #0x3000; ldr x16, [x16]; br x16
		}, armStub + 8, armHandler},
	} {
		t.Run(test.name, func(t *testing.T) {
			program := armProgram()
			maps.Copy(program, test.changes)
			c := armLoad(t, program)
			c.Words[armPointer] = test.pointer
			s := c.walk(test.link, 0)
			require.Equal(t, []machine.Addr{armHandler, test.link}, certainPCs(s), s.End.Reason)
			require.NotEqual(t, frame.SearchBudget, s.End.Code)
		})
	}
}

// TestSearchBudget requires that a caller is certain only if the search for calls was completed. With a smaller budget it is a guess that names the
// budget, or the stack is cut short with the code of that reason.
func TestSearchBudget(t *testing.T) {
	c := armLoad(t, armProgram())
	whole := c.walk(armStub+8, 0)
	guessed, short := 0, 0
	for most := 1; ; most++ {
		require.Less(t, most, 1<<12)
		s := c.walk(armStub+8, most)
		if len(certainPCs(s)) > 2 {
			require.Equal(t, certainPCs(whole), certainPCs(s))
			break
		}
		if len(s.Frames) > 2 {
			guessed++
			require.Contains(t, s.Frames[2].Guess, "the search for the call that led here ended at its limit of ")
			require.Equal(t, machine.Addr(armCaller+12), s.Frames[2].PC)
			continue
		}
		short++
		require.Contains(t, s.End.Reason, "the search for the call that led here ended at its limit of ")
		require.Equal(t, frame.SearchBudget, s.End.Code)
	}
	require.Positive(t, short)
	require.Positive(t, guessed)
}

// TestRegistersRefuteCall requires that callee-saved registers exclude a call through a pointer. They do so if the code before the call would
// have accessed memory that no process has, or would have cleared the upper half of a register. The only other call must then be the certain
// caller.
func TestRegistersRefuteCall(t *testing.T) {
	const (
		x19, x20 = 19, 20
		far      = 0x1234567890abcdef // beyond 52 bits, without the upper byte
		tagged   = 0x1200_007890abcdef
	)
	for _, test := range []struct {
		name    string
		before  []uint32 // the call
		regs    map[machine.DWARFReg]uint64
		refuted bool
	}{
		{"ldr x8, [x19, #8]", []uint32{0xf9400668}, map[machine.DWARFReg]uint64{x19: far}, true},
		{"ldr x8, [x19, #8] of a tagged address", []uint32{0xf9400668}, map[machine.DWARFReg]uint64{x19: tagged}, false},
		{"ldr x8, [x19, #8] of memory that is not mapped now", []uint32{0xf9400668}, map[machine.DWARFReg]uint64{x19: 0x7000_0000_0000}, false},
		{"ldr x8, [x19, #8] of the first address beyond 52 bits", []uint32{0xf9400668}, map[machine.DWARFReg]uint64{x19: 1 << 52}, false},
		{"ldr x8, [x19, #8] of an address below the next tag", []uint32{0xf9400668}, map[machine.DWARFReg]uint64{x19: 1<<56 - 8}, false},
		{"ldp x8, x9, [x19, #16]", []uint32{0xa9412668}, map[machine.DWARFReg]uint64{x19: far}, true},
		{"str x0, [x19], #8", []uint32{0xf8008660}, map[machine.DWARFReg]uint64{x19: far}, true},
		{"ldr x8, [x19, #8]; add x19, x19, #1", []uint32{0xf9400668, 0x91000673}, map[machine.DWARFReg]uint64{x19: far}, false},
		{"ldr x19, [x19]", []uint32{0xf9400273}, map[machine.DWARFReg]uint64{x19: far}, false},
		{"prfm pldl1keep, [x19]", []uint32{0xf9800260}, map[machine.DWARFReg]uint64{x19: far}, false},
		{"cbz x0, over; ldr x8, [x19, #8]", []uint32{0xb4000040, 0xf9400668}, map[machine.DWARFReg]uint64{x19: far}, false},
		{"mov w20, w0", []uint32{0x2a0003f4}, map[machine.DWARFReg]uint64{x20: far}, true},
		{"mov w20, w0, and the value has 32 bits", []uint32{0x2a0003f4}, map[machine.DWARFReg]uint64{x20: 0xffffffff}, false},
		{"mov w20, w0; mov x20, x0", []uint32{0x2a0003f4, 0xaa0003f4}, map[machine.DWARFReg]uint64{x20: far}, false},
		{"cbz x0, over; mov w20, w0", []uint32{0xb4000040, 0x2a0003f4}, map[machine.DWARFReg]uint64{x20: far}, false},
		{"and w20, w0, #7", []uint32{0x12000814}, map[machine.DWARFReg]uint64{x20: far}, true},
		{"cset w20, eq", []uint32{0x1a9f17f4}, map[machine.DWARFReg]uint64{x20: far}, true},
		{"ldr w20, [x1]", []uint32{0xb9400034}, map[machine.DWARFReg]uint64{x20: far}, true},
		{"ldrb w20, [x1]", []uint32{0x39400034}, map[machine.DWARFReg]uint64{x20: far}, true},
		{"ldrsb w20, [x1]", []uint32{0x39c00034}, map[machine.DWARFReg]uint64{x20: far}, true},
		{"ldp w20, w21, [x1]", []uint32{0x29405434}, map[machine.DWARFReg]uint64{x20: far}, true},
		{"ldr x20, [x1]", []uint32{0xf9400034}, map[machine.DWARFReg]uint64{x20: far}, false},
		{"ldrsw x20, [x1]", []uint32{0xb9800034}, map[machine.DWARFReg]uint64{x20: far}, false},
		{"ldrsb x20, [x1]", []uint32{0x39800034}, map[machine.DWARFReg]uint64{x20: far}, false},
		{"ccmp w20, w0, #4, eq", []uint32{0x7a400284}, map[machine.DWARFReg]uint64{x20: far}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			program := armProgram()
			program[armOther] = armFunction{slices.Concat(armPrologue, test.before, []uint32{0xd63f0100}, armEpilogue), armPushed} // blr x8
			c := armLoad(t, program)
			c.regs = test.regs
			s := c.walk(armStub+8, 0)
			require.Greater(t, len(s.Frames), 2, s.End.Reason)
			require.Equal(t, machine.Addr(armCaller+12), s.Frames[2].PC)
			require.Equal(t, test.refuted, s.Frames[2].Guess == "", s.Frames[2].Guess)
		})
	}
}

// TestUnknownPathsRefuteNothing requires that registers refute a call only if all paths to it are known.
func TestUnknownPathsRefuteNothing(t *testing.T) {
	const (
		outlined  = 0x1280
		w20, x20  = 0x2a0003f4, 0xaa0103f4 // mov w20, w0; mov x20, x1
		cbz, over = 0xb4000061, 0x14000000 // cbz x1, 12 bytes on; b
		pop       = 0xf84107f4             // ldr x20, [sp], #16
	)
	for _, test := range []struct {
		name    string
		before  []uint32 // the call
		callee  []uint32
		pads    bool
		refuted bool
	}{
		{"both paths write 32 bits", []uint32{cbz, w20, over | 2, w20}, nil, false, true},
		{"a jump in a table leads to the other path", []uint32{cbz, w20, over | 4, 0xf8617831, 0xd61f0220, x20}, nil, false, false}, // ldr x17, [x1, x1, lsl #3]; br x17
		{"an authenticated jump leads to the other path", []uint32{cbz, w20, over | 4, armNop, 0xd71f0a31, x20}, nil, false, false}, // braa x17, x17
		{"a system call is on the other path", []uint32{cbz, w20, over | 3, 0xd4000001, x20}, nil, false, false},                    // svc #0
		{"a system call is on the path", []uint32{cbz, w20, over | 3, 0xd4000001, w20}, nil, false, true},
		{"an unknown instruction is on the other path", []uint32{cbz, w20, over | 3, 0xd4000002, x20}, nil, false, false}, // hvc #0
		{"the other path ends at a trap", []uint32{cbz, w20, over | 3, armTrap, x20}, nil, false, true},
		{"the other path returns", []uint32{cbz, w20, over | 3, armRet, x20}, nil, false, true},
		{"a landing pad is the other path", []uint32{w20, armBL(armOther+12, armWay), over | 2, x20}, nil, true, false},
		{"no landing pad", []uint32{w20, armBL(armOther+12, armWay), over | 2, x20}, nil, false, true},
		{"a callee without a frame", []uint32{w20, armBL(armOther+12, outlined)}, []uint32{0xaa0103e0, armRet}, false, true}, // mov x0, x1
		{"an outlined function", []uint32{w20, armBL(armOther+12, outlined)}, []uint32{x20, armRet}, false, false},
		{"an outlined function that ends with another call", []uint32{w20, armBL(armOther+12, outlined)}, []uint32{x20, 0x14000000 | (armWay-outlined-4)>>2&0x03ffffff}, false, false},
		{"a thunk of an outlined function", []uint32{w20, armBL(armOther+12, outlined)}, []uint32{over | 2, armTrap, x20, armRet}, false, false},
		{"a callee that saves the register", []uint32{w20, armBL(armOther+12, outlined)}, []uint32{0xf81f0ff4, x20, pop, armRet}, false, true}, // str x20, [sp, #-16]!
		{"a callee with a loop", []uint32{w20, armBL(armOther+12, outlined)}, []uint32{0xf81f0ff4, x20, 0xb5fffff4, pop, armRet}, false, true}, // cbnz x20, 4 bytes back
		{"a callee that is not readable", []uint32{w20, armBL(armOther+12, 0x9000)}, nil, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			program, pads := armProgram(), []machine.Addr(nil)
			program[armOther] = armFunction{slices.Concat(armPrologue, test.before, []uint32{0xd63f0100}, armEpilogue), armPushed} // blr x8
			if test.callee != nil {
				program[outlined] = armFunction{test.callee, nil}
			}
			if test.pads {
				pads = append(pads, armOther)
			}
			requireRefuted(t, armLoad(t, program, pads...), test.refuted)
		})
	}
	t.Run("the code is a part of a function", func(t *testing.T) { // the other part of the function may jump to any instruction of this part
		program := armProgram()
		program[armOther] = armFunction{slices.Concat([]uint32{w20, 0xd63f0100}, armEpilogue), armPushed[1:]}
		requireRefuted(t, armLoad(t, program), false)
	})
}

// requireRefuted sets x20 to a number of more than 32 bits. It requires that the caller of armStub is certain only if this number excludes the
// call in armOther.
func requireRefuted(t *testing.T, c *armCode, refuted bool) {
	t.Helper()
	c.regs = map[machine.DWARFReg]uint64{20: 0x1234567890abcdef}
	s := c.walk(armStub+8, 0)
	require.Greater(t, len(s.Frames), 2, s.End.Reason)
	require.Equal(t, machine.Addr(armCaller+12), s.Frames[2].PC)
	require.Equal(t, refuted, s.Frames[2].Guess == "", s.Frames[2].Guess)
}
