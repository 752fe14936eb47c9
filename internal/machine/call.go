package machine

import "encoding/binary"

// Calls are the instructions that call, of an architecture whose instructions have few
// lengths: those that leave the return address in [Arch.Link].
type Calls struct {
	Order binary.ByteOrder // that of instructions, which need not be that of data
	Forms []CallForm
}

// CallForm is one form of a call instruction: a mask of its fixed bits, and their values.
type CallForm struct {
	Size        int // bytes
	Mask, Value uint64
}

// EndsInCall reports whether the last instruction in code is a call. The instructions of some architectures have several lengths, and the last
// bytes of a longer one may look like a shorter one: false means that no call ends there, true that one may.
//
// It returns false for an architecture without Calls, such as x86-64, whose instructions have no fixed form.
func (a *Arch) EndsInCall(code []byte) bool {
	for _, f := range a.Calls.Forms {
		if len(code) >= f.Size && a.Calls.Word(code[len(code)-f.Size:])&f.Mask == f.Value {
			return true
		}
	}
	return false
}

// Word is an instruction of at most eight bytes as a number.
func (c *Calls) Word(code []byte) uint64 {
	var v uint64
	for i, b := range code {
		if c.Order == binary.ByteOrder(binary.BigEndian) {
			v = v<<8 | uint64(b)
		} else {
			v |= uint64(b) << (8 * i)
		}
	}
	return v
}

// nonzero returns the forms that f has when one of the bits of field is set: a register
// number other than 0.
func nonzero(f CallForm, field uint64) []CallForm {
	var list []CallForm
	for bit := uint64(1); bit != 0; bit <<= 1 {
		if field&bit != 0 {
			list = append(list, CallForm{f.Size, f.Mask | bit, f.Value | bit})
		}
	}
	return list
}
