package machine

import "encoding/binary"

// I386 is x86 with pointers of 32 bits. Targets of it are not supported: the interpreter uses it to run modules of i386 to i686, so its table of
// registers is empty.
var I386 = newArch(Arch{Name: "386", Title: "32-bit x86", Pointer: 4, Order: binary.LittleEndian}, nil)
