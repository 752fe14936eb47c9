package object

import (
	"debug/elf"
	"fmt"
	"io"

	"reframe/deopt/machine"
)

// elfFormat is an ELF image (System V ABI, chapters 4 and 5).
type elfFormat struct {
	image *Image
	file  *elf.File
}

// StackMapSection is the name that LLVM gives the stack maps of an ELF image.
const StackMapSection = ".llvm_stackmaps"

func isELF(magic [4]byte) bool { return string(magic[:]) == elf.ELFMAG }

func (i *Image) openELF(r *io.SectionReader) error {
	if err := checkHeader(r, i.size); err != nil {
		return err
	}
	f, err := elf.NewFile(r)
	if err != nil {
		return err
	}
	i.format = &elfFormat{i, f}
	for _, s := range f.Sections {
		sec := &Section{
			Name: s.Name, Addr: machine.Addr(s.Addr), Size: s.Size,
			Alloc: s.Flags&elf.SHF_ALLOC != 0, Exec: s.Flags&elf.SHF_EXECINSTR != 0,
			Bits: s.Type != elf.SHT_NOBITS && s.Type != elf.SHT_NULL,
		}
		if s.ReaderAt != nil {
			sec.data = s.ReaderAt
		}
		i.add(sec)
	}
	return nil
}

func (f *elfFormat) arch() (*machine.Arch, error) {
	if f.file.Machine == elf.EM_X86_64 && f.file.Class == elf.ELFCLASS64 {
		return machine.AMD64, nil
	}
	return nil, fmt.Errorf("%v %v is not supported yet", f.file.Class, f.file.Machine)
}

func (f *elfFormat) relocatable() bool { return f.file.Type == elf.ET_REL }

// relative: the value of a symbol is an address only once the image is linked.
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
