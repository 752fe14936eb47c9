package explain

import (
	"fmt"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
)

// Value is a value of a record and the steps by which it was read. The slot is named as at the record's site; As has its names in the function that
// resumes.
type Value struct {
	frame.Slot
	As      []string `json:"as,omitempty"`
	Where   string   `json:"where,omitempty"`   // the location as text
	Origin  string   `json:"origin,omitempty"`  // where the value of the register comes from
	Sum     string   `json:"sum,omitempty"`     // the computation of the address
	Raw     string   `json:"raw,omitempty"`     // the recorded bytes, in the order of memory
	Reading string   `json:"reading,omitempty"` // the interpretation of the bytes by the type
}

// values explains all values of the frame's record.
func (s standing) values() []Value {
	f, plain := s.frame, s.frame.Recorded(s.frame.Match())
	exit, _, _ := plain.ExitOf(f.View().Layouts())
	out := make([]Value, len(plain.Slots))
	for k, slot := range plain.Slots {
		out[k] = Value{Slot: slot}
		if exit != nil {
			for n, x := range exit.Slots {
				if x.Operand == k {
					final := f.Slots[n]
					final.Name = slot.Name
					out[k].Slot, out[k].As = final, append(out[k].As, x.Name)
				}
			}
		}
		s.read(&out[k])
	}
	return out
}

// read describes the bytes of a value, their source and their interpretation.
func (s standing) read(x *Value) {
	if x.Location == nil {
		return
	}
	f := s.frame
	arch := f.View().Target().Arch()
	r := f.Reader()
	l := recordedAt(x.Location)
	x.Where = inWords(x.Location)
	if x.Location.DWARF != nil {
		if x.Origin = s.origin(l.Reg); len(f.Match().Moves) > 0 && l.Kind == stackmap.Register {
			x.Origin = "its value after the instructions between the call and the stackmap"
		}
		if base, err := r.Registers.Addr(l.Reg); err == nil && l.Kind != stackmap.Register {
			x.Sum = fmt.Sprintf("%s %v %+d = %v", x.Location.Register, base, l.Offset, base+machine.Addr(int64(l.Offset)))
		} else if err != nil {
			x.Origin = "" // the slot's reason already explains the missing register
		}
	}
	raw, err := r.Bytes(l)
	if err != nil {
		return
	}
	x.Raw = isa.Spaced(raw)
	if x.Slot.Read() {
		x.Reading = reading(raw, x.Type, arch.BigEndian())
	}
}

// recordedAt returns the location as in the stack map.
func recordedAt(l *frame.Location) stackmap.Location {
	out := stackmap.Location{Size: uint16(l.Size), Offset: l.Offset}
	for _, k := range []stackmap.Kind{stackmap.Register, stackmap.Direct, stackmap.Indirect, stackmap.Constant, stackmap.ConstantIndex} {
		if k.String() == l.Kind {
			out.Kind = k
		}
	}
	if l.DWARF != nil {
		out.Reg = machine.DWARFReg(*l.DWARF)
	}
	return out
}

// inWords describes a location of a record as text.
func inWords(l *frame.Location) string {
	switch recordedAt(l).Kind {
	case stackmap.Register:
		if l.Offset != 0 {
			return fmt.Sprintf("%s of %s, from bit %d", bytesOf(l.Size), l.Register, l.Offset)
		}
		return fmt.Sprintf("%s of %s", bytesOf(l.Size), l.Register)
	case stackmap.Direct:
		return fmt.Sprintf("the address %s%+d itself, of an object on the stack", l.Register, l.Offset)
	case stackmap.Indirect:
		return fmt.Sprintf("%s of memory at %s%+d", bytesOf(l.Size), l.Register, l.Offset)
	case stackmap.ConstantIndex:
		return fmt.Sprintf("entry %d of the map's constants, 64 bits: %s", l.Offset, l.Constant)
	}
	return fmt.Sprintf("the constant %s in the record, sign-extended from 32 bits to 64", l.Constant)
}

func bytesOf(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

// reading describes which of the recorded bytes form a value of a type, and which the type ignores.
func reading(raw []byte, t frame.Type, big bool) string {
	if t.IsZero() {
		return fmt.Sprintf("the type is unknown: all %s, as one number", bytesOf(len(raw)))
	}
	size := t.Size()
	out := fmt.Sprintf("%s: all of it", t.Source)
	value := raw
	switch {
	case size < len(raw) && big:
		out, value = fmt.Sprintf("%s: the last %d of %s; the higher bytes are ignored", t.Source, size, bytesOf(len(raw))), raw[len(raw)-size:]
	case size < len(raw):
		out, value = fmt.Sprintf("%s: the first %d of %s; the higher bytes are ignored", t.Source, size, bytesOf(len(raw))), raw[:size]
	}
	if extra := 8*size - t.Bits; extra > 0 && extra < 8 && len(value) > 0 {
		top := value[len(value)-1]
		if big {
			top = value[0]
		}
		out += fmt.Sprintf("; of the byte %02x the low %d bits", top, 8-extra)
	}
	return out
}
