package machine

// Trampoline is the code that a signal handler returns to. It restores the registers of the interrupted code.
type Trampoline struct {
	Code []byte // its instructions; the pc of its frame is the address of the first
	// Saved maps registers to the offset at which the kernel saved their first eight bytes, from the stack pointer at the first instruction. The offset of
	// PC holds the address of the interrupted instruction.
	Saved map[DWARFReg]int64
}

// words returns the offsets of count registers with consecutive numbers that were saved one after the other, and the entries of more.
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
