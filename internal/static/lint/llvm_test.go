package lint_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/static/lint"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// These tests compare lint's findings with the code generator.

var (
	readLocation = regexp.MustCompile(`#\d+: (\w+).*, size: (\d+)`)
	readRecord   = regexp.MustCompile(`Record ID: (\d+)`)
	readRegister = regexp.MustCompile(`#\d+: Register R#(\d+)`)
)

// TestLintOperands puts an operand of each type between two of i64. It requires the kind and size of the location that llc 16, 19 and 22 record
// ("none" if there is none), or that they crash, and the findings of lint.
func TestLintOperands(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	const crash, none, lost, not = "crash", "none", "cannot resume: lost-operand", "cannot resume: not-compiled"
	const wide, x87 = "warning: wide-vector", "warning: x87-operand"
	for _, c := range []struct{ typ, stackmap, says, statepoint, saysOfThat string }{
		{"i1", "Register 1", "", "Indirect 1", ""},
		{"i24", "Register 4", "", "Indirect 3", ""},
		{"i64", "Register 8", "", "Indirect 8", ""},
		{"i65", crash, not, "Indirect 9", ""},
		{"i128", crash, not, "Indirect 16", ""},
		{"i256", crash, not, "Indirect 32", ""},
		{"half", "Register 16", "", "Indirect 2", ""},
		{"float", "Register 16", "", "Indirect 4", ""},
		{"double", "Register 16", "", "Indirect 8", ""},
		{"x86_fp80", none, lost, "Indirect 10", x87},
		{"fp128", "Register 16", "", "Indirect 16", ""},
		{"ptr", "Register 8", "", "Indirect 8", ""},
		{"{ i64 }", "Register 8", "", "Indirect 8", ""},
		{"[1 x i64]", "Register 8", "", "Indirect 8", ""},
		{"{ i64, i64 }", "Register 8", lost, "Indirect 8", lost},
		{"{ i32, double }", "Register 4", lost, "Indirect 4", lost},
		{"[2 x i64]", "Register 8", lost, "Indirect 8", lost},
		{"{}", crash, not, crash, not},
		{"[0 x i64]", crash, not, crash, not},
		{"{ [0 x i64], i64 }", "Register 8", "", "Indirect 8", ""},
		{"{ x86_fp80 }", none, lost, "Indirect 10", x87},
		{"{ x86_fp80, i64 }", none, lost, "Indirect 10", lost},
		{"{ i64, x86_fp80 }", "Register 8", lost, "Indirect 8", lost},
		{"{ i128 }", crash, not, "Indirect 16", ""},
		{"<4 x i32>", "Register 16", "", "Indirect 16", ""},
		{"<16 x i8>", "Register 16", "", "Indirect 16", ""},
		{"<2 x double>", "Register 16", "", "Indirect 16", ""},
		{"<8 x half>", "Register 16", "", "Indirect 16", ""},
		{"<2 x ptr>", "Register 16", "", "Indirect 16", ""},
		{"<4 x i1>", "Register 16", "", "Indirect 1", ""},
		{"<16 x i1>", "Register 16", "", "Indirect 2", ""},
		{"<2 x i24>", "Register 16", "", "Indirect 6", ""},
		{"<2 x i65>", crash, not, "Indirect 17", ""},
		{"<8 x i24>", crash, wide, "Indirect 24", ""},
		{"<64 x i1>", crash, wide, "Indirect 8", ""},
		{"<2 x i32>", crash, not, "Indirect 8", ""},
		{"<3 x i32>", crash, not, "Indirect 12", ""},
		{"<3 x i1>", crash, not, "Indirect 1", ""},
		{"<1 x i64>", crash, not, "Indirect 8", ""},
		{"<4 x half>", crash, not, "Indirect 8", ""},
		{"<8 x bfloat>", crash, wide, "Indirect 16", ""},
		{"<2 x i128>", crash, not, "Indirect 32", ""},
		{"<8 x float>", crash, wide, "Indirect 32", ""},
		{"<8 x i64>", crash, wide, "Indirect 64", ""},
	} {
		t.Run(c.typ, func(t *testing.T) {
			t.Parallel()
			for site, want := range map[string][2]string{
				"stackmap 0": {c.stackmap, c.says},
				// No instruction reads the operand after it.
				"patchpoint 16": {c.stackmap, strings.Replace(c.says, lost, "warning: lost-operand", 1)},
				"statepoint 0":  {c.statepoint, c.saysOfThat},
			} {
				text := operandModule(c.typ, site)
				versions := []int{16, 19, 22}
				if site == "patchpoint 16" {
					versions = versions[2:] // one release suffices: a patchpoint is lowered like a stackmap
				}
				for _, version := range livetest.ShareOf(versions, c.typ, site) {
					require.Equal(t, want[0], operandRecord(t, version, text), "%s, llc %d", site, version)
				}
				said := ""
				for _, found := range linted(t, frametest.ReadModule(t, "operand.ll", text)) {
					said += found
				}
				if want[1] != "" {
					require.Equal(t, "5 "+want[1]+" %x", said, site)
				} else {
					require.Empty(t, said, site)
				}
			}
		})
	}
	// With enough registers a wide vector is recorded completely.
	object, ok := frametest.TryLLC(t, 19, operandModule("<8 x float>", "stackmap 0"), "-mattr=+avx")
	require.True(t, ok)
	require.Contains(t, frametest.Readobj(t, object), "Register R#17, size: 32")
}

// operandModule returns a module with one site in line 5 that has %x of a type between two others. %x is read after a stackmap and a statepoint. It
// is not read after a patchpoint, so that it is in a register at the patchpoint.
func operandModule(typ, site string) string {
	words := strings.Fields(site)
	operands := fmt.Sprintf("i64 %%a, %s %%x, i64 %%z", typ)
	call, use := "call void @cb() [ \"deopt\"("+operands+") ]", "store "+typ+" %x, ptr @to"
	switch words[0] {
	case "stackmap":
		call = "call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, " + operands + ")"
	case "patchpoint":
		call = "call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 16, ptr @cb, i32 0, " + operands + ")"
		use = ""
	}
	return `target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
define void @f(i64 %a, i64 %z) {
  %x = load ` + typ + `, ptr @from
  ` + call + `
  ` + use + `
  ret void
}
declare void @cb()
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
@from = external global ` + typ + `
@to = external global ` + typ + "\n"
}

// operandRecord returns the location that a release records for the middle one of three operands.
func operandRecord(t *testing.T, version int, text string) string {
	t.Helper()
	object, ok := frametest.TryLLC(t, version, text)
	if !ok {
		return "crash"
	}
	found := readLocation.FindAllStringSubmatch(frametest.Readobj(t, object), -1)
	if strings.Contains(text, "deopt\"(") {
		found = found[3:] // calling convention, flags, number of deopt values
	}
	switch len(found) {
	case 2:
		return "none"
	case 3:
		return found[1][1] + " " + found[1][2]
	}
	return fmt.Sprintf("%d locations", len(found))
}

// TestLintPatchBytesOfLLVM requires that regions which lint reports as never compiling do not compile, and that regions one byte larger do.
func TestLintPatchBytesOfLLVM(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	const x86, arm = "x86_64-pc-linux-gnu", "aarch64-unknown-linux-gnu"
	for _, c := range []struct {
		triple, site string
		compiles     bool
	}{
		{x86, "patchpoint 12 @callee", false},
		{x86, "patchpoint 13 @callee", true},
		{x86, "patchpoint 12 inttoptr (i64 4096 to ptr)", false},
		{x86, "patchpoint 13 inttoptr (i64 4096 to ptr)", true},
		{x86, "patchpoint 0 null", true},
		{x86, "stackmap 4", true},
		{arm, "stackmap 6", false},
		{arm, "stackmap 8", true},
	} {
		t.Run(c.triple+" "+c.site, func(t *testing.T) {
			t.Parallel()
			for _, version := range []int{16, 22} {
				_, ok := frametest.TryLLC(t, version, regionOf(c.triple, c.site))
				require.Equal(t, c.compiles, ok, "llc %d", version)
			}
		})
	}
	// On aarch64 the call of a patchpoint always has 16 bytes.
	for _, bytes := range []int{0, 12, 16} {
		object, ok := frametest.TryLLC(t, 19, regionOf(arm, fmt.Sprintf("patchpoint %d inttoptr (i64 4096 to ptr)", bytes)))
		require.True(t, ok)
		out, err := exec.Command(livetest.LLVM(t, 19, "llvm-objdump"), "-d", object).Output()
		require.NoError(t, err)
		_, region, found := strings.Cut(string(out), "x16, #0x0, lsl #32")
		require.True(t, found, "%s", out)
		before, _, found := strings.Cut(region, "\tblr\tx16")
		require.True(t, found, "%s", out)
		require.Equal(t, 3, strings.Count(before, "\n"), "%s", out)
	}
}

// TestLintNotCompiled requires findings for modules that crash the code generator, and that the fix works.
func TestLintNotCompiled(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	text := func(name string) string {
		b, err := os.ReadFile(livetest.Testdata(t, "lint", name))
		require.NoError(t, err)
		return string(b)
	}
	for _, version := range []int{16, 19, 22} {
		_, ok := frametest.TryLLC(t, version, text("guard.ll"))
		require.False(t, ok, "a guard, llc %d", version)

		clean, crashing, found := strings.Cut(text("patchpoints.ll"), "define double @read")
		require.True(t, found)
		read, joined, found := strings.Cut(crashing, "define void @joined")
		require.True(t, found)
		head, _, found := strings.Cut(clean, "define ")
		require.True(t, found)
		for _, one := range []string{"define double @read" + read, "define void @joined" + joined} {
			_, ok = frametest.TryLLC(t, version, head+one)
			require.False(t, ok, "llc %d\n%s", version, one)
		}
		_, ok = frametest.TryLLC(t, version, text("patchpoints.ll"), "-enable-patchpoint-liveness=false")
		require.True(t, ok, "llc %d", version)
		object, ok := frametest.TryLLC(t, version, clean)
		require.True(t, ok, "llc %d", version)
		require.Empty(t, linted(t, frametest.ReadModule(t, "clean.ll", clean)))
		require.Equal(t, []string{"1", "2", "3"}, ids(t, object))
	}
	musttail := `declare void @g(i64)
define void @f(i64 %a) {
  musttail call void @g(i64 %a) [ "deopt"(i64 %a) ]
  ret void
}
`
	require.Equal(t, []string{"3 warning: not-compiled"}, linted(t, frametest.ReadModule(t, "musttail.ll", musttail)))
	for version, compiles := range map[int]bool{16: true, 19: true, 22: false} {
		_, ok := frametest.TryLLC(t, version, musttail)
		require.Equal(t, compiles, ok, "llc %d", version)
	}
	// The address for @callee is wrong, because it has no relocation.
	symbol := regionOf("aarch64-unknown-linux-gnu", "patchpoint 16 @callee")
	require.Equal(t, []string{"2 cannot resume: not-compiled"}, linted(t, frametest.ReadModule(t, "symbol.ll", symbol)))
	object, ok := frametest.TryLLC(t, 19, symbol)
	require.True(t, ok)
	out, err := exec.Command(livetest.LLVM(t, 19, "llvm-readobj"), "-r", object).Output()
	require.NoError(t, err)
	require.NotContains(t, string(out), "callee")
}

// TestLintOn32BitTargets checks on targets with 32-bit pointers whether llc writes an object for a site, and whether that has a stack map. ("fails"
// is an error or a crash.)
func TestLintOn32BitTargets(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	const none, fails = "no record", "fails"
	sites := map[string]string{
		"stackmap": `declare void @llvm.experimental.stackmap(i64, i32, ...)
define void @f(i32 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i32 %a)
  ret void
}`,
		"patchpoint": `declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
define void @f(i32 %a) {
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 32, ptr inttoptr (i32 74565 to ptr), i32 0, i32 %a)
  ret void
}`,
		"bundle": `declare void @g()
define void @f(i32 %a) {
  call void @g() [ "deopt"(i32 %a) ]
  ret void
}`,
	}
	for _, c := range []struct {
		triple, layout, site string
		makes                [4]string // the results of llc 14, 16, 19 and 22
	}{
		{"i686-unknown-linux-gnu", "", "stackmap", [4]string{"1", "1", fails, fails}},
		{"i686-unknown-linux-gnu", "", "patchpoint", [4]string{"1", "1", fails, fails}},
		{"i686-unknown-linux-gnu", "", "bundle", [4]string{"2882400015", "2882400015", fails, fails}},
		{"i686-pc-windows-msvc", "", "stackmap", [4]string{fails, fails, fails, fails}},
		{"i686-pc-windows-msvc", "", "bundle", [4]string{fails, fails, fails, fails}},
		{"armv7-linux-gnueabihf", "e-m:e-p:32:32-Fi8-i64:64-v128:64:128-a:0:32-n32-S64", "stackmap", [4]string{fails, fails, fails, fails}},
		{"riscv32", "e-m:e-p:32:32-i64:64-n32-S128", "stackmap", [4]string{fails, fails, fails, fails}},
		{"mipsel-linux-gnu", "e-m:m-p:32:32-i8:8:32-i16:16:32-i64:64-n32-S64", "patchpoint", [4]string{fails, fails, fails, fails}},
		{"wasm32", "", "stackmap", [4]string{none, none, none, none}},
		{"powerpc-linux-gnu", "", "stackmap", [4]string{"1", "1", "1", "1"}},
	} {
		text := "target triple = \"" + c.triple + "\"\n" + sites[c.site]
		for k, version := range []int{14, 16, 19, 22} {
			var flags []string
			if version == 14 {
				flags = []string{"-opaque-pointers"}
			}
			object, ok := frametest.TryLLC(t, version, text, flags...)
			got := fails
			if ok {
				if got = strings.Join(ids(t, object), " "); got == "" {
					got = none
				}
			}
			require.Equal(t, c.makes[k], got, "%s, %s, llc %d", c.triple, c.site, version)
		}
		if c.layout != "" {
			text = "target datalayout = \"" + c.layout + "\"\n" + text
		}
		if ir.I386(c.triple) || c.layout != "" {
			said := linted(t, frametest.ReadModule(t, "narrow.ll", text))
			require.Len(t, said, 1, c.triple)
			require.Contains(t, said[0], "cannot resume: not-compiled", c.triple)
		}
	}
	for _, of64 := range []string{"x86_64-unknown-linux-gnux32", "arm64_32-apple-ios"} {
		text := "target datalayout = \"e-p:32:32\"\ntarget triple = \"" + of64 + "\"\n" + sites["stackmap"]
		require.Empty(t, linted(t, frametest.ReadModule(t, "ilp32.ll", text)), of64)
		for _, version := range []int{16, 19, 22} {
			object, ok := frametest.TryLLC(t, version, strings.Replace(text, "target datalayout = \"e-p:32:32\"\n", "", 1))
			require.True(t, ok, "%s, llc %d", of64, version)
			if strings.HasPrefix(of64, "x86_64") { // llvm-readobj does not read stack maps of Mach-O
				require.Equal(t, []string{"1"}, ids(t, object), "%s, llc %d", of64, version)
			}
		}
	}
}

// ids lists the ids of the records of an object.
func ids(t *testing.T, object string) []string {
	t.Helper()
	var out []string
	for _, m := range readRecord.FindAllStringSubmatch(frametest.Readobj(t, object), -1) {
		out = append(out, m[1])
	}
	return out
}

// TestLintGuardLowered requires that a lowered guard is a deoptimize of the same values.
func TestLintGuardLowered(t *testing.T) {
	t.Parallel()
	for _, version := range []int{16, 19, 22} {
		path := filepath.Join(t.TempDir(), "lowered.ll")
		frametest.Command(t, "", livetest.LLVM(t, version, "opt"), "-passes=lower-guard-intrinsic", "-S", livetest.Testdata(t, "lint", "guard.ll"), "-o", path)
		m, err := ir.ParseFile(path)
		require.NoError(t, err)
		sites, err := m.Func("fast").Sites()
		require.NoError(t, err)
		var found []string
		for _, s := range sites {
			found = append(found, fmt.Sprint(s.Kind, len(s.Live)))
		}
		require.ElementsMatch(t, []string{"deoptimize3", "deoptimize3"}, found)
		described, err := layout.Read(livetest.Testdata(t, "lint", "guard.layout.json"))
		require.NoError(t, err)
		report, err := lint.Lint([]*ir.Module{m}, []*layout.Layout{described})
		require.NoError(t, err)
		require.Len(t, report.Findings, 1)
		require.Equal(t, lint.UndefinedOperand, report.Findings[0].Rule)
	}
}

// TestLintDropped requires that sites which lint reports as dropped have no record, and that all others have one.
func TestLintDropped(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for _, version := range []int{16, 19, 22} {
		for _, flag := range []string{"-O0", "-O2"} {
			require.Equal(t, []string{"1", "2"}, ids(t, llcFile(t, version, "dropped.ll", flag)), "llc %d %s", version, flag)
		}
	}
}

func llcFile(t *testing.T, version int, name string, flags ...string) string {
	t.Helper()
	b, err := os.ReadFile(livetest.Testdata(t, "lint", name))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return frametest.LLC(t, version, path, flags...)
}

// TestLintIDs requires that two records with the same id have no names if lint reports that their sites cannot be distinguished, and that all other
// records have names.
func TestLintIDs(t *testing.T) {
	t.Parallel()
	m, err := ir.ParseFile(livetest.Testdata(t, "lint", "ids.ll"))
	require.NoError(t, err)
	maps := frametest.MapsOf(t, llcFile(t, 19, "ids.ll"), m)
	const either = "no names: 2 sites of the module match this record, and they agree on 2 types of 2 values; give each its own id; " +
		"the order of its records does not determine the site: several sites are possible in this position"
	require.Equal(t, []string{
		"0 twins: " + either, "0 twins: " + either,
		"0 row: %a %b", "0 row: %b %a",
		"0 constants: %a", "0 constants: %a", "0 constants: %a",
		"0 elsewhere: %a",
		"0 statepoints: %a %b", "0 statepoints: %b %a",
		"0 statepoints: %a %b", "0 statepoints: %b %a",
	}, frametest.Readings(t, maps))
}

// TestLintInlined requires the findings for a site whose id was unique before it was inlined.
func TestLintInlined(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "inlined.ll")
	frametest.Command(t, "", livetest.LLVM(t, 19, "opt"), "-passes=always-inline", "-S", livetest.Testdata(t, "programs", "dup.ll"), "-o", path)
	m, err := ir.ParseFile(path)
	require.NoError(t, err)
	report, err := lint.Lint([]*ir.Module{m}, nil)
	require.NoError(t, err)
	var same []string
	for _, f := range report.Findings {
		same = append(same, fmt.Sprintf("%s %s %d", f.Rule, f.Function, *f.ID))
	}
	require.Contains(t, same, "same-id a 5")
}

// TestLintClobbered requires that an operand which a layout needs and the function itself does not is in a caller-saved register.
func TestLintClobbered(t *testing.T) {
	t.Parallel()
	callerSaved := map[string]bool{"0": true, "1": true, "2": true, "4": true, "5": true, "8": true, "9": true, "10": true, "11": true} // System V ABI, 3.2.1
	for _, version := range []int{16, 19, 22} {
		found := readRegister.FindAllStringSubmatch(frametest.Readobj(t, llcFile(t, version, "clobbered.ll")), -1)
		require.Len(t, found, 2)
		require.True(t, callerSaved[found[0][1]], "%%v is in %s", found[0][1])
		require.False(t, callerSaved[found[1][1]], "%%a is in %s", found[1][1])
	}
}

// TestLintArgumentOnTheStack requires that an i128 without two argument registers is recorded by its address.
func TestLintArgumentOnTheStack(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	text := func(before string) string {
		return `target triple = "x86_64-pc-linux-gnu"
declare void @cb()
define i128 @f(` + before + `i128 %x) {
  call void @cb() [ "deopt"(i128 %x) ]
  ret i128 %x
}
`
	}
	const whole, address = "Indirect", "Direct"
	for before, want := range map[string][3]string{ // the kinds of location that LLVM 16, 19 and 22 record
		"":                                  {whole, whole, whole},
		"i64 %a, i64 %b, ptr %c, i32 %d, ":  {whole, whole, whole},
		"double %a, i128 %c, i128 %d, ":     {whole, whole, whole},
		"i128 %a, i128 %b, i64 %c, ":        {whole, address, address},
		"i128 %a, i128 %b, i64 %c, i8 %d, ": {address, address, address},
	} {
		said := []string{}
		if want[2] == address {
			said = append(said, "4 cannot resume: lost-operand %x")
		}
		require.Equal(t, said, linted(t, frametest.ReadModule(t, "argument.ll", text(before))), before)
		for n, version := range []int{16, 19, 22} {
			object, ok := frametest.TryLLC(t, version, text(before))
			require.True(t, ok)
			found := readLocation.FindAllStringSubmatch(frametest.Readobj(t, object), -1)
			require.Len(t, found, 4)
			require.Equal(t, want[n], found[3][1], "%s, llc %d", before, version)
		}
	}
}
