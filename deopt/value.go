package deopt

import (
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
)

// Reader reads the values of one record in one frame.
type Reader struct {
	Arch      *machine.Arch
	Memory    machine.Memory
	Registers *machine.Registers
	Map       *stackmap.Map // holds the large constants
}

// Bytes returns the bytes of the value at l in its recorded size and the target's byte order, or the reason why they are unavailable.
func (r *Reader) Bytes(l stackmap.Location) ([]byte, error) {
	switch l.Kind {
	case stackmap.Register:
		return r.register(l)
	case stackmap.Direct, stackmap.Indirect:
		base, err := r.Registers.Addr(l.Reg)
		if err != nil {
			return nil, err
		}
		addr := base + machine.Addr(int64(l.Offset))
		if l.Kind == stackmap.Direct {
			return r.uint(uint64(addr)), nil
		}
		b := make([]byte, l.Size)
		if len(b) == 0 {
			return nil, frame.Because(frame.RecordedEmpty)
		}
		if err := r.Memory.ReadMemory(b, addr); err != nil {
			return nil, err
		}
		return b, nil
	}
	v, err := r.Map.Constant(l)
	return r.uint(v), err
}

// register reads a Register location. Its offset is in bits from the least significant one: LLVM records ah as rax with offset 8, and the low 32 bits
// of a big-endian machine's r12 with offset 0.
func (r *Reader) register(l stackmap.Location) ([]byte, error) {
	if why := r.Arch.Unread[l.Reg]; why != "" {
		return nil, frame.Because(frame.ReadAmbiguous, why)
	}
	b, err := r.Registers.Bytes(l.Reg)
	if err != nil {
		return nil, err
	}
	name := r.Arch.RegisterName(l.Reg)
	if l.Offset < 0 || l.Offset%8 != 0 || int(l.Offset)/8 >= len(b) {
		return nil, frame.Because(frame.RecordedBit, l.Offset, name, 8*len(b))
	}
	skip, size := int(l.Offset)/8, int(l.Size)
	if size == 0 || size > len(b)-skip {
		// Return an error instead of truncating a value that is recorded wider than the register.
		return nil, frame.Because(frame.RecordedTooWide, l.Size, name, len(b)-skip)
	}
	if r.Arch.BigEndian() {
		return b[len(b)-skip-size:][:size], nil
	}
	return b[skip:][:size], nil
}

func (r *Reader) uint(v uint64) []byte {
	b := make([]byte, 8)
	r.Arch.Order.PutUint64(b, v)
	return b
}

// fit truncates raw to the size of a value of type t. The bytes above are garbage: a truncated i32 keeps the whole register, and a double in a
// register is recorded with the register's 16 bytes.
func fit(raw []byte, t frame.Type, l stackmap.Location, arch *machine.Arch) ([]byte, error) {
	size := t.Size()
	constant := l.Kind == stackmap.Constant || l.Kind == stackmap.ConstantIndex
	if arch.Single != nil && t.Kind == frame.Float && size == 4 && l.Kind == stackmap.Register {
		if b, is := arch.Single(l.Reg, raw); is {
			return b, nil
		}
	}
	switch {
	case t.IsZero() || size == len(raw):
		return raw, nil
	case size < len(raw):
		if arch.BigEndian() {
			return raw[len(raw)-size:], nil
		}
		return raw[:size], nil
	case constant:
		return nil, frame.Because(frame.ConstantTooShort, t.Bits)
	}
	return nil, frame.Because(frame.RecordedTooShort, len(raw), t.Source, size)
}

// slot reads one recorded value. The type may be zero.
func (r *Reader) slot(index int, name string, t frame.Type, l stackmap.Location) frame.Slot {
	s := frame.Slot{Index: index, Name: name, Type: t, Status: frame.OK, Location: new(stackmap.LocationOf(r.Map, l, r.Arch))}
	raw, err := r.Bytes(l)
	r.value(&s, raw, err, l)
	return s
}

// value sets a slot to the bytes read from a location, or to the reason why they were not read.
func (r *Reader) value(s *frame.Slot, raw []byte, err error, l stackmap.Location) {
	t := s.Type
	if err == nil {
		raw, err = fit(raw, t, l, r.Arch)
	}
	if err != nil {
		s.Clear(frame.Missing, err)
		return
	}
	s.Bytes = mask(raw, t, r.Arch)
	s.Hex = frame.HexBytes(s.Bytes, r.Arch.Order)
	s.Value = t.Format(s.Bytes, r.Arch.Order)
}

// mask clears the bits of the last byte above the type's width: bits 1 to 7 of an i1 may hold anything.
func mask(raw []byte, t frame.Type, arch *machine.Arch) []byte {
	if extra := 8*len(raw) - t.Bits; !t.IsZero() && extra > 0 && extra < 8 {
		raw = append([]byte(nil), raw...)
		top := len(raw) - 1
		if arch.BigEndian() {
			top = 0
		}
		raw[top] &= 0xff >> extra
	}
	return raw
}
