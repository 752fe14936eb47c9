// Package xsave reads the areas in which x86 processors store vector registers (Intel SDM vol. 1, chapter 13): NT_X86_XSTATE of ptrace(2) and of
// notes in cores. Its main type is [Area].
//
// The processor determines the offset of a part in an area, and vendors differ. A [Layout] holds the offsets: [Host] returns the layout of this
// machine's processor, [Parse] reads the layout in a core, and [Find] returns the layout of the known processor whose area has a given size.
//
// # Security
//
// Areas and layouts come from cores of any origin. A register outside of an area, or at an unknown offset, is unavailable with a reason.
package xsave

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"example.com/reframe/internal/machine"
)

// Offsets in every area (13.4.1 and 13.4.2; asm/user.h of Linux): the area of FXSAVE, Linux's list of the parts in the area, the list of parts that
// are not in their initial state (XSTATE_BV), and the first part after the header.
const (
	xmmAt      = 160
	featuresAt = 464
	Legacy     = 512 // the size of an FXSAVE area, which is the smallest area
	inUseAt    = Legacy
	compactAt  = Legacy + 8 // XCOMP_BV, whose last bit means that parts are adjacent
	extendedAt = 576
)

// Numbers of the parts, as in XCR0 (13.1).
const (
	SSE = 1
	avx = 2 // the upper halves of ymm0 to ymm15
	k   = 5
	zmm = 6 // the upper halves of zmm0 to zmm15
	z16 = 7 // zmm16 to zmm31

	partCount = 63 // the last bit of XCR0 is not a part
	xmmSize   = 16
	zmmSize   = 64
)

// Place is the offset and size, in bytes, of a part in an XSAVE area.
type Place struct{ Offset, Size uint32 }

// Layout holds the places of the parts of an area; unknown places are zero. The first two parts have the same place in every area, and their entries
// are also zero.
type Layout [partCount]Place

// MaxNote bounds the size of a note with a layout: one row for each part.
const MaxNote = partCount * noteRow

const noteRow = 16

// Parse parses NT_X86_XSAVE_LAYOUT (linux/elf.h, since Linux 6.12): for each part its number, its size, its offset and flags, as 32-bit words (struct
// x86_xfeat_component of asm/elf.h). It returns an error for a part that occurs twice, and for a truncated row.
func Parse(note []byte) (Layout, error) {
	var l Layout
	if len(note)%noteRow != 0 || len(note) > MaxNote {
		return Layout{}, fmt.Errorf("its layout of vector registers has %d bytes", len(note))
	}
	for at := 0; at < len(note); at += noteRow {
		word := func(n int) uint32 { return binary.LittleEndian.Uint32(note[at+4*n:]) }
		part := word(0)
		if part >= partCount || l[part] != (Place{}) {
			return Layout{}, fmt.Errorf("its layout of vector registers contains part %d twice, or the part does not exist", part)
		}
		l[part] = Place{word(2), word(1)}
	}
	return l, nil
}

// Note returns the layout in the format that [Parse] reads.
func (l *Layout) Note() (b []byte) {
	for part, p := range l {
		if p != (Place{}) {
			for _, v := range []uint32{uint32(part), p.Size, p.Offset, 0} {
				b = binary.LittleEndian.AppendUint32(b, v)
			}
		}
	}
	return b
}

// end returns the length of an area with the given parts, or 0 if the place of one is unknown.
func (l *Layout) end(features uint64) uint64 {
	end := uint64(extendedAt)
	for part := avx; part < partCount; part++ {
		if features>>part&1 == 0 {
			continue
		}
		p := l[part]
		if p == (Place{}) {
			return 0
		}
		end = max(end, uint64(p.Offset)+uint64(p.Size))
	}
	return end
}

// frameLeast is a lower bound of a signal frame's size without the area. The frame has about 824 more bytes than the area, or 936 if the kernel
// supports 32-bit programs, rounded up to 16 (init_sigframe_size of arch/x86/kernel/signal.c).
const frameLeast = 800

// Find returns the layout for an area of a core that contains no layout. It is the layout of the known processor whose area has exactly this size,
// with the parts of the area. If two of [Processors] differ in the place of a part, their areas have different sizes. frame is AT_MINSIGSTKSZ of the
// core's auxiliary vector (since Linux 5.14), the size of a signal's frame, which contains the processor's area; 0 if it is missing.
//
// Find also checks frame if Intel's places of AVX-512's registers match, because gdb up to 13 writes these places for all processors, with the bytes
// that it read there. On processors with other places the registers are lost.
func Find(area []byte, frame uint64) (Layout, error) {
	if len(area) < extendedAt {
		return Layout{}, errUnknown
	}
	features := binary.LittleEndian.Uint64(area[featuresAt:])
	for _, p := range Processors {
		if p.Layout.end(features) != uint64(len(area)) {
			continue
		}
		if p.Name == standard && features>>k&1 != 0 {
			if frame == 0 {
				return Layout{}, errors.New("the core does not show whether its layout of vector registers is that of its processor (Linux before 5.14)")
			}
			if frame < uint64(len(area))+frameLeast {
				return Layout{}, errors.New("the debugger that wrote the core read it at a wrong offset, as gdb up to 13 does")
			}
		}
		return p.Layout, nil
	}
	return Layout{}, errUnknown
}

var errUnknown = errors.New("its offset in the area of vector registers is unknown")

// Area holds the vector registers of one thread. With a zero Layout it provides only the registers that have the same place on every processor.
type Area struct {
	Bytes  []byte
	Layout Layout
	// Why is the reason why the layout lacks the place of a part; nil selects the default reason.
	Why error
}

var errNone = errors.New("the kernel provided no vector registers")

// part returns the bytes of a part. A part in its initial state is zero, whatever its bytes are (13.6).
func (a *Area) part(n int) ([]byte, error) {
	size := partSizes[n]
	if len(a.Bytes) < extendedAt || a.features()>>n&1 == 0 {
		return nil, errors.New("the processor has no such register")
	}
	if a.inUse()>>n&1 == 0 {
		return make([]byte, size), nil
	}
	if compacted := a.Bytes[compactAt+7] >> 7; compacted != 0 {
		return nil, errors.New("its area of vector registers is compacted, which Linux never writes")
	}
	p := a.Layout[n]
	if p == (Place{}) && n == avx { // this place is the same in all tables
		p = Place{extendedAt, size}
	}
	if p.Size < size || p.Offset < extendedAt {
		return nil, cmp.Or(a.Why, errUnknown)
	}
	if uint64(p.Offset)+uint64(size) > uint64(len(a.Bytes)) {
		return nil, fmt.Errorf("the area of vector registers has %d bytes and ends before it", len(a.Bytes))
	}
	return a.Bytes[p.Offset:][:size], nil
}

// Check returns an error if the area lacks the registers that all processors have.
func (a *Area) Check() error {
	if len(a.Bytes) < Legacy {
		return errNone
	}
	return nil
}

func (a *Area) features() uint64 { return binary.LittleEndian.Uint64(a.Bytes[featuresAt:]) }

func (a *Area) inUse() uint64 {
	if len(a.Bytes) < inUseAt+8 { // in an FXSAVE area, all registers are valid
		return 1 << SSE
	}
	return binary.LittleEndian.Uint64(a.Bytes[inUseAt:])
}

// Registers calls set for each register: xmm0 to xmm15, each with as many bytes as the processor has and whose place is known, xmm16 to xmm31 with 64
// bytes, and k0 to k7. why is not nil for a register that the area lacks. The bytes are copies.
func (a *Area) Registers(set func(reg machine.DWARFReg, b []byte, why error)) {
	const xmm0, xmm16, k0 = 17, 67, 118 // System V ABI, AMD64 supplement, figure 3.36
	if err := a.Check(); err != nil {
		for reg := machine.DWARFReg(xmm0); reg < xmm0+16; reg++ {
			set(reg, nil, err)
		}
		return
	}
	low := a.Bytes[xmmAt:][:16*xmmSize]
	if a.inUse()>>SSE&1 == 0 {
		low = make([]byte, 16*xmmSize)
	}
	ymms, noY := a.part(avx)
	zmms, noZ := a.part(zmm)
	width := xmmSize
	if noY == nil {
		width = 2 * xmmSize
		if noZ == nil {
			width = zmmSize
		}
	}
	all := make([]byte, 0, 16*width)
	for i := range 16 {
		at := len(all)
		all = append(all, low[i*xmmSize:][:xmmSize]...)
		if noY == nil {
			all = append(all, ymms[i*xmmSize:][:xmmSize]...)
			if noZ == nil {
				all = append(all, zmms[i*zmmSize/2:][:zmmSize/2]...)
			}
		}
		set(machine.DWARFReg(xmm0+i), all[at:len(all):len(all)], nil)
	}
	for _, file := range []struct {
		part, size, count int
		first             machine.DWARFReg
	}{{z16, zmmSize, 16, xmm16}, {k, 8, 8, k0}} {
		b, err := a.part(file.part)
		b = append([]byte(nil), b...)
		for i := range file.count {
			if err != nil {
				set(file.first+machine.DWARFReg(i), nil, err)
				continue
			}
			set(file.first+machine.DWARFReg(i), b[i*file.size:][:file.size:file.size], nil)
		}
	}
}

// Standard converts areas to the layout of Intel's processors, and returns them with that layout, for gdb. gdb up to 13 knows only the standard
// offsets, and checks only which parts an area has. Later releases distinguish two layouts by the size. Of the parts after those that gdb knows,
// Standard keeps only those that are not in their initial state.
//
// All areas keep their own layout if one of them has a part whose size or place differs from its layout, or that has no place in the standard layout.
func (l *Layout) Standard(areas [][]byte) ([][]byte, Layout) {
	var used Layout
	out := make([][]byte, len(areas))
	for i, b := range areas {
		if out[i] = b; len(b) < extendedAt {
			continue
		}
		a := Area{Bytes: b, Layout: *l}
		parts, ok := a.movable()
		if !ok {
			return areas, *l
		}
		to := &Processors[0].Layout
		out[i] = make([]byte, to.end(parts))
		copy(out[i], b[:extendedAt])
		binary.LittleEndian.PutUint64(out[i][featuresAt:], parts|a.features()&(1<<avx-1))
		for part := avx; part < partCount; part++ {
			if parts>>part&1 != 0 {
				copy(out[i][to[part].Offset:][:to[part].Size], b[l[part].Offset:])
				used[part] = to[part]
			}
		}
	}
	return out, used
}

// movable returns the parts that the converted area must have. ok reports whether all of them have a place in both layouts.
func (a *Area) movable() (parts uint64, ok bool) {
	parts = a.features() &^ (1<<avx - 1)
	parts &^= ^a.inUse() &^ (1<<tileConfig - 1)
	to := &Processors[0].Layout
	for part := avx; part < partCount; part++ {
		if p := a.Layout[part]; parts>>part&1 != 0 && (p.Size == 0 || p.Offset < extendedAt || p.Size != to[part].Size) {
			return 0, false
		}
	}
	return parts, parts>>partCount == 0 && a.Layout.end(parts) <= uint64(len(a.Bytes))
}
