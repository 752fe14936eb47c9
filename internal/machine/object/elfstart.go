package object

import (
	"debug/elf"

	"example.com/reframe/internal/machine"
)

// Start returns the entry point of the image (e_entry; System V ABI, chapter 4), and false if it has none. Some shared objects, such as the dynamic
// linker, have one too.
func (i *Image) Start() (machine.Addr, bool) {
	f, ok := i.format.(*elfFormat)
	if !ok || f.file.Type != elf.ET_EXEC && f.file.Type != elf.ET_DYN || f.file.Entry == 0 {
		return 0, false
	}
	return machine.Addr(f.file.Entry) + i.Bias, true
}
