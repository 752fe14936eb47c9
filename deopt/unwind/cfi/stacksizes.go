package cfi

import (
	"fmt"

	"example.com/reframe/internal/machine"
)

// StackSizes holds the contents of the .stack_sizes sections of an image: the stack usage of each function. LLVM writes them for ELF with
// -stack-size-section.
//
// The following was measured with LLVM 14, 19 and 22. The size is the distance from the stack pointer in the body of the function, outside of calls,
// to the caller's stack pointer. A return address that the call pushed (x86-64) is not included. So the CFA is the stack pointer plus the size, plus
// 8 on x86-64 and 160 on s390x. A stack map has the same size for the function. The size includes saved registers, and a return address that the
// function itself saved. It excludes arguments pushed for one call, the red zone of a leaf, and part of the space for realigning the stack: such a
// frame is larger. A function whose stack usage is known only at run time is not listed.
type StackSizes struct {
	sizes map[machine.Addr]stackSize
}

type stackSize struct {
	bytes     uint64
	ambiguous bool
}

const stackSizes = ".stack_sizes"

// ReadStackSizes reads the relocated .stack_sizes sections of an image; objects have one for each section of code. bias is added to the addresses in
// them. Each row is the address of a function and an unsigned LEB128 number. ReadStackSizes returns an error for an unsupported architecture, and a
// [*FormatError] for a truncated row.
func ReadStackSizes(arch *machine.Arch, bias machine.Addr, sections ...[]byte) (*StackSizes, error) {
	if arch == nil || arch.Pointer != 8 {
		return nil, fmt.Errorf("unwind: %s is supported only for addresses of 8 bytes", stackSizes)
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

// add records a size. Linkers may leave several rows for one address, from functions that they folded or dropped. If these differ, the size is
// unknown.
func (s *StackSizes) add(start machine.Addr, size uint64) {
	if have, ok := s.sizes[start]; ok && (have.ambiguous || have.bytes != size) {
		s.sizes[start] = stackSize{ambiguous: true}
		return
	}
	s.sizes[start] = stackSize{bytes: size}
}

// Find returns the stack usage in bytes of the function that starts at start, or false if it is unknown.
func (s *StackSizes) Find(start machine.Addr) (uint64, bool) {
	size, ok := s.sizes[start]
	return size.bytes, ok && !size.ambiguous
}
