package frame

import (
	"encoding/binary"
	"math/big"
	"strings"
)

// formatParts formats a vector, array or struct by its parts. raw has at least the size of the type.
func (t Type) formatParts(raw []byte, order binary.ByteOrder) string {
	big := order == binary.ByteOrder(binary.BigEndian)
	if big {
		raw = raw[len(raw)-t.Size():]
	}
	open, end := "{", "}"
	var parts []string
	switch t.Kind {
	case Vector:
		open, end = "<", ">"
		parts = t.elements(raw[:t.Size()], order, big)
	case Array:
		open, end = "[", "]"
		for i := range t.Len {
			parts = append(parts, t.Elem.formatAt(raw, i*t.Stride, order))
		}
	case Struct:
		for _, f := range t.Fields {
			parts = append(parts, f.formatAt(raw, f.Offset, order))
		}
	}
	for _, p := range parts {
		if p == "" {
			return ""
		}
	}
	return open + strings.Join(parts, ", ") + end
}

// formatAt formats the part of raw that starts at an offset.
func (t Type) formatAt(raw []byte, offset int, order binary.ByteOrder) string {
	if offset < 0 || offset+t.Size() > len(raw) {
		return ""
	}
	return t.Format(raw[offset:offset+t.Size()], order)
}

// elements formats the elements of a vector. A vector is stored as one integer: the first element is in its least significant bits on a little-endian
// target, and in its most significant bits on a big-endian one (LangRef, "Vector Type").
func (t Type) elements(raw []byte, order binary.ByteOrder, first bool) []string {
	parts := make([]string, t.Len)
	width := t.Elem.Bits
	if width%8 == 0 {
		for i := range parts {
			parts[i] = t.Elem.formatAt(raw, i*width/8, order)
		}
		return parts
	}
	all := Number(raw, order)
	element, size := new(big.Int), t.Elem.Size()
	for i := range parts {
		at := i
		if first {
			at = t.Len - 1 - i
		}
		element.And(element.Rsh(all, uint(at*width)), ones(uint(width)))
		parts[i] = t.Elem.Format(element.FillBytes(make([]byte, size)), binary.BigEndian)
	}
	return parts
}
