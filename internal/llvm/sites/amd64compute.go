package sites

import (
	"fmt"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// Versions of a function may have the same sites, ids, callees and constants, but record their values in another order. The code distinguishes them by its
// computations: for the same arguments, a location must hold the value of the module's operand. For chosen arguments this file computes both. It executes the
// straight-line code from the function's entry to the record, and evaluates the operands that are integer arithmetic on the parameters.

// computedAt returns the reason why the values at a record are not those of a site. It returns "" if they are, or if they cannot be computed.
func (ms *Modules) computedAt(of Namer, e RecordEntry, s *ir.Site) string {
	a, misfit := Align(s, e)
	if misfit != "" {
		return ""
	}
	if of.File() == nil {
		return ""
	}
	if arch, err := of.File().Arch(); err != nil || arch != machine.AMD64 {
		return ""
	}
	if why := tooNarrow(&a, e, s); why != "" {
		return why
	}
	if s.Instr.Block.Index != 0 || s.Func.CC != "" || strings.Contains(s.Func.Module.Triple, "windows") {
		return ""
	}
	code, why := ms.stretchOf(of.File(), e.Function.Addr)
	if why != "" || code.arch != machine.AMD64 {
		return ""
	}
	for seed := range uint64(2) {
		values, ok := argumentsOf(s.Func, seed)
		if !ok {
			return ""
		}
		m := newCalculation(s.Func, values)
		if !m.run(code.code, int(e.Record.Offset), StatepointLike(s)) {
			return ""
		}
		if why := m.storedAt(code, values, s); why != "" {
			return why
		}
		for k, v := range s.Live {
			l, located := a.Location(k)
			if !located {
				continue
			}
			width := widthOf(v.Type())
			want, known := values.of(v, 0)
			got, have := m.at(l)
			if width = min(width, 8*int(l.Size)); !known || !have || width == 0 {
				continue
			}
			if _, constant := v.(*ir.Const); !constant && (got^want)<<(64-width) != 0 {
				return fmt.Sprintf("the code computes another value for %s, live value %d of record %d, than line %d of %s", v.Ref(), k, uint64(e.Record.ID), s.Instr.Line, s.Func.Module.Name)
			}
		}
	}
	return ""
}

// tooNarrow returns the reason if a location has fewer bytes than the module's 64-bit integer, or "". A location with more bytes is no evidence,
// because LLVM records the whole register of a truncated value.
func tooNarrow(a *Alignment, e RecordEntry, s *ir.Site) string {
	for k, v := range s.Live {
		l, located := a.Location(k)
		if _, constant := v.(*ir.Const); constant || !located || l.Kind != stackmap.Register && l.Kind != stackmap.Indirect || !X86Triple(s.Func.Module.Triple) {
			continue
		}
		if t := v.Type(); t.Kind == ir.IntKind && t.Bits == 64 && l.Size > 0 && l.Size < 8 {
			return fmt.Sprintf("record %d has live value %d in %d bytes, but it is the %s %s in line %d of %s", uint64(e.Record.ID), k, l.Size, t, v.Ref(), s.Instr.Line, s.Func.Module.Name)
		}
	}
	return ""
}

// widthOf returns the width in bits of a value that can be computed, or 0.
func widthOf(t *ir.Type) int {
	switch {
	case t.Kind == ir.PointerKind:
		return 64
	case t.Kind == ir.IntKind && t.Bits <= 64:
		return t.Bits
	}
	return 0
}

// calculated holds the values of a module's function for chosen arguments.
type calculated map[ir.Value]uint64

// argumentsOf chooses small numbers as arguments, so that arithmetic on them does not overflow. ok is false unless all arguments are in general registers.
func argumentsOf(f *ir.Func, seed uint64) (values calculated, ok bool) {
	values = calculated{}
	if len(f.Params) > len(argumentRegisters) {
		return nil, false
	}
	for n, p := range f.Params {
		if widthOf(p.Typ) == 0 || p.Attrs.Apart || p.Attrs.InMemory() {
			return nil, false
		}
		values[p] = (uint64(n)*37 + 11 + seed*53) & (1<<min(widthOf(p.Typ), 8) - 1)
	}
	return values, true
}

// of evaluates a value that is integer arithmetic on the arguments.
func (c calculated) of(v ir.Value, depth int) (n uint64, known bool) {
	if n, known = c[v]; known || depth > maxNested {
		return n, known
	}
	width := widthOf(v.Type())
	if width == 0 {
		return 0, false
	}
	switch v := v.(type) {
	case *ir.Const:
		if v.Kind != ir.ConstInt || !v.Int.IsUint64() {
			return 0, false
		}
		n, known = v.Int.Uint64(), true
	case *ir.Instr:
		n, known = c.result(v, width, depth)
	}
	if known {
		n &= ^uint64(0) >> (64 - width)
		c[v] = n
	}
	return n, known
}

// result evaluates an instruction.
func (c calculated) result(i *ir.Instr, width, depth int) (uint64, bool) {
	if i.Block.Index != 0 || len(i.Args) == 0 || len(i.Args) > 2 {
		return 0, false
	}
	a, known := c.of(i.Args[0], depth+1)
	if !known {
		return 0, false
	}
	switch from := widthOf(i.Args[0].Type()); i.Op {
	case ir.OpTrunc, ir.OpZExt:
		return a, true
	case ir.OpSExt:
		return uint64(int64(a<<(64-from)) >> (64 - from)), true
	}
	if len(i.Args) != 2 {
		return 0, false
	}
	b, known := c.of(i.Args[1], depth+1)
	if !known {
		return 0, false
	}
	switch i.Op {
	case ir.OpAdd:
		return a + b, true
	case ir.OpSub:
		return a - b, true
	case ir.OpMul:
		return a * b, true
	case ir.OpAnd:
		return a & b, true
	case ir.OpOr:
		return a | b, true
	case ir.OpXor:
		return a ^ b, true
	case ir.OpShl:
		return a << b, b < uint64(width)
	case ir.OpLShr:
		return a >> b, b < uint64(width)
	case ir.OpAShr:
		return uint64(int64(a<<(64-width)) >> (64 - width) >> b), b < uint64(width)
	}
	return 0, false
}

// argumentRegisters lists the registers of integer arguments (System V ABI, AMD64 supplement, 3.2.3): rdi, rsi, rdx, rcx, r8 and r9.
var argumentRegisters = [6]machine.DWARFReg{5, 4, 1, 2, 8, 9}

// calculation executes code. It holds the known values of general registers and the stack; all other values are unknown.
type calculation struct {
	regs  map[machine.DWARFReg]uint64
	stack map[uint64]uint64 // words of up to 8 bytes, by address
	sizes map[uint64]int    // numbers of known bytes in these words

	stores      []codeStore // stores to variables
	offset, end int         // offsets of the current instruction and its end
}

func newCalculation(f *ir.Func, values calculated) *calculation {
	const entry = 0x7000_0000_0008 // stack pointer at function entry: 8 bytes past a multiple of 16
	m := &calculation{regs: map[machine.DWARFReg]uint64{machine.AMD64.SP: entry}, stack: map[uint64]uint64{}, sizes: map[uint64]int{}}
	for n, p := range f.Params {
		m.regs[argumentRegisters[n]] = values[p]
	}
	return m
}

// maxCalculated limits the instructions that are executed.
const maxCalculated = 1 << 12

// run executes the code up to an offset, or if atCall is set up to the call that ends there. It returns false if an instruction cannot be executed.
func (m *calculation) run(code []byte, to int, atCall bool) bool {
	at := 0
	for range maxCalculated {
		if at == to {
			return !atCall
		}
		if at > to || at >= len(code) {
			return false
		}
		inst, known := amd64.Decode(code[at:])
		if !known || inst.Len == 0 {
			return false
		}
		m.offset, m.end = at, at+inst.Len
		at = m.end
		if inst.Op == x86asm.CALL {
			if at == to && atCall {
				return true
			}
			for _, reg := range []machine.DWARFReg{0, 1, 2, 4, 5, 8, 9, 10, 11} { // caller-saved registers
				delete(m.regs, reg)
			}
			continue
		}
		if !amd64.IsFiller(inst) && !m.do(inst) {
			return false
		}
	}
	return false
}

// do executes one instruction, and returns false if it cannot.
func (m *calculation) do(inst x86asm.Inst) bool {
	a, b := inst.Args[0], inst.Args[1]
	switch inst.Op {
	case x86asm.CMP, x86asm.TEST:
		return true
	case x86asm.PUSH:
		n, known := m.get(a, 8)
		m.regs[machine.AMD64.SP] -= 8
		m.store(m.regs[machine.AMD64.SP], 8, n, known)
		return m.hasStack()
	case x86asm.POP:
		n, known := m.load(m.regs[machine.AMD64.SP], 8)
		m.regs[machine.AMD64.SP] += 8
		return m.put(a, n, known, 8) && m.hasStack()
	case x86asm.LEA:
		of, isMemory := b.(x86asm.Mem)
		if !isMemory {
			return false
		}
		n, known := m.address(of)
		return m.put(a, n, known, m.size(a, inst))
	}
	size := m.size(a, inst)
	x, known := m.get(a, size)
	y, also := m.get(b, size)
	if inst.Op == x86asm.IMUL && inst.Args[2] != nil {
		x, known = y, also
		y, also = m.get(inst.Args[2], size)
	}
	both := known && also
	switch inst.Op {
	case x86asm.MOV:
		return m.put(a, y, also, size)
	case x86asm.MOVSXD:
		n, known := m.get(b, 4)
		return m.put(a, uint64(int64(int32(n))), known, size)
	case x86asm.ADD:
		return m.put(a, x+y, both, size)
	case x86asm.SUB:
		if a == b {
			both, x, y = true, 0, 0
		}
		return m.put(a, x-y, both, size)
	case x86asm.XOR:
		if a == b {
			both, x, y = true, 0, 0
		}
		return m.put(a, x^y, both, size)
	case x86asm.AND:
		return m.put(a, x&y, both, size)
	case x86asm.OR:
		return m.put(a, x|y, both, size)
	case x86asm.INC:
		return m.put(a, x+1, known, size)
	case x86asm.DEC:
		return m.put(a, x-1, known, size)
	case x86asm.NEG:
		return m.put(a, -x, known, size)
	case x86asm.NOT:
		return m.put(a, ^x, known, size)
	case x86asm.SHL:
		return m.put(a, x<<(y&uint64(8*size-1)), both, size)
	case x86asm.SHR:
		return m.put(a, (x&(^uint64(0)>>(64-8*size)))>>(y&uint64(8*size-1)), both, size)
	case x86asm.IMUL:
		if b != nil {
			return m.put(a, x*y, both, size)
		}
	}
	return m.forget(inst)
}

// forget makes the results of an unsupported instruction unknown. It returns false if the instruction may jump or change the stack pointer.
func (m *calculation) forget(inst x86asm.Inst) bool {
	if _, jumps := inst.Args[0].(x86asm.Rel); jumps {
		return false
	}
	switch inst.Op {
	case x86asm.JMP, x86asm.RET, x86asm.LRET, x86asm.ENTER, x86asm.LEAVE, x86asm.SYSCALL, x86asm.UD2, x86asm.HLT, x86asm.XCHG, x86asm.XADD, x86asm.CMPXCHG:
		return false
	}
	if to, _, stores := amd64.Stores(inst); stores && to.Base != x86asm.RIP {
		m.forgetStack()
	}
	changed := amd64.Writes(inst)
	if changed.Has(machine.AMD64.SP) {
		return false
	}
	for reg := range machine.DWARFReg(16) {
		if changed.Has(reg) {
			delete(m.regs, reg)
		}
	}
	return true
}

func (m *calculation) hasStack() bool {
	_, known := m.regs[machine.AMD64.SP]
	return known
}

func (m *calculation) forgetStack() { clear(m.stack); clear(m.sizes) }

// size returns the size of an operand in bytes.
func (m *calculation) size(a x86asm.Arg, inst x86asm.Inst) int {
	if r, ok := a.(x86asm.Reg); ok {
		if _, size, ok := amd64.Register(r); ok {
			return size
		}
	}
	if _, ok := a.(x86asm.Mem); ok && inst.MemBytes > 0 {
		return min(inst.MemBytes, 8)
	}
	return 8
}

// get returns the value of an operand.
func (m *calculation) get(a x86asm.Arg, size int) (uint64, bool) {
	switch a := a.(type) {
	case x86asm.Imm:
		return uint64(a), true
	case x86asm.Reg:
		reg, whole, ok := amd64.Register(a)
		n, known := m.regs[reg]
		return n, ok && known && whole >= 4 && whole >= size
	case x86asm.Mem:
		at, known := m.address(a)
		if !known {
			return 0, false
		}
		return m.load(at, size)
	}
	return 0, false
}

// address returns the address of a memory operand.
func (m *calculation) address(of x86asm.Mem) (sum uint64, known bool) {
	if of.Segment != 0 {
		return 0, false
	}
	sum = uint64(of.Disp)
	for _, part := range []struct {
		r     x86asm.Reg
		scale uint64
	}{{of.Base, 1}, {of.Index, uint64(of.Scale)}} {
		if part.r == 0 {
			continue
		}
		reg, whole, ok := amd64.Register(part.r)
		n, has := m.regs[reg]
		if !ok || whole != 8 || !has {
			return 0, false
		}
		sum += n * part.scale
	}
	return sum, true
}

// put sets an operand, or makes it unknown. It returns false if the stack pointer becomes unknown.
func (m *calculation) put(a x86asm.Arg, n uint64, known bool, size int) bool {
	switch a := a.(type) {
	case x86asm.Reg:
		reg, whole, ok := amd64.Register(a)
		switch {
		case !ok:
			return true // a vector register, which a calculation does not hold
		case !known || whole < 4:
			delete(m.regs, reg)
		case whole == 4:
			m.regs[reg] = uint64(uint32(n)) // a 32-bit write clears the upper half
		default:
			m.regs[reg] = n
		}
		return m.hasStack()
	case x86asm.Mem:
		at, where := m.address(a)
		if !where {
			if a.Base != x86asm.RIP { // an address relative to rip is a variable and not in the frame
				m.forgetStack()
			} else if known {
				m.stores = append(m.stores, codeStore{m.offset, m.end, a.Disp, size, n})
			}
			return true
		}
		m.store(at, size, n, known)
		return true
	}
	return false
}

func (m *calculation) store(at uint64, size int, n uint64, known bool) {
	for near := at - 7; near != at+8; near++ {
		if near+uint64(m.sizes[near]) > at && near < at+uint64(size) {
			delete(m.stack, near)
			delete(m.sizes, near)
		}
	}
	if known {
		m.stack[at], m.sizes[at] = n, size
	}
}

func (m *calculation) load(at uint64, size int) (uint64, bool) {
	n, known := m.stack[at]
	return n & (^uint64(0) >> (64 - 8*size)), known && m.sizes[at] >= size
}

// at returns the value at a location.
func (m *calculation) at(l stackmap.Location) (uint64, bool) {
	n, known := m.regs[l.Reg]
	switch {
	case l.Kind == stackmap.Register && l.Reg < 16 && l.Offset == 0:
		return n, known
	case l.Kind == stackmap.Indirect && known && l.Size <= 8 && l.Size > 0:
		return m.load(n+uint64(int64(l.Offset)), int(l.Size))
	}
	return 0, false
}
