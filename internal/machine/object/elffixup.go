package object

import (
	"debug/elf"
	"encoding/binary"
	"strings"
)

// fixup describes the effect of a relocation on its place. As in all ABIs named below, S is the address of the symbol, A the addend, and P the address of
// the place.
type fixup struct {
	size   int // size of the place in bytes
	action action
}

type action uint8

const (
	absoluteTo     action = iota // S + A
	relativeTo                   // S + A - P
	halfRelativeTo               // (S + A - P) / 2
	plus                         // old value + S + A
	minus                        // old value - S - A
	lowSixBits                   // S + A, in the low six bits of a byte
	plusSixBits                  // old value + S + A, in the low six bits of a byte
	minusSixBits                 // old value - S - A, in the low six bits of a byte
	nothing                      // a hint to the linker
)

// fixups lists the relocations that store a whole number. They occur in data, unwind information and debug information, and some in code.
//
// Sources: System V ABI, AMD64 supplement, table 4.10; ELF for the Arm 64-bit Architecture, 5.7;
// 64-bit PowerPC ELF ABI 1.9, 4.5.1, and OpenPOWER ELFv2 ABI, 3.5.3; RISC-V ELF psABI, 8.4; s390x ELF
// ABI supplement, 2.5; ELF for the LoongArch Architecture, table 3.
var fixups = map[elf.Machine]map[uint32]fixup{
	elf.EM_X86_64: {
		uint32(elf.R_X86_64_NONE): {0, nothing}, uint32(elf.R_X86_64_64): {8, absoluteTo}, uint32(elf.R_X86_64_PC64): {8, relativeTo},
		uint32(elf.R_X86_64_32): {4, absoluteTo}, uint32(elf.R_X86_64_32S): {4, absoluteTo},
		uint32(elf.R_X86_64_PC32): {4, relativeTo}, uint32(elf.R_X86_64_PLT32): {4, relativeTo},
		uint32(elf.R_X86_64_16): {2, absoluteTo}, uint32(elf.R_X86_64_PC16): {2, relativeTo},
		uint32(elf.R_X86_64_8): {1, absoluteTo}, uint32(elf.R_X86_64_PC8): {1, relativeTo},
	},
	elf.EM_AARCH64: {
		uint32(elf.R_AARCH64_NONE): {0, nothing}, uint32(elf.R_AARCH64_NULL): {0, nothing},
		uint32(elf.R_AARCH64_ABS64): {8, absoluteTo}, uint32(elf.R_AARCH64_ABS32): {4, absoluteTo}, uint32(elf.R_AARCH64_ABS16): {2, absoluteTo},
		uint32(elf.R_AARCH64_PREL64): {8, relativeTo}, uint32(elf.R_AARCH64_PREL32): {4, relativeTo}, uint32(elf.R_AARCH64_PREL16): {2, relativeTo},
		aarch64PLT32: {4, relativeTo},
	},
	elf.EM_PPC64: {
		uint32(elf.R_PPC64_NONE): {0, nothing}, uint32(elf.R_PPC64_ADDR64): {8, absoluteTo}, uint32(elf.R_PPC64_UADDR64): {8, absoluteTo},
		uint32(elf.R_PPC64_ADDR32): {4, absoluteTo}, uint32(elf.R_PPC64_ADDR16): {2, absoluteTo},
		uint32(elf.R_PPC64_REL64): {8, relativeTo}, uint32(elf.R_PPC64_REL32): {4, relativeTo},
	},
	elf.EM_RISCV: {
		uint32(elf.R_RISCV_NONE): {0, nothing}, uint32(elf.R_RISCV_RELAX): {0, nothing}, uint32(elf.R_RISCV_ALIGN): {0, nothing},
		uint32(elf.R_RISCV_64): {8, absoluteTo}, uint32(elf.R_RISCV_32): {4, absoluteTo},
		uint32(elf.R_RISCV_32_PCREL): {4, relativeTo}, riscvPLT32: {4, relativeTo},
		uint32(elf.R_RISCV_ADD8): {1, plus}, uint32(elf.R_RISCV_ADD16): {2, plus}, uint32(elf.R_RISCV_ADD32): {4, plus}, uint32(elf.R_RISCV_ADD64): {8, plus},
		uint32(elf.R_RISCV_SUB8): {1, minus}, uint32(elf.R_RISCV_SUB16): {2, minus}, uint32(elf.R_RISCV_SUB32): {4, minus}, uint32(elf.R_RISCV_SUB64): {8, minus},
		uint32(elf.R_RISCV_SET6): {1, lowSixBits}, uint32(elf.R_RISCV_SUB6): {1, minusSixBits},
		uint32(elf.R_RISCV_SET8): {1, absoluteTo}, uint32(elf.R_RISCV_SET16): {2, absoluteTo}, uint32(elf.R_RISCV_SET32): {4, absoluteTo},
	},
	elf.EM_S390: {
		uint32(elf.R_390_NONE): {0, nothing}, uint32(elf.R_390_64): {8, absoluteTo}, uint32(elf.R_390_32): {4, absoluteTo},
		uint32(elf.R_390_16): {2, absoluteTo}, uint32(elf.R_390_8): {1, absoluteTo},
		uint32(elf.R_390_PC64): {8, relativeTo}, uint32(elf.R_390_PC32): {4, relativeTo}, uint32(elf.R_390_PC16): {2, relativeTo},
		uint32(elf.R_390_PC32DBL): {4, halfRelativeTo}, uint32(elf.R_390_PLT32DBL): {4, halfRelativeTo}, uint32(elf.R_390_PC16DBL): {2, halfRelativeTo},
	},
	elf.EM_LOONGARCH: {
		uint32(elf.R_LARCH_NONE): {0, nothing}, uint32(elf.R_LARCH_RELAX): {0, nothing}, uint32(elf.R_LARCH_ALIGN): {0, nothing},
		uint32(elf.R_LARCH_64): {8, absoluteTo}, uint32(elf.R_LARCH_32): {4, absoluteTo},
		uint32(elf.R_LARCH_64_PCREL): {8, relativeTo}, uint32(elf.R_LARCH_32_PCREL): {4, relativeTo},
		uint32(elf.R_LARCH_ADD8): {1, plus}, uint32(elf.R_LARCH_ADD16): {2, plus}, uint32(elf.R_LARCH_ADD32): {4, plus}, uint32(elf.R_LARCH_ADD64): {8, plus},
		uint32(elf.R_LARCH_SUB8): {1, minus}, uint32(elf.R_LARCH_SUB16): {2, minus}, uint32(elf.R_LARCH_SUB32): {4, minus}, uint32(elf.R_LARCH_SUB64): {8, minus},
		uint32(elf.R_LARCH_ADD6): {1, plusSixBits}, uint32(elf.R_LARCH_SUB6): {1, minusSixBits},
	},
}

// These kinds have no name in debug/elf.
const (
	aarch64PLT32 = 314
	riscvPLT32   = 59
)

// loadAddress reports whether a relocation of a linked image adds the load address to a place, and returns the size of that place.
func (f *elfFormat) loadAddress(kind uint32) (size int, ok bool) {
	word := f.word()
	switch f.file.Machine {
	case elf.EM_X86_64:
		if elf.R_X86_64(kind) == elf.R_X86_64_RELATIVE64 {
			return 8, true
		}
		return word, elf.R_X86_64(kind) == elf.R_X86_64_RELATIVE
	case elf.EM_AARCH64:
		return word, elf.R_AARCH64(kind) == elf.R_AARCH64_RELATIVE
	case elf.EM_PPC64:
		return word, elf.R_PPC64(kind) == elf.R_PPC64_RELATIVE
	case elf.EM_RISCV:
		return word, elf.R_RISCV(kind) == elf.R_RISCV_RELATIVE
	case elf.EM_S390:
		return word, elf.R_390(kind) == elf.R_390_RELATIVE
	case elf.EM_LOONGARCH:
		return word, elf.R_LARCH(kind) == elf.R_LARCH_RELATIVE
	}
	return 0, false
}

// kindName returns the name of a relocation, and false if it has none.
func kindName(m elf.Machine, kind uint32) (string, bool) {
	var s string
	switch m {
	case elf.EM_X86_64:
		s = elf.R_X86_64(kind).String()
	case elf.EM_AARCH64:
		s = elf.R_AARCH64(kind).String()
	case elf.EM_PPC64:
		s = elf.R_PPC64(kind).String()
	case elf.EM_RISCV:
		s = elf.R_RISCV(kind).String()
	case elf.EM_S390:
		s = elf.R_390(kind).String()
	case elf.EM_LOONGARCH:
		s = elf.R_LARCH(kind).String()
	}
	// debug/elf prints an unknown number as a known name plus a number.
	return s, strings.HasPrefix(s, "R_") && !strings.Contains(s, "+")
}

// apply changes the place p[:x.size], which lies at address at.
func (x fixup) apply(p []byte, value, at uint64, order binary.ByteOrder) {
	const six = 1<<6 - 1
	switch x.action {
	case absoluteTo:
		put(p, x.size, value, order)
	case relativeTo:
		put(p, x.size, value-at, order)
	case halfRelativeTo:
		put(p, x.size, uint64(int64(value-at)>>1), order)
	case plus:
		put(p, x.size, get(p, x.size, order)+value, order)
	case minus:
		put(p, x.size, get(p, x.size, order)-value, order)
	case lowSixBits:
		p[0] = p[0]&^six | byte(value)&six
	case plusSixBits:
		p[0] = p[0]&^six | (p[0]+byte(value))&six
	case minusSixBits:
		p[0] = p[0]&^six | (p[0]-byte(value))&six
	}
}
