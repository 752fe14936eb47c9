package abi

import "example.com/reframe/internal/machine"

// PointerArgument returns the register that holds argument n of a function of C at its entry, if all arguments up to it are pointers or integers. It
// returns false if that argument is on the stack, or the architecture's convention is not known.
func PointerArgument(n int, arch *machine.Arch) (machine.DWARFReg, bool) {
	list := argumentRegistersOf[arch].integers
	if n < 0 || n >= len(list) {
		return 0, false
	}
	return list[n], true
}
