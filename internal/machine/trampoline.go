package machine

// Trampoline is the code that a signal handler returns to, which restores the registers of the code that the signal interrupted.
type Trampoline struct {
	Code []byte // its instructions from the first, where the pc of its frame is
	// Saved holds the place where the kernel saved the first eight bytes of each register, in bytes from the stack pointer at the first
	// instruction. That of PC is the instruction that the signal interrupted.
	Saved map[DWARFReg]int64
}

// words returns the places of registers with consecutive numbers that were saved one after the other.
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
