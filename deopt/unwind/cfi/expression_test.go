package cfi

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

func TestExpressions(t *testing.T) {
	regs := machine.NewRegisters(machine.AMD64, "not read")
	regs.SetUint(7, 0x7000)
	regs.SetUint(16, 0x401)
	memory := words{0x7000: 0x1122334455667788, 0x7008: 0xfedcba9876543210}
	const top = ^uint64(0)
	for _, test := range []struct {
		name string
		code []byte // initial stack: 0x500
		want uint64
		err  string
	}{
		{"nothing", nil, 0x500, ""},
		{"lit0", []byte{0x30}, 0, ""},
		{"lit31", []byte{0x4f}, 31, ""},
		{"addr", []byte{0x03, 1, 2, 3, 4, 5, 6, 7, 8}, 0x0807060504030201, ""},
		{"const1u", []byte{0x08, 0xff}, 255, ""},
		{"const1s", []byte{0x09, 0xff}, top, ""},
		{"const2u", []byte{0x0a, 0xfe, 0xff}, 65534, ""},
		{"const2s", []byte{0x0b, 0xfe, 0xff}, top - 1, ""},
		{"const4u", []byte{0x0c, 0xfd, 0xff, 0xff, 0xff}, 4294967293, ""},
		{"const4s", []byte{0x0d, 0xfd, 0xff, 0xff, 0xff}, top - 2, ""},
		{"const8u", []byte{0x0e, 1, 0, 0, 0, 0, 0, 0, 0x80}, 1<<63 + 1, ""},
		{"const8s", []byte{0x0f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, top, ""},
		{"constu", []byte{0x10, 0xe5, 0x8e, 0x26}, 624485, ""},
		{"consts", []byte{0x11, 0xc0, 0xbb, 0x78}, top - 123456 + 1, ""},
		{"consts, the least", []byte{0x11, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f}, 1 << 63, ""},
		{"breg7", []byte{0x77, 0x70}, 0x6ff0, ""},
		{"bregx", []byte{0x92, 16, 2}, 0x403, ""},
		{"dup", []byte{0x33, 0x12, 0x22}, 6, ""},
		{"drop", []byte{0x33, 0x13}, 0x500, ""},
		{"over", []byte{0x33, 0x14}, 0x500, ""},
		{"pick", []byte{0x31, 0x32, 0x33, 0x15, 2}, 1, ""},
		{"swap", []byte{0x33, 0x16}, 0x500, ""},
		{"rot", []byte{0x31, 0x32, 0x33, 0x17}, 2, ""},
		{"rot, second", []byte{0x31, 0x32, 0x33, 0x17, 0x13}, 1, ""},
		{"rot, third", []byte{0x31, 0x32, 0x33, 0x17, 0x13, 0x13}, 3, ""},
		{"deref", []byte{0x77, 8, 0x06}, 0xfedcba9876543210, ""},
		{"deref_size 1", []byte{0x77, 0, 0x94, 1}, 0x88, ""},
		{"deref_size 4", []byte{0x77, 4, 0x94, 4}, 0x11223344, ""},
		{"abs", []byte{0x09, 0x85, 0x19}, 123, ""},
		{"abs of a positive", []byte{0x35, 0x19}, 5, ""},
		{"and", []byte{0x3c, 0x3a, 0x1a}, 8, ""},
		{"div", []byte{0x09, 0xf6, 0x33, 0x1b}, top - 2, ""},
		{"minus", []byte{0x33, 0x35, 0x1c}, top - 1, ""},
		{"mod", []byte{0x09, 0xff, 0x3a, 0x1d}, 5, ""},
		{"mul", []byte{0x09, 0xff, 0x37, 0x1e}, top - 6, ""},
		{"neg", []byte{0x31, 0x1f}, top, ""},
		{"not", []byte{0x30, 0x20}, top, ""},
		{"or", []byte{0x3c, 0x3a, 0x21}, 14, ""},
		{"plus", []byte{0x3c, 0x3a, 0x22}, 22, ""},
		{"plus_uconst", []byte{0x3c, 0x23, 0x80, 1}, 140, ""},
		{"shl", []byte{0x33, 0x34, 0x24}, 48, ""},
		{"shl by 64", []byte{0x33, 0x08, 64, 0x24}, 0, ""},
		{"shr", []byte{0x09, 0xff, 0x08, 60, 0x25}, 15, ""},
		{"shra", []byte{0x09, 0xf0, 0x32, 0x26}, top - 3, ""},
		{"shra by 200", []byte{0x09, 0xf0, 0x08, 200, 0x26}, top, ""},
		{"xor", []byte{0x3c, 0x3a, 0x27}, 6, ""},
		{"eq", []byte{0x33, 0x33, 0x29}, 1, ""},
		{"ge, signed", []byte{0x09, 0xff, 0x33, 0x2a}, 0, ""},
		{"gt", []byte{0x34, 0x33, 0x2b}, 1, ""},
		{"le", []byte{0x34, 0x33, 0x2c}, 0, ""},
		{"lt, signed", []byte{0x09, 0xff, 0x33, 0x2d}, 1, ""},
		{"ne", []byte{0x33, 0x33, 0x2e}, 0, ""},
		{"skip", []byte{0x31, 0x2f, 1, 0, 0x32}, 1, ""},
		{"bra taken", []byte{0x35, 0x31, 0x28, 1, 0, 0x32}, 5, ""},
		{"bra not taken", []byte{0x35, 0x30, 0x28, 1, 0, 0x32}, 2, ""},
		{"a loop that ends", []byte{0x30, 0x3a, 0x16, 0x23, 3, 0x16, 0x31, 0x1c, 0x12, 0x28, 0xf6, 0xff, 0x13}, 30, ""},
		{"nop", []byte{0x96}, 0x500, ""},
		// The expression that x86-64 linkers write for PLT entries: the CFA is 8 bytes further from the stack pointer after the push in an entry.
		{"PLT slot at its start", []byte{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 0x7008, ""},

		{"no register", []byte{0x70, 0}, 0, "rax: not read"},
		{"no memory", []byte{0x30, 0x06}, 0, "8 bytes at 0x0: not mapped"},
		{"underflow", []byte{0x13, 0x13}, 0, "empty stack"},
		{"pick too deep", []byte{0x15, 9}, 0, "picks the value 9 below the top of a stack of 1"},
		{"nothing left", []byte{0x13}, 0, "empty stack"},
		{"overflow", loop(0x30), 0, "more than 256 values"},
		{"endless", loop(), 0, "more than 1000 steps"},
		{"jump before the start", []byte{0x2f, 0xf0, 0xff}, 0, "jumps out of itself"},
		{"jump past the end", []byte{0x2f, 1, 0}, 0, "jumps out of itself"},
		{"div by zero", []byte{0x30, 0x1b}, 0, "divides by zero"},
		{"mod by zero", []byte{0x30, 0x1d}, 0, "divides by zero"},
		{"deref_size 9", []byte{0x94, 9}, 0, "integer of 9 bytes"},
		{"truncated", []byte{0x0c, 1, 2}, 0, "truncated"},
		{"call_frame_cfa", []byte{0x9c}, 0, ".eh_frame at offset 0x70: operation 0x9c is not allowed in call frame information"},
		{"reg0", []byte{0x50}, 0, "operation 0x50"},
		{"fbreg", []byte{0x91, 0}, 0, "operation 0x91"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := Expression{&operations{ehFrame, 0x70, binary.LittleEndian, test.code}}
			got, err := e.Evaluate(regs, memory, 0x500)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

// loop returns an expression that repeats itself forever.
func loop(body ...byte) []byte {
	back := -int16(len(body) + 3)
	return append(body, 0x2f, byte(back), byte(back>>8))
}
