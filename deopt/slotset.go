package deopt

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"

	"reframe/deopt/frame"
	"reframe/deopt/ir"
)

// Set returns a view in which a frame of v has another value in a slot, and that frame: what would come of it is seen by
// resuming it. v and the target stay as they are. A slot that is unavailable has a value then. slot is the
// name that the module has for it, and text what [ParseValue] reads, of the slot's type.
func (v *View) Set(f *Frame, slot, text string) (*View, *Frame, error) {
	changed := *f
	changed.Slots, changed.Notes = slices.Clone(f.Slots), slices.Clone(f.Notes)
	set := false
	for _, b := range f.values { // several where the record has the value twice, as a gc pointer is
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
	changed.Notes = append(changed.Notes, slot+" has the value that was set, not the one that was there")
	out := *v
	out.Threads = slices.Clone(v.Threads)
	for i := range out.Threads {
		if k := slices.Index(out.Threads[i].Frames, f); k >= 0 {
			out.Threads[i].Frames = slices.Clone(out.Threads[i].Frames)
			out.Threads[i].Frames[k] = &changed
			return &out, &changed, nil
		}
	}
	return nil, nil, fmt.Errorf("%s is not of this view", f.Title())
}

// whyNotSet says why a slot cannot be given a value.
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

// ParseSlot reads a value of a slot's type, as [ParseValue] does: the bytes are what [frame.Slot].Bytes would be. Of a slot
// without a type it is a number of as many bytes as the slot has.
func (f *Frame) ParseSlot(s *frame.Slot, text string) ([]byte, error) {
	t, size := irType(s.Type), s.Type.Size()
	if s.Type.IsZero() {
		size = len(s.Bytes)
		t = &ir.Type{Kind: ir.IntKind, Bits: 8 * size}
	}
	if t == nil || size == 0 {
		return nil, fmt.Errorf("a value of type %s cannot be given: only integers, pointers and floats can", s.Type.Source)
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
	if !ok || n.BitLen() > bits { // of a pointer that is narrower than those of x86-64
		return nil, fmt.Errorf("%q is no value of type %s", text, s.Type.Source)
	}
	return fixed(n, bits, size, f.view.target.Arch().Order), nil
}

// fixed spells a number in so many bytes, of which it has so many bits: negative ones in two's complement.
func fixed(n *big.Int, bits, size int, order binary.ByteOrder) []byte {
	modulus := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	raw := new(big.Int).Mod(n, modulus).FillBytes(make([]byte, size))
	if order != binary.ByteOrder(binary.BigEndian) {
		slices.Reverse(raw)
	}
	return raw
}

// irType is the type of the IR that a slot's is, or nil where that is none of which a value can be given.
func irType(t frame.Type) *ir.Type {
	switch t.Kind {
	case frame.Int:
		return &ir.Type{Kind: ir.IntKind, Bits: t.Bits}
	case frame.Pointer:
		return ir.Ptr
	case frame.BFloat:
		return &ir.Type{Kind: ir.BFloatKind}
	case frame.Float:
		if kind, known := floatKinds[t.Bits]; known {
			return &ir.Type{Kind: kind}
		}
	}
	return nil
}

var floatKinds = map[int]ir.TypeKind{16: ir.HalfKind, 32: ir.FloatKind, 64: ir.DoubleKind, 80: ir.X86FP80Kind, 128: ir.FP128Kind}

// SameValue says whether a text spells a result: as it is spelled there, or as [ParseValue] reads it of the result's type.
func SameValue(r *frame.Result, text string) (bool, error) {
	if text == r.Value {
		return true, nil
	}
	t := scalar(r.Type)
	if t == nil {
		return false, nil // of an aggregate or vector there is one spelling
	}
	v, err := ParseValue(t, text)
	switch {
	case err != nil:
		return false, err
	case r.Value == "nan" && v.Format() == r.Value: // spelled by its bits
		return false, fmt.Errorf("%s: which nan it is, a result does not say", text)
	}
	return v.Format() == r.Value, nil
}

// scalar is the type of that spelling, or nil where it is none of which a value can be given.
func scalar(spelling string) *ir.Type {
	for _, t := range []*ir.Type{ir.Ptr, {Kind: ir.HalfKind}, {Kind: ir.BFloatKind}, {Kind: ir.FloatKind}, {Kind: ir.DoubleKind}, {Kind: ir.X86FP80Kind}, {Kind: ir.FP128Kind}} {
		if t.String() == spelling {
			return t
		}
	}
	bits := 0
	if n, err := fmt.Sscanf(spelling, "i%d", &bits); n != 1 || err != nil || fmt.Sprintf("i%d", bits) != spelling || bits < 1 || bits > 1<<16 {
		return nil
	}
	return &ir.Type{Kind: ir.IntKind, Bits: bits}
}

// Masked returns the bytes of a slot without the bits that are above its type's width, which may be anything.
func (f *Frame) Masked(s *frame.Slot) []byte {
	if s.Type.IsZero() {
		return s.Bytes
	}
	return mask(s.Bytes, s.Type, f.view.target.Arch())
}
