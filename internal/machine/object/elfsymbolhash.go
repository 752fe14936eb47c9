package object

import (
	"debug/elf"
	"encoding/binary"
)

// nameHash is the section .gnu.hash. It finds the rows of a .dynsym that may have a given name, as the dynamic linker does. No standard describes it;
// this is the form that GNU ld and lld write and that glibc reads (elf/dl-lookup.c, do_lookup_x).
//
// It begins with four words: the number of buckets, the number of the first hashed row, the number of words of the Bloom filter, and the shift of the
// filter's second hash. The filter, the buckets and the chains follow. Rows of one bucket are adjacent; a bucket holds the number of its first row. The
// chains have a word for each row: its hash, whose lowest bit is replaced by a mark of the last row of a bucket.
type nameHash struct {
	section *Section
	order   binary.ByteOrder
	word    uint64 // size of a word of the filter in bytes
	rows    uint64 // number of rows of the symbol table

	buckets, first, filters, shift uint64
}

// nameHash returns the hash table for symbol table section n. It returns nil if there is none or it is malformed; lookups then read all rows.
func (f *elfFormat) nameHash(n int) *nameHash {
	for at, s := range f.file.Sections {
		if s.Type != elf.SHT_GNU_HASH || int(s.Link) != n {
			continue
		}
		h := &nameHash{section: f.image.all[at], order: f.file.ByteOrder, word: uint64(f.word()), rows: f.image.all[n].Size / elf.Sym64Size}
		if h.word == 4 {
			h.rows = f.image.all[n].Size / elf.Sym32Size
		}
		var b [16]byte
		if h.section.Readable() != nil || !h.read(b[:], 0) {
			return nil
		}
		number := func(at int) uint64 { return uint64(h.order.Uint32(b[at:])) }
		h.buckets, h.first, h.filters, h.shift = number(0), number(4), number(8), number(12)
		if h.buckets == 0 || h.filters == 0 || h.shift > 31 || h.first > h.rows || h.chain(h.rows) > h.section.Size {
			return nil
		}
		return h
	}
	return nil
}

func (h *nameHash) read(b []byte, at uint64) bool {
	n, _ := h.section.ReadAt(b, int64(at))
	return n == len(b)
}

// chain returns the offset of the hash of row n; n must not be before the first hashed row.
func (h *nameHash) chain(n uint64) uint64 {
	return 16 + h.filters*h.word + 4*h.buckets + 4*(n-h.first)
}

// gnuHash returns the hash of a name.
func gnuHash(name string) uint32 {
	h := uint32(5381)
	for _, c := range []byte(name) {
		h = 33*h + uint32(c)
	}
	return h
}

// find returns the rows with the name's hash in ascending order. sound is false if the table is malformed.
func (h *nameHash) find(name string) (rows []uint64, sound bool) {
	hash := gnuHash(name)
	bits := 8 * h.word
	var b [64]byte
	word := b[:h.word]
	if !h.read(word, 16+uint64(hash)/bits%h.filters*h.word) {
		return nil, false
	}
	filter, start := get(word, int(h.word), h.order), uint64(0)
	if filter>>(uint64(hash)%bits)&1 != 0 && filter>>(uint64(hash>>h.shift)%bits)&1 != 0 {
		if !h.read(b[:4], 16+h.filters*h.word+4*(uint64(hash)%h.buckets)) {
			return nil, false
		}
		if start = uint64(h.order.Uint32(b[:])); start != 0 && (start < h.first || start >= h.rows) {
			return nil, false
		}
	}
	for n := start; start != 0; {
		some := b[:min(uint64(len(b)), 4*(h.rows-n))]
		if len(some) == 0 || !h.read(some, h.chain(n)) {
			return nil, false
		}
		for ; len(some) > 0; some = some[4:] {
			c := h.order.Uint32(some)
			if c|1 == hash|1 {
				rows = append(rows, n)
			}
			if n++; c&1 != 0 {
				start = 0
				break
			}
		}
	}
	return rows, true
}
