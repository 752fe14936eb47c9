package stackmap

import (
	"encoding/binary"
	"math/bits"
)

// These functions read one integer at an offset. They do not use binary.ByteOrder, because the compiler cannot inline calls through an interface,
// and a section has millions of integers.

func u16(b []byte, at int, big bool) uint16 {
	v := binary.LittleEndian.Uint16(b[at:])
	if big {
		v = bits.ReverseBytes16(v)
	}
	return v
}

func u32(b []byte, at int, big bool) uint32 {
	v := binary.LittleEndian.Uint32(b[at:])
	if big {
		v = bits.ReverseBytes32(v)
	}
	return v
}

func u64(b []byte, at int, big bool) uint64 {
	v := binary.LittleEndian.Uint64(b[at:])
	if big {
		v = bits.ReverseBytes64(v)
	}
	return v
}

// bigEndian reports whether o is big-endian.
func bigEndian(o binary.ByteOrder) bool { return o.Uint16([]byte{0, 1}) == 1 }
