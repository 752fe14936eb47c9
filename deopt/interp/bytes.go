package interp

// decode reads the leaf from the bytes in memory. shadow marks the bits that are not known; nil means that all are known. A bit set in both
// shadow and data is poison, as in a word. One poison bit makes the whole scalar poison.
func (l leaf) decode(w []word, data, shadow []byte, bigEndian bool) {
	n := (l.bits + 63) / 64
	for k := range l.packed {
		poison := false
		for i := range n {
			bit := k*l.bits + 64*i
			m := maskAt(l.bits, i)
			x := word{v: getBits(data, bit, min(64, l.bits-64*i), l.bytes(), bigEndian) & m}
			if shadow != nil {
				x.u = getBits(shadow, bit, min(64, l.bits-64*i), l.bytes(), bigEndian) & m
				poison = poison || isPoison(x)
			}
			w[l.at+k*n+i] = x
		}
		if poison {
			poisonWords(w[l.at+k*n:l.at+(k+1)*n], l.bits)
		}
	}
}

// encode is the inverse of decode. It writes the bits of the last byte above the value as zero, as LLVM's code does.
func (l leaf) encode(data, shadow []byte, w []word, bigEndian bool) {
	n := (l.bits + 63) / 64
	clear(data[:l.bytes()])
	clear(shadow[:l.bytes()])
	for k := range l.packed {
		for i := range n {
			x := w[l.at+k*n+i]
			bit, width := k*l.bits+64*i, min(64, l.bits-64*i)
			putBits(data, bit, width, x.v, l.bytes(), bigEndian)
			putBits(shadow, bit, width, x.u, l.bytes(), bigEndian)
		}
	}
}

// getBits reads width bits (at most 64), starting at bit number bit, from a number of size bytes.
func getBits(b []byte, bit, width, size int, bigEndian bool) uint64 {
	var v uint64
	for got := 0; got < width; {
		i, skip := (bit+got)/8, (bit+got)%8
		if bigEndian {
			i = size - 1 - i
		}
		v |= uint64(b[i]>>uint(skip)) << uint(got)
		got += 8 - skip
	}
	return v
}

// putBits is the inverse of getBits. The bits that it writes must be zero before.
func putBits(b []byte, bit, width int, v uint64, size int, bigEndian bool) {
	for put := 0; put < width; {
		i, skip := (bit+put)/8, (bit+put)%8
		if bigEndian {
			i = size - 1 - i
		}
		b[i] |= byte(v>>uint(put)) << uint(skip)
		put += 8 - skip
	}
}
