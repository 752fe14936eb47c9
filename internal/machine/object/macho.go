package object

import (
	"bytes"
	"debug/macho"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"example.com/reframe/internal/machine"
)

// machoFormat is a Mach-O image (mach-o/loader.h of XNU).
//
// debug/macho is not used. When it opens a file it allocates a Go value for every symbol and for every relocation of each section, even if sections share
// them. It supports neither the fixups of linked images nor arm64_32.
type machoFormat struct {
	image    *Image
	file     io.ReaderAt
	wide     bool // 64-bit structures
	cpu      macho.Cpu
	sub      uint32
	fileType macho.Type
	segments []machoSegment
	sections []machoSection // parallel to the image's sections
	symtab   macho.SymtabCmd
	dyldInfo machoExtent // the binding opcodes of LC_DYLD_INFO
	chained  machoExtent // the fixups of LC_DYLD_CHAINED_FIXUPS
	symbols  *symbolTable
	exported map[uint64]rawSymbol // exported symbols by the hash of their name; nil until one is needed
}

type machoSegment struct{ addr, size, off, fileSize uint64 }

// machoSection holds the fields of a section that [Section] lacks.
type machoSection struct {
	segment     int    // index of its segment among the load commands
	addr        uint64 // address in the section header, even if the section is placed elsewhere
	off         uint64
	relocations machoExtent // size in bytes
}

// machoExtent is a range of the file.
type machoExtent struct{ off, size uint64 }

// These constants are missing in debug/macho.
const (
	machoCPU32on64 macho.Cpu     = 0x0200000c // CPU_TYPE_ARM64_32
	machoDyldInfo  macho.LoadCmd = 0x22
	machoRequired  macho.LoadCmd = 0x80000000 // LC_REQ_DYLD: set in commands that a loader must not ignore
	machoChained   macho.LoadCmd = 0x34 | machoRequired

	machoObject = macho.TypeObj

	sectionType        = 0xff // mask of a section's flags
	sectionZeros       = 0x1  // S_ZEROFILL
	sectionManyZeros   = 0xc  // S_GB_ZEROFILL
	sectionThreadZeros = 0x12 // S_THREAD_LOCAL_ZEROFILL
	sectionIsCode      = 0x80000000 | 0x400
	sectionIsDebug     = 0x02000000
)

// MachOStackMaps is the name of the section that holds LLVM's stack maps in a Mach-O image: segment, comma, section.
const MachOStackMaps = "__LLVM_STACKMAPS,__llvm_stackmaps"

// isMachO reports whether a file begins with Mach-O's magic number in either byte order.
func isMachO(magic [4]byte) bool {
	little, big := binary.LittleEndian.Uint32(magic[:]), binary.BigEndian.Uint32(magic[:])
	return little&^1 == macho.Magic32 || big&^1 == macho.Magic32
}

func (i *Image) openMachO(r *io.SectionReader) error {
	f := &machoFormat{image: i, file: r}
	var b [32]byte
	length := len(b)
	n, _ := r.ReadAt(b[:], 0)
	var h macho.FileHeader
	if n < binary.Size(h) {
		return errors.New("it ends inside its header")
	}
	if _, err := binary.Decode(b[:], binary.LittleEndian, &h); err != nil {
		return err
	}
	switch h.Magic {
	case macho.Magic64:
		f.wide = true
	case macho.Magic32:
		length = 28
	default:
		return fmt.Errorf("big-endian Mach-O for %s is not supported", cpuName(macho.Cpu(binary.BigEndian.Uint32(b[4:])), 0))
	}
	f.cpu, f.sub, f.fileType = h.Cpu, h.SubCpu, h.Type
	if uint64(length)+uint64(h.Cmdsz) > uint64(i.size) {
		return fmt.Errorf("%d bytes of load commands in an image of %d", h.Cmdsz, i.size)
	}
	commands := make([]byte, h.Cmdsz)
	if _, err := r.ReadAt(commands, int64(length)); err != nil && len(commands) > 0 {
		return errors.New("it ends inside its load commands")
	}
	i.format, i.laidOut = f, f.relocatable()
	for n, at := uint32(0), 0; n < h.Ncmd; n++ {
		fail := func(err error) error {
			return fmt.Errorf("load command %d at %#x: %w", n, length+at, err)
		}
		if len(commands)-at < 8 {
			return fail(fmt.Errorf("lies outside of the %d bytes of load commands", h.Cmdsz))
		}
		size := binary.LittleEndian.Uint32(commands[at+4:])
		if size < 8 || uint64(size) > uint64(len(commands)-at) {
			return fail(fmt.Errorf("claims %d bytes of %d that are left", size, len(commands)-at))
		}
		if err := f.command(commands[at : at+int(size)]); err != nil {
			return fail(err)
		}
		at += int(size)
	}
	return nil
}

// command decodes the load commands that this package needs.
func (f *machoFormat) command(b []byte) error {
	word := func(at int) uint64 { return uint64(binary.LittleEndian.Uint32(b[at:])) }
	short := fmt.Errorf("is %d bytes long", len(b))
	switch cmd := macho.LoadCmd(word(0)); cmd {
	case macho.LoadCmdSegment, macho.LoadCmdSegment64:
		return f.segment(b, cmd == macho.LoadCmdSegment64)
	case macho.LoadCmdSymtab:
		// Of several symbol tables the loader uses the last, but tools reject such an image.
		if f.symtab.Cmd != 0 {
			return errors.New("is a second symbol table")
		}
		if _, err := binary.Decode(b, binary.LittleEndian, &f.symtab); err != nil {
			return short
		}
	case machoDyldInfo, machoDyldInfo | machoRequired:
		if len(b) < 24 {
			return short
		}
		f.dyldInfo = machoExtent{word(16), word(20)}
	case machoChained:
		if len(b) < 16 {
			return short
		}
		f.chained = machoExtent{word(8), word(12)}
	}
	return nil
}

// segment adds the sections of a segment. An unlinked image has one unnamed segment, and its sections name the segment that they belong to.
func (f *machoFormat) segment(b []byte, wide bool) error {
	var seg macho.Segment64
	var narrow macho.Segment32
	var sec macho.Section64
	var narrowSec macho.Section32
	header, row := binary.Size(seg), binary.Size(sec)
	if !wide {
		header, row = binary.Size(narrow), binary.Size(narrowSec)
	}
	if len(b) < header {
		return fmt.Errorf("is %d bytes long", len(b))
	}
	if wide {
		_, _ = binary.Decode(b, binary.LittleEndian, &seg)
	} else {
		_, _ = binary.Decode(b, binary.LittleEndian, &narrow)
		seg = macho.Segment64{Addr: uint64(narrow.Addr), Memsz: uint64(narrow.Memsz),
			Offset: uint64(narrow.Offset), Filesz: uint64(narrow.Filesz), Nsect: narrow.Nsect}
	}
	if room := (len(b) - header) / row; uint64(seg.Nsect) > uint64(room) {
		return fmt.Errorf("claims %d sections and has room for %d", seg.Nsect, room)
	}
	f.segments = append(f.segments, machoSegment{seg.Addr, seg.Memsz, seg.Offset, seg.Filesz})
	for b = b[header:]; seg.Nsect > 0; seg.Nsect, b = seg.Nsect-1, b[row:] {
		if wide {
			_, _ = binary.Decode(b, binary.LittleEndian, &sec)
		} else {
			_, _ = binary.Decode(b, binary.LittleEndian, &narrowSec)
			sec = macho.Section64{Name: narrowSec.Name, Seg: narrowSec.Seg, Addr: uint64(narrowSec.Addr), Size: uint64(narrowSec.Size),
				Offset: narrowSec.Offset, Reloff: narrowSec.Reloff, Nreloc: narrowSec.Nreloc, Flags: narrowSec.Flags}
		}
		zeros := sec.Flags&sectionType == sectionZeros || sec.Flags&sectionType == sectionManyZeros || sec.Flags&sectionType == sectionThreadZeros
		f.sections = append(f.sections, machoSection{len(f.segments) - 1, sec.Addr, uint64(sec.Offset),
			machoExtent{uint64(sec.Reloff), 8 * uint64(sec.Nreloc)}})
		s := f.part(text16(sec.Seg)+","+text16(sec.Name), machoExtent{uint64(sec.Offset), sec.Size})
		s.Addr, s.Alloc, s.Exec = machine.Addr(sec.Addr), sec.Flags&sectionIsDebug == 0, sec.Flags&sectionIsCode != 0
		// A file that holds only debug information (dSYM) keeps the headers of the removed sections.
		s.Bits = !zeros && seg.Filesz > 0
		f.image.add(s)
	}
	return nil
}

// text16 returns a name, which ends with a zero byte only if it is shorter than its field.
func text16(b [16]byte) string {
	name, _, _ := bytes.Cut(b[:], []byte{0})
	return string(name)
}

// part makes a Section of a range of the file, so that it can be read like one.
func (f *machoFormat) part(name string, e machoExtent) *Section {
	return &Section{Name: name, Size: e.size, Bits: true, image: f.image,
		data: io.NewSectionReader(f.file, int64(e.off), int64(e.size))}
}

func (f *machoFormat) arch() (*machine.Arch, error) {
	switch {
	case f.cpu == macho.CpuAmd64 && f.wide:
		return machine.AMD64, nil
	// arm64_32 has the registers of arm64 and stores pointers in 4 bytes.
	case f.cpu == macho.CpuArm64 && f.wide, f.cpu == machoCPU32on64 && !f.wide:
		return machine.ARM64, nil
	}
	return nil, fmt.Errorf("Mach-O for %s is not supported", cpuName(f.cpu, f.sub))
}

// cpuName returns the name that Apple's tools give an architecture (mach/machine.h).
func cpuName(cpu macho.Cpu, sub uint32) string {
	const capabilities = 0xff000000
	switch sub &^= capabilities; {
	case cpu == macho.CpuAmd64 && sub == 8:
		return "x86_64h"
	case cpu == macho.CpuAmd64:
		return "x86_64"
	case cpu == macho.CpuArm64 && sub == 2:
		return "arm64e"
	case cpu == macho.CpuArm64:
		return "arm64"
	case cpu == machoCPU32on64:
		return "arm64_32"
	case cpu == macho.Cpu386:
		return "i386"
	case cpu == macho.CpuArm:
		return "arm"
	case cpu == macho.CpuPpc:
		return "ppc"
	case cpu == macho.CpuPpc64:
		return "ppc64"
	}
	return fmt.Sprintf("cpu %#x.%d", uint32(cpu), sub)
}

func (f *machoFormat) relocatable() bool { return f.fileType == machoObject }

// relative reports whether symbol values are offsets in their section; [machoFormat.table] converts those of an unlinked image.
func (f *machoFormat) relative() bool { return f.relocatable() }

func (f *machoFormat) stackMaps() string { return MachOStackMaps }

func (f *machoFormat) fileAddr(off uint64) (machine.Addr, bool) {
	for _, s := range f.segments {
		if off >= s.off && off-s.off < s.fileSize {
			return machine.Addr(s.addr + (off - s.off)), true
		}
	}
	return 0, false
}
