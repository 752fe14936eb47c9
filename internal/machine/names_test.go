package machine

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNameOf(t *testing.T) {
	for _, c := range []struct {
		arch *Arch
		reg  DWARFReg
		want map[int]string
	}{
		{AMD64, 0, map[int]string{0: "rax", 1: "rax", 4: "rax", 8: "rax", 64: "rax"}},
		{AMD64, 20, map[int]string{4: "xmm3", 8: "xmm3", 16: "xmm3", 32: "ymm3", 64: "zmm3", 128: "xmm3"}},
		{AMD64, 82, map[int]string{16: "xmm31", 32: "ymm31", 64: "zmm31"}},
		{AMD64, 33, map[int]string{10: "st0", 16: "st0", 32: "st0"}},
		{AMD64, 119, map[int]string{2: "k1", 8: "k1"}},
		{AMD64, 999, map[int]string{8: "dwarf register 999", -1: "dwarf register 999"}},
		{ARM64, 0, map[int]string{1: "x0", 4: "w0", 8: "x0"}},
		{ARM64, 31, map[int]string{4: "wsp", 8: "sp"}},
		{ARM64BE, 64, map[int]string{1: "b0", 2: "h0", 4: "s0", 8: "d0", 16: "q0", 3: "v0", 32: "v0"}},
		{ARM64, 127, map[int]string{16: "z31", 256: "z31"}},
		{PPC64LE, 32, map[int]string{4: "f0", 8: "f0", 16: "vs0"}},
		{PPC64, 77, map[int]string{8: "v0", 16: "v0"}},
		{RISCV64, 42, map[int]string{4: "fa0", 8: "fa0", 16: "fa0"}},
		{S390X, 17, map[int]string{4: "f2", 8: "f2", 16: "v2"}},
		{S390X, 0, map[int]string{4: "r0", 8: "r0"}},
		{LOONG64, 32, map[int]string{8: "fa0", 16: "vr0", 32: "xr0"}},
		{LOONG64, 41, map[int]string{8: "ft1", 16: "vr9", 32: "xr9"}},
		{LOONG64, 63, map[int]string{8: "fs7", 16: "vr31", 32: "xr31"}},
	} {
		for size, want := range c.want {
			require.Equal(t, want, c.arch.NameOf(c.reg, size), "%s %d bytes of %d", c.arch.Name, size, c.reg)
		}
	}
}

func TestByName(t *testing.T) {
	for want, names := range map[*Arch][]string{
		AMD64:   {"amd64", "x86-64", "x86_64", "x64"},
		ARM64:   {"arm64", "aarch64"},
		ARM64BE: {"arm64be", "aarch64_be"},
		PPC64:   {"ppc64", "powerpc64"},
		PPC64LE: {"ppc64le", "powerpc64le"},
		RISCV64: {"riscv64"},
		S390X:   {"s390x", "systemz"},
		LOONG64: {"loong64", "loongarch64"},
	} {
		for _, name := range names {
			got, ok := ByName(name)
			require.True(t, ok, name)
			require.Same(t, want, got, name)
		}
	}
	for _, name := range []string{"", "x86", "AMD64", "arm", "mips"} {
		_, ok := ByName(name)
		require.False(t, ok, name)
	}
}

// TestTables requires the sizes and roles of registers that the documents of each table define.
func TestTables(t *testing.T) {
	for _, c := range []struct {
		arch              *Arch
		big               bool
		sp, fp, pc        string
		registers         int
		general, elsewise map[string]int // number of registers by size
	}{
		{ARM64, false, "sp", "x29", "x30", 32 + 1 + 16 + 32 + 32, map[string]int{"x0": 8, "x18": 8, "sp": 8}, map[string]int{"v0": 16, "z0": 256, "p0": 32}},
		{ARM64BE, true, "sp", "x29", "x30", 32 + 1 + 16 + 32 + 32, map[string]int{"x0": 8}, map[string]int{"v31": 16}},
		{PPC64, true, "r1", "r31", "lr", 32 + 32 + 2 + 8 + 1 + 32 + 1 + 32, map[string]int{"r0": 8}, map[string]int{"f0": 16, "v0": 16, "cr0": 4, "ctr": 8}},
		{PPC64LE, false, "r1", "r31", "lr", 32 + 32 + 2 + 8 + 1 + 32 + 1 + 32, map[string]int{"r31": 8}, map[string]int{"f31": 16, "v31": 16, "lr": 8}},
		{RISCV64, false, "sp", "s0", "ra", 32 + 32 + 32, map[string]int{"zero": 8, "a0": 8, "t6": 8, "s11": 8}, map[string]int{"fa0": 8, "ft11": 8, "v0": 8192}},
		{S390X, true, "r15", "r11", "r14", 16 + 16 + 16 + 16, map[string]int{"r0": 8}, map[string]int{"f0": 16, "v16": 16, "v31": 16, "a0": 4}},
		{LOONG64, false, "sp", "fp", "ra", 32 + 32, map[string]int{"zero": 8, "a7": 8, "t8": 8, "s8": 8}, map[string]int{"fa0": 32, "ft15": 32, "fs7": 32}},
	} {
		a := c.arch
		require.Equal(t, c.big, a.BigEndian())
		require.Equal(t, c.big, a.Order == binary.ByteOrder(binary.BigEndian))
		require.Equal(t, 8, a.Pointer)
		require.Equal(t, []string{c.sp, c.fp, c.pc}, []string{a.RegisterName(a.SP), a.RegisterName(a.FP), a.RegisterName(a.Link)})
		require.True(t, a.Preserved(a.SP), a.Name)
		require.True(t, a.Preserved(a.FP), a.Name)
		require.False(t, a.Preserved(a.Link), a.Name)
		require.Len(t, a.Registers(), c.registers, a.Name)
		byName := map[string]RegisterInfo{}
		for _, r := range a.Registers() {
			info, ok := a.Register(r)
			require.True(t, ok)
			byName[info.Name] = info
		}
		for name, size := range c.general {
			require.Equal(t, size, byName[name].Size, name)
			require.Equal(t, General, byName[name].Class, name)
		}
		for name, size := range c.elsewise {
			require.Equal(t, size, byName[name].Size, name)
			require.NotEqual(t, General, byName[name].Class, name)
		}
	}
}

// TestUnique requires that each number and each name occurs once in a table. The exceptions are the numbers that LLVM gives the halves of ppc64's
// general registers.
func TestUnique(t *testing.T) {
	require.Len(t, Archs(), 8)
	for _, a := range Archs() {
		numbers, names := map[DWARFReg]bool{}, map[string]bool{}
		for _, r := range a.Registers() {
			require.False(t, numbers[r], "%s %d", a.Name, r)
			again := r >= 1200 && a.RegisterName(r) == a.RegisterName(r-1200)
			require.Equal(t, again, names[a.RegisterName(r)], "%s %s", a.Name, a.RegisterName(r))
			numbers[r], names[a.RegisterName(r)] = true, true
		}
	}
}
