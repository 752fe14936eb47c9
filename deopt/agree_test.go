package deopt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/static/maps"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestTypesThatSitesAgreeOn requires that each value has the type and the name on which the two sites that fit the record agree. The second call
// blocks, so the frame holds 2.5, 111 and 3.25.
func TestTypesThatSitesAgreeOn(t *testing.T) {
	text := strings.NewReplacer(
		"FIRST", "double %d, i64 %a, i64 %b, i32 %n, i64 7, i32 poison, ptr %p",
		"SECOND", "double %e, i64 %a, double %d, i32 undef, i64 7, i32 poison, ptr %p",
		"  ; VALUES", `  %d = fadd double 1.25, 2.0
  %x = uitofp i64 %a to double
  %e = fdiv double %x, 44.4
  %n = trunc i64 %b to i32
  %p = inttoptr i64 4660 to ptr`).Replace(twoStatepoints)
	want := []string{"loc0 double 2.5", "%a i64 111", "loc2  0x400a000000000000", "loc3 i32 unavailable", " i64 7", " i32 undef", "%p ptr 0x1234"}
	for _, version := range []int{16, 22} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			p := livetest.Lli(t, version, program(t, text), "mcjit")
			f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")
			require.Nil(t, f.Resume)
			require.Equal(t, want, brief(f))
			require.Contains(t, f.Slots[3].Reason, "it is undefined if the site is that of line")
			require.Contains(t, f.Notes, "2 sites of the module match this record, and they agree on 2 names and 6 types of 7 values; give each its own id")
		})
	}
}

// brief returns each slot's name, type and value.
func brief(f *deopt.Frame) []string { return briefSlots(f.Slots) }

func briefSlots(slots []frame.Slot) (out []string) {
	for _, s := range slots {
		value := s.Value
		if value == "" {
			value = string(s.Hex)
		}
		if s.Status != frame.OK {
			value = string(s.Status)
		}
		out = append(out, s.Name+" "+s.Type.Source+" "+value)
	}
	return out
}

func TestAgreements(t *testing.T) {
	const module = `
%T = type { i32, i64 }
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)
declare i64 @cb(i64)
define void @f(i64 %a, i64 %b, double %d, x86_fp80 %x, <4 x i32> %v, %T %t) {
  BODY
  ret void
}
`
	stackmaps := func(operands ...string) string {
		var b strings.Builder
		for _, o := range operands {
			fmt.Fprintf(&b, "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0%s)\n", o)
		}
		return b.String()
	}
	anyReg := "  %r = call anyregcc i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 1, i32 16, ptr @cb, i32 0, i64 %a)\n"
	for _, c := range []struct{ name, body, want string }{
		{"one value everywhere", stackmaps(", i64 %a", ", i64 %a"), "%a i64"},
		{"another value", stackmaps(", i64 %a", ", i64 %b"), "- i64"},
		{"another type", stackmaps(", i64 %a", ", double %d"), "- -"},
		{"one of three has another type", stackmaps(", i64 %a", ", i64 %b", ", double %d"), "- -"},
		{"a constant and a value", stackmaps(", i64 %a", ", i64 5"), "- i64"},
		{"constants", stackmaps(", i64 5", ", i64 5"), " i64"},
		{"undef and a constant", stackmaps(", i64 5", ", i64 undef"), "- i64"},
		{"undef and poison", stackmaps(", i64 poison", ", i64 undef"), " i64"},
		{"by parts", stackmaps(", %T %t, <4 x i32> %v", ", %T %t, <4 x i32> zeroinitializer"), "%t %T|- <4 x i32>"},
		{"a value that has no location is the same one", stackmaps(", x86_fp80 %x, i64 %a", ", x86_fp80 %x, i64 %b"), "%x x86_fp80|- i64"},
		{"a value that may have no location is another one", stackmaps(", x86_fp80 %x, i64 %a", ", i64 %b, x86_fp80 %x"), "- -|- -"},
		{"another number of values", stackmaps(", i64 %a", ", i64 %a, x86_fp80 %x"), "nothing"},
		{"another kind of site", stackmaps(", i64 %a") + strings.ReplaceAll(anyReg, "anyregcc ", ""), "nothing"},
		{"another head", anyReg + strings.NewReplacer("anyregcc ", "", "%r", "%r2").Replace(anyReg), "nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := ir.Parse("m.ll", []byte(strings.ReplaceAll(module, "BODY", c.body)))
			require.NoError(t, err)
			siteList, err := m.Func("f").Sites()
			require.NoError(t, err)
			require.Greater(t, len(siteList), 1)
			all := sites.Agreements(siteList)
			var got []string
			for k := range all {
				a := &all[k]
				called, typ := "-", "-"
				if a.Named() {
					called = sites.NameOf(a.Value)
				}
				if a.Typed {
					typ = a.Spelling()
				}
				got = append(got, called+" "+typ)
			}
			if all == nil {
				got = []string{"nothing"}
			}
			require.Equal(t, c.want, strings.Join(got, "|"))
		})
	}
}

// TestAgreementsOfModules requires that types of two modules agree if their values have equal bytes and an equal meaning; the names of types do not
// matter.
func TestAgreementsOfModules(t *testing.T) {
	const text = `
target datalayout = "LAYOUT"
%T = type FIELDS
declare void @llvm.experimental.stackmap(i64, i32, ...)
define void @f(%T %t, ptr %p) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, %T %t, ptr %p)
  ret void
}
`
	site := func(layout, fields string) *ir.Site {
		m, err := ir.Parse("m.ll", []byte(strings.NewReplacer("LAYOUT", layout, "FIELDS", fields).Replace(text)))
		require.NoError(t, err)
		sites, err := m.Func("f").Sites()
		require.NoError(t, err)
		return sites[0]
	}
	base := site("e-p:64:64", "{ i32 }")
	for _, c := range []struct {
		other *ir.Site
		typed [2]bool
	}{
		{site("e-p:64:64", "{ i32 }"), [2]bool{true, true}},
		{site("e-p:64:64", "{ i64 }"), [2]bool{false, true}},
		{site("e-p:32:32", "{ i32 }"), [2]bool{true, false}},
	} {
		all := sites.Agreements([]*ir.Site{base, c.other})
		require.Equal(t, c.typed, [2]bool{all[0].Typed, all[1].Typed})
		require.True(t, all[1].Named(), "both modules call it %p")
	}
}

// TestReadingOfSeveralSites requires that the maps command shows the names and types on which all sites of a record agree.
func TestReadingOfSeveralSites(t *testing.T) {
	m, err := ir.Parse("m.ll", []byte(`
declare void @llvm.experimental.stackmap(i64, i32, ...)
define void @f(i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %a, i32 7)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %a, i32 7)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %a, i32 8)
  ret void
}
`))
	require.NoError(t, err)
	siteList, err := m.Func("f").Sites()
	require.NoError(t, err)
	r := &maps.Reading{Names: sites.Agreements(siteList[1:3])}
	require.Equal(t, maps.Role{What: "live", Of: 1, Name: "%a", Type: "i64"}, r.Role(0))
	require.Equal(t, maps.Role{What: "live", Of: 2, Type: "i32"}, r.Role(1))
	require.Equal(t, maps.Role{}, r.Role(2))
}

// TestVectorsAndStructsAsText requires the text of vectors at every kind of location. Vectors with illegal elements have another layout in a
// stackmap's record than in memory.
func TestVectorsAndStructsAsText(t *testing.T) {
	text := prelude + again + `
define i64 @work(i64 %s) noinline {
  %i = trunc i64 %s to i32
  %v0 = insertelement <4 x i32> <i32 1, i32 77, i32 3, i32 0>, i32 %i, i32 3
  %f0 = uitofp <4 x i32> %v0 to <4 x float>
  %f = fdiv <4 x float> %f0, <float 2.0, float 2.0, float 2.0, float 2.0>
  %w = zext <4 x i32> %v0 to <4 x i64>
  %d = shufflevector <4 x i64> %w, <4 x i64> poison, <2 x i32> <i32 1, i32 3>
  %p = inttoptr <2 x i64> %d to <2 x ptr>
  %b = icmp ugt <4 x i32> %v0, <i32 2, i32 2, i32 2, i32 2>
  %one = insertvalue { i64 } poison, i64 %s, 0
  %nested = insertvalue [1 x { i32 }] poison, i32 %i, 0, 0
  %two = insertvalue { i64, double } { i64 0, double 2.5 }, i64 %s, 0
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 8, <4 x i32> %v0, <4 x float> %f, <2 x i64> %d, <2 x ptr> %p, <4 x i1> %b, { i64 } %one, [1 x { i32 }] %nested, { i64, double } %two)
  ret i64 %s
}`
	for _, version := range []int{16, 19, 22} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			session, v := stopAtRecord(t, livetest.Lli(t, version, program(t, text), "mcjit"))
			f := frametest.One(t, v, "work")
			for name, want := range map[string]string{"%v0": "<1, 77, 3, 100>", "%f": "<0.5, 38.5, 1.5, 50.0>", "%d": "<77, 100>",
				"%p": "<0x4d, 0x64>", "%b": "<false, true, true, true>", "%one": "{100}", "%nested": "[{100}]"} {
				require.Equal(t, want, frametest.Slot(t, f, name).Value, name)
			}
			require.Equal(t, "LLVM records only the first element of an aggregate", frametest.Slot(t, f, "%two").Reason)
			require.NoError(t, session.Detach())
		})
	}
}

// TestVectorsOfStatepoints requires the text of vectors of any elements in a statepoint's record. A statepoint spills its operands unchanged, so
// they have their layout in memory.
func TestVectorsOfStatepoints(t *testing.T) {
	text := prelude + `
define i64 @work(i64 %s) noinline gc "statepoint-example" {
  %i = trunc i64 %s to i32
  %v = insertelement <4 x i32> <i32 1, i32 77, i32 3, i32 0>, i32 %i, i32 3
  %b = icmp ugt <4 x i32> %v, <i32 2, i32 2, i32 2, i32 2>
  %n = trunc <4 x i32> %v to <4 x i24>
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 1, i32 0, i32 0) [ "deopt"(<4 x i32> %v, <4 x i1> %b, <4 x i24> %n) ]
  ret i64 %s
}` + start
	for _, version := range []int{16, 19, 22} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			p := livetest.Lli(t, version, livetest.Raw(t, text), "mcjit")
			require.Equal(t, []string{"%v <4 x i32> <1, 77, 3, 100>", "%b <4 x i1> <false, true, true, true>", "%n <4 x i24> <1, 77, 3, 100>"},
				brief(frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")))
		})
	}
}
