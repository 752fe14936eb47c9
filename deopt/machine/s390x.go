package machine

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// S390X is z/Architecture. The numbers are those of "ELF Application Binary Interface
// s390x Supplement", "DWARF Register Number Mapping"; what a callee preserves is in its
// section 1.2.1, "Registers".
//
// f0 to f15 are recorded at their widest, the vector registers v0 to v15, of which they
// are the first half. Of v8 to v15 a callee preserves that half alone, so that they
// do not count as preserved. a0 and a1 hold the thread's pointer.
var S390X = newArch(Arch{
	Name: "s390x", Title: "s390x", Pointer: 8, Order: binary.BigEndian,
	SP: 15, FP: 11, PC: 65, Link: 14,
}, s390xRows(), alias{"f", 16, "v", 0})

func s390xRows() []RegisterInfo {
	list := slices.Concat(
		rows(0, "r", 0, 6, RegisterInfo{Size: 8}),
		rows(6, "r", 6, 8, RegisterInfo{Size: 8, Kept: 8}),
		[]RegisterInfo{{14, "r14", 8, 0, General}, {15, "r15", 8, 8, General}},
		rows(48, "a", 0, 2, RegisterInfo{Size: 4, Class: Special, Kept: 4}),
		rows(50, "a", 2, 14, RegisterInfo{Size: 4, Class: Special}),
	)
	// In each eight of them the even ones come first.
	for n := range 32 {
		number := n&^7 | n<<1&6 | n>>2&1
		r := RegisterInfo{DWARFReg(16 + n), fmt.Sprintf("f%d", number), 16, 0, Vector}
		if n >= 16 {
			r.DWARF, r.Name = DWARFReg(68+n-16), fmt.Sprintf("v%d", number)
		}
		list = append(list, r)
	}
	return list
}
