package object

import (
	"debug/elf"
	"encoding/binary"
	"iter"
	"math/bits"
)

// elfRows holds the rows of an ELF symbol table (System V ABI, chapter 4, "Symbol Table"). It reads them on demand, so that a lookup by number does not
// read megabytes of rows.
type elfRows struct {
	section *Section
	narrow  bool // the rows are those of a 32-bit image
	order   binary.ByteOrder
	size    uint64 // size of a row in bytes

	whole []byte // all rows, once they were needed
	asked bool
	part  []byte // some consecutive rows
	from  uint64 // offset of part in the section
	parts int    // number of reads into part
}

// rowsAtOnce is the number of bytes that are read when one row is needed. After maxParts such reads all rows are read, because the caller likely needs
// them.
const (
	rowsAtOnce = 16 << 10
	maxParts   = 4
)

// load reads all rows.
func (r *elfRows) load() (err error) {
	if !r.asked {
		r.asked = true
		r.whole, err = r.section.Data()
	}
	return err
}

// held returns the number of bytes of rows in memory.
func (r *elfRows) held() int64 { return int64(len(r.whole) + cap(r.part)) }

// bytes returns the bytes from row n on, or nil if they cannot be read.
func (r *elfRows) bytes(n uint64) []byte {
	at := n * r.size
	if at < r.from || at+r.size > r.from+uint64(len(r.part)) {
		if r.parts == maxParts {
			_ = r.load() // ignore an error: parts of the table may still be readable
		}
		if at+r.size <= uint64(len(r.whole)) {
			return r.whole[at:]
		}
		if r.part == nil {
			r.part = make([]byte, min(rowsAtOnce, r.section.Size))
		}
		r.parts = min(r.parts+1, maxParts)
		got, _ := r.section.ReadAt(r.part[:cap(r.part)], int64(at))
		if r.part, r.from = r.part[:got], at; uint64(got) < r.size {
			return nil
		}
	}
	return r.part[at-r.from:]
}

// row returns row n, or an undefined symbol if it cannot be read.
func (r *elfRows) row(n uint64) rawSymbol {
	b, order := r.bytes(n), r.order
	switch {
	case b == nil:
		return rawSymbol{section: undefined}
	case r.narrow:
		return elfSymbol(order.Uint32(b), b[12], order.Uint16(b[14:]), uint64(order.Uint32(b[4:])), uint64(order.Uint32(b[8:])))
	}
	return elfSymbol(order.Uint32(b), b[4], order.Uint16(b[6:]), order.Uint64(b[8:]), order.Uint64(b[16:]))
}

// near yields the rows whose value and size cover value, and the rows before it without a size. This skips nearly all rows: in a large library one of
// 60,000 remains.
func (r *elfRows) near(value uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for n := r.nearFrom(0, value); n < r.section.Size/r.size && yield(n); n = r.nearFrom(n+1, value) {
		}
	}
}

// nearFrom returns the first row from n on that near yields, or the number of rows.
func (r *elfRows) nearFrom(n, value uint64) uint64 {
	_ = r.load() // ignore an error: parts of the table may still be readable
	swap := r.order == binary.ByteOrder(binary.BigEndian)
	if !r.narrow {
		for ; (n+1)*elf.Sym64Size <= uint64(len(r.whole)); n++ {
			b := r.whole[n*elf.Sym64Size:][:elf.Sym64Size]
			start, size := binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
			if swap {
				start, size = bits.ReverseBytes64(start), bits.ReverseBytes64(size)
			}
			if start <= value && (value-start < size || size == 0 && b[6]|b[7] != 0) {
				return n
			}
		}
	}
	for ; n < r.section.Size/r.size; n++ {
		if s := r.row(n); s.value <= value && (value-s.value < s.size || s.size == 0) {
			break
		}
	}
	return n
}
