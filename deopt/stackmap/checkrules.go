package stackmap

import (
	"fmt"

	"example.com/reframe/internal/machine"
)

// The rules, as indexes of the results.
const (
	ruleCounts = iota
	ruleReserved
	ruleAddress
	ruleInside
	ruleBoundary
	ruleRegisters
	ruleSizes
	ruleFields
	ruleConstants
	ruleLiveOuts
)

// In the facts, "Stack Map Format" is a section of docs/StackMaps.rst, and StackMaps.cpp is LLVM's lib/CodeGen/StackMaps.cpp.
var rules = [...]Rule{
	ruleCounts: {"record counts add up",
		"the header counts all records of the map, and each function its own (\"Stack Map Format\", NumRecords and RecordCount)"},
	ruleReserved: {"reserved fields are zero",
		"the format reserves the flags of a record and pads locations, live-outs and their lists; every LLVM writes zeros there (StackMaps.cpp)"},
	ruleAddress: {"functions are in executable memory",
		"a function's address is that of its code (\"Stack Map Format\", Function Address), so that it can be executed"},
	ruleInside: {"offsets are inside their function",
		"an offset is that of an instruction from the start of its function (\"Stack Map Format\", Instruction Offset); one equal to the function's length is the return address of a call at its end that does not return"},
	ruleBoundary: {"offsets are on instruction boundaries",
		"a site starts, or its call ends, between two instructions; they are decoded from the start of the function, since LLVM puts only instructions there"},
	ruleRegisters: {"registers are the architecture's",
		"registers have the DWARF numbers of the architecture's ABI; LLVM keeps values in registers that it allocates, and addresses in general registers"},
	ruleSizes: {"sizes fit their registers",
		"a register location has the size of the value's spill slot, a live-out that of its live bytes; for a part of a register, the location's offset is the part's first bit (StackMaps.cpp)"},
	ruleFields: {"memory and constants have valid sizes",
		"an address (Direct) has the size of a pointer, a value in memory (Indirect) a size above 0, and a constant 8 bytes and register number 0 (StackMaps.cpp, parseOperand)"},
	ruleConstants: {"constant indexes are in range",
		"a ConstantIndex is the number of an entry of its own map's constant table (\"Stack Map Format\", LargeConstant)"},
	ruleLiveOuts: {"each live-out is listed once",
		"the live-outs of a record are sorted by their register numbers and those with the same number are merged (StackMaps.cpp, parseRegisterLiveOutMask)"},
}

// record checks the fields of one record. It does not check the record's offset in the code.
func (c *checker) record(p spot) {
	r := p.record
	c.results[ruleReserved].Checked += 4 + len(r.LiveOuts) // flags, two paddings, the reserved field before the live-outs' count
	if p.m.layout.locationSize > 8 {
		c.results[ruleReserved].Checked += 2 * len(r.Locations)
	}
	if r.Flags != 0 {
		c.broken(ruleReserved, p, "the flags of record %d are %#x", r.ID, r.Flags)
	}
	for i, l := range r.Locations {
		c.location(p, i, l)
	}
	for i := range r.Extra {
		for _, n := range r.Extra[i] {
			if n >= 0 {
				c.register(p, machine.DWARFReg(n), func() string { return fmt.Sprintf("an extra location of location %d", i) })
			}
		}
	}
	if len(r.LiveOuts) > 0 {
		c.results[ruleLiveOuts].Checked++
	}
	ordered := true
	for i, l := range r.LiveOuts {
		of := func() string { return fmt.Sprintf("live-out %d", i) }
		if info, ok := c.register(p, l.Reg, of); ok {
			c.results[ruleSizes].Checked++
			if l.Size == 0 || int(l.Size) > c.liveWidth(info) {
				c.broken(ruleSizes, p, "live-out %d of record %d: %d bytes of %s, which has %d", i, r.ID, l.Size, info.Name, info.Size)
			}
		}
		if i > 0 && ordered && r.LiveOuts[i-1].Reg >= l.Reg {
			ordered = false
			c.broken(ruleLiveOuts, p, "live-out %d of record %d is register %d, after register %d", i, r.ID, l.Reg, r.LiveOuts[i-1].Reg)
		}
	}
}

// liveWidth returns the maximum size of a live-out of a register. This includes registers that share its DWARF number: on 64-bit Power, a pair of the
// vector registers v0 to v31 has the number of its first register (LLVM's PPCRegisterInfo.td, VSRPair).
func (c *checker) liveWidth(info machine.RegisterInfo) int {
	const v0, v31 = 77, 108
	power := c.arch == machine.PPC64 || c.arch == machine.PPC64LE
	if power && info.DWARF >= v0 && info.DWARF <= v31 && (info.DWARF-v0)%2 == 0 {
		return 2 * info.Size
	}
	return info.Size
}

// location checks location i of p's record.
func (c *checker) location(p spot, i int, l Location) {
	r := p.record
	switch l.Kind {
	case Constant, ConstantIndex:
		c.results[ruleFields].Checked++
		switch {
		case l.Size != 8:
			c.broken(ruleFields, p, "location %d of record %d: a constant of %d bytes", i, r.ID, l.Size)
		case l.Reg != 0:
			c.broken(ruleFields, p, "location %d of record %d: a constant with register %d", i, r.ID, l.Reg)
		}
		if l.Kind == ConstantIndex {
			c.results[ruleConstants].Checked++
			if _, err := p.m.Constant(l); err != nil {
				c.broken(ruleConstants, p, "location %d of record %d: %v", i, r.ID, err)
			}
		}
		return
	case Indirect:
		c.results[ruleFields].Checked++
		if l.Size == 0 {
			c.broken(ruleFields, p, "location %d of record %d: an Indirect location of 0 bytes", i, r.ID)
		}
	case Direct:
		c.results[ruleFields].Checked++
		switch {
		case c.arch == nil:
			c.results[ruleFields].AddUnknown("the size of a pointer is not known")
		case int(l.Size) != c.pointer():
			c.broken(ruleFields, p, "location %d of record %d: an address of %d bytes; a pointer has %d", i, r.ID, l.Size, c.pointer())
		}
	}
	info, ok := c.register(p, l.Reg, func() string { return fmt.Sprintf("location %d", i) })
	switch {
	case !ok:
	case l.Kind == Register:
		c.part(p, i, l, info)
	case info.Class != machine.General:
		c.broken(ruleRegisters, p, "location %d of record %d: %s cannot hold an address", i, r.ID, info.Name)
	}
}

// pointer returns the size of an address. The architecture must be known.
func (c *checker) pointer() int {
	if c.code != nil {
		return c.code.Pointer()
	}
	return c.arch.Pointer
}

// part checks the size and bit offset of a Register location i of p's record.
func (c *checker) part(p spot, i int, l Location, info machine.RegisterInfo) {
	c.results[ruleSizes].Checked++
	first, bits := int64(l.Offset), int64(8*info.Size)
	switch {
	case l.Size == 0 || int(l.Size) > info.Size:
		c.broken(ruleSizes, p, "location %d of record %d: %d bytes of %s, which has %d", i, p.record.ID, l.Size, info.Name, info.Size)
	case p.m.layout.variables:
		// ykllvm writes the spill location of the value into this field.
	case info.Class == machine.Flags && first >= 0 && first < bits:
		// LLVM records one bit of a condition register with the size of its spill slot.
	case first < 0 || first+int64(l.Size)*8 > bits:
		c.broken(ruleSizes, p, "location %d of record %d: %d bytes from bit %d of %s, which has %d bits", i, p.record.ID, l.Size, first, info.Name, bits)
	}
}

// register checks that the architecture has a register with this number that can hold values, and returns it.
func (c *checker) register(p spot, reg machine.DWARFReg, of func() string) (machine.RegisterInfo, bool) {
	if c.arch == nil {
		return machine.RegisterInfo{}, false
	}
	c.results[ruleRegisters].Checked++
	info, ok := c.arch.Register(reg)
	if ok && info.Class != machine.Special {
		return info, true
	}
	where := of()
	if p.record != nil {
		where += fmt.Sprintf(" of record %d", p.record.ID)
	}
	if ok {
		c.broken(ruleRegisters, p, "%s: %s cannot hold values", where, info.Name)
	} else {
		c.broken(ruleRegisters, p, "%s: %s has no register with number %d", where, c.arch.Title, reg)
	}
	return info, false
}

// prologue checks the saved registers that the prologue of function i of p's map lists.
func (c *checker) prologue(p spot, i int) {
	saved, ok := p.m.Prologue(i)
	if !ok {
		return
	}
	c.results[ruleReserved].Checked += 1 + len(saved.Saved)
	for n, s := range saved.Saved {
		c.register(p, s.Reg, func() string { return fmt.Sprintf("saved register %d", n) })
	}
}
