package deopt_test

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// marks are constants whose locations no option moves or drops. The locations between two of them belong to one operand.
var marks = []int64{111111, 222222, 333333}

// sweptTypes has every kind of IR type.
var sweptTypes = []string{"i1", "i7", "i8", "i16", "i24", "i32", "i33", "i48", "i64", "i65", "i96", "i128", "half", "bfloat", "float", "double",
	"x86_fp80", "fp128", "ptr", "ptr addrspace(1)", "<2 x i64>", "<4 x i32>", "<16 x i8>", "<4 x float>", "<2 x double>", "<8 x i1>", "<2 x ptr>",
	"{ i64, i32 }", "{ double, i8 }", "[2 x i32]", "{ x86_fp80, i8 }", "{ i8, x86_fp80 }"}

// sweptOptions lists the options of llc that change the locations of operands.
var sweptOptions = [][]string{
	{"-O0"}, {"-O2"}, {"-O0", "-use-registers-for-deopt-values"}, {"-O2", "-use-registers-for-deopt-values"},
	{"-O0", "-fast-isel=false"}, {"-O0", "-global-isel", "-global-isel-abort=0"},
	{"-O2", "-use-registers-for-deopt-values", "-fixup-allow-gcptr-in-csr", "-max-registers-for-gc-values=8"},
	{"-O2", "-use-registers-for-gc-values-in-landing-pad"}, {"-O2", "-regalloc=basic", "-use-registers-for-deopt-values"},
}

// sweptSite returns a function with one site: a mark before each value, and one after the last.
func sweptSite(name, kind, typ string, crossing bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "define void @%s(ptr %%p) gc \"statepoint-example\" {\n  %%v = load volatile %s, ptr %%p\n", name, typ)
	if crossing {
		b.WriteString("  call void @other()\n")
	}
	operands := fmt.Sprintf("i64 %[1]d, %[4]s %%v, i64 %[2]d, %[4]s %%v, i64 %[3]d", marks[0], marks[1], marks[2], typ)
	switch kind {
	case "stackmap":
		fmt.Fprintf(&b, "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, %s)\n", operands)
	case "patchpoint":
		fmt.Fprintf(&b, "  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 16, ptr null, i32 0, %s)\n", operands)
	case "statepoint":
		fmt.Fprintf(&b, "  call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 1, i32 0, ptr elementtype(void ()) @other, i32 0, i32 0, i32 0, i32 0) [ \"deopt\"(%s) ]\n", operands)
	}
	b.WriteString("  ret void\n}\n")
	return b.String()
}

// TestOperandsOfEveryType compiles an operand of every kind of type at every kind of site, between constants that show its location. Only operands
// that may be in an x87 register are dropped, as doc/dev/facts.md documents. Anything that the record does not show must be reported as unknown.
func TestOperandsOfEveryType(t *testing.T) {
	livetest.Slow(t)
	versions, options := []int{16, 19, 22}, sweptOptions[2:3]
	if os.Getenv("FIDELITY") == "all" {
		versions, options = []int{14, 16, 19, 22}, sweptOptions
	}
	const declared = `target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
declare void @other()
`
	compiled, tried, refused, dropped := 0, map[string]int{}, map[string]int{}, map[string]int{}
	for _, version := range versions {
		for _, option := range options {
			for _, typ := range sweptTypes {
				for _, kind := range []string{"stackmap", "patchpoint", "statepoint"} {
					if version == 14 && kind == "statepoint" { // with typed pointers
						continue
					}
					for _, crossing := range []bool{false, true} {
						if !slices.Contains(livetest.ShareOf(versions, typ, crossing), version) { // test each combination with one release
							continue
						}
						text := declared + sweptSite("f", kind, typ, crossing)
						text = strings.ReplaceAll(text, ` gc "`, ` gc  "`) // prevents rewrite-statepoints-for-gc from running
						file := livetest.TryObject(t, version, program(t, text), option...)
						tried[typ]++
						what := fmt.Sprintf("llc-%d %s %s of a %s, crossing %v", version, strings.Join(option, " "), typ, kind, crossing)
						if file == "" {
							refused[kind+" "+typ]++
							continue
						}
						compiled++
						if between := sweptPlaces(t, what, file, text, kind); between[0] == 0 || between[1] == 0 {
							dropped[typ]++
						}
					}
				}
			}
		}
	}
	t.Logf("%d sites; dropped: %v; llc crashed, or refused: %v", compiled, dropped, refused)
	names := sortedKeys(dropped)
	require.Subset(t, []string{"x86_fp80", "{ x86_fp80, i8 }"}, names)
	require.Contains(t, names, "x86_fp80")
	for _, typ := range sweptTypes {
		require.Less(t, refused["stackmap "+typ]+refused["patchpoint "+typ]+refused["statepoint "+typ], tried[typ], "%s was never compiled", typ)
	}
}

// sweptPlaces requires that each operand of a site is assigned to its location in the record. The marks show the right one. It returns the number of
// locations between each two marks.
func sweptPlaces(t *testing.T, what, file, text, kind string) (between [2]int) {
	t.Helper()
	f, err := elf.Open(file)
	require.NoError(t, err, what)
	defer f.Close()
	data, err := f.Section(".llvm_stackmaps").Data()
	require.NoError(t, err, what)
	m, _, err := stackmap.ParseOne(data, stackmap.Options{Order: binary.LittleEndian})
	require.NoError(t, err, what)
	var record *stackmap.Record
	for r := range m.Records(&m.Functions[0]) {
		record = r.Clone()
	}
	places := []int{}
	for _, mark := range marks {
		places = append(places, slices.IndexFunc(record.Locations, func(l stackmap.Location) bool {
			n, err := m.Constant(l)
			return (l.Kind == stackmap.Constant || l.Kind == stackmap.ConstantIndex) && err == nil && int64(n) == mark
		}))
	}
	require.NotContains(t, places, -1, what)
	between = [2]int{places[1] - places[0] - 1, places[2] - places[1] - 1}
	siteList, err := frametest.ReadModule(t, "m.ll", text).Func("f").Sites()
	require.NoError(t, err, what)
	s := siteList[slices.IndexFunc(siteList, func(s *ir.Site) bool { return string(s.Kind) == kind })]
	a, why := sites.Align(s, sites.RecordEntry{Entry: stackmap.Entry{Map: m}, Record: record})
	require.Empty(t, why, what)
	for k, want := range []int{places[0], places[0] + 1, places[1], places[1] + 1, places[2]} {
		missing := k%2 == 1 && between[k/2] == 0
		switch got := a.Place(k); {
		case got == sites.Ambiguous:
			require.Contains(t, missing87(between), true, "%s: operand %d is recorded as location %d, and reframe does not know", what, k, want)
		case missing:
			require.Equal(t, sites.Absent, got, "%s: operand %d is not recorded", what, k)
		default:
			require.Equal(t, want, a.First+got, "%s: operand %d", what, k)
		}
	}
	return between
}

// missing87 returns for each of two operands whether it is missing.
func missing87(between [2]int) []bool { return []bool{between[0] == 0, between[1] == 0} }
