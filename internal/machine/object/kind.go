package object

import (
	"debug/elf"
	"strings"
)

// Format returns the format and kind of the image, such as "ELF object" or "Mach-O library".
func (i *Image) Format() string { return i.format.kind() }

func (f *elfFormat) kind() string {
	switch f.file.Type {
	case elf.ET_REL:
		return "ELF object"
	case elf.ET_EXEC:
		return "ELF executable"
	case elf.ET_DYN:
		if f.positionIndependent() {
			return "ELF position-independent executable"
		}
		return "ELF shared object"
	}
	return "ELF file"
}

// positionIndependent reports whether the linker marked a shared object as an executable
// (DF_1_PIE in DT_FLAGS_1).
func (f *elfFormat) positionIndependent() bool {
	const pie = 0x08000000
	flags, _ := f.dynamic(elf.DT_FLAGS_1)
	return flags&pie != 0
}

// dynamic returns the value of a tag in the dynamic section (System V ABI, chapter 5, "Dynamic Section").
func (f *elfFormat) dynamic(tag elf.DynTag) (value uint64, ok bool) {
	s := f.image.Section(".dynamic")
	if s == nil || f.file.Class != elf.ELFCLASS64 {
		return 0, false
	}
	rows, err := s.Data()
	for ; err == nil && len(rows) >= 16; rows = rows[16:] {
		if elf.DynTag(f.file.ByteOrder.Uint64(rows)) == tag {
			return f.file.ByteOrder.Uint64(rows[8:]), true
		}
	}
	return 0, false
}

func (f *coffFormat) kind() string {
	if f.linked {
		return "PE image"
	}
	return "COFF object"
}

func (f *machoFormat) kind() string {
	if f.relocatable() {
		return "Mach-O object"
	}
	return "Mach-O image"
}

// SourceName returns the source name of a symbol: Mach-O puts an underscore before each name.
func (i *Image) SourceName(symbol string) string {
	if _, ok := i.format.(*machoFormat); ok {
		return strings.TrimPrefix(symbol, "_")
	}
	return symbol
}

// Narrow reports whether the image has 4-byte addresses on a 64-bit architecture: x32 and arm64_32.
func (i *Image) Narrow() bool {
	switch f := i.format.(type) {
	case *elfFormat:
		return f.file.Class == elf.ELFCLASS32
	case *machoFormat:
		return f.cpu == machoCPU32on64
	}
	return false
}
