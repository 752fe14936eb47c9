package cfi

import (
	"slices"

	"example.com/reframe/internal/machine"
)

// RegisterPlus returns the expression for a register plus an offset, for a row that is not read from a section.
func RegisterPlus(reg machine.DWARFReg, offset int64) Expression {
	code := appendULEB([]byte{opBregx}, uint64(reg))
	return Expression{&operations{section: "a row made here", code: appendSLEB(code, offset)}}
}

// Deref returns the expression for the eight bytes of memory at e.
func (e Expression) Deref() Expression { return e.then(opDeref) }

// Plus returns the expression for e plus n.
func (e Expression) Plus(n int64) Expression {
	return e.then(append(appendSLEB([]byte{opConsts}, n), opPlus)...)
}

// then returns the expression with operations appended.
func (e Expression) then(code ...byte) Expression {
	ops := *e.ops
	ops.code = slices.Concat(ops.code, code)
	return Expression{&ops}
}

func appendULEB(b []byte, v uint64) []byte {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

func appendSLEB(b []byte, v int64) []byte {
	for ; v < -0x40 || v >= 0x40; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v)&0x7f)
}
