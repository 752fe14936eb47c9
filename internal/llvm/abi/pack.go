package abi

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Pack returns the elements without gaps, as a store of the vector leaves them in memory. The first element is in the least significant bits of one
// integer, or in big-endian order in the most significant ones (LangRef, "Vector Type"). The bits above the elements are zero. raw holds the bytes of
// the register or slot in memory order.
func (l Lanes) Pack(raw []byte, order binary.ByteOrder) ([]byte, error) {
	if l.Len <= 0 || l.Bits <= 0 || l.Stride < l.Bits || (l.Len-1)*l.Stride+l.Bits > 8*len(raw) {
		return nil, fmt.Errorf("%d elements of %d bits in %d bytes", l.Len, l.Stride, len(raw))
	}
	bits := l.Len * l.Bits
	size := (bits + 7) / 8
	if l.Stride == l.Bits && l.Bits%8 == 0 {
		return raw[:size], nil
	}
	big := order == binary.ByteOrder(binary.BigEndian)
	if big {
		// The first element is the most significant one. Reverse the bytes and number the elements from the last, so that the code below fits both orders.
		raw = slices.Clone(raw)
		slices.Reverse(raw)
	}
	out := make([]byte, size)
	for i := range l.Len {
		for bit := range l.Bits {
			from, to := i*l.Stride+bit, i*l.Bits+bit
			out[to/8] |= raw[from/8] >> (from % 8) & 1 << (to % 8)
		}
	}
	if big {
		slices.Reverse(out)
	}
	return out, nil
}
