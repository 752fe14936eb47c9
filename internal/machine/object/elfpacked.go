package object

import (
	"errors"
	"iter"
)

// These flags say which fields all rows of a group share (AOSP bionic, linker_reloc_iterators.h; lld writes no others).
const (
	packedSameInfo  = 1 << iota // r_info
	packedSameDelta             // the distance between consecutive places
	packedSameAddend
	packedAddends // the rows have addends
)

// unpacked yields the rows of a table in Android's format: "APS2", then numbers in signed LEB128. The first two numbers are the number of rows and the
// offset that the first row counts from. Groups follow. Each group holds its number of rows, its flags, the shared fields, and then the other fields of
// each row. Offsets and addends are differences from the previous row.
func (r *rela) unpacked() iter.Seq2[relaRow, error] {
	return func(yield func(relaRow, error) bool) {
		p := packedReader{b: r.rows, at: 4}
		fail := func(format string, args ...any) { yield(relaRow{}, r.fail(int64(p.at), format, args...)) }
		if len(p.b) < 4 || string(p.b[:4]) != "APS2" {
			p.at = 0
			fail("does not begin with APS2, the mark of packed relocations")
			return
		}
		word, row := r.f.word(), relaRow{}
		left := p.number()
		row.off = p.number()
		// Each row relocates a word that has bytes in the image.
		if left > uint64(r.f.image.size)/4 {
			fail("claims %d relocations in an image of %d bytes", left, r.f.image.size)
			return
		}
		for left > 0 && p.err == nil {
			rows, shared := p.number(), p.number()
			if rows == 0 || rows > left {
				fail("has a group of %d relocations, but only %d are left", rows, left)
				return
			}
			left -= rows
			var delta uint64
			if shared&packedSameDelta != 0 {
				delta = p.number()
			}
			if shared&packedSameInfo != 0 {
				row.setInfo(p.number(), word)
			}
			switch shared & (packedAddends | packedSameAddend) {
			case packedAddends | packedSameAddend:
				row.addend += p.number()
			case packedSameAddend, 0:
				row.addend = 0
			}
			if r.inPlace && shared&packedAddends != 0 {
				fail("has addends in both the rows and the places")
				return
			}
			for ; rows > 0 && p.err == nil; rows-- {
				row.at = int64(p.at)
				if shared&packedSameDelta == 0 {
					delta = p.number()
				}
				row.off += delta
				if shared&packedSameInfo == 0 {
					row.setInfo(p.number(), word)
				}
				if shared&(packedAddends|packedSameAddend) == packedAddends {
					row.addend += p.number()
				}
				if p.err == nil && !yield(row.narrowed(word), nil) {
					return
				}
			}
		}
		if p.err != nil {
			fail("%w", p.err)
		}
	}
}

// narrowed truncates offset and addend to the loader's word size.
func (r relaRow) narrowed(word int) relaRow {
	if word == 4 {
		r.off, r.addend = uint64(uint32(r.off)), signed(r.addend, word)
	}
	return r
}

// packedReader reads numbers and keeps the first error.
type packedReader struct {
	b   []byte
	at  int
	err error
}

// number reads a signed LEB128 number (DWARF 5, 7.6).
func (p *packedReader) number() (v uint64) {
	for shift := 0; shift < 70 && p.err == nil; shift += 7 {
		if p.at >= len(p.b) {
			p.err = errors.New("ends inside a number")
			return 0
		}
		b := p.b[p.at]
		p.at++
		v |= uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			if b&0x40 != 0 && shift+7 < 64 {
				v |= ^uint64(0) << (shift + 7)
			}
			return v
		}
	}
	if p.err == nil {
		p.err = errors.New("has a number of more than 64 bits")
	}
	return 0
}
