package machine

import "encoding/binary"

// I386 is 32-bit x86. Its targets are not supported. The interpreter uses it to run modules for i386 to i686, so it has no register table.
var I386 = newArch(Arch{Name: "386", Title: "32-bit x86", Pointer: 4, Order: binary.LittleEndian}, nil)
