package object

import (
	"debug/macho"
	"encoding/binary"
	"fmt"
	"io"
)

// A linked image chains its fixups through the places to fix: each place holds the value to write and the distance to the next place
// (mach-o/fixup-chains.h). Images for macOS 11 and older have rebase opcodes instead (LC_DYLD_INFO); a place that such an opcode rebases already
// holds its address. Imports of such an image do not occur in stack maps or unwind tables, and are not listed.

// chainFormat describes a pointer format: how a place encodes its fixup.
type chainFormat struct {
	name    string
	size    int
	stride  uint64 // unit of the distance to the next place
	offsets bool   // targets are offsets from the start of the image
	unpack  func(raw uint64) chainLink
}

// chainLink is the decoded fixup of one place of a chain.
type chainLink struct {
	next    uint64 // distance to the next place in strides; 0 in the last one
	bind    bool
	ordinal uint64 // number of the import, if bind is set
	addend  int64  // added to the import's address, if bind is set
	target  uint64
	offset  bool   // the target is an offset from the start of the image, even if the format has absolute targets
	high    uint64 // the target's highest byte, in its position
}

var chainFormats = map[uint16]chainFormat{
	1:  {"ARM64E", 8, 8, false, unpackARM64E(0xffff)},
	2:  {"64", 8, 4, false, unpack64},
	3:  {"32", 4, 4, false, unpack32},
	6:  {"64_OFFSET", 8, 4, true, unpack64},
	9:  {"ARM64E_USERLAND", 8, 8, true, unpackARM64E(0xffff)},
	12: {"ARM64E_USERLAND24", 8, 8, true, unpackARM64E(0xffffff)},
}

// unpackARM64E returns a decoder for places of arm64e. It leaves pointers unsigned that a loader would sign: a signature depends on keys of the process.
func unpackARM64E(ordinals uint64) func(uint64) chainLink {
	return func(raw uint64) chainLink {
		l := chainLink{next: raw >> 51 & 0x7ff, bind: raw>>62&1 != 0}
		signed := raw>>63 != 0
		switch {
		case l.bind:
			l.ordinal = raw & ordinals
			if !signed {
				l.addend = int64(raw>>32&0x7ffff) << 45 >> 45
			}
		case signed:
			l.target, l.offset = raw&0xffffffff, true
		default:
			l.target, l.high = raw&(1<<43-1), raw>>43&0xff<<56
		}
		return l
	}
}

func unpack64(raw uint64) chainLink {
	l := chainLink{next: raw >> 51 & 0xfff, bind: raw>>63 != 0}
	if l.bind {
		l.ordinal, l.addend = raw&0xffffff, int64(raw>>24&0xff)
	} else {
		l.target, l.high = raw&(1<<36-1), raw>>36&0xff<<56
	}
	return l
}

func unpack32(raw uint64) chainLink {
	l := chainLink{next: raw >> 26 & 0x1f, bind: raw>>31&1 != 0}
	if l.bind {
		l.ordinal, l.addend = raw&0xfffff, int64(raw>>20&0x3f)
	} else {
		l.target = raw & (1<<26 - 1)
	}
	return l
}

// fixUp applies to data, the bytes of s, the fixups that the loader applies to a linked image.
func (f *machoFormat) fixUp(s *Section, data []byte) ([]Relocation, error) {
	if f.chained.size == 0 {
		return nil, f.checkThreaded(s)
	}
	b, err := f.part("chained fixups", f.chained).Data()
	if err != nil {
		return nil, err
	}
	w := &chainWalk{f: f, section: s, data: data, words: words{b: b}}
	if err := w.walk(); err != nil {
		return nil, err
	}
	return w.done, nil
}

// checkThreaded rejects the predecessor of chained fixups on arm64e: chains that start from the bind opcodes. The first opcode
// (BIND_OPCODE_THREADED) marks them.
func (f *machoFormat) checkThreaded(s *Section) error {
	const threaded, opcodes = 0xd0, 0xf0
	var b [1]byte
	if f.cpu != macho.CpuArm64 || f.dyldInfo.size == 0 {
		return nil
	}
	if _, err := f.file.ReadAt(b[:], int64(f.dyldInfo.off)); err != nil && err != io.EOF {
		return &Error{f.image.Name, s.Name, -1, fmt.Errorf("the opcodes of LC_DYLD_INFO: %w", err)}
	}
	if b[0]&opcodes == threaded {
		return &Error{f.image.Name, s.Name, -1, fmt.Errorf("its fixups are in the opcodes for imports (threaded binding), which is not supported")}
	}
	return nil
}

// words reads little-endian integers, and records whether one lay outside.
type words struct {
	b       []byte
	outside bool
}

// at reads an integer of 2, 4 or 8 bytes.
func (w *words) at(off uint64, size int) uint64 {
	if off > uint64(len(w.b)) || uint64(len(w.b))-off < uint64(size) {
		w.outside = true
		return 0
	}
	return get(w.b[off:], size, binary.LittleEndian)
}

// chainWalk walks the chains of the pages that overlap a section.
type chainWalk struct {
	f       *machoFormat
	section *Section
	data    []byte
	words   words // the contents of LC_DYLD_CHAINED_FIXUPS
	done    []Relocation

	segment    machoSegment
	first, end uint64 // offsets of the section in the segment
	format     chainFormat
	starts     uint64 // offset of struct dyld_chained_starts_in_segment
	page       uint64 // size of a page
	valid      uint64 // max_valid_pointer: in a 32-bit place, a larger value is a number and not a pointer
	base       uint64 // address of the image's header
	imports    chainImports
}

func (w *chainWalk) fail(off uint64, format string, args ...any) error {
	at := int64(-1)
	if off >= w.first && off < w.end {
		at = int64(off - w.first)
	}
	return &Error{w.f.image.Name, w.section.Name, at, fmt.Errorf("chained fixups: "+format, args...)}
}

func (w *chainWalk) walk() error {
	own := w.f.sections[w.section.index]
	w.segment = w.f.segments[own.segment]
	starts := w.words.at(4, 4)
	count := w.words.at(starts, 4)
	if uint64(own.segment) >= count {
		return w.outside()
	}
	from := w.words.at(starts+4+4*uint64(own.segment), 4)
	if from == 0 || w.words.outside {
		return w.outside()
	}
	w.starts = starts + from
	w.page = w.words.at(w.starts+4, 2)
	kind := uint16(w.words.at(w.starts+6, 2))
	offset := w.words.at(w.starts+8, 8)
	w.valid = w.words.at(w.starts+16, 4)
	pages := w.words.at(w.starts+20, 2)
	if w.words.outside {
		return w.outside()
	}
	var known bool
	if w.format, known = chainFormats[kind]; !known {
		return w.fail(0, "pointer format %d is not supported", kind)
	}
	if w.page != 0x1000 && w.page != 0x4000 {
		return w.fail(0, "pages of %#x bytes", w.page)
	}
	w.base = w.f.base()
	if w.base+offset != w.segment.addr {
		return w.fail(0, "segment %d starts at %#x, not at %#x", own.segment, w.segment.addr, w.base+offset)
	}
	w.first = own.addr - w.segment.addr
	w.end = w.first + uint64(len(w.data))
	if own.addr < w.segment.addr || w.end < w.first || w.end > w.segment.fileSize || own.off != w.segment.off+w.first {
		return w.fail(0, "the section lies outside of its segment")
	}
	w.imports.read(w)
	for n := w.first / w.page; n < pages && n*w.page < w.end; n++ {
		if err := w.walkPage(n); err != nil {
			return err
		}
	}
	return w.outside()
}

func (w *chainWalk) outside() error {
	if w.words.outside {
		return w.fail(0, "its tables lie outside of their %d bytes", len(w.words.b))
	}
	return nil
}

// base returns the address of the image's header.
func (f *machoFormat) base() uint64 {
	for _, s := range f.segments {
		if s.off == 0 && s.fileSize > 0 {
			return s.addr
		}
	}
	return 0
}

// walkPage walks the chains of one page.
func (w *chainWalk) walkPage(n uint64) error {
	const none, many, last = 0xffff, 0x8000, 0x8000
	table := w.starts + 22
	start := w.words.at(table+2*n, 2)
	if start == none || w.words.outside {
		return w.outside()
	}
	bytes := make([]byte, min(w.page+8, w.segment.fileSize-n*w.page))
	if got, err := w.f.file.ReadAt(bytes, int64(w.segment.off+n*w.page)); got < len(bytes) {
		return w.fail(n*w.page, "%w", err)
	}
	if w.format.size == 8 || start&many == 0 {
		_, err := w.walkChain(bytes, n*w.page, start)
		return err
	}
	// A 32-bit place can only encode a distance of 31 places, so a page may have several chains.
	end := uint64(0)
	for at := start &^ many; ; at++ {
		start := w.words.at(table+2*at, 2)
		if w.words.outside {
			return w.outside()
		}
		if start&^last < end {
			return w.fail(n*w.page, "two chains of a page overlap")
		}
		var err error
		if end, err = w.walkChain(bytes, n*w.page, start&^last); err != nil || start&last != 0 {
			return err
		}
	}
}

// walkChain walks one chain and returns its end, as an offset in the page. page is the offset of the page in the segment, and at the offset of the chain in
// the page.
func (w *chainWalk) walkChain(bytes []byte, page, at uint64) (end uint64, err error) {
	size := uint64(w.format.size)
	for {
		if at >= w.page || at > uint64(len(bytes)) || uint64(len(bytes))-at < size {
			return 0, w.fail(page+at, "a chain leaves its page")
		}
		off := page + at
		l := w.format.unpack(get(bytes[at:], int(size), binary.LittleEndian))
		switch {
		case off >= w.first && off+size <= w.end:
			if err := w.fix(l, off-w.first); err != nil {
				return 0, err
			}
		case off < w.end && off+size > w.first:
			return 0, w.fail(off, "the section starts or ends inside of a pointer")
		}
		step := l.next * w.format.stride
		switch {
		case step == 0:
			return at + size, nil
		case step < size:
			return 0, w.fail(off, "two pointers overlap")
		}
		at += step
	}
}

// fix writes the value of one fixup to its place; off is the offset of the place in the section.
func (w *chainWalk) fix(l chainLink, off uint64) error {
	r := Relocation{Offset: off, Addend: l.addend}
	var value uint64
	if l.bind {
		var err error
		if value, err = w.imports.bind(w, l, &r); err != nil {
			return err
		}
	} else {
		value = l.target
		switch {
		case w.format.size == 4 && value > w.valid:
			// This is a number and not a pointer; it is part of the chain only to bridge a distance.
			value -= (1<<26 + w.valid) / 2
			put(w.data[off:], w.format.size, value, binary.LittleEndian)
			return nil
		case w.format.offsets || l.offset:
			value += w.base
		}
		value |= l.high
		r.Addend, r.Defined = int64(value), true
		r.symbol = rawSymbol{kind: sectionSymbol, section: absolute}
	}
	if r.Defined {
		put(w.data[off:], w.format.size, value, binary.LittleEndian)
	}
	w.done = append(w.done, r)
	return nil
}
