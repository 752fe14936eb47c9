package machine

import "encoding/binary"

// Calls describes the instructions that store a return address in [Arch.Link], for an architecture with few instruction lengths.
type Calls struct {
	Order binary.ByteOrder // byte order of instructions, which may differ from that of data
	Forms []CallForm
}

// CallForm is one form of a call instruction: the mask of its fixed bits and their values.
type CallForm struct {
	Size        int // bytes
	Mask, Value uint64
}

// EndsInCall reports whether code may end with a call. Where instructions have several lengths, the last bytes of a longer instruction may look like a
// shorter call. So false is certain, and true is not.
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

// Word returns an instruction of at most eight bytes as a number.
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

// nonzero returns one form for each bit of field, with that bit set. Together they match f with any register number other than 0 in field.
func nonzero(f CallForm, field uint64) []CallForm {
	var list []CallForm
	for bit := uint64(1); bit != 0; bit <<= 1 {
		if field&bit != 0 {
			list = append(list, CallForm{f.Size, f.Mask | bit, f.Value | bit})
		}
	}
	return list
}
