package remote

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/files"
)

// bigEndian maps an architecture whose target description does not give the byte order to its big-endian variant.
var bigEndian = map[*machine.Arch]*machine.Arch{machine.ARM64: machine.ARM64BE, machine.PPC64LE: machine.PPC64}

var errOrder = errors.New("the byte order is unknown: the stub does not provide the auxiliary vector (qXfer:auxv:read), and the registers fit both orders or none; give the program with --exe")

// orderOf selects the byte order of an architecture: the one in which the first entry of the auxiliary vector is valid or, without a vector, the one
// in which the program counter and the stack pointer can be addresses. Both orders may fit, because a machine's stack pointer is 0 after reset. In
// that case orderOf uses the byte order of the program's file, if there is one.
func orderOf(a *machine.Arch, auxv []byte, v values, program string) (*machine.Arch, error) {
	big := bigEndian[a]
	if big == nil {
		return a, nil
	}
	fits := func(order binary.ByteOrder) bool {
		if len(auxv) >= 8 {
			const most = 1 << 10 // the types in linux/auxvec.h are below 64
			first := order.Uint64(auxv)
			return first > 0 && first < most
		}
		for _, names := range [][]string{{"pc"}, {"sp", "r1"}} {
			for _, name := range names {
				if b := v[name]; len(b) == 8 && (order.Uint64(b)&3 != 0 || order.Uint64(b)>>48 != 0 && order.Uint64(b)>>48 != 0xffff) {
					return false
				}
			}
		}
		return v["pc"] != nil
	}
	switch little, also := fits(binary.LittleEndian), fits(binary.BigEndian); {
	case little && !also:
		return a, nil
	case also && !little:
		return big, nil
	}
	switch orderOfFile(program) {
	case elf.ELFDATA2LSB:
		return a, nil
	case elf.ELFDATA2MSB:
		return big, nil
	}
	return nil, errOrder
}

// orderOfFile returns the byte order of an ELF file, or ELFDATANONE if the file cannot be read.
func orderOfFile(name string) elf.Data {
	if name == "" {
		return elf.ELFDATANONE
	}
	f, err := files.OpenRegular(name, 0) // opening a pipe would block
	if err != nil {
		return elf.ELFDATANONE
	}
	defer f.Close()
	var ident [elf.EI_NIDENT]byte
	if _, err := io.ReadFull(f, ident[:]); err != nil || string(ident[:4]) != elf.ELFMAG {
		return elf.ELFDATANONE
	}
	return elf.Data(ident[elf.EI_DATA])
}
