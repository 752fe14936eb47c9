package machine

// Trampoline is the code that a signal handler returns to, which gives back the registers
// of what the signal interrupted.
type Trampoline struct {
	Code []byte // its instructions from the first, which the pc of its frame is at
	// Saved is where the kernel saved each register, in bytes from the stack pointer at
	// the first instruction: its first eight bytes. That of PC is the instruction
	// that the signal interrupted.
	Saved map[DWARFReg]int64
}

// words says where registers with consecutive numbers lie that were saved one after the other.
func words(first DWARFReg, count int, at int64, more map[DWARFReg]int64) map[DWARFReg]int64 {
	saved := map[DWARFReg]int64{}
	for i := range count {
		saved[first+DWARFReg(i)] = at + int64(word*i)
	}
	for r, at := range more {
		saved[r] = at
	}
	return saved
}
