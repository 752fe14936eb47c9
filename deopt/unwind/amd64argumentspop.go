package unwind

import (
	"encoding/binary"
	"fmt"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// Support for functions that pop their arguments when they return (LLVM's tailcc, swifttailcc and, with -tailcallopt, fastcc). Before a tail call
// to a function with more arguments, such a function moves its return address down to make room. The caller's stack pointer then differs from the
// CFA of the function that was tail-called. The unwinder computes it from the number of bytes that this function pops at its return.

// maxPopping bounds the code in bytes that is searched for returns.
const maxPopping = 1 << 20

// returned corrects the stack pointer of f, the caller of callee, if callee may have been entered by a tail call.
func (w *walk) returned(callee, f *Frame) {
	if w.Arch != machine.AMD64 || callee.Signal || callee.FDE.Start == 0 || f.Overwritten != nil {
		return
	}
	way := w.way(f)
	if way.cfi == nil || f.Skipped == 0 && (way.popped == 0 || w.calls(f, callee)) {
		return
	}
	takes, known := callee.code.takes(w.Memory, callee)
	switch {
	case known && takes == 0: // C's convention: no return address was moved
	case known && way.popped > 0:
		if sp, err := f.Registers.Addr(w.Arch.SP); err == nil {
			f.Registers.SetUint(w.Arch.SP, uint64(sp)+takes-way.popped)
		}
	case known:
		f.Registers.Forget(w.Arch.SP, frame.Because(frame.TailCall, callee.Index))
	case f.Skipped != 0 && way.popped > 0 && f.Guess == "":
		f.GuessKind = "frame #%d took the place of what was called, and how many arguments it has on the stack is not known"
		f.Guess = fmt.Sprintf(f.GuessKind, callee.Index)
	}
}

// popped returns the number of bytes of arguments that the callee of the call ending at pc pops. It infers them from LLVM's code after the call. If
// the arguments were pushed, the CFA offset from the stack pointer is smaller there. If the caller reserves room for them, it subtracts that room
// from the stack pointer again, which CFI does not describe. popped returns zero if neither holds.
func (u *codeReader) popped(c *Code, s *step, pc machine.Addr) uint64 {
	own := func(s *step) bool { return s.row.CFA.Kind == cfi.CFARegister && s.row.CFA.Register == u.Arch.SP }
	switch {
	case u.Arch != machine.AMD64 || s.row == nil || !own(s):
		return 0
	case s.row.End == pc:
		if after, err := c.cfi(pc); err == nil && after != nil && after.Start == s.Start && own(after) {
			return uint64(max(0, s.row.CFA.Offset-after.row.CFA.Offset))
		}
		return 0
	}
	bytes, size := subtracted(u.Memory, pc)
	if s.row.End <= pc+machine.Addr(size) { // CFI describes the subtraction, so it makes room for another call
		return 0
	}
	return bytes
}

// justPopped does the same as popped for the call that ends at the pc of f, which is not a return address. LLVM subtracts the room again only
// after pc, and the row at pc does not account for that.
func (u *codeReader) justPopped(f *Frame, s *step) uint64 {
	before, err := f.code.cfi(f.PC - 1)
	if err != nil || before == nil || before.Start != s.Start {
		return 0
	}
	bytes := u.popped(f.code, before, f.PC)
	if bytes == 0 {
		return 0
	}
	if called, err := u.callEndsAt(f.PC); err != nil || !called {
		return 0
	}
	if before.row.End != f.PC {
		s.late = bytes
	}
	return bytes
}

// AtCall returns the registers of f with the stack pointer that it had at the call that has just returned to its pc.
func (f *Frame) AtCall() *machine.Registers {
	if f.Popped == 0 {
		return f.Registers
	}
	regs := f.Registers.Clone()
	sp := regs.Arch().SP
	if at, err := regs.Uint(sp); err == nil {
		regs.SetUint(sp, at-f.Popped)
	}
	return regs
}

// subtracted returns the number of bytes that the instruction at an address subtracts from the stack pointer, and the instruction's size.
func subtracted(memory machine.Memory, at machine.Addr) (bytes, size uint64) {
	var b [7]byte // sub $imm8,%rsp; sub $imm32,%rsp
	code := readable(memory, b[:], at)
	switch {
	case len(code) < 4 || code[0] != 0x48 || code[2] != 0xec:
	case code[1] == 0x83:
		return uint64(max(0, int8(code[3]))), 4
	case code[1] == 0x81 && len(code) == 7:
		return uint64(max(0, int32(binary.LittleEndian.Uint32(code[3:])))), 7
	}
	return 0, 0
}

// calls reports whether the pending call of f calls callee's function.
func (u *codeReader) calls(f, callee *Frame) bool {
	target := f.code.calls[f.PC] // cached by skipped
	for range maxStubs {
		if target == 0 || target == callee.FDE.Start {
			break
		}
		target = u.Stub(target)
	}
	return target != 0 && callee.FDE.Contains(target)
}

// takes returns the number of bytes that a function pops in addition to the return address. known is false if no return is found, or if its returns
// pop different numbers of bytes.
func (c *Code) takes(memory machine.Memory, f *Frame) (bytes uint64, known bool) {
	if got, known := c.takings[f.FDE.Start]; known {
		return got.bytes, got.known
	}
	if c.takings == nil || len(c.takings) >= maxWays {
		c.takings = map[machine.Addr]taking{}
	}
	got := takenBy(memory, f.FDE.Start, f.FDE.End)
	c.takings[f.FDE.Start] = got
	return got.bytes, got.known
}

// taking is the number of bytes that the returns of a function pop, if known.
type taking struct {
	bytes uint64
	known bool
}

// takenBy decodes the returns between two addresses.
func takenBy(memory machine.Memory, start, end machine.Addr) (out taking) {
	const plain, popping = 0xc3, 0xc2 // ret; ret imm16
	if end <= start || end-start > maxPopping {
		return out
	}
	code := make([]byte, end-start)
	if memory.ReadMemory(code, start) != nil {
		return out
	}
	for len(code) > 0 {
		n := amd64.Length(code)
		if n == 0 || n > len(code) {
			out.known = false
			return out
		}
		bytes, returns := uint64(0), code[0] == plain
		if code[0] == popping && n == 3 {
			bytes, returns = uint64(binary.LittleEndian.Uint16(code[1:])), true
		}
		if returns {
			if out.known && out.bytes != bytes {
				out.known = false
				return out
			}
			out.bytes, out.known = bytes, true
		}
		code = code[n:]
	}
	return out
}
