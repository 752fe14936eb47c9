package unwind

import (
	"encoding/binary"
	"iter"

	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
	"example.com/reframe/internal/machine/isa/amd64"
)

// Opcode of a direct call, and the maximum number of stubs between a call and a function.
const (
	callOpcode = 0xe8
	maxStubs   = 4
)

// skipped returns the function that tail-called the function of callee, so that its own frame is missing. The call before pc, to which callee
// returns, names it. skipped returns zero if there was no tail call, or if that cannot be determined. A stub, such as an entry of a procedure linkage
// table, has no frame that could be missing.
func (u *codeReader) skipped(callee *Frame, pc machine.Addr, code *Code) machine.Addr {
	if u.Arch != machine.AMD64 || callee.Signal || callee.FDE.Start == 0 {
		return 0
	}
	target, known := code.calls[pc]
	if !known {
		if target = u.directTarget(pc); target != 0 && u.loaded(pc) && !u.alwaysLoaded(code, pc) {
			target = 0
		}
		if len(code.calls) >= maxWays || code.calls == nil {
			code.calls = map[machine.Addr]machine.Addr{}
		}
		code.calls[pc] = target
	}
	for range maxStubs {
		switch {
		case target == 0 || callee.FDE.Contains(target):
			return 0
		case u.starts(target):
			if u.starts(callee.FDE.Start) {
				return target
			}
			return 0
		}
		target = u.Stub(target)
	}
	return 0
}

// directTarget returns the target of the call that ends at pc if the call, or the instruction before it, contains the target. Otherwise it returns 0.
func (u *codeReader) directTarget(pc machine.Addr) machine.Addr {
	// Read the longest form at once, because this runs for every return address; read less if the code starts nearer.
	var buf [longestLoaded]byte
	for _, n := range []machine.Addr{longestLoaded, longestLoaded - 1, amd64.DirectCall} {
		b := buf[longestLoaded-n:]
		if u.Memory.ReadMemory(b, pc-n) != nil {
			continue
		}
		if to := loadedTarget(b); to != 0 {
			return to
		}
		if b = b[n-amd64.DirectCall:]; b[0] != callOpcode {
			return 0
		}
		return pc + machine.Addr(int32(binary.LittleEndian.Uint32(b[1:])))
	}
	return 0
}

// target returns the target of the call that ends at pc, as directTarget does, or the current word of memory at a fixed distance from the call. It
// returns 0 for other calls.
func (t trial) target(pc machine.Addr) machine.Addr {
	if to := t.directTarget(pc); to != 0 {
		return to
	}
	var b [viaMemory]byte // call *disp(%rip)
	if t.Memory.ReadMemory(b[:], pc-viaMemory) != nil || b[0] != 0xff || b[1] != 0x15 {
		return 0
	}
	to, err := machine.ReadAddr(t.memory, t.Arch, pc+machine.Addr(int32(binary.LittleEndian.Uint32(b[2:]))))
	if err != nil {
		return 0
	}
	return to
}

// loaded reports whether the call that ends at pc is a call through a register that the instruction before it loads.
func (u *codeReader) loaded(pc machine.Addr) bool {
	for _, n := range []machine.Addr{longestLoaded, longestLoaded - 1} {
		b := make([]byte, n)
		if u.Memory.ReadMemory(b, pc-n) == nil && loadedTarget(b) != 0 {
			return true
		}
	}
	return false
}

// alwaysLoaded reports whether the call through a register that ends at pc is reached only from the instruction before it. LLVM merges the ends of
// blocks, so code that loads another function may jump to the call.
func (u *codeReader) alwaysLoaded(code *Code, pc machine.Addr) bool {
	const most = 1 << 20
	if code.Functions == nil {
		return false
	}
	start, end := code.Functions.Function(pc - 1)
	if end <= start || end-start > most || pc > end {
		return false
	}
	b := make([]byte, end-start)
	if u.Memory.ReadMemory(b, start) != nil {
		return false
	}
	of := isa.Of(u.Arch)
	for _, size := range []machine.Addr{2, 3} { // call *%rcx, call *%r11
		if at := int(pc-start) - int(size); at >= 0 && of.Length(b[at:]) == int(size) && of.IsCall(b[at:]) {
			if _, _, ok := of.LoadedTarget(b, start, at); ok {
				return true
			}
		}
	}
	return false
}

// longestLoaded is the length in bytes of the longest code that [loadedTarget] recognizes, with a prefix for r8 to r15.
const longestLoaded = 2 + 8 + 3

// loadedTarget does the same as directTarget for a movabs of the target to a register and a call through it, at the end of code. In the large code
// model, which JITs use, every call has this form.
func loadedTarget(code []byte) machine.Addr {
	const (
		rexW, rexB    = 0x48, 0x41
		load, number  = 0xb8, 8    // the register is in the low 3 bits of the opcode,
		call, through = 0xff, 0xd0 // and in those of the ModRM byte
	)
	for _, high := range []byte{0, 1} { // 1 for r8 to r15
		size := 2 + number + 2 + int(high)
		if len(code) < size {
			break
		}
		b := code[len(code)-size:]
		reg, tail := b[1]&7, b[2+number:]
		if high == 1 {
			if tail[0] != rexB {
				continue
			}
			tail = tail[1:]
		}
		if b[0] == rexW|high && b[1] == load|reg && tail[0] == call && tail[1] == through|reg {
			return machine.Addr(binary.LittleEndian.Uint64(b[2:]))
		}
	}
	return 0
}

// starts reports whether a function, and not a split-off part of a function, is known to start at an address. A split-off part usually begins
// with more on the stack than the return address. The check also rejects bytes that only look like a call.
func (u *codeReader) starts(addr machine.Addr) bool {
	code := u.Finder.Code(addr)
	if code.Functions == nil || !code.Functions.Entry(addr) {
		return false
	}
	s, err := code.cfi(addr)
	return err == nil && s != nil && s.Start == addr &&
		s.row.CFA == cfi.CFARule{Kind: cfi.CFARegister, Register: u.Arch.SP, Offset: int64(u.Arch.Pointer)}
}

// Stub returns the target of code that only jumps, or 0 for other code and for code that cannot be read. It recognizes a direct jmp, a jmp
// through a word in memory, and a jmp through a register that is loaded with a number. Each may follow an endbr64. It supports only x86-64.
func (u *Unwinder) Stub(addr machine.Addr) machine.Addr {
	if u.Arch != machine.AMD64 {
		return 0
	}
	var b [24]byte
	code := readable(u.Memory, b[:], addr)
	at := addr
	if len(code) >= 4 && [4]byte(code) == [4]byte{0xf3, 0x0f, 0x1e, 0xfa} {
		code, at = code[4:], at+4
	}
	if len(code) > 0 && code[0] == 0xf2 { // a bnd prefix
		code, at = code[1:], at+1
	}
	switch {
	case len(code) < 6:
	case code[0] == 0xe9:
		return at + 5 + machine.Addr(int32(binary.LittleEndian.Uint32(code[1:])))
	case code[0] == 0xff && code[1] == 0x25:
		slot := at + 6 + machine.Addr(int32(binary.LittleEndian.Uint32(code[2:])))
		if to, err := machine.ReadAddr(u.Memory, u.Arch, slot); err == nil {
			return to
		}
	default:
		return loadedJump(code)
	}
	return 0
}

// Stubs yields the target of the stub at an address, then the target of the stub there, and so on. It yields nothing if there is no stub.
func (u *Unwinder) Stubs(addr machine.Addr) iter.Seq[machine.Addr] {
	return func(yield func(machine.Addr) bool) {
		for range maxStubs {
			if addr = u.Stub(addr); addr == 0 || !yield(addr) {
				return
			}
		}
	}
}

// loadedJump returns the target of code that begins with a movabs to a register and a jump through it, or 0.
func loadedJump(code []byte) machine.Addr {
	mov, known := amd64.Decode(code)
	to, number := mov.Args[1].(x86asm.Imm)
	if !known || mov.Op != x86asm.MOV || !number {
		return 0
	}
	if jump, known := amd64.Decode(code[mov.Len:]); !known || jump.Op != x86asm.JMP || jump.Args[0] != mov.Args[0] {
		return 0
	}
	return machine.Addr(to)
}
