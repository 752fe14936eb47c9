package deopt

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

// Set returns a copy of the view in which a slot of a frame has another value, and that frame; resuming the frame shows the effect. v and the target
// do not change. A slot that is unavailable can be set. slot is its name in the module, and text is in the syntax of [ParseValue] for the slot's
// type.
func (v *View) Set(f *Frame, slot, text string) (*View, *Frame, error) {
	changed := *f
	changed.Slots, changed.Notes = slices.Clone(f.Slots), slices.Clone(f.Notes)
	set := false
	for _, b := range f.values { // several slots hold the value if the record has it twice, as for a gc pointer
		s := &changed.Slots[b.slot]
		if s.Name != slot {
			continue
		}
		raw, err := f.ParseSlot(s, text)
		if err != nil {
			return nil, nil, fmt.Errorf("%s of %s: %w", slot, f.Title(), err)
		}
		order := f.view.target.Arch().Order
		*s = frame.Slot{Index: s.Index, Name: s.Name, Type: s.Type, Value: s.Type.Format(raw, order), Hex: frame.HexBytes(raw, order), Status: frame.OK, Bytes: raw}
		set = true
	}
	if !set {
		return nil, nil, f.whyNotSet(slot)
	}
	return v.with(f, &changed, slot)
}

// with returns the view with another frame in place of f, in which a slot was set.
func (v *View) with(f, changed *Frame, slot string) (*View, *Frame, error) {
	changed.Notes = append(changed.Notes, slot+" has the value that was set, not the recorded one")
	frame.RelateDerived(changed.Slots)
	changed.fillVM()
	out := *v
	out.Threads = slices.Clone(v.Threads)
	for i := range out.Threads {
		if k := slices.Index(out.Threads[i].Frames, f); k >= 0 {
			out.Threads[i].Frames = slices.Clone(out.Threads[i].Frames)
			out.Threads[i].Frames[k] = changed
			return &out, changed, nil
		}
	}
	return nil, nil, fmt.Errorf("%s belongs to another view", f.Title())
}

// whyNotSet returns the reason why a slot cannot be given a value.
func (f *Frame) whyNotSet(slot string) error {
	at := slices.IndexFunc(f.Slots, func(s frame.Slot) bool { return s.Name == slot })
	switch {
	case f.Record == nil:
		return fmt.Errorf("%s has no stack map record%s", f.Title(), frame.Noted(f.Notes))
	case at < 0:
		return fmt.Errorf("%s has no slot %s", f.Title(), slot)
	case f.to == nil:
		return fmt.Errorf("%s of %s: no module says which value it is; give it with --ir", slot, f.Title())
	}
	return fmt.Errorf("%s of %s: the code that resumes does not take it from the record", slot, f.Title())
}

// ParseSlot parses a value of a slot's type, in the syntax of [ParseValue]. The bytes have the form of [frame.Slot].Bytes. For a slot without a type
// the value is a number of the slot's size.
func (f *Frame) ParseSlot(s *frame.Slot, text string) ([]byte, error) {
	t, size := interp.IRType(s.Type), s.Type.Size()
	if s.Type.IsZero() {
		size = len(s.Bytes)
		t = &ir.Type{Kind: ir.IntKind, Bits: 8 * size}
	}
	if t == nil || size == 0 {
		return nil, fmt.Errorf("a value of type %s cannot be given: only integers, pointers and floats are supported", s.Type.Source)
	}
	v, err := ParseValue(t, text)
	if err != nil {
		return nil, err
	}
	n, ok := v.Big()
	bits := 8 * size
	if !s.Type.IsZero() {
		bits = s.Type.Bits
	}
	if !ok || n.BitLen() > bits { // ParseValue permits 64 bits for a pointer; the target's may be narrower
		return nil, fmt.Errorf("%q is not a value of type %s", text, s.Type.Source)
	}
	return fixed(n, bits, size, f.view.target.Arch().Order), nil
}

// fixed encodes the low bits of a number in size bytes; negative numbers are in two's complement.
func fixed(n *big.Int, bits, size int, order binary.ByteOrder) []byte {
	modulus := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	raw := new(big.Int).Mod(n, modulus).FillBytes(make([]byte, size))
	if order != binary.ByteOrder(binary.BigEndian) {
		slices.Reverse(raw)
	}
	return raw
}

// Masked returns the bytes of a slot with the bits above its type's width cleared, because these bits may be garbage.
func (f *Frame) Masked(s *frame.Slot) []byte {
	if s.Type.IsZero() {
		return s.Bytes
	}
	return mask(s.Bytes, s.Type, f.view.target.Arch())
}
