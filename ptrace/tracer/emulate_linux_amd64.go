package tracer

import (
	"bytes"
	"encoding/binary"
	"strings"

	"golang.org/x/arch/x86/x86asm"
	"golang.org/x/sys/unix"

	"example.com/reframe/internal/machine/isa/amd64"
	"example.com/reframe/ptrace/system"
)

// emulated describes the emulation of the instruction under a breakpoint.
type emulated struct {
	code    []byte    // the expected bytes: the breakpoint and the rest of the instruction
	emulate emulation // nil if the instruction must be executed
}

// shadowStack reports whether a process has a shadow stack, which keeps a second copy of return addresses (Linux, "Control-flow Enforcement
// Technology (CET) Shadow Stack").
func shadowStack(pid int) bool {
	return strings.Contains(system.StatusField(pid, "x86_Thread_features"), "shstk")
}

// decode determines whether the instruction under a breakpoint can be emulated.
func (b *breakpoint) decode(memory memory, shadowed bool) {
	var code [amd64.Longest]byte
	n, err := memory.read(code[:], b.Addr)
	if err != nil || n == 0 {
		return
	}
	b.code, b.emulate = nil, nil
	code[0] = b.original[0]
	if length := amd64.Length(code[:n]); length > 0 {
		b.code, b.emulate = append([]byte{Trap[0]}, code[1:length]...), emulationOf(code[:length])
		if inst, known := amd64.Decode(code[:length]); known && amd64.IsCall(inst) && shadowed {
			b.emulate = nil // a call also pushes the return address on the shadow stack, which the tracer cannot emulate
		}
	}
}

// emulates emulates the instruction under a breakpoint, and reports whether it did. It does not if the target has overwritten the instruction.
func (s *server) emulates(t *thread, b *breakpoint, regs *General) bool {
	if b.emulate == nil {
		return false
	}
	var code [amd64.Longest]byte
	now := code[:len(b.code)]
	if n, err := s.memory.read(now, b.Addr); err != nil || n < len(now) {
		return false
	}
	if !bytes.Equal(now, b.code) {
		if now[0] == Trap[0] {
			s.updateVersion(b)
		}
		return false
	}
	s.acting = t.tid
	return b.emulate(s, regs)
}

// emulation applies the effect of the instruction under a breakpoint to the registers and the stack of a thread, and reports whether it did. If not,
// it has changed nothing, and the instruction must be executed. With an emulation the breakpoint stays in the code, no other thread must be stopped,
// and the thread stops once instead of twice.
type emulation func(s *server, r *General) bool

// emulationOf returns the emulation of the instruction that code starts with, or nil. It supports only instructions that compilers often put at a
// site or at the start of a function, and that can be emulated exactly.
func emulationOf(code []byte) emulation {
	inst, known := amd64.Decode(code)
	if !known || inst.Len == 0 || inst.AddrSize != 64 && inst.Op != x86asm.NOP || prefixed(inst) {
		return nil
	}
	next := uint64(inst.Len)
	switch inst.Op {
	case x86asm.NOP:
		return func(_ *server, r *General) bool {
			r.Rip += next
			return true
		}
	case x86asm.CALL, x86asm.JMP:
		return branch(inst)
	case x86asm.POP:
		reg, ok := inst.Args[0].(x86asm.Reg)
		if !ok || !addresses(reg) {
			return nil
		}
		return func(s *server, r *General) bool {
			top := operand{size: 8, memory: x86asm.Mem{Base: x86asm.RSP}}
			v, ok := top.get(s, r, 0)
			if !ok {
				return false
			}
			r.Rsp += 8
			*general(r, reg) = v // reg may be the stack pointer
			r.Rip += next
			return true
		}
	case x86asm.PUSH:
		reg, ok := inst.Args[0].(x86asm.Reg)
		if !ok || !addresses(reg) {
			return nil
		}
		return func(s *server, r *General) bool {
			if !s.push(r, *general(r, reg)) {
				return false
			}
			r.Rip += next
			return true
		}
	case x86asm.MOV, x86asm.LEA, x86asm.ADD, x86asm.SUB, x86asm.AND, x86asm.OR, x86asm.XOR, x86asm.CMP, x86asm.TEST,
		x86asm.SHL, x86asm.SHR, x86asm.SAR, x86asm.INC, x86asm.DEC, x86asm.NEG, x86asm.NOT:
		return binaryEmulation(inst)
	case x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD:
		return extension(inst)
	}
	if holds, ok := conditions[inst.Op]; ok {
		by, ok := inst.Args[0].(x86asm.Rel)
		if !ok {
			return nil
		}
		return func(_ *server, r *General) bool {
			if r.Rip += next; holds(r.Eflags) {
				r.Rip += uint64(int64(by))
			}
			return true
		}
	}
	return nil
}

// branch returns the emulation of a call or jump that is direct or through a register.
func branch(inst x86asm.Inst) emulation {
	by, direct := inst.Args[0].(x86asm.Rel)
	reg, ok := inst.Args[0].(x86asm.Reg)
	if !direct && (!ok || !addresses(reg)) {
		return nil
	}
	return func(s *server, r *General) bool {
		from := r.Rip + uint64(inst.Len)
		to := from + uint64(int64(by))
		if !direct {
			to = *general(r, reg)
		}
		if to >= 1<<47 { // for such an address the processor faults at the branch instruction itself
			return false
		}
		if inst.Op == x86asm.CALL && !s.push(r, from) {
			return false
		}
		r.Rip = to
		return true
	}
}

// prefixed reports whether an instruction has a prefix that changes its effect: a segment, lock or repeat prefix, or another operand or address size.
func prefixed(inst x86asm.Inst) bool {
	if inst.Op == x86asm.NOP {
		return false
	}
	for _, p := range inst.Prefix {
		if p != 0 && !p.IsREX() {
			return true
		}
	}
	return false
}

// binaryEmulation returns the emulation of an instruction with one or two operands of 4 or 8 bytes.
func binaryEmulation(inst x86asm.Inst) emulation {
	size := inst.DataSize / 8
	if size != 4 && size != 8 {
		return nil
	}
	to, ok := operandOf(inst.Args[0], inst, size)
	from, ok2 := operand{immediate: true, size: size}, true // for an instruction with one operand
	if inst.Args[1] != nil {
		from, ok2 = operandOf(inst.Args[1], inst, size)
	}
	shifts := inst.Op == x86asm.SHL || inst.Op == x86asm.SHR || inst.Op == x86asm.SAR
	if !ok || !ok2 || to.immediate || shifts && !from.immediate {
		return nil
	}
	return func(s *server, r *General) bool {
		after := *r
		after.Rip += uint64(inst.Len)
		if inst.Op == x86asm.LEA {
			to.set(s, r, &after, from.address(r, after.Rip))
			*r = after
			return true
		}
		b, ok := from.get(s, r, after.Rip)
		if !ok {
			return false
		}
		result, store := b, true
		if inst.Op != x86asm.MOV {
			a, ok := to.get(s, r, after.Rip)
			if !ok {
				return false
			}
			result, after.Eflags = arithmetic(inst.Op, a, b, size, r.Eflags)
			store = inst.Op != x86asm.CMP && inst.Op != x86asm.TEST
		}
		if store && !to.set(s, r, &after, result) {
			return false
		}
		*r = after
		return true
	}
}

// extension returns the emulation of a move of 1, 2 or 4 bytes into a register of 4 or 8 bytes.
func extension(inst x86asm.Inst) emulation {
	to, ok := operandOf(inst.Args[0], inst, inst.DataSize/8)
	if !ok || to.reg == 0 {
		return nil
	}
	from := operand{}
	switch a := inst.Args[1].(type) {
	case x86asm.Reg:
		switch {
		case a >= x86asm.AL && a <= x86asm.BL:
			from.reg, from.size = a-x86asm.AL+x86asm.RAX, 1
		case a >= x86asm.SPB && a <= x86asm.R15B:
			from.reg, from.size = a-x86asm.SPB+x86asm.RSP, 1
		case a >= x86asm.AX && a <= x86asm.R15W:
			from.reg, from.size = a-x86asm.AX+x86asm.RAX, 2
		case a >= x86asm.EAX && a <= x86asm.R15L:
			from.reg, from.size = a-x86asm.EAX+x86asm.RAX, 4
		default:
			return nil
		}
	case x86asm.Mem:
		from.size = inst.MemBytes
		if from.memory = a; from.size == 0 || from.size > 4 || !addressable(a) {
			return nil
		}
	default:
		return nil
	}
	return func(s *server, r *General) bool {
		after := *r
		after.Rip += uint64(inst.Len)
		v, ok := from.get(s, r, after.Rip)
		if !ok {
			return false
		}
		if inst.Op != x86asm.MOVZX {
			shift := uint(64 - 8*from.size)
			v = uint64(int64(v<<shift) >> shift)
		}
		if !to.set(s, r, &after, v) {
			return false
		}
		*r = after
		return true
	}
}

// operand is an operand of an instruction.
type operand struct {
	size      int
	reg       x86asm.Reg // the 8-byte register that contains it, or 0
	memory    x86asm.Mem
	immediate bool
	value     uint64
}

func operandOf(arg x86asm.Arg, inst x86asm.Inst, size int) (o operand, ok bool) {
	o.size = size
	switch a := arg.(type) {
	case x86asm.Reg:
		switch {
		case size == 8 && a >= x86asm.RAX && a <= x86asm.R15:
			o.reg = a
		case size == 4 && a >= x86asm.EAX && a <= x86asm.R15L:
			o.reg = a - x86asm.EAX + x86asm.RAX
		default:
			return o, false
		}
		return o, true
	case x86asm.Mem:
		o.memory = a
		return o, addressable(a) && (inst.Op == x86asm.LEA || inst.MemBytes == size)
	case x86asm.Imm:
		o.immediate, o.value = true, uint64(int64(a))
		return o, true
	}
	return o, false
}

func addressable(m x86asm.Mem) bool {
	return m.Segment == 0 && (addresses(m.Base) || m.Base == x86asm.RIP) && (m.Index == 0 || addresses(m.Index))
}

func addresses(r x86asm.Reg) bool { return r >= x86asm.RAX && r <= x86asm.R15 }

// address returns the address of a memory operand; next is the address after the instruction.
func (o *operand) address(r *General, next uint64) uint64 {
	addr := uint64(o.memory.Disp)
	if o.memory.Base == x86asm.RIP {
		addr += next
	} else {
		addr += *general(r, o.memory.Base)
	}
	if o.memory.Index != 0 {
		addr += *general(r, o.memory.Index) * uint64(o.memory.Scale)
	}
	return addr
}

// stackReach is the distance above the stack pointer within which memory counts as the thread's own. Other threads may access memory elsewhere; the
// processor's loads and stores there are atomic, and a copy is not.
const (
	stackReach = 64 << 10
	pageSize   = 4096
)

// ownStack reports whether memory is in the used part of the thread's stack. Other memory is excluded because the tracer can write where the target
// cannot: the page below that of the stack pointer may be a guard page, which detects an overflow.
func ownStack(r *General, addr uint64) bool { return addr-r.Rsp&^(pageSize-1) < stackReach }

func (o *operand) get(s *server, r *General, next uint64) (v uint64, ok bool) {
	switch {
	case o.immediate:
		v = o.value
	case o.reg != 0:
		v = *general(r, o.reg)
	default:
		addr := o.address(r, next)
		if !ownStack(r, addr) {
			return 0, false
		}
		if v, ok = s.load(addr, o.size); !ok {
			return 0, false
		}
	}
	if o.size < 8 {
		v &= 1<<(8*o.size) - 1
	}
	return v, true
}

// set stores a result into the operand: into after, which holds the registers after the instruction, or into memory.
func (o *operand) set(s *server, r, after *General, v uint64) bool {
	if o.size == 4 {
		v &= 1<<32 - 1 // writing a 4-byte register also clears its upper half
	}
	if o.reg != 0 {
		*general(after, o.reg) = v
		return true
	}
	addr := o.address(r, after.Rip)
	return ownStack(r, addr) && s.store(addr, v, o.size)
}

// store writes memory of the target by process_vm_writev(2), and load reads it by process_vm_readv(2). Both respect the protection of pages: if they
// fail, the instruction itself must run and fault. /proc/PID/mem ignores protection and does not wait for a page that userfaultfd must provide. If it
// cannot read the page, or userfaultfd write-protects the page, the instruction must run and wait itself.
func (s *server) store(addr, v uint64, size int) bool {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	local := [1]unix.Iovec{{Base: &b[0], Len: uint64(size)}}
	remote := [1]unix.RemoteIovec{{Base: uintptr(addr), Len: size}}
	if !s.present(addr) || s.memory.writeProtected(addr) {
		return false
	}
	n, err := unix.ProcessVMWritev(s.acting, local[:], remote[:], 0)
	return err == nil && n == size
}

func (s *server) load(addr uint64, size int) (v uint64, ok bool) {
	var b [8]byte
	local := [1]unix.Iovec{{Base: &b[0], Len: uint64(size)}}
	remote := [1]unix.RemoteIovec{{Base: uintptr(addr), Len: size}}
	if !s.present(addr) {
		return 0, false
	}
	n, err := unix.ProcessVMReadv(s.acting, local[:], remote[:], 0)
	return binary.LittleEndian.Uint64(b[:]), err == nil && n == size
}

// present reports whether the page of an address can be read without waiting for userfaultfd.
func (s *server) present(addr uint64) bool {
	var b [1]byte
	n, err := s.memory.read(b[:], addr)
	return err == nil && n == 1
}

// writeProtected reports whether userfaultfd write-protects the page of an address, so that a store would wait until the protection is removed. It
// returns true if the kernel does not report this. The page must be in memory (Documentation/admin-guide/mm/pagemap.rst of Linux, bit 57).
func (m memory) writeProtected(addr uint64) bool {
	const protected = 1 << 57
	var entry [8]byte
	_, err := m.pages.ReadAt(entry[:], int64(addr/pageSize*8))
	return err != nil || binary.NativeEndian.Uint64(entry[:])&protected != 0
}

// push pushes a word on the thread's stack, and reports whether it did.
func (s *server) push(r *General, v uint64) bool {
	if r.Rsp%pageSize < 8 || !s.store(r.Rsp-8, v, 8) { // the word would be on another page
		return false
	}
	r.Rsp -= 8
	return true
}

// general returns a pointer to an 8-byte general register.
func general(r *General, reg x86asm.Reg) *uint64 {
	return [...]*uint64{&r.Rax, &r.Rcx, &r.Rdx, &r.Rbx, &r.Rsp, &r.Rbp, &r.Rsi, &r.Rdi,
		&r.R8, &r.R9, &r.R10, &r.R11, &r.R12, &r.R13, &r.R14, &r.R15}[reg-x86asm.RAX]
}
