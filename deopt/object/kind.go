package object

import (
	"debug/elf"
	"strings"
)

// Format says what kind of file the image is, such as "ELF object" or "Mach-O library".
func (i *Image) Format() string { return i.format.kind() }

func (f *elfFormat) kind() string {
	switch f.file.Type {
	case elf.ET_REL:
		return "ELF object"
	case elf.ET_EXEC:
		return "ELF executable"
	case elf.ET_DYN:
		return "ELF shared object or position-independent executable"
	}
	return "ELF file"
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

// SourceName returns what the source calls the function or variable of a symbol's name: Mach-O
// puts an underscore before each.
func (i *Image) SourceName(symbol string) string {
	if _, ok := i.format.(*machoFormat); ok {
		return strings.TrimPrefix(symbol, "_")
	}
	return symbol
}
