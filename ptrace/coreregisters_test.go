package ptrace

import (
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// TestCoreRegistersOfOtherArchitectures sets registers of other architectures in gdb, which writes a core. The values read from the core must be the
// same, for general, floating-point and vector registers.
func TestCoreRegistersOfOtherArchitectures(t *testing.T) {
	livetest.Slow(t)
	for _, c := range livetest.Crosses {
		if c.Arch == "riscv64" {
			continue // gdb-multiarch 13 writes this note with the size of x86-64's
		}
		t.Run(c.Arch, func(t *testing.T) {
			arch, ok := machine.ByName(c.Arch)
			require.True(t, ok)
			program := c.Build(t, []string{"-nostdlib", "-static", "-O1", "-Wl,--build-id=none"}, "testdata/start.c")
			var values [][2]string
			want := map[machine.DWARFReg][]byte{}
			word := func(v uint64) []byte {
				b := make([]byte, 8)
				arch.Order.PutUint64(b, v)
				return b
			}
			for _, reg := range arch.Registers() {
				info, _ := arch.Register(reg)
				v := 0x0102030405060000 + uint64(reg)<<4
				switch {
				case reg >= 1200, reg == arch.SP:
					continue // the general registers of ppc64 occur again
				case info.Size == 8 && (info.Class == machine.General || reg == arch.Link || info.Name == "ctr"):
					values = append(values, [2]string{"$" + info.Name, fmt.Sprint(v)})
					want[reg] = word(v)
				case info.Class == machine.Vector && arch == machine.ARM64 && reg < 96:
					for half := range uint64(2) {
						values = append(values, [2]string{fmt.Sprintf("$%s.d.u[%d]", info.Name, half), fmt.Sprint(v + half)})
						want[reg] = append(want[reg], word(v+half)...)
					}
				case info.Class == machine.Vector && reg < 64 && arch != machine.ARM64:
					values = append(values, [2]string{"$" + info.Name, "1.5"})
					want[reg] = word(0x3ff8000000000000)
				case info.Class == machine.Vector && arch == machine.PPC64:
					for part := range uint64(4) {
						values = append(values, [2]string{fmt.Sprintf("$vr%s.v4_int32[%d]", info.Name[1:], part), fmt.Sprint(uint64(reg)<<8 + part)})
						b := make([]byte, 4)
						arch.Order.PutUint32(b, uint32(reg)<<8+uint32(part))
						want[reg] = append(want[reg], b...)
					}
				}
			}
			path := filepath.Join(t.TempDir(), "core")
			set, err := json.Marshal(values)
			require.NoError(t, err)
			out := c.GDB(t, "testdata/registers.py", []string{"python values=" + string(set), "python core='" + path + "'"}, program)
			require.FileExists(t, path, "%s", out)
			target := openCore(t, path)
			require.Same(t, arch, target.Arch())
			require.Len(t, target.Threads(), 1)
			regs := target.Threads()[0].Registers
			require.NotNil(t, regs, target.Threads()[0].Missing)
			require.Greater(t, len(want), 30)
			for reg, v := range want {
				got, err := regs.Bytes(reg)
				require.NoError(t, err)
				require.Equal(t, v, got, arch.RegisterName(reg))
			}
		})
	}
}

// TestCoreRegistersOfRISCV64 requires that the offsets of registers in the notes of riscv64 are those in the C library's headers.
func TestCoreRegistersOfRISCV64(t *testing.T) {
	source := filepath.Join(t.TempDir(), "notes.c")
	require.NoError(t, os.WriteFile(source, []byte(`
#include <stddef.h>
#include <sys/procfs.h>
#include <asm/ptrace.h>
_Static_assert(offsetof(struct elf_prstatus, pr_reg) == 112, "");
_Static_assert(offsetof(struct user_regs_struct, pc) == 0, "");
_Static_assert(offsetof(struct user_regs_struct, ra) == 8, "");
_Static_assert(offsetof(struct user_regs_struct, t6) == 31 * 8, "");
_Static_assert(offsetof(union __riscv_fp_state, d.f[31]) == 31 * 8, "");
`), 0o600))
	out, err := exec.Command(livetest.Tool(t, "riscv64-linux-gnu-gcc"), "-fsyntax-only", source).CombinedOutput()
	require.NoError(t, err, "%s", out)

	img := &coreImage{order: binary.LittleEndian, machine: elf.EM_RISCV}
	status, floats := make([]byte, 376), make([]byte, 33*8)
	for i := range 32 {
		binary.LittleEndian.PutUint64(status[112+8*i:], uint64(0x1000+i))
		binary.LittleEndian.PutUint64(floats[8*i:], uint64(0x2000+i))
	}
	img.note("CORE", uint32(elf.NT_PRSTATUS), status)
	img.note("CORE", uint32(elf.NT_FPREGSET), floats)
	img.load(0x1000, elf.PF_R, []byte("12345678"), 8)
	regs := readBytes(t, img.bytes()).Threads()[0].Registers
	for name, want := range map[string]uint64{"ra": 0x1001, "sp": 0x1002, "s0": 0x1008, "t6": 0x101f, "ft0": 0x2000, "fs11": 0x201b, "ft11": 0x201f} {
		for _, reg := range machine.RISCV64.Registers() {
			if machine.RISCV64.RegisterName(reg) == name {
				v, err := regs.Uint(reg)
				require.NoError(t, err)
				require.Equal(t, want, v, name)
			}
		}
	}
	pc, err := regs.Uint(machine.RISCV64.PC)
	require.NoError(t, err)
	require.Equal(t, uint64(0x1000), pc)
}
