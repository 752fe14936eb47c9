package ir

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// describe returns a site as one line of text.
func describe(s *Site) string {
	refs := func(values []Value) string {
		parts := make([]string, len(values))
		for i, v := range values {
			parts[i] = v.Type().String() + " " + v.Ref()
		}
		return "(" + strings.Join(parts, ", ") + ")"
	}
	callee, result := "none", "none"
	if s.Callee != nil {
		callee = s.Callee.Ref()
	}
	if r := s.Result(); r != nil {
		result = r.Ref()
	}
	return fmt.Sprintf("%s %d+%d in %s line %d calls %s live %s gc %s result %s",
		s.Kind, s.ID, s.PatchBytes, s.Func.Ref(), s.Instr.Line, callee, refs(s.Live), refs(s.GCLive), result)
}

func sitesOf(t *testing.T, m *Module) []string {
	t.Helper()
	var lines []string
	for _, f := range m.Funcs {
		sites, err := f.Sites()
		require.NoError(t, err)
		for _, s := range sites {
			lines = append(lines, describe(s))
		}
	}
	return lines
}

func program(name string) string {
	return filepath.Join("..", "..", "..", "testdata", "programs", name)
}

func TestSitesOfPrograms(t *testing.T) {
	for _, c := range []struct {
		file string
		want []string
	}{
		{"deoptimize.ll", []string{
			"deoptimize 2882400000+0 in @sum_opt line 31 calls none live (i32 3, i64 %i, i64 %acc, i64 %n) gc () result %d",
		}},
		{"jit_pp.ll", []string{
			"patchpoint 2001+24 in @work line 34 calls @blocker live (i64 %v1, i64 %v2, i64 %v3, i64 %v4, i64 %v5, i64 %v6, i64 %v7, i64 %v8, i64 %v9, i64 %v10, double %d1, double %d2, ptr %slot, i32 7, i64 -5, i64 81985529216486895) gc () result %pr",
			"stackmap 2002+0 in @work line 37 calls none live (i64 %v1, i64 %v2, ptr %slot, i64 %pr) gc () result none",
		}},
		{"jit_sp.ll", []string{
			"statepoint 2882400000+0 in @f line 23 calls @safepoint live (i32 11, i32 2, i64 %x, i32 %y, double %e, i8 %c, i64 -9, i64 81985529216486895, i64 addrspace(1)* %o, i64 addrspace(1)* %der, i64 addrspace(1)* null, i64* %slot, float 1.500000e+00) gc () result none",
		}},
		{"sp_push.ll", []string{
			"statepoint 61+0 in @f line 5 calls @nine live (i64 %a, i64 %b) gc () result none",
		}},
		{"dup.ll", []string{
			"stackmap 5+0 in @inl line 4 calls none live (i64 %x) gc () result none",
			"stackmap 6+0 in @a line 10 calls none live (i64 %x) gc () result none",
		}},
	} {
		m, err := ParseFile(program(c.file))
		require.NoError(t, err)
		require.Equal(t, c.want, sitesOf(t, m), c.file)
	}
}

func TestSitesAfterTheRewrite(t *testing.T) {
	const rewrite = "-passes=rewrite-statepoints-for-gc"
	for _, v := range []int{16, 19, 22} {
		m := parse(t, opt(t, v, program("deoptimize.ll"), rewrite))
		sites, err := m.Func("sum_opt").Sites()
		require.NoError(t, err)
		require.Len(t, sites, 1)
		s := sites[0]
		require.Equal(t, DeoptimizeSite, s.Kind)
		require.Equal(t, uint64(2882400000), s.ID)
		require.Equal(t, m.Func("__llvm_deoptimize"), s.Callee)
		require.Contains(t, describe(s), "live (i32 3, i64 %i, i64 %acc, i64 %n) gc () result none")
		require.Equal(t, OpUnreachable, s.Instr.Block.Instrs[s.Instr.Index+1].Op)
	}
	m := parse(t, opt(t, 14, program("vmark.ll"), rewrite))
	sites, err := m.Func("optimized").Sites()
	require.NoError(t, err)
	require.Equal(t, DeoptimizeSite, sites[0].Kind)
	require.Contains(t, sites[0].Callee.Ref(), "bitcast (")
	m = parse(t, opt(t, 14, program("jit_sp.ll"), rewrite))
	sites, err = m.Func("f").Sites()
	require.NoError(t, err)
	require.Len(t, sites, 1)
	require.Len(t, sites[0].Live, 13)
	var live []string // LLVM does not guarantee their order
	for _, v := range sites[0].GCLive {
		live = append(live, v.Ref())
	}
	require.ElementsMatch(t, []string{"%o", "%o2", "%der"}, live)
}

func TestSitesFromAttributes(t *testing.T) {
	const src = `
declare void @g(i64)
declare i64 @h(i64)
declare i64 @llvm.experimental.deoptimize.i64(...)
declare void @llvm.experimental.guard(i1, ...)
define i64 @f(i64 %a) {
  call void @g(i64 %a) [ "deopt"(i64 %a) ]
  call void @g(i64 %a)
  call void (i1, ...) @llvm.experimental.guard(i1 true) [ "deopt"(i64 %a) ]
  %r = call fastcc i64 @h(i64 1) #0 [ "other"(i64 2), "deopt"(i64 %a, double 1.0) ]
  %d = call i64 (...) @llvm.experimental.deoptimize.i64() "statepoint-id"="9" [ "deopt"() ]
  ret i64 %d
}
define void @managed(i64 %a) gc "coreclr" {
  call void @g(i64 %a) "statepoint-id"="none" [ "deopt"(i64 %a) ]
  call void @g(i64 %a) "statepoint-id"="0" [ "deopt"(i64 %a) ]
  ret void
}
attributes #0 = { "statepoint-id"="77" "statepoint-num-patch-bytes"="5" }
`
	m := parse(t, src)
	require.Equal(t, []string{
		"statepoint 2882400015+0 in @f line 7 calls @g live (i64 %a) gc () result none",
		"statepoint 77+5 in @f line 10 calls @h live (i64 %a, double 1.000000e+00) gc () result %r",
		"deoptimize 9+0 in @f line 11 calls none live () gc () result %d",
		"statepoint 2882400000+0 in @managed line 15 calls @g live (i64 %a) gc () result none",
		"statepoint 0+0 in @managed line 16 calls @g live (i64 %a) gc () result none",
	}, sitesOf(t, m))
	// There are two ids only if a pass decides between them.
	var ids [][]uint64
	for _, f := range m.Funcs {
		sites, err := f.Sites()
		require.NoError(t, err)
		for _, s := range sites {
			ids = append(ids, s.IDs())
		}
	}
	require.Equal(t, [][]uint64{{0xABCDEF0F}, {77}, {9}, {0xABCDEF00, 0xABCDEF0F}, {0}}, ids)
}

func TestSiteResultOfAStatepoint(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("testdata", "relocate.ll"))
	require.NoError(t, err)
	m := parse(t, string(src))
	require.Equal(t, []string{
		"statepoint 7+0 in @f line 10 calls @g live (i64 %n) gc (ptr addrspace(1) %base, ptr addrspace(1) %derived, ptr addrspace(1) %dead) result %r",
		"statepoint 8+0 in @unwinds line 20 calls @g live () gc (ptr addrspace(1) %p, ptr addrspace(1) %q) result %r",
	}, sitesOf(t, m))
}

func TestBrokenSites(t *testing.T) {
	const head = `
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
define void @f(i64 %a) {
`
	for _, c := range []struct{ call, want string }{
		{"call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %a, i32 0)", "test.ll:5: argument 1 of stackmap must be a constant, not %a"},
		{"call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 0, ptr null, i32 2, i64 %a)", "test.ll:5: patchpoint has 1 arguments after the number of arguments, which is 2"},
	} {
		_, err := parse(t, head+"  "+c.call+"\n  ret void\n}\n").Func("f").Sites()
		require.EqualError(t, err, c.want)
	}
}

var (
	recordLine   = regexp.MustCompile(`Record ID: (\d+),`)
	countLine    = regexp.MustCompile(`(\d+) locations:`)
	constantLine = regexp.MustCompile(`#3: Constant (\d+),`)
)

// TestSitesAreTheRecordsOfLLC requires that llc writes one record for each site in the same order, with the same id and number of values.
func TestSitesAreTheRecordsOfLLC(t *testing.T) {
	livetest.Slow(t)
	const rewrite = "-passes=rewrite-statepoints-for-gc"
	for _, c := range []struct {
		file     string
		versions []int
		args     []string
	}{
		{"jit_pp.ll", versions, nil},
		{"host_mod.ll", versions, nil},
		{"sm_spill.ll", []int{16, 19, 22}, nil}, // llc-14 crashes on an i1 operand
		{"dup.ll", versions, []string{"-passes=always-inline"}},
		{"deoptimize.ll", []int{16, 19, 22}, []string{rewrite}}, // LLVM 14 supports statepoints only with typed pointers
		{"jit_sp.ll", []int{14}, []string{rewrite}},
		{"sp_push.ll", []int{16, 19, 22}, nil},
	} {
		for _, v := range c.versions {
			name := fmt.Sprintf("%s/%d", c.file, v)
			opaque := opaque14(v)
			if c.file == "jit_sp.ll" {
				opaque = nil // test with typed pointers
			}
			text := opt(t, v, program(c.file), append(opaque, c.args...)...)
			object := filepath.Join(t.TempDir(), "out.o")
			// Without this, llc crashes on a call after a patchpoint.
			args := append(opaque, "-enable-patchpoint-liveness=false", "-filetype=obj", "-o", object, write(t, "in.ll", text))
			_, errs, ok := llvm(t, v, "llc", args...)
			require.True(t, ok, "%s: %s", name, errs)
			dump, _, ok := llvm(t, v, "llvm-readobj", "--stackmap", object)
			require.True(t, ok)
			records := strings.Split(dump, "Record ID:")[1:]
			var sites []*Site
			for _, f := range parse(t, text).Funcs {
				found, err := f.Sites()
				require.NoError(t, err)
				sites = append(sites, found...)
			}
			require.Len(t, sites, len(records), name)
			for i, record := range records {
				s := sites[i]
				require.Equal(t, fmt.Sprint(s.ID), recordLine.FindStringSubmatch("Record ID:" + record)[1], name)
				if s.Kind == StackMapSite || s.Kind == PatchPointSite {
					require.Equal(t, fmt.Sprint(len(s.Live)), countLine.FindStringSubmatch(record)[1], name)
				} else {
					require.Equal(t, fmt.Sprint(len(s.Live)), constantLine.FindStringSubmatch(record)[1], name)
				}
			}
		}
	}
}
