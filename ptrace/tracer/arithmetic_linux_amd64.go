package tracer

import (
	"math/bits"

	"golang.org/x/arch/x86/x86asm"
)

// The status flags (Intel SDM vol. 1, 3.4.3.1).
const (
	carry    = 1 << 0
	parity   = 1 << 2
	adjust   = 1 << 4
	zero     = 1 << 6
	sign     = 1 << 7
	overflow = 1 << 11
)

// arithmetic computes the result and the flags of an operation. Flags that are undefined after the operation (Intel SDM vol. 2) become zero.
func arithmetic(op x86asm.Op, a, b uint64, size int, flags uint64) (result, after uint64) {
	top := uint(8*size - 1)
	switch op {
	case x86asm.NOT:
		return ^a, flags
	case x86asm.SHL, x86asm.SHR, x86asm.SAR:
		return shift(op, a, b&uint64(top), top, flags)
	case x86asm.INC, x86asm.DEC: // these preserve the carry flag
		as := x86asm.ADD
		if op == x86asm.DEC {
			as = x86asm.SUB
		}
		result, after = arithmetic(as, a, 1, size, flags)
		return result, after&^carry | flags&carry
	case x86asm.NEG:
		return arithmetic(x86asm.SUB, 0, a, size, flags)
	}
	flags &^= carry | parity | adjust | zero | sign | overflow
	switch op {
	case x86asm.ADD:
		result = a + b
		if size == 4 {
			flags |= result >> 32 & 1 * carry
		} else if _, over := bits.Add64(a, b, 0); over != 0 {
			flags |= carry
		}
		flags |= (a ^ result) & (b ^ result) >> top & 1 * overflow
		flags |= (a ^ b ^ result) & adjust
	case x86asm.SUB, x86asm.CMP:
		result = a - b
		if a < b {
			flags |= carry
		}
		flags |= (a ^ b) & (a ^ result) >> top & 1 * overflow
		flags |= (a ^ b ^ result) & adjust
	case x86asm.AND, x86asm.TEST:
		result = a & b
	case x86asm.OR:
		result = a | b
	case x86asm.XOR:
		result = a ^ b
	}
	return sized(result, top, flags)
}

// shift computes a shift by a count that is less than the number of bits.
func shift(op x86asm.Op, a, by uint64, top uint, flags uint64) (result, after uint64) {
	if by == 0 {
		return a, flags
	}
	flags &^= carry | parity | adjust | zero | sign | overflow
	last := uint64(0) // the last bit that is shifted out
	switch op {
	case x86asm.SHL:
		result, last = a<<by, a>>(uint64(top)+1-by)&1
		if by == 1 && a>>top&1 != a>>(top-1)&1 {
			flags |= overflow
		}
	case x86asm.SHR:
		result, last = a>>by, a>>(by-1)&1
		if by == 1 && a>>top&1 != 0 {
			flags |= overflow
		}
	case x86asm.SAR:
		signed := int64(a<<(63-top)) >> (63 - top)
		result, last = uint64(signed>>by), uint64(signed>>(by-1))&1
	}
	if last != 0 {
		flags |= carry
	}
	return sized(result, top, flags)
}

// sized truncates a result to its size and adds the flags of its value.
func sized(result uint64, top uint, flags uint64) (uint64, uint64) {
	if top == 31 {
		result &= 1<<32 - 1
	}
	if result == 0 {
		flags |= zero
	}
	if result>>top&1 != 0 {
		flags |= sign
	}
	if bits.OnesCount8(uint8(result))%2 == 0 {
		flags |= parity
	}
	return result, flags
}

// conditions maps each conditional jump to a function that reports whether the jump is taken (Intel SDM vol. 1, appendix B).
var conditions = map[x86asm.Op]func(flags uint64) bool{
	x86asm.JO:  func(f uint64) bool { return f&overflow != 0 },
	x86asm.JNO: func(f uint64) bool { return f&overflow == 0 },
	x86asm.JB:  func(f uint64) bool { return f&carry != 0 },
	x86asm.JAE: func(f uint64) bool { return f&carry == 0 },
	x86asm.JE:  func(f uint64) bool { return f&zero != 0 },
	x86asm.JNE: func(f uint64) bool { return f&zero == 0 },
	x86asm.JBE: func(f uint64) bool { return f&(carry|zero) != 0 },
	x86asm.JA:  func(f uint64) bool { return f&(carry|zero) == 0 },
	x86asm.JS:  func(f uint64) bool { return f&sign != 0 },
	x86asm.JNS: func(f uint64) bool { return f&sign == 0 },
	x86asm.JP:  func(f uint64) bool { return f&parity != 0 },
	x86asm.JNP: func(f uint64) bool { return f&parity == 0 },
	x86asm.JL:  less,
	x86asm.JGE: func(f uint64) bool { return !less(f) },
	x86asm.JLE: func(f uint64) bool { return less(f) || f&zero != 0 },
	x86asm.JG:  func(f uint64) bool { return !less(f) && f&zero == 0 },
}

func less(f uint64) bool { return f&sign != 0 != (f&overflow != 0) }
