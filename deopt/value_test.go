package deopt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/frametest"
)

// bytesAt is memory with some bytes at an address.
type bytesAt struct {
	addr machine.Addr
	data []byte
}

func (m bytesAt) ReadMemory(p []byte, addr machine.Addr) error {
	if addr < m.addr || uint64(addr-m.addr)+uint64(len(p)) > uint64(len(m.data)) {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "not mapped"}
	}
	copy(p, m.data[addr-m.addr:])
	return nil
}

var (
	i1Type     = frame.Type{Kind: frame.Int, Bits: 1, Source: "i1"}
	i8Type     = frame.Type{Kind: frame.Int, Bits: 8, Source: "i8"}
	i32Type    = frame.Type{Kind: frame.Int, Bits: 32, Source: "i32"}
	i64Type    = frame.Type{Kind: frame.Int, Bits: 64, Source: "i64"}
	i128Type   = frame.Type{Kind: frame.Int, Bits: 128, Source: "i128"}
	doubleType = frame.Type{Kind: frame.Float, Bits: 64, Source: "double"}
	ptrType    = frame.Type{Kind: frame.Pointer, Bits: 64, Source: "ptr"}
)

// TestLocations reads every kind of location, with the sizes and offsets that LLVM writes for x86-64.
func TestLocations(t *testing.T) {
	regs := machine.NewRegisters(machine.AMD64, "not there")
	regs.SetUint(0, 0x1122334455667788)                                         // rax
	regs.SetUint(6, 0x7000)                                                     // rbp
	regs.SetUint(3, 0xffffffff_00000005)                                        // rbx: an i32 whose upper half is garbage
	regs.SetUint(12, 0xfe)                                                      // r12: an i1 whose upper bits are garbage
	regs.Set(17, append([]byte{0, 0, 0, 0, 0, 0, 4, 0x40}, make([]byte, 8)...)) // xmm0: 2.5 and eight zeros
	regs.Forget(1, frame.Because(frame.CallerSaved, "rdx", 0))
	memory := bytesAt{0x7000 - 16, []byte{
		0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, // rbp-16: -5
		1, 2, 3, 4, 5, 6, 7, 8, // rbp-8
	}}
	m := frametest.MapOf(t, []uint64{0x123456789abcdef, 1 << 63})
	r := &deopt.Reader{machine.AMD64, memory, regs, m}

	reg := func(n machine.DWARFReg, size uint16, bit int32) stackmap.Location {
		return stackmap.Location{Kind: stackmap.Register, Size: size, Reg: n, Offset: bit}
	}
	at := func(kind stackmap.Kind, size uint16, offset int32) stackmap.Location {
		return stackmap.Location{Kind: kind, Size: size, Reg: 6, Offset: offset}
	}
	constant := func(v int32) stackmap.Location {
		return stackmap.Location{Kind: stackmap.Constant, Size: 8, Offset: v}
	}
	index := func(v int32) stackmap.Location {
		return stackmap.Location{Kind: stackmap.ConstantIndex, Size: 8, Offset: v}
	}
	for _, c := range []struct {
		name   string
		typ    frame.Type
		l      stackmap.Location
		value  string
		hex    frame.Hex
		reason string
	}{
		{"register", i64Type, reg(0, 8, 0), "1234605616436508552", "0x1122334455667788", ""},
		{"ah is rax from bit 8", i8Type, reg(0, 1, 8), "119", "0x77", ""},
		{"al", i8Type, reg(0, 1, 0), "-120", "0x88", ""},
		{"truncated i32 keeps its register", i32Type, reg(3, 8, 0), "5", "0x5", ""},
		{"i1 with garbage above", i1Type, reg(12, 1, 0), "false", "0x0", ""},
		{"double in xmm", doubleType, reg(17, 16, 0), "2.5", "0x4004000000000000", ""},
		{"without a type all of it", frame.Type{}, reg(17, 16, 0), "", "0x4004000000000000", ""},
		{"no such bits", i8Type, reg(0, 1, 64), "", "", "bit 64 of rax, which has 64 bits"},
		{"half a byte", i8Type, reg(0, 1, 4), "", "", "bit 4 of rax, which has 64 bits"},
		{"negative bit", i8Type, reg(0, 1, -8), "", "", "bit -8 of rax, which has 64 bits"},
		{"wider than the register", i128Type, reg(0, 16, 0), "", "", "recorded with 16 bytes of rax, which has 8"},
		{"wider than what was recorded", i128Type, reg(0, 8, 0), "", "", "recorded with 8 bytes, and a value of type i128 has 16"},
		{"clobbered", i64Type, reg(1, 8, 0), "", "", "rdx is caller-saved and frame #0 does not preserve it"},
		{"unknown register", i64Type, reg(999, 8, 0), "", "", "dwarf register 999: not there"},
		{"direct", ptrType, at(stackmap.Direct, 8, -16), "0x6ff0", "0x6ff0", ""},
		{"indirect", i64Type, at(stackmap.Indirect, 8, -16), "-5", "0xfffffffffffffffb", ""},
		{"indirect of the whole", i128Type, at(stackmap.Indirect, 16, -16), "10670292136129081556345079656907538427", "0x807060504030201fffffffffffffffb", ""},
		{"indirect of four bytes", i32Type, at(stackmap.Indirect, 4, -8), "67305985", "0x4030201", ""},
		{"indirect outside", i64Type, at(stackmap.Indirect, 8, 0), "", "", "8 bytes at 0x7000: not mapped"},
		{"indirect half outside", i64Type, at(stackmap.Indirect, 8, -4), "", "", "8 bytes at 0x6ffc: not mapped"},
		{"indirect of nothing", i64Type, at(stackmap.Indirect, 0, -8), "", "", "recorded with a size of 0 bytes"},
		{"i32 0xFFFFFFFF and i64 -1 are recorded alike", i32Type, constant(-1), "-1", "0xffffffff", ""},
		{"constant", i64Type, constant(-1), "-1", "0xffffffffffffffff", ""},
		{"i1 true is -1 in LLVM 14", i1Type, constant(-1), "true", "0x1", ""},
		{"i1 true is 1 later", i1Type, constant(1), "true", "0x1", ""},
		{"null", ptrType, constant(0), "0x0", "0x0", ""},
		{"constant of more than 64 bits", i128Type, constant(-1), "", "", "a constant of 64 bits holds only a part of a value of 128 bits"},
		{"large constant", i64Type, index(0), "81985529216486895", "0x123456789abcdef", ""},
		{"large constant, the second", i64Type, index(1), "-9223372036854775808", "0x8000000000000000", ""},
		{"no such constant", i64Type, index(2), "", "", "constant index 2 is out of range; the table has 2 entries"},
		{"negative index", i64Type, index(-1), "", "", "constant index -1 is out of range; the table has 2 entries"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := r.Slot(4, "%x", c.typ, c.l)
			require.Equal(t, c.reason, s.Reason)
			require.Equal(t, c.value, s.Value)
			require.Equal(t, c.hex, s.Hex)
			require.Equal(t, c.reason != "", s.Status == frame.Missing)
			require.Equal(t, c.reason != "", s.Bytes == nil)
		})
	}
}

// TestRegistersOfOtherMachines covers registers that are only partly recorded, or whose bytes are not those of the value.
func TestRegistersOfOtherMachines(t *testing.T) {
	float := frame.Type{Kind: frame.Float, Bits: 32, Source: "float"}
	for _, c := range []struct {
		arch   *machine.Arch
		reg    machine.DWARFReg
		size   uint16
		holds  uint64
		typ    frame.Type
		value  string
		reason string
	}{
		{machine.ARM64, 30, 8, 7, i64Type, "7", ""},
		{machine.ARM64, 31, 8, 0x7000, i64Type, "", "register 31 is sp or the zero register, and the record does not distinguish them"},
		{machine.ARM64BE, 31, 8, 0x7000, i64Type, "", "register 31 is sp or the zero register, and the record does not distinguish them"},
		{machine.RISCV64, 2, 8, 0x7000, i64Type, "28672", ""},
		{machine.PPC64LE, 70, 4, 8, i1Type, "", "it is one bit of cr2, and the record does not give its number"},
		{machine.PPC64, 33, 8, 0x3ff8000000000000, float, "1.5", ""},
		{machine.PPC64LE, 33, 8, 0x3ff8000000000000, float, "1.5", ""},
		{machine.PPC64LE, 33, 8, 0x3ff8000000000000, doubleType, "1.5", ""},
		{machine.PPC64LE, 33, 8, 0x36a0000000000000, float, "1e-45", ""},
	} {
		regs := machine.NewRegisters(c.arch, "not there")
		info, _ := c.arch.Register(c.reg)
		b := make([]byte, info.Size)
		if low := b[:min(8, len(b))]; c.arch.BigEndian() { // the low bits are in the last bytes
			c.arch.PutUint(b[len(b)-len(low):], c.holds)
		} else {
			c.arch.PutUint(low, c.holds)
		}
		regs.Set(c.reg, b)
		r := &deopt.Reader{c.arch, bytesAt{}, regs, frametest.MapOf(t, nil)}
		s := r.Slot(0, "%v", c.typ, stackmap.Location{Kind: stackmap.Register, Size: c.size, Reg: c.reg})
		require.Equal(t, c.reason, s.Reason, "%s %d", c.arch.Name, c.reg)
		require.Equal(t, c.value, s.Value, "%s %d %s", c.arch.Name, c.reg, c.typ.Source)
	}
}

// TestRegisterOfTheReturnAddress requires that a value in the link register is lost while a call runs, on architectures whose calls put the
// return address there.
func TestRegisterOfTheReturnAddress(t *testing.T) {
	for _, arch := range []*machine.Arch{machine.ARM64, machine.RISCV64, machine.S390X, machine.PPC64LE} {
		regs := machine.NewRegisters(arch, "not there")
		regs.SetUint(arch.Link, 77)
		f := &unwind.Frame{Registers: regs}
		for moment, read := range map[frame.Moment]bool{frame.InCall: false, frame.Before: true} {
			_, err := (&deopt.Match{Moment: moment}).RegistersAt(f, arch).Uint(arch.Link)
			if read {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "the call has overwritten "+arch.RegisterName(arch.Link)+" with its return address")
			}
		}
		v, err := regs.Uint(arch.Link)
		require.NoError(t, err)
		require.EqualValues(t, 77, v)
	}
}
