package delve

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/op"
	"github.com/go-delve/delve/pkg/proc"
	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// formatted returns registers as Delve's API lists them. Each byte of register n is n plus the byte's offset.
func formatted(arch *machine.Arch, vectorSize int) (list []register) {
	format := proc.AMD64Arch("linux").DwarfRegisterToString
	if arch == machine.ARM64 {
		format = proc.ARM64Arch("linux").DwarfRegisterToString
	}
	for n := range 96 {
		size := 8
		switch {
		case vector(arch, machine.DWARFReg(n)):
			size = vectorSize
		case arch == machine.AMD64 && n >= st0 && n < mm0:
			size = 10
		case canonical(arch, n) == "":
			continue
		}
		b := pattern(n, size)
		reg := op.DwarfRegisterFromBytes(b)
		if size == 8 {
			reg = op.DwarfRegisterFromUint64(arch.Uint(b))
		}
		name, _, value := format(n, reg)
		list = append(list, register{name, value, n})
	}
	return list
}

func pattern(n, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(n + i)
	}
	return b
}

// TestFormats requires that texts which Delve's own functions format are parsed.
func TestFormats(t *testing.T) {
	for _, c := range []struct {
		arch          *machine.Arch
		size, trusted int
	}{{machine.AMD64, 16, 64}, {machine.AMD64, 32, 64}, {machine.AMD64, 64, 64}, {machine.AMD64, 64, 32}, {machine.ARM64, 16, 64}} {
		list := formatted(c.arch, c.size)
		require.Equal(t, c.arch, archOf(list))
		regs, err := parseRegisters(c.arch, list, c.trusted)
		require.NoError(t, err)
		count := 0
		for _, reg := range c.arch.Registers() {
			n, size := int(reg), 8
			switch {
			case vector(c.arch, reg):
				size = min(c.size, c.trusted)
			case c.arch == machine.AMD64 && n >= mm0 && n < mm0+8:
				n -= mm0 - st0
			case c.arch == machine.AMD64 && n >= st0 && n < mm0:
				size = 10
			case !general(c.arch, reg) && reg != c.arch.PC:
				_, err := regs.Bytes(reg)
				require.Error(t, err)
				continue
			}
			b, err := regs.Bytes(reg)
			require.NoError(t, err, c.arch.RegisterName(reg))
			require.Equal(t, pattern(n, size), b, c.arch.RegisterName(reg))
			count++
		}
		if c.arch == machine.AMD64 {
			require.Equal(t, 17+16+8+8, count)
			require.Equal(t, machine.Addr(c.arch.Uint(pattern(fsBase, 8))), regs.ThreadPointer())
			floats, err := regs.FloatControl()
			require.NoError(t, err)
			require.Equal(t, machine.FloatControl{MXCSR: uint32(c.arch.Uint(pattern(mxcsr, 4))) &^ 0x3f, X87: uint16(c.arch.Uint(pattern(x87, 2)))}, floats)
		} else {
			require.Equal(t, 32+32, count)
			pc, err := regs.Uint(c.arch.PC)
			require.NoError(t, err)
			require.Equal(t, c.arch.Uint(pattern(32, 8)), pc)
		}
	}
}

// TestBadRegisters requires that contradictory lists are rejected.
func TestBadRegisters(t *testing.T) {
	for _, arch := range []*machine.Arch{machine.AMD64, machine.ARM64} {
		good := formatted(arch, 16)
		for i, r := range good {
			change := func(f func(r *register)) error {
				list := slices.Clone(good)
				f(&list[i])
				_, err := parseRegisters(arch, list, 64)
				return err
			}
			if general(arch, machine.DWARFReg(r.DwarfNumber)) {
				_, err := parseRegisters(arch, slices.Delete(slices.Clone(good), i, i+1), 64)
				require.ErrorContains(t, err, "is missing")
			}
			require.ErrorContains(t, change(func(r *register) { r.DwarfNumber = good[(i+1)%len(good)].DwarfNumber }), "is that of")
			require.ErrorContains(t, change(func(r *register) { *r = good[(i+1)%len(good)] }), "listed twice")
			for _, value := range []string{"", "0x", "17", "0xzz", "-1", r.Value[1:], strings.ReplaceAll(r.Value, "0x", "0x1111111111"), strings.Repeat("\n", 9)} {
				require.ErrorContains(t, change(func(r *register) { r.Value = value }), "malformed", "%s %q", r.Name, value)
			}
		}
	}
}

// FuzzRegisters requires that the parser does not panic for any list of registers.
func FuzzRegisters(f *testing.F) {
	for _, arch := range []*machine.Arch{machine.AMD64, machine.ARM64} {
		for _, r := range formatted(arch, 64/(1+bytes.Count([]byte(arch.Name), []byte("arm"))*3)) {
			f.Add(r.Name, r.Value, r.DwarfNumber)
		}
	}
	f.Fuzz(func(t *testing.T, name, value string, n int) {
		for _, arch := range []*machine.Arch{machine.AMD64, machine.ARM64} {
			list := append(slices.DeleteFunc(formatted(arch, 16), func(r register) bool { return r.DwarfNumber == n }), register{name, value, n})
			if regs, err := parseRegisters(arch, list, 64); err == nil {
				_, err := regs.Addr(arch.PC)
				require.NoError(t, err)
			}
		}
	})
}
