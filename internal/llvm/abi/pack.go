package abi

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Pack returns the elements side by side without a gap, as a store of the vector leaves them in memory: the first one in the least significant bits
// of one integer, or in the most significant ones if bytes are in that order (LangRef, "Vector Type"). The bits above them are zero. raw holds the
// bytes of the place, in the order of its memory.
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
		// The first element is the most significant one: seen from the last, all is as in the other order.
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
