package cfi

import (
	"fmt"

	"example.com/reframe/internal/machine"
)

// StackSizes holds the contents of the .stack_sizes sections of an image (LLVM writes them for ELF with -stack-size-section): how much stack each
// function takes.
//
// Measured with LLVM 14, 19 and 22: the size is the distance from the stack pointer in the
// body of the function, outside of calls, up to that of its caller, without the return
// address where the call pushed it (x86-64). So CFI has the CFA there at the stack pointer plus the
// size, plus 8 on x86-64 and 160 on s390x; and the size is the one that the function has in a stack map. It
// counts saved registers, and a return address that the function itself saved. It does not
// count the arguments that are pushed for one call, nor the red zone of a leaf, nor all that
// realigning the stack takes: such a function's frame is larger. A function that takes stack
// by a size known only at run time is left out.
type StackSizes struct {
	sizes map[machine.Addr]stackSize
}

type stackSize struct {
	bytes     uint64
	ambiguous bool
}

const stackSizes = ".stack_sizes"

// ReadStackSizes reads the .stack_sizes sections of an image, whose relocations have
// been applied; objects have one for each section of code. bias is to be added to the
// addresses in them. Each row is the address of a function and an unsigned LEB128 number.
// Errors are an architecture that is not handled, and a [*FormatError] for a row that is cut off.
func ReadStackSizes(arch *machine.Arch, bias machine.Addr, sections ...[]byte) (*StackSizes, error) {
	if arch == nil || arch.Pointer != 8 {
		return nil, fmt.Errorf("unwind: %s is read for addresses of 8 bytes alone", stackSizes)
	}
	s := &StackSizes{sizes: map[machine.Addr]stackSize{}}
	for _, data := range sections {
		c := cursor{section: stackSizes, order: arch.Order, data: data}
		for c.more() {
			start, size := machine.Addr(c.u64()), c.uleb()
			if c.err == nil {
				s.add(start+bias, size)
			}
		}
		if c.err != nil {
			return nil, c.err
		}
	}
	return s, nil
}

// add keeps a size. Linkers may leave several rows for one address, of functions that they folded or dropped; if those differ, none of them is
// known to be right.
func (s *StackSizes) add(start machine.Addr, size uint64) {
	if have, ok := s.sizes[start]; ok && (have.ambiguous || have.bytes != size) {
		s.sizes[start] = stackSize{ambiguous: true}
		return
	}
	s.sizes[start] = stackSize{bytes: size}
}

// Find returns the bytes of stack that the function takes that starts at start, and false where
// they are not known.
func (s *StackSizes) Find(start machine.Addr) (uint64, bool) {
	size, ok := s.sizes[start]
	return size.bytes, ok && !size.ambiguous
}
