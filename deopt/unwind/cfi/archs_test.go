package cfi

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// compilers maps architectures to the names of their gcc.
var compilers = map[string]string{
	"x86-64": "gcc", "aarch64": "aarch64-linux-gnu-gcc", "riscv64": "riscv64-linux-gnu-gcc",
	"ppc64le": "powerpc64le-linux-gnu-gcc", "ppc64": "powerpc64-linux-gnu-gcc", "s390x": "s390x-linux-gnu-gcc",
}

// linkedBy links a shared object with the gcc of an architecture.
func linkedBy(t testing.TB, arch string, args ...string) string {
	out := filepath.Join(t.TempDir(), "image.so")
	livetest.Make(t, compilers[arch], append([]string{"-shared", "-fPIC", "-nostdlib", "-Wl,--build-id=none", "-o", out}, args...)...)
	return out
}

// TestArchitectures compares every row that compilers write, for each architecture and in each form, with readelf's.
func TestArchitectures(t *testing.T) {
	livetest.Slow(t)
	debug := []string{"-O2", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"}
	with := func(flags ...string) []string { return append(flags, debug...) }
	forms := []struct {
		name, section string
		flags         []string
	}{
		{"-O0", ehFrame, []string{"-O0", "-fasynchronous-unwind-tables"}},
		{"-O2", ehFrame, []string{"-O2", "-fasynchronous-unwind-tables"}},
		{"by the compiler", ehFrame, []string{"-O2", "-fasynchronous-unwind-tables", "-fno-dwarf2-cfi-asm"}},
		{"DWARF 2", debugFrame, with("-gdwarf-2", "-fno-dwarf2-cfi-asm")}, // CIE version 1
		{"DWARF 3", debugFrame, with("-gdwarf-3", "-fno-dwarf2-cfi-asm")}, // version 3
		{"DWARF 5", debugFrame, with("-gdwarf-5", "-fno-dwarf2-cfi-asm")}, // version 4
		{"64-bit DWARF", debugFrame, with("-gdwarf-5", "-gdwarf64", "-fno-dwarf2-cfi-asm")},
		{"by the assembler", debugFrame, with("-gdwarf-5")},
		{"compressed", debugFrame, with("-gz=zlib")},
	}
	rows := 0
	for arch := range compilers {
		for _, form := range forms {
			t.Run(arch+" "+form.name, func(t *testing.T) {
				path := linkedBy(t, arch, append(form.flags, "testdata/shapes.c")...)
				seen, n := compareImage(t, sectionsOf(t, path, 0), path, form.section, 1)
				require.GreaterOrEqual(t, seen, 5) // on x86-64, one of the FDEs is that of the PLT
				rows += n
			})
		}
		t.Run(arch+" rare instructions", func(t *testing.T) {
			path := linkedBy(t, arch, "testdata/anyarch.s")
			sections := sectionsOf(t, path, 0)
			for _, section := range []string{ehFrame, debugFrame} {
				if section == debugFrame {
					sections.EHFrame = Section{}
				}
				seen, n := compareImage(t, sections, path, section, 1)
				require.Equal(t, 2, seen)
				require.Equal(t, 25, n)
				rows += n
			}
		})
	}
	t.Logf("%d rows", rows)
}

// TestLLVM compares the rows that LLVM's assembler writes, for both byte orders of each architecture, with readelf's. The objects are not linked:
// their one section of code is moved to address 0x1000. Those for RISC-V are linked, because readelf does not support the relocation R_RISCV_SET32.
func TestLLVM(t *testing.T) {
	livetest.Slow(t)
	rows := 0
	for _, triple := range []string{"x86_64", "aarch64", "aarch64_be", "riscv64", "powerpc64", "powerpc64le", "s390x"} {
		for _, version := range []string{"14", "19", "22"} {
			for _, flag := range []string{"-dwarf64=false", "-dwarf64"} {
				t.Run(triple+" "+version+" "+flag, func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "rare.o")
					livetest.Make(t, "llvm-mc-"+version, "-triple="+triple+"-linux-gnu", "-filetype=obj", flag, "-o", path, "testdata/anyarch.s")
					moved := machine.Addr(0x1000)
					if triple == "riscv64" {
						path, moved = linkedBy(t, triple, path), 0
					}
					sections := sectionsOf(t, path, 0)
					for _, section := range []string{ehFrame, debugFrame} {
						if section == debugFrame {
							sections.EHFrame = Section{}
						}
						table, err := NewTable(sections)
						require.NoError(t, err)
						seen, n := 0, 0
						readelfFDEs(t, sections.Arch, path, section, func(want readelfFDE) {
							seen++
							n += compareFDE(t, table, sections.Arch, want.moved(moved), section)
						})
						require.Equal(t, 2, seen)
						require.Equal(t, 25, n)
						rows += n
					}
				})
			}
		}
	}
	t.Logf("%d rows", rows)
}

// moved returns the FDE moved by delta.
func (f readelfFDE) moved(delta machine.Addr) readelfFDE {
	out := readelfFDE{f.start + delta, f.end + delta, map[machine.Addr]readelfRow{}}
	for at, row := range f.rows {
		out.rows[at+delta] = row
	}
	return out
}

// stateRow is a row of llvm-dwarfdump: an address and rules.
var stateRow = regexp.MustCompile(`^  0x([0-9a-f]+): CFA=.*$`)

// TestSigned compares the code ranges with signed return addresses with those that llvm-dwarfdump prints, as values of register 34.
func TestSigned(t *testing.T) {
	path := linkedBy(t, "aarch64", "-O2", "-mbranch-protection=standard", "testdata/shapes.c")
	table, err := NewTable(sectionsOf(t, path, 0))
	require.NoError(t, err)
	signed, rows := 0, 0
	for line := range strings.Lines(livetest.Printed(t, "llvm-dwarfdump-19", "--eh-frame", path)) {
		m := stateRow.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		rows++
		pc := address(t, m[1])
		f, err := table.Find(pc)
		require.NoError(t, err)
		row, err := f.Rules(pc)
		require.NoError(t, err)
		require.Equal(t, strings.Contains(line, "reg34=1"), row.Signed, line)
		if row.Signed {
			signed++
		}
	}
	require.Greater(t, signed, 15)
	require.Greater(t, rows, signed)
	t.Logf("%d of %d rows are of signed return addresses", signed, rows)
}

// TestGo reads the compressed .debug_frame of a Go program, which has no .eh_frame.
func TestGo(t *testing.T) {
	livetest.Slow(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() { println(1) }\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module small\n"), 0o644))
	for _, arch := range []string{"amd64", "arm64", "ppc64le", "riscv64", "s390x"} {
		t.Run(arch, func(t *testing.T) {
			cmd := exec.Command("go", "build", "-o", arch, ".")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			path := filepath.Join(dir, arch)
			sections := sectionsOf(t, path, 0)
			require.Nil(t, sections.EHFrame.Data)
			seen, rows := compareImage(t, sections, path, debugFrame, 1)
			require.Greater(t, seen, 1000)
			require.Greater(t, rows, 3000)
		})
	}
}

// TestBoth looks up functions in an image with both sections, which describe different functions.
func TestBoth(t *testing.T) {
	dir := t.TempDir()
	one, other, source := filepath.Join(dir, "one.o"), filepath.Join(dir, "other.o"), filepath.Join(dir, "other.c")
	require.NoError(t, os.WriteFile(source, []byte("long sink(void *, long);\nlong other(long n) { return sink(0, n) + n; }\n"), 0o644))
	livetest.Make(t, "gcc", "-c", "-fPIC", "-O2", "-o", one, "testdata/shapes.c")
	livetest.Make(t, "gcc", "-c", "-fPIC", "-O2", "-g", "-fno-asynchronous-unwind-tables", "-o", other, source)
	path := linkedBy(t, "x86-64", one, other)
	const bias = 0x7f0000000000
	table, err := NewTable(sectionsOf(t, path, bias))
	require.NoError(t, err)
	for line := range strings.Lines(livetest.Printed(t, "nm", path)) {
		words := strings.Fields(line)
		if len(words) != 3 || words[1] != "T" {
			continue
		}
		f, err := table.Find(address(t, words[0]) + bias)
		require.NoError(t, err)
		require.Equal(t, address(t, words[0])+bias, f.Start)
		require.Equal(t, map[bool]string{true: debugFrame, false: ehFrame}[words[2] == "other"], f.Section)
	}
	_, err = table.Find(bias)
	require.Equal(t, ErrNoFDE, err)
}
