package machine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// llvmArch holds the names that LLVM and its assembler give an architecture and its registers.
type llvmArch struct {
	arch   *Arch
	triple string
	flags  []string // of llc and llvm-mc
	cfi    string   // format of a register name in a .cfi directive

	// spelled returns the assembler's name of a register. internal maps registers that the assembler rejects in a .cfi directive to LLVM's internal names.
	spelled  func(name string) string
	internal map[string]string

	clobber string   // format of a register name in a clobber
	fixed   []string // preserved registers that no function needs to save
	saved   []string // registers that llc saves although the table marks no byte as callee-saved
}

func llvmArches() []llvmArch {
	same := func(name string) string { return name }
	arm := llvmArch{
		arch: ARM64, triple: "aarch64-linux-gnu", cfi: "%s",
		spelled:  func(name string) string { return strings.Replace(name, "v", "q", 1) }, // the assembler reads v0 as a vector of lanes
		internal: map[string]string{}, clobber: "~{%s}",
		fixed: []string{"sp"}, saved: []string{"x30"},
	}
	for i := range 32 {
		arm.internal[fmt.Sprint("z", i)] = fmt.Sprint("Z", i)
	}
	for i := range 16 {
		arm.internal[fmt.Sprint("p", i)] = fmt.Sprint("PN", i) // LLVM has two names for each
	}
	arm.internal["vg"] = "VG"
	armBE := arm
	armBE.arch, armBE.triple = ARM64BE, "aarch64_be-linux-gnu"
	armBE.saved = append(numbered("v", 8, 15), "x30") // LLVM preserves the last 8 bytes of v8 to v15, which are not the first in memory

	loong := llvmArch{
		arch: LOONG64, triple: "loongarch64-linux-gnu", flags: []string{"-mattr=+d,+lasx"},
		internal: map[string]string{"zero": "R0", "ra": "R1", "tp": "R2", "sp": "R3", "r21": "R21", "fp": "R22"},
		clobber:  "~{$%s}",
		fixed:    []string{"zero", "tp", "sp", "r21"}, saved: []string{"ra"},
	}
	for _, g := range []struct {
		name         string
		first, count int
		internal     string
	}{
		{"a", 4, 8, "R%d"}, {"t", 12, 9, "R%d"}, {"s", 23, 9, "R%d"},
		{"fa", 0, 8, "F%d_64"}, {"ft", 8, 16, "F%d_64"}, {"fs", 24, 8, "F%d_64"},
	} {
		for i := range g.count {
			loong.internal[fmt.Sprint(g.name, i)] = fmt.Sprintf(g.internal, g.first+i)
		}
	}

	ppc := llvmArch{
		arch: PPC64LE, triple: "powerpc64le-linux-gnu", flags: []string{"-mcpu=pwr8"}, cfi: "%s", spelled: same,
		internal: map[string]string{"xer": "XER"},
		clobber:  "~{%s}",
		fixed:    []string{"r1", "r13"},
	}
	ppcBE := ppc
	ppcBE.arch, ppcBE.triple = PPC64, "powerpc64-linux-gnu"
	// ELFv1 saves all of cr in one word, which the row of cr2 represents.
	ppcBE.fixed = append(slices.Clone(ppc.fixed), "cr3", "cr4")

	return []llvmArch{
		{
			arch: AMD64, triple: "x86_64-linux-gnu", flags: []string{"-mattr=+avx512f,+egpr"}, cfi: "%s", clobber: "~{%s}",
			spelled: func(name string) string {
				if n, ok := strings.CutPrefix(name, "st"); ok {
					return "st(" + n + ")"
				}
				return name
			},
			fixed: []string{"rsp"}, saved: []string{"rip"},
		},
		arm, armBE, ppc, ppcBE,
		{
			arch: RISCV64, triple: "riscv64-linux-gnu", flags: []string{"-mattr=+d,+v", "-target-abi=lp64d"}, cfi: "%s",
			spelled: same, clobber: "~{%s}",
			fixed: []string{"zero", "sp", "gp", "tp"}, saved: []string{"ra"},
		},
		{
			arch: S390X, triple: "s390x-linux-gnu", flags: []string{"-mattr=+vector"}, cfi: "%%%s", spelled: same, clobber: "~{%s}",
			fixed: []string{"a0", "a1"}, saved: []string{"r14"},
		},
		loong,
	}
}

func numbered(name string, first, last int) []string {
	var list []string
	for i := first; i <= last; i++ {
		list = append(list, fmt.Sprint(name, i))
	}
	return list
}

// TestNumbers requires that each register in each table has the number that LLVM 19 gives its name.
func TestNumbers(t *testing.T) {
	for _, a := range llvmArches() {
		t.Run(a.arch.Name, func(t *testing.T) {
			internal := func(r DWARFReg) (string, bool) {
				if r >= 1200 {
					return fmt.Sprint("S", r-1200), true
				}
				name, ok := a.internal[a.arch.RegisterName(r)]
				return name, ok
			}
			source := ".text\n.cfi_sections .debug_frame\n.cfi_startproc\n"
			for _, r := range a.arch.Registers() {
				name := a.arch.RegisterName(r)
				if _, ok := internal(r); ok {
					source += fmt.Sprintf(".cfi_undefined %d\n", r)
				} else {
					source += fmt.Sprintf(".cfi_undefined "+a.cfi+"\n", a.spelled(name))
				}
			}
			object := filepath.Join(t.TempDir(), "a.o")
			run(t, source+".cfi_endproc\n", tool(t, "llvm-mc", a, "-o", object)...)
			text := run(t, "", "readelf", "--debug-dump=frames", object)
			var got []DWARFReg
			for _, m := range regexp.MustCompile(`DW_CFA_undefined: (?:bad register: )?r(\d+)`).FindAllStringSubmatch(text, -1) {
				got = append(got, number(t, m[1]))
			}
			require.Equal(t, a.arch.Registers(), got)

			text = run(t, "", livetest.LLVM(t, 19, "llvm-dwarfdump"), "--debug-frame", object)
			_, list, found := strings.Cut(text, ": CFA=")
			require.True(t, found, text)
			list, _, _ = strings.Cut(list, "\n")
			// The rows are in the order of their numbers; the first field is the CFA.
			fields := strings.Split(list, ", ")
			first := strings.Fields(fields[0])
			fields[0] = first[len(first)-1]
			sorted := slices.Sorted(slices.Values(a.arch.Registers()))
			require.Len(t, fields, len(sorted))
			for i, r := range sorted {
				if want, ok := internal(r); ok {
					require.Equal(t, want+"=undefined", strings.TrimPrefix(fields[i], ": "), a.arch.RegisterName(r))
				}
			}
		})
	}
}

// TestLoongArchNames requires that ABI names denote the registers with the same numbers in instructions.
func TestLoongArchNames(t *testing.T) {
	var source strings.Builder
	for _, r := range LOONG64.Registers() {
		name := LOONG64.RegisterName(r)
		if r < 32 {
			fmt.Fprintf(&source, "or $%s, $zero, $zero\n", name)
		} else {
			fmt.Fprintf(&source, "fmov.d $%s, $fa0\n", name)
		}
	}
	text := run(t, source.String(), livetest.LLVM(t, 19, "llvm-mc"), "-triple=loongarch64", "-mattr=+d", "-show-encoding")
	lines := regexp.MustCompile(`encoding: \[0x(..),`).FindAllStringSubmatch(text, -1)
	require.Len(t, lines, len(LOONG64.Registers()))
	for i, r := range LOONG64.Registers() {
		low, err := strconv.ParseUint(lines[i][1], 16, 8)
		require.NoError(t, err)
		require.Equal(t, uint64(r)%32, low&31, LOONG64.RegisterName(r))
	}
}

// TestKept compiles a function that overwrites every register. It requires that the function saves the registers, and as many bytes of each, that the table
// marks as callee-saved.
func TestKept(t *testing.T) {
	for _, a := range llvmArches() {
		t.Run(a.arch.Name, func(t *testing.T) {
			clobbers := []string{"~{memory}"}
			want := slices.Clone(a.saved)
			for _, r := range a.arch.Registers() {
				info, _ := a.arch.Register(r)
				require.Equal(t, info.Kept, a.arch.Kept(r))
				if r >= 1200 {
					continue // second numbers of r0 to r31 on ppc64
				}
				if r != a.arch.SP && info.Class != Special {
					clobbers = append(clobbers, fmt.Sprintf(a.clobber, a.clobbered(info.Name)))
				}
				if info.Kept > 0 {
					want = append(want, info.Name)
				}
			}
			want = slices.DeleteFunc(want, func(name string) bool { return slices.Contains(a.fixed, name) })
			type slot struct {
				at int64
				RegisterInfo
			}
			var got []string
			var slots []slot
			text := run(t, "", "readelf", "--debug-dump=frames", a.function(t, "call void asm sideeffect \"\", \""+strings.Join(clobbers, ",")+"\"()"))
			for _, m := range regexp.MustCompile(`DW_CFA_offset\w*: r(\d+) .*at cfa([-+]\d+)`).FindAllStringSubmatch(text, -1) {
				r := number(t, m[1])
				at, err := strconv.ParseInt(m[2], 10, 64)
				require.NoError(t, err)
				info, _ := a.arch.Register(r)
				got = append(got, info.Name)
				slots = append(slots, slot{at, info})
			}
			slices.Sort(want)
			slices.Sort(got)
			require.Equal(t, want, slices.Compact(got))
			slices.SortFunc(slots, func(x, y slot) int { return int(x.at - y.at) })
			for i, s := range slots[1:] {
				below := slots[i]
				if below.Class != Flags && below.Name != s.Name { // the fields of ppc64's cr are saved as one word
					require.LessOrEqual(t, below.at+int64(below.Kept), s.at, "%s and %s", below.Name, s.Name)
				}
				if below.Class == Vector && s.Class == Vector && below.Size == s.Size && a.arch != ARM64BE {
					require.Equal(t, s.at, below.at+int64(below.Kept), "%s is as wide as it is kept", below.Name)
				}
			}
		})
	}
}

// function compiles a function with a frame pointer whose body is one LLVM instruction, and returns the path of the object.
func (a *llvmArch) function(t *testing.T, instruction string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "f.ll")
	require.NoError(t, os.WriteFile(program, []byte(fmt.Sprintf(
		"define void @f(ptr %%p) uwtable \"frame-pointer\"=\"all\" {\n  %s\n  ret void\n}\n", instruction)), 0o644))
	object := filepath.Join(t.TempDir(), "f.o")
	run(t, "", tool(t, "llc", *a, "-filetype=obj", program, "-o", object)...)
	return object
}

// clobbered returns the name of a register in a clobber of inline assembly.
func (a *llvmArch) clobbered(name string) string {
	if n, ok := strings.CutPrefix(a.internal[name], "R"); a.arch == LOONG64 && ok {
		return "r" + n
	}
	if a.arch == LOONG64 {
		return strings.ToLower(strings.TrimSuffix(a.internal[name], "_64"))
	}
	if a.arch == AMD64 {
		return a.spelled(name)
	}
	return name
}

// tool returns the command line of llc or llvm-mc for a.
func tool(t *testing.T, name string, a llvmArch, more ...string) []string {
	line := []string{livetest.LLVM(t, 19, name)}
	if name == "llc" {
		line = append(append(line, "-mtriple="+a.triple), a.flags...)
	} else {
		line = append(line, "-triple="+a.triple, "-filetype=obj")
		for _, f := range a.flags {
			if strings.HasPrefix(f, "-m") {
				line = append(line, f)
			}
		}
	}
	return append(line, more...)
}

func run(t *testing.T, input string, line ...string) string {
	t.Helper()
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdin = strings.NewReader(input)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s", cmd, stderr.String())
	return string(out)
}

func number(t *testing.T, text string) DWARFReg {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 16)
	require.NoError(t, err)
	return DWARFReg(n)
}
