package object

import (
	"debug/elf"
	"fmt"
	"io"
	"strings"

	"example.com/reframe/internal/machine"
)

// elfFormat is an ELF image (System V ABI, chapters 4 and 5).
type elfFormat struct {
	image *Image
	file  *elf.File

	// These are the bytes of the section .opd, for [Image.Entry]; nil until they are needed.
	opd     []byte
	opdAddr machine.Addr
	unknown map[uint64]bool // offsets in .opd without a known address
}

// StackMapSection is the name of the section that holds LLVM's stack maps in an ELF image.
const StackMapSection = ".llvm_stackmaps"

func isELF(magic [4]byte) bool { return string(magic[:]) == elf.ELFMAG }

func (i *Image) openELF(r *io.SectionReader) error {
	var head [18]byte // the header up to e_type
	if _, err := r.ReadAt(head[:], 0); err == nil && head[16]|head[17] == byte(elf.ET_CORE) {
		return ErrCore // do not parse further: the contents of a core may be truncated
	}
	if err := checkHeader(r, i.size); err != nil {
		return err
	}
	f, err := elf.NewFile(r)
	if err != nil {
		return err
	}
	i.format = &elfFormat{image: i, file: f}
	left := &allowance{bytes: maxInflated}
	for _, s := range f.Sections {
		sec := &Section{
			Name: s.Name, Addr: machine.Addr(s.Addr), Size: s.Size,
			Alloc: s.Flags&elf.SHF_ALLOC != 0, Exec: s.Flags&elf.SHF_EXECINSTR != 0,
			Bits: s.Type != elf.SHT_NOBITS && s.Type != elf.SHT_NULL,
		}
		if s.ReaderAt != nil {
			sec.data = s.ReaderAt
		}
		if z := inflaterOf(s, left); z != nil {
			sec.data, sec.Size = z, z.size
			if name, ok := strings.CutPrefix(s.Name, ".zdebug_"); ok {
				sec.Name = ".debug_" + name
			}
		}
		i.add(sec)
	}
	return nil
}

func (f *elfFormat) arch() (*machine.Arch, error) {
	m, class, data := f.file.Machine, f.file.Class, f.file.Data
	// x32 has the same registers and stack maps as x86-64.
	if a := elfArchs[m][data]; a != nil && (class == elf.ELFCLASS64 || m == elf.EM_X86_64) {
		return a, nil
	}
	return nil, fmt.Errorf("%v %v %v is not supported", class, m, data)
}

// elfArchs maps the machine and byte order of 64-bit images to architectures.
var elfArchs = map[elf.Machine]map[elf.Data]*machine.Arch{
	elf.EM_X86_64:    {elf.ELFDATA2LSB: machine.AMD64},
	elf.EM_AARCH64:   {elf.ELFDATA2LSB: machine.ARM64, elf.ELFDATA2MSB: machine.ARM64BE},
	elf.EM_PPC64:     {elf.ELFDATA2LSB: machine.PPC64LE, elf.ELFDATA2MSB: machine.PPC64},
	elf.EM_RISCV:     {elf.ELFDATA2LSB: machine.RISCV64},
	elf.EM_S390:      {elf.ELFDATA2MSB: machine.S390X},
	elf.EM_LOONGARCH: {elf.ELFDATA2LSB: machine.LOONG64},
}

func (f *elfFormat) relocatable() bool { return f.file.Type == elf.ET_REL }

// relative reports whether the value of a symbol is an offset in its section, as in an unlinked image.
func (f *elfFormat) relative() bool { return f.relocatable() }

func (f *elfFormat) stackMaps() string { return StackMapSection }

func (f *elfFormat) fileAddr(off uint64) (machine.Addr, bool) {
	for _, p := range f.file.Progs {
		// A mapping starts at a page, so it may start before its segment does.
		start := p.Off &^ 0xfff
		if p.Type == elf.PT_LOAD && off >= start && off < p.Off+p.Filesz {
			return machine.Addr(p.Vaddr - p.Off + off), true
		}
	}
	return 0, false
}
