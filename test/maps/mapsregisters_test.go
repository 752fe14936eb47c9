package maps_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// pinned returns a function that loads values into the given registers by inline assembly, and reads them from there after a stackmap that records
// them. Registers have the names of LLVM's assembler. If statepoint is set, the site is a statepoint's call, during which the values stay in the
// registers.
func pinned(registers []string, kind string, statepoint bool) string {
	n := len(registers)
	types := "{" + strings.TrimSuffix(strings.Repeat(kind+", ", n), ", ") + "}"
	var outputs, inputs, values, extracts []string
	for i, r := range registers {
		outputs, inputs = append(outputs, "={"+r+"}"), append(inputs, "{"+r+"}")
		values = append(values, fmt.Sprintf("%s %%v%d", kind, i))
		extracts = append(extracts, fmt.Sprintf("  %%v%d = extractvalue %s %%all, %d\n", i, types, i))
	}
	list := strings.Join(values, ", ")
	site := "call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, " + list + ")"
	if statepoint {
		site = "call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 1, i32 0," +
			" ptr elementtype(void ()) @callee, i32 0, i32 0, i32 0, i32 0) [\"deopt\"(" + list + ")]"
	}
	return `declare void @llvm.experimental.stackmap(i64, i32, ...)
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
declare void @callee()
define void @f() gc "statepoint-example" {
  %all = call ` + types + ` asm sideeffect "", "` + strings.Join(outputs, ",") + `"()
` + strings.Join(extracts, "") + "  " + site + `
  call void asm sideeffect "", "` + strings.Join(inputs, ",") + `"(` + list + `)
  ret void
}
`
}

// TestMapsRegisters requires that a value which was loaded into a register is reported in that register. The names are the assembler's, except for
// two ABIs: riscv64's (RISC-V ELF psABI, "Integer Register Convention" and "Floating-point Register Convention") and loongarch64's (LoongArch ELF
// psABI, "General-purpose Registers").
func TestMapsRegisters(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for _, c := range []struct {
		name, triple, kind string
		size               int
		registers, want    string // want lists the expected names if they differ from the assembler's
		flags              string
	}{
		{name: "x86-64", triple: "x86_64-linux-gnu", kind: "i64", size: 8, registers: "rax rbx rcx rdx rsi rdi"},
		{name: "x86-64 numbered", triple: "x86_64-linux-gnu", kind: "i64", size: 8, registers: "r8 r9 r10 r12 r13 r14 r15"},
		{name: "x86-64 xmm", triple: "x86_64-linux-gnu", kind: "<4 x float>", size: 16, registers: "xmm0 xmm1 xmm7 xmm8 xmm15"},
		{name: "x86-64 double", triple: "x86_64-linux-gnu", kind: "double", size: 16, registers: "xmm2 xmm14"},
		{name: "x86-64 ymm", triple: "x86_64-linux-gnu", kind: "<8 x float>", size: 32, registers: "ymm0 ymm7 ymm8 ymm15", flags: "-mattr=+avx2"},
		{name: "x86-64 zmm", triple: "x86_64-linux-gnu", kind: "<16 x float>", size: 64, registers: "zmm0 zmm8 zmm15 zmm16 zmm31", flags: "-mattr=+avx512f"},
		{name: "x86-64 upper xmm", triple: "x86_64-linux-gnu", kind: "<4 x float>", size: 16, registers: "xmm3 xmm16 xmm31", flags: "-mattr=+avx512vl"},
		{name: "x86-64 mask", triple: "x86_64-linux-gnu", kind: "<64 x i1>", size: 8, registers: "k1 k2 k7", flags: "-mattr=+avx512bw"},
		{name: "x86-64 Mach-O", triple: "x86_64-apple-macosx10.15", kind: "i64", size: 8, registers: "rax rbx rdi r9 r15"},
		{name: "x86-64 COFF", triple: "x86_64-pc-windows-msvc", kind: "i64", size: 8, registers: "rax rbx rdi r9 r15"},
		{name: "aarch64", triple: "aarch64-linux-gnu", kind: "i64", size: 8, registers: "x0 x1 x8 x15 x19 x28"},
		{name: "aarch64 w", triple: "aarch64-linux-gnu", kind: "i32", size: 4, registers: "w0 w7 w20"},
		{name: "aarch64 d", triple: "aarch64-linux-gnu", kind: "double", size: 8, registers: "d0 d8 d31"},
		{name: "aarch64 s", triple: "aarch64-linux-gnu", kind: "float", size: 4, registers: "s0 s9 s31"},
		{name: "aarch64 q", triple: "aarch64-linux-gnu", kind: "<4 x i32>", size: 16, registers: "q0 q15 q31"},
		{name: "aarch64 Mach-O", triple: "arm64-apple-macosx11", kind: "i64", size: 8, registers: "x0 x9 x22"},
		{name: "ppc64le", triple: "powerpc64le-linux-gnu", kind: "i64", size: 8, registers: "r3 r4 r10 r14 r30"},
		{name: "ppc64", triple: "powerpc64-linux-gnu", kind: "i64", size: 8, registers: "r3 r4 r10 r14 r30"},
		{name: "ppc64le f", triple: "powerpc64le-linux-gnu", kind: "double", size: 8, registers: "f1 f13 f31"},
		{name: "ppc64le v", triple: "powerpc64le-linux-gnu", kind: "<4 x i32>", size: 16, registers: "v2 v19 v20 v31"},
		{name: "riscv64", triple: "riscv64-linux-gnu", kind: "i64", size: 8, registers: "x5 x10 x17 x9 x18 x27 x28 x31",
			want: "t0 a0 a7 s1 s2 s11 t3 t6", flags: "-mattr=+m,+d -target-abi=lp64d"},
		{name: "riscv64 f", triple: "riscv64-linux-gnu", kind: "double", size: 8, registers: "f0 f7 f8 f9 f10 f17 f18 f27 f28 f31",
			want: "ft0 ft7 fs0 fs1 fa0 fa7 fs2 fs11 ft8 ft11", flags: "-mattr=+m,+d -target-abi=lp64d"},
		{name: "s390x", triple: "s390x-linux-gnu", kind: "i64", size: 8, registers: "r2 r5 r6 r13"},
		{name: "s390x f", triple: "s390x-linux-gnu", kind: "double", size: 8, registers: "f0 f1 f2 f4 f7 f8 f11 f15"},
		{name: "s390x v", triple: "s390x-linux-gnu", kind: "<4 x i32>", size: 16, registers: "v0 v3 v16 v24 v31", flags: "-mcpu=z13"},
		{name: "loongarch64", triple: "loongarch64-linux-gnu", kind: "i64", size: 8, registers: "r23 r24 r31", want: "s0 s1 s8",
			flags: "-use-registers-for-deopt-values"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			registers := strings.Fields(c.registers)
			statepoint := strings.HasPrefix(c.triple, "loongarch64")
			object := compiled(t, pinned(registers, c.kind, statepoint), c.triple, strings.Fields(c.flags)...)
			want := registers
			if c.want != "" {
				want = strings.Fields(c.want)
			}
			first := 0
			if statepoint {
				first = 3 // the calling convention, the flags and the number of values come first
			}
			r := clitest.Run(t, "maps", object)
			require.Equal(t, 0, r.Code, r.Stderr)
			var got []string
			for _, m := range regexp.MustCompile(`(?m)^ +#\d+ +Register +(.*\S) +(\d+) bytes`).FindAllStringSubmatch(r.Stdout, -1) {
				require.Equal(t, fmt.Sprint(c.size), m[2])
				got = append(got, strings.TrimSpace(m[1]))
			}
			require.Equal(t, want, got, r.Stdout)

			// The JSON has the numbers that llvm-readobj prints, and the names of complete registers.
			function := clitest.Objects(t, mapsOf(t, object)[0]["functions"])[0]
			locations := clitest.Objects(t, clitest.Objects(t, function["records"])[0]["locations"])[first:]
			readobj := clitest.RunTool(t, "llvm-readobj-19", "--stackmap", object)
			numbers := regexp.MustCompile(`#\d+: Register R#(\d+), size: (\d+)`).FindAllStringSubmatch(readobj, -1)
			require.Len(t, numbers, len(want))
			for n, l := range locations {
				require.Equal(t, "Register", l["kind"])
				require.Equal(t, numbers[n][1], fmt.Sprint(l["dwarf"]))
				require.Equal(t, numbers[n][2], fmt.Sprint(l["size"]))
				if c.kind == "i64" {
					require.Equal(t, want[n], l["register"])
				}
			}
		})
	}
}

// TestMapsRegisterOffset requires that an offset into a register, which is in bits, is shown. In unoptimized code it selects the second byte of the
// four registers that have a name for it.
func TestMapsRegisterOffset(t *testing.T) {
	t.Parallel()
	object := compiled(t, pinned([]string{"ah", "bh", "ch", "dh"}, "i8", false), "x86_64-linux-gnu", "-O0")
	// llvm-readobj does not print the offset, although the section contains it.
	require.Contains(t, clitest.RunTool(t, "llvm-readobj-19", "--stackmap", object), "#1: Register R#0, size: 1\n")
	r := clitest.Run(t, "maps", object)
	require.Equal(t, 0, r.Code, r.Stderr)
	locations := clitest.Objects(t, clitest.Objects(t, clitest.Objects(t, mapsOf(t, object)[0]["functions"])[0]["records"])[0]["locations"])
	require.Len(t, locations, 4)
	for n, register := range []string{"rax", "rbx", "rcx", "rdx"} {
		require.Regexp(t, fmt.Sprintf(`(?m)^ +#%d +Register +%s from bit 8 +1 byte$`, n, register), r.Stdout)
		require.Equal(t, register, locations[n]["register"])
		require.Equal(t, "8", fmt.Sprint(locations[n]["offset"]))
		require.Equal(t, "1", fmt.Sprint(locations[n]["size"]))
	}
}

// TestMapsLiveOuts requires that the live-outs of a patchpoint which returns a value in a register are that register, the registers that the calling
// convention preserves, and the stack pointer.
func TestMapsLiveOuts(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	numbered := func(prefix string, from, to, size int) string {
		var list []string
		for n := from; n <= to; n++ {
			list = append(list, fmt.Sprintf("%s%d:%d", prefix, n, size))
		}
		return strings.Join(list, " ")
	}
	for _, c := range []struct{ name, triple, kind, want, flags string }{
		{"rax", "x86_64-linux-gnu", "i64", "rax:8 rbx:8 rsp:8 r12:8 r13:8 r14:8 r15:8", ""},
		{"xmm", "x86_64-linux-gnu", "<4 x float>", "rbx:8 rsp:8 r12:8 r13:8 r14:8 r15:8 xmm0:16", ""},
		{"ymm", "x86_64-linux-gnu", "<8 x float>", "rbx:8 rsp:8 r12:8 r13:8 r14:8 r15:8 ymm0:32", "-mattr=+avx2"},
		{"zmm", "x86_64-linux-gnu", "<16 x float>", "rbx:8 rsp:8 r12:8 r13:8 r14:8 r15:8 zmm0:64", "-mattr=+avx512f"},
		{"aarch64", "aarch64-linux-gnu", "i64", "x0:8 " + numbered("x", 19, 28, 8) + " sp:8 " + numbered("d", 8, 15, 8), ""},
		{"aarch64 d", "aarch64-linux-gnu", "double", numbered("x", 19, 28, 8) + " sp:8 d0:8 " + numbered("d", 8, 15, 8), ""},
		{"s390x", "s390x-linux-gnu", "i64", "r2:8 " + numbered("r", 6, 13, 8) + " r15:8 " + numbered("f", 8, 15, 8), ""},
		{"riscv64", "riscv64-linux-gnu", "i64", "ra:8 a0:8 " + numbered("s", 0, 11, 8) + " " + numbered("fs", 0, 11, 8), "-mattr=+m,+d -target-abi=lp64d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			suffix := strings.NewReplacer("<", "", ">", "", " ", "", "float", "f32", "x", "v").Replace(c.kind)
			object := compiled(t, fmt.Sprintf(`declare %[1]s @llvm.experimental.patchpoint.%[2]s(i64, i32, ptr, i32, ...)
define %[1]s @f() {
  %%v = call %[1]s (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.%[2]s(i64 1, i32 32, ptr null, i32 0)
  ret %[1]s %%v
}
`, c.kind, suffix), c.triple, strings.Fields(c.flags)...)
			r := clitest.Run(t, "maps", object)
			require.Equal(t, 0, r.Code, r.Stderr)
			line := regexp.MustCompile(`(?m)^ +live-outs (.*)$`).FindStringSubmatch(r.Stdout)
			require.NotNil(t, line, r.Stdout)
			got := strings.Fields(line[1])
			require.ElementsMatch(t, strings.Fields(c.want), got)

			// The order and the numbers of the live-outs are those of the section.
			var numbers, want []string
			for _, l := range clitest.Objects(t, clitest.Objects(t, clitest.Objects(t, mapsOf(t, object)[0]["functions"])[0]["records"])[0]["live_outs"]) {
				numbers = append(numbers, fmt.Sprintf("R#%s (%s-bytes)", l["dwarf"], l["size"]))
			}
			text := clitest.RunTool(t, "llvm-readobj-19", "--stackmap", object)
			want = append(want, regexp.MustCompile(`R#\d+ \(\d+-bytes\)`).FindAllString(text, -1)...)
			require.Equal(t, want, numbers)
			require.Len(t, got, len(want))
		})
	}
}

// TestMapsLiveOutsOfPPC64 requires the names of ppc64's live-outs. LLVM lists registers of SPE, numbered from 1200; these are the general registers
// in the same order.
func TestMapsLiveOutsOfPPC64(t *testing.T) {
	t.Parallel()
	object := compiled(t, `declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)
define i64 @f() {
  %v = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 1, i32 32, ptr null, i32 0)
  ret i64 %v
}
`, "powerpc64le-linux-gnu")
	require.Contains(t, clitest.RunTool(t, "llvm-readobj-19", "--stackmap", object), "R#1203 (4-bytes)")
	r := clitest.Run(t, "maps", object)
	require.Equal(t, 0, r.Code, r.Stderr)
	for _, part := range []string{" r1:8", " r3:8", " r14:8", " r3:4", " f14:8", " f31:8", " cr2:4", " cr4:4", " v20:16", " v31:16"} {
		require.Contains(t, r.Stdout, part)
	}
	require.NotContains(t, r.Stdout, "dwarf register")
	r = clitest.Run(t, "maps", "--check", object)
	require.Equal(t, 0, r.Code, r.Stdout)
}

// TestMapsStackSize requires that a frame without a fixed size is shown as dynamic and has no size in JSON. Other frames must have the size that
// llvm-readobj prints.
func TestMapsStackSize(t *testing.T) {
	t.Parallel()
	object := livetest.Object(t, 19, shapes(t))
	sizes := regexp.MustCompile(`stack size: (\d+),`).FindAllStringSubmatch(clitest.RunTool(t, "llvm-readobj-19", "--stackmap", object), -1)
	require.NotEmpty(t, sizes)
	text := clitest.Run(t, "maps", object).Stdout
	dynamic := 0
	functions := clitest.Objects(t, mapsOf(t, object)[0]["functions"])
	require.Len(t, functions, len(sizes))
	for n, f := range functions {
		if sizes[n][1] == "18446744073709551615" {
			dynamic++
			require.NotContains(t, f, "stack_size")
			require.Contains(t, text, fmt.Sprintf("\n  %s unlinked, stack dynamic\n", f["name"]))
			continue
		}
		require.Equal(t, sizes[n][1], fmt.Sprint(f["stack_size"]))
		require.Contains(t, text, fmt.Sprintf("\n  %s unlinked, stack %s bytes\n", f["name"], sizes[n][1]))
	}
	require.Equal(t, "dynamic", functions[0]["name"])
	require.Positive(t, dynamic)
}

// shapes returns the module with unusual shapes that the tests of the format also use.
func shapes(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../deopt/stackmap/testdata/shapes.ll")
	require.NoError(t, err)
	return path
}

// TestMapsRecordFlags requires that the flags of a record, which have no meaning, are shown if they are not zero.
func TestMapsRecordFlags(t *testing.T) {
	t.Parallel()
	object := compiled(t, large("alpha", 1, 1<<40), "x86_64-linux-gnu")
	require.NotContains(t, clitest.Run(t, "maps", object).Stdout, ", flags ")
	require.NotContains(t, clitest.Objects(t, clitest.Objects(t, mapsOf(t, object)[0]["functions"])[0]["records"])[0], "flags")
	section := filepath.Join(t.TempDir(), "section")
	clitest.RunTool(t, "llvm-objcopy-19", "--dump-section", ".llvm_stackmaps="+section, object, os.DevNull)
	b, err := os.ReadFile(section)
	require.NoError(t, err)
	// 16 bytes of header, one function of 24, two constants of 8; in the record 8 of id, 4 of offset.
	copy(b[16+24+16+12:], "\xef\xbe")
	require.NoError(t, os.WriteFile(section, b, 0o600))
	require.Contains(t, clitest.Run(t, "maps", section).Stdout, ", 3 locations, flags 0xbeef\n")
	require.Equal(t, "48879", fmt.Sprint(clitest.Objects(t, clitest.Objects(t, mapsOf(t, section)[0]["functions"])[0]["records"])[0]["flags"]))
}
