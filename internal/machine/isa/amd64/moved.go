package amd64

import (
	"errors"

	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// Moved is the state of a frame after some moves ([Moved.Do]): its registers and its part of the stack. [Moved.ReadMemory] returns the memory with the
// stores applied.
type Moved struct {
	Registers *machine.Registers // changed by Do
	Memory    machine.Memory     // the memory before the moves; not changed
	Stack     machine.Range      // the part of memory that Do may load from
	stored    []stored           // stores in order; a later one overrides an earlier one
}

// IsMove reports whether an instruction only moves values between registers and the frame, or changes one register and no memory. All other state stays
// the same.
func IsMove(inst x86asm.Inst) bool { return (&Moved{}).try(inst) != nil }

// IsComputed reports whether Do does not compute the result of an instruction that [IsMove] accepts.
func IsComputed(inst x86asm.Inst) bool { return (&Moved{}).move(inst) == nil }

// Do executes an instruction that [IsMove] accepts. A result that it does not compute becomes unavailable, with the reason.
func (m *Moved) Do(inst x86asm.Inst) { m.try(inst)() }

// stored is a store to the frame: its bytes, or the reason why they are unavailable.
type stored struct {
	at   machine.Addr
	size int
	b    []byte
	why  error
}

// try returns a function that executes a move or a computation, or nil for any other instruction.
func (m *Moved) try(inst x86asm.Inst) func() {
	if do := m.move(inst); do != nil {
		return do
	}
	return m.computed(inst)
}

// move returns a function that executes an instruction and computes its result, or nil.
func (m *Moved) move(inst x86asm.Inst) func() {
	to, from := inst.Args[0], inst.Args[1]
	switch inst.Op {
	case x86asm.MOV:
		return m.general(to, from)
	case x86asm.LEA:
		return m.sum(to, from)
	case x86asm.XOR:
		if dst, _, ok := wide(to); ok && to == from {
			return func() { m.put(dst, m.word(0), nil) }
		}
	case x86asm.MOVAPS, x86asm.MOVAPD, x86asm.MOVUPS, x86asm.MOVUPD, x86asm.MOVDQA, x86asm.MOVDQU:
		return m.vector(to, from, 16)
	case x86asm.MOVSD_XMM:
		return m.vector(to, from, 8)
	case x86asm.MOVSS:
		return m.vector(to, from, 4)
	}
	return nil
}

// computing lists instructions that change only flags and the register that is their first operand. [comparing] lists those that do not write a register.
var computing = map[x86asm.Op]bool{
	x86asm.MOV: true, x86asm.LEA: true, x86asm.MOVZX: true, x86asm.MOVSX: true, x86asm.MOVSXD: true, x86asm.ADD: true, x86asm.SUB: true, x86asm.AND: true, x86asm.OR: true,
	x86asm.XOR: true, x86asm.NEG: true, x86asm.NOT: true, x86asm.INC: true, x86asm.DEC: true, x86asm.SHL: true, x86asm.SHR: true, x86asm.SAR: true, x86asm.ROL: true, x86asm.ROR: true,
	x86asm.SETA: true, x86asm.SETAE: true, x86asm.SETB: true, x86asm.SETBE: true, x86asm.SETE: true, x86asm.SETG: true, x86asm.SETGE: true, x86asm.SETL: true, x86asm.SETLE: true,
	x86asm.SETNE: true, x86asm.SETNO: true, x86asm.SETNP: true, x86asm.SETNS: true, x86asm.SETO: true, x86asm.SETP: true, x86asm.SETS: true,
	x86asm.CMOVA: true, x86asm.CMOVAE: true, x86asm.CMOVB: true, x86asm.CMOVBE: true, x86asm.CMOVE: true, x86asm.CMOVG: true, x86asm.CMOVGE: true, x86asm.CMOVL: true, x86asm.CMOVLE: true,
	x86asm.CMOVNE: true, x86asm.CMOVNO: true, x86asm.CMOVNP: true, x86asm.CMOVNS: true, x86asm.CMOVO: true, x86asm.CMOVP: true, x86asm.CMOVS: true,
	x86asm.MOVAPS: true, x86asm.MOVAPD: true, x86asm.MOVUPS: true, x86asm.MOVUPD: true, x86asm.MOVDQA: true, x86asm.MOVDQU: true, x86asm.MOVSD_XMM: true, x86asm.MOVSS: true,
	x86asm.MOVD: true, x86asm.MOVQ: true, x86asm.XORPS: true, x86asm.XORPD: true, x86asm.PXOR: true, x86asm.CVTSI2SD: true, x86asm.CVTSI2SS: true, x86asm.CVTSS2SD: true, x86asm.CVTSD2SS: true,
	x86asm.ADDSD: true, x86asm.ADDSS: true, x86asm.SUBSD: true, x86asm.SUBSS: true, x86asm.MULSD: true, x86asm.MULSS: true,
}

// comparing lists instructions that change only flags.
var comparing = map[x86asm.Op]bool{x86asm.CMP: true, x86asm.TEST: true, x86asm.UCOMISD: true, x86asm.UCOMISS: true}

var errComputed = errors.New("the instructions between the call and the stackmap compute it, and have not run yet")

// computed returns a function that executes an instruction which changes one register and no memory: the register becomes unavailable. It returns nil for
// other instructions, and for changes of the stack and frame pointers, which locate the frame.
func (m *Moved) computed(inst x86asm.Inst) func() {
	imul := inst.Op == x86asm.IMUL && inst.Args[1] != nil // the form with one operand writes rax and rdx
	switch {
	case comparing[inst.Op]:
		return func() {}
	case !computing[inst.Op] && !imul:
		return nil
	}
	reg, isXMM := xmm(inst.Args[0])
	if !isXMM {
		r, isRegister := inst.Args[0].(x86asm.Reg)
		var known bool
		if reg, _, known = Register(r); !isRegister || !known || reg == machine.AMD64.SP || reg == machine.AMD64.FP {
			return nil
		}
	}
	return func() { m.put(reg, nil, errComputed) }
}

// general returns a function that executes a mov of 4 or 8 bytes to or from a general register, or nil.
func (m *Moved) general(to, from x86asm.Arg) func() {
	if dst, size, ok := wide(to); ok {
		if imm, ok := from.(x86asm.Imm); ok {
			v := uint64(imm)
			if size == 4 {
				v = uint64(uint32(v))
			}
			return func() { m.put(dst, m.word(v), nil) }
		}
		if src, _, ok := wide(from); ok {
			return func() { b, err := m.Registers.Bytes(src); m.put(dst, zeroExtended(b, size, 8), err) }
		}
		if at, ok := slotOf(from); ok {
			return func() { b, err := m.load(at, size); m.put(dst, zeroExtended(b, size, 8), err) }
		}
		return nil
	}
	if at, ok := slotOf(to); ok {
		if src, size, ok := wide(from); ok {
			return func() { b, err := m.Registers.Bytes(src); m.store(at, size, b, err) }
		}
	}
	return nil
}

// sum returns a function that executes a lea, or nil. LLVM uses lea to recompute a value that it did not save from one that it saved.
func (m *Moved) sum(to, from x86asm.Arg) func() {
	dst, size, ok := wide(to)
	of, isMemory := from.(x86asm.Mem)
	if !ok || !isMemory || of.Segment != 0 {
		return nil
	}
	var parts []machine.DWARFReg
	for _, r := range []x86asm.Reg{of.Base, of.Index} {
		if r == 0 {
			continue
		}
		reg, whole, ok := Register(r)
		if !ok || whole != 8 { // rip is not known here
			return nil
		}
		parts = append(parts, reg)
	}
	return func() {
		total := uint64(of.Disp)
		for k, reg := range parts {
			v, err := m.Registers.Uint(reg)
			if err != nil {
				m.put(dst, nil, err)
				return
			}
			if k == len(parts)-1 && of.Index != 0 {
				v *= uint64(of.Scale)
			}
			total += v
		}
		m.put(dst, zeroExtended(m.word(total), size, 8), nil)
	}
}

// vector returns a function that moves size bytes between xmm registers and the frame, or nil. Between two registers it accepts only moves of all 16 bytes.
func (m *Moved) vector(to, from x86asm.Arg, size int) func() {
	dst, isRegister := xmm(to)
	src, fromRegister := xmm(from)
	switch {
	case isRegister && fromRegister && size == 16:
		return func() { b, err := m.Registers.Bytes(src); m.put(dst, zeroExtended(b, 16, 16), err) }
	case isRegister && !fromRegister:
		if at, ok := slotOf(from); ok {
			return func() { b, err := m.load(at, size); m.put(dst, zeroExtended(b, size, 16), err) }
		}
	case fromRegister && !isRegister:
		if at, ok := slotOf(to); ok {
			return func() { b, err := m.Registers.Bytes(src); m.store(at, size, b, err) }
		}
	}
	return nil
}

// wide returns a general register that an instruction writes as a whole: all 8 bytes, or the lower 4, which clears the upper ones. It returns false for the
// stack and frame pointers, which locate the frame.
func wide(a x86asm.Arg) (reg machine.DWARFReg, size int, ok bool) {
	r, isReg := a.(x86asm.Reg)
	if !isReg {
		return 0, 0, false
	}
	reg, size, ok = Register(r)
	return reg, size, ok && size >= 4 && reg != machine.AMD64.SP && reg != machine.AMD64.FP
}

func xmm(a x86asm.Arg) (machine.DWARFReg, bool) {
	const xmm0 = 17 // DWARF's number (System V ABI, AMD64 supplement, figure 3.36)
	r, ok := a.(x86asm.Reg)
	return machine.DWARFReg(xmm0 + r - x86asm.X0), ok && r >= x86asm.X0 && r <= x86asm.X15
}

// slotOf returns the memory operand a, and true if its base is the stack or frame pointer and it has no index: it lies in the frame.
func slotOf(a x86asm.Arg) (x86asm.Mem, bool) {
	m, ok := a.(x86asm.Mem)
	return m, ok && m.Segment == 0 && m.Index == 0 && (m.Base == x86asm.RSP || m.Base == x86asm.RBP)
}

func (m *Moved) word(v uint64) []byte {
	b := make([]byte, 8)
	machine.AMD64.Order.PutUint64(b, v)
	return b
}

// zeroExtended returns the first size bytes of b, extended with zeros to whole bytes; nil if b has fewer.
func zeroExtended(b []byte, size, whole int) []byte {
	if len(b) < size {
		return nil
	}
	return append(append(make([]byte, 0, whole), b[:size]...), make([]byte, whole-size)...)
}

func (m *Moved) put(reg machine.DWARFReg, b []byte, err error) {
	switch {
	case err != nil:
		m.Registers.Forget(reg, err)
	case b == nil:
		m.Registers.Forget(reg, frame.Because(frame.PartlyAvailable))
	default:
		m.Registers.Set(reg, b)
	}
}

func (m *Moved) address(at x86asm.Mem) (machine.Addr, error) {
	reg, _, _ := Register(at.Base)
	base, err := m.Registers.Addr(reg)
	return base + machine.Addr(at.Disp), err
}

var errOutside = errors.New("the instructions after the call load it from outside of the frame")

func (m *Moved) load(at x86asm.Mem, size int) ([]byte, error) {
	addr, err := m.address(at)
	if err != nil {
		return nil, err
	}
	if !m.Stack.Contains(addr) {
		return nil, errOutside
	}
	b := make([]byte, size)
	return b, m.ReadMemory(b, addr)
}

func (m *Moved) store(at x86asm.Mem, size int, b []byte, err error) {
	addr, wrong := m.address(at)
	if wrong != nil {
		return // loads through this base register fail too
	}
	if err == nil && len(b) < size {
		err = errors.New("only a part of it is available")
	}
	s := stored{at: addr, size: size, why: err}
	if err == nil {
		s.b = b[:size]
	}
	m.stored = append(m.stored, s)
}

// ReadMemory implements [machine.Memory]: it applies the stores to the memory.
func (m *Moved) ReadMemory(p []byte, addr machine.Addr) error {
	if err := m.Memory.ReadMemory(p, addr); err != nil {
		return err
	}
	why := make([]error, len(p))
	for _, s := range m.stored {
		for k := range s.size {
			n := s.at + machine.Addr(k) - addr
			if uint64(n) >= uint64(len(p)) {
				continue
			}
			if why[n] = s.why; s.why == nil {
				p[n] = s.b[k]
			}
		}
	}
	for _, err := range why {
		if err != nil {
			return err
		}
	}
	return nil
}
