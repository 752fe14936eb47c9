package stackmap_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
)

// This example parses a section with one record, which has a value in a register and one in the frame. The addresses are those that the linker or
// the JIT wrote.
func ExampleParse() {
	section, err := hex.DecodeString("03000000" + "01000000" + "00000000" + "01000000" + // version 3, 1 function, no constants, 1 record
		"0010400000000000" + "1800000000000000" + "0100000000000000" + // the function at 0x401000, its frame of 24 bytes, 1 record
		"0700000000000000" + "2a000000" + "0000" + "0200" + // record 7 at offset 0x2a, 2 locations
		"01000800" + "03000000" + "00000000" + // 8 bytes, in rbx
		"03000400" + "07000000" + "10000000" + // 4 bytes, in memory at rsp+16
		"0000" + "0000" + "00000000") // no live-outs, and padding
	if err != nil {
		panic(err)
	}
	s, err := stackmap.Parse(section, stackmap.Options{Order: binary.LittleEndian})
	if err != nil {
		panic(err)
	}
	found := stackmap.NewIndex(s.Maps...).At(0x40102a)
	for i := range found.Len() {
		e := found.Entry(i)
		fmt.Printf("record %d of the function at %v, whose frame has %d bytes\n", e.Record().ID, e.Function.Addr, e.Function.StackSize)
		for _, l := range e.Record().Locations {
			fmt.Println("-", l.Size, "bytes,", l.Kind, machine.AMD64.RegisterName(l.Reg), l.Offset)
		}
	}
	// Output:
	// record 7 of the function at 0x401000, whose frame has 24 bytes
	// - 8 bytes, Register rbx 0
	// - 4 bytes, Indirect rsp 16
}
