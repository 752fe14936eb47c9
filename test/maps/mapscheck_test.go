package maps_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// verdict returns the result of --check --json: all violations by their rule, and the errors.
func verdict(t *testing.T, r clitest.Result) (broken map[string][]map[string]any, checked map[string]bool, errors []string) {
	t.Helper()
	require.Empty(t, r.Stderr)
	out := r.Object(t)
	require.Equal(t, "reframe.check/v1", out["schema"])
	broken, checked = map[string][]map[string]any{}, map[string]bool{}
	for _, image := range clitest.Objects(t, out["images"]) {
		if e, ok := image["error"]; ok {
			errors = append(errors, e.(string))
		}
		for _, rule := range clitest.Objects(t, image["rules"]) {
			name := rule["rule"].(string)
			require.NotEmpty(t, rule["fact"], name)
			if rule["checked"].(interface{ String() string }).String() != "0" {
				checked[name] = true
			}
			if v, ok := rule["violations"]; ok {
				broken[name] = append(broken[name], clitest.Objects(t, v)...)
			}
		}
	}
	require.Equal(t, r.Code == 1, len(broken)+len(errors) > 0, "%d\n%s", r.Code, r.Stdout)
	return broken, checked, errors
}

// TestCheckCorpus requires that LLVM's output satisfies every rule, for each release and each target. The objects of one target are members of one
// archive. make test selects a third of all pairs of a program and a target, each with one of the releases.
func TestCheckCorpus(t *testing.T) {
	livetest.NeedsTools(t)
	livetest.Slow(t)
	var objects atomic.Int64
	var seen sync.Map // the rules that were checked
	t.Run("all", func(t *testing.T) {
		for _, c := range compilations(t) {
			t.Run(c.name(), func(t *testing.T) {
				t.Parallel()
				c.programs = slices.DeleteFunc(c.programs, func(program string) bool { return !livetest.Share(3, "check", filepath.Base(program), c.triple) })
				members := c.objects(t)
				objects.Add(int64(len(members)))
				if len(members) == 0 {
					return // this release has no stack maps for the target
				}
				r := clitest.Run(t, "maps", "--check", "--json", archiveOf(t, c.version, members))
				broken, checked, errors := verdict(t, r)
				require.Empty(t, errors)
				require.Empty(t, broken)
				require.Equal(t, 0, r.Code)
				for rule := range checked {
					seen.Store(rule, true)
				}
			})
		}
	})
	for _, rule := range []string{"record counts add up", "reserved fields are zero", "functions are in executable memory",
		"offsets are inside their function", "offsets are on instruction boundaries", "registers are the architecture's",
		"memory and constants have valid sizes"} {
		_, checked := seen.Load(rule)
		require.True(t, checked, rule)
	}
	t.Logf("%d objects", objects.Load())
	require.Greater(t, objects.Load(), int64(livetest.Times(40, 150)))
}

// TestCheckCorpusAgainstIR requires that each x86-64 object agrees with the module from which it was compiled.
func TestCheckCorpusAgainstIR(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{14, 19, 22} {
		for _, program := range corpus(t) {
			t.Run(fmt.Sprintf("%d/%s", version, filepath.Base(program)), func(t *testing.T) {
				t.Parallel()
				object := livetest.TryObject(t, version, program, "-mtriple=x86_64-linux-gnu", "-enable-patchpoint-liveness=false")
				if object == "" {
					return // llc of this release rejects the program
				}
				r := clitest.Run(t, "maps", "--check", "--json", object, "--ir", livetest.IR(t, version, program))
				if strings.Contains(r.Stderr, "no stack map") {
					return
				}
				broken, _, errors := verdict(t, r)
				require.Empty(t, errors)
				// In these programs LLVM loses values.
				if strings.HasSuffix(program, "programs/odd_types.ll") || strings.HasSuffix(program, "stackmap/testdata/shapes.ll") {
					require.Contains(t, broken, "no location is lost")
					delete(broken, "no location is lost")
				}
				if strings.HasSuffix(program, "lint/dropped.ll") {
					require.Contains(t, broken, "every site has a record")
					delete(broken, "every site has a record")
				}
				require.Empty(t, broken)
			})
		}
	}
}

// TestCheckOfProcess requires that the maps of a process satisfy the rules at the addresses that its JIT chose, and agree with the module.
func TestCheckOfProcess(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mcjit", "orc"} {
		p := livetest.Lli(t, 19, "jit_sp.ll", kind)
		r := clitest.Run(t, "maps", "-p", clitest.PID(p), "--ir", p.IR, "--check", "--json")
		broken, checked, errors := verdict(t, r)
		require.Equal(t, 0, r.Code)
		require.Empty(t, broken)
		require.Empty(t, errors)
		for _, rule := range []string{"functions are in executable memory", "offsets are inside their function",
			"offsets are on instruction boundaries", "registers are the architecture's", "every site has a record",
			"every record has a site", "operand counts agree", "constants agree"} {
			require.True(t, checked[rule], rule)
		}
		clitest.RequireUnharmed(t, p)
	}
}

// bytesAt is a change of the stack maps in a file.
type bytesAt struct {
	at    int
	bytes string
}

// These are the offsets of the records of shapes.ll in the output of llc 19: 6 functions of 24 bytes after a header of 16, one constant of 8, then
// the records: 16 bytes and 12 per location, padded to 8; then 4 bytes and 4 per live-out, padded to 8 ("Stack Map Format").
const (
	dynamicRecord    = 16 + 6*24 + 8
	nothingRecord    = dynamicRecord + 16 + 2*12 + 8
	vectorRecord     = nothingRecord + 24
	liveRecord       = vectorRecord + 16 + 2*12 + 8
	anyregRecord     = liveRecord + 16 + 12 + 4 + 4 + 6*4 + 4
	transitionRecord = anyregRecord + 16 + 5*12 + 4 + 4 + 7*4
)

// TestCheckFindsEachRule requires that each change breaks exactly one rule, and that the violation is found.
func TestCheckFindsEachRule(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	shapes, err := filepath.Abs("../../deopt/stackmap/testdata/shapes.ll")
	require.NoError(t, err)
	object := livetest.Object(t, 19, shapes)
	linked := livetest.Link(t, "shapes", links["no-pie"], object)
	sized := livetest.Object(t, 19, shapes, "-stack-size-section")
	mac := livetest.Object(t, 19, shapes, "-mtriple=x86_64-apple-macosx11")
	clean := clitest.Run(t, "maps", "--check", object)
	require.Equal(t, 0, clean.Code, clean.Stdout)
	require.NotContains(t, clean.Stdout, "BROKEN")
	require.Contains(t, clean.Stdout, "not checked: no module was given; give it with --ir")
	require.Equal(t, 0, clitest.Run(t, "maps", "--check", linked).Code)

	for _, c := range []struct {
		name, path     string
		change         bytesAt
		rule, function string
		offset         int
		what           string
	}{
		{"a flag of a record", object, bytesAt{dynamicRecord + 12, "\x01"},
			"reserved fields are zero", "dynamic", dynamicRecord, "flags of record 1"},
		{"padding of a location", object, bytesAt{vectorRecord + 16 + 12 + 1, "\x07"},
			"reserved fields are zero", "vector", vectorRecord + 16 + 12 + 1, "0x7"},
		{"padding of a live-out", object, bytesAt{liveRecord + 36 + 2, "\x05"},
			"reserved fields are zero", "live", liveRecord + 36 + 2, "0x5"},
		{"an address in no code", linked, bytesAt{16, "\x10\x00\x00\x00\x00\x00\x00\x00"},
			"functions are in executable memory", "", 16, "the function at 0x10 is not in executable memory"},
		{"past the end", object, bytesAt{dynamicRecord + 8, "\xff\x0f"},
			"offsets are inside their function", "dynamic", dynamicRecord, "offset 0xfff of record 1"},
		{"past the end, linked", linked, bytesAt{vectorRecord + 8, "\x00\x10"},
			"offsets are inside their function", "vector", vectorRecord, "offset 0x1000 of record 81985529216486895"},
		// push %rbp is one byte, and the mov %rsp,%rbp after it three (Intel SDM, volume 2).
		{"inside an instruction", object, bytesAt{dynamicRecord + 8, "\x02"},
			"offsets are on instruction boundaries", "dynamic", dynamicRecord, "offset 0x2 of record 1 is inside the instruction of 3 bytes at offset 0x1"},
		{"register 200", object, bytesAt{dynamicRecord + 16 + 4, "\xc8"},
			"registers are the architecture's", "dynamic", dynamicRecord, "location 0 of record 1: x86-64 has no register with number 200"},
		{"the program counter", object, bytesAt{dynamicRecord + 16 + 4, "\x10"},
			"registers are the architecture's", "dynamic", dynamicRecord, "location 0 of record 1: rip cannot hold values"},
		{"an address in xmm0", object, bytesAt{transitionRecord + 16 + 3*12 + 4, "\x11"},
			"registers are the architecture's", "transition", transitionRecord, "location 3 of record 6: xmm0 cannot hold an address"},
		{"a live-out in register 200", object, bytesAt{liveRecord + 36 + 5*4, "\xc8"},
			"registers are the architecture's", "live", liveRecord, "live-out 5 of record 4"},
		{"9 bytes of rbx", object, bytesAt{dynamicRecord + 16 + 2, "\x09"},
			"sizes fit their registers", "dynamic", dynamicRecord, "location 0 of record 1: 9 bytes of rbx, which has 8"},
		{"rbx from bit 8", object, bytesAt{dynamicRecord + 16 + 8, "\x08"},
			"sizes fit their registers", "dynamic", dynamicRecord, "location 0 of record 1: 8 bytes from bit 8 of rbx"},
		{"a live-out of 99 bytes", object, bytesAt{liveRecord + 36 + 3, "\x63"},
			"sizes fit their registers", "live", liveRecord, "live-out 0 of record 4: 99 bytes of rbx"},
		{"a constant of 4 bytes", object, bytesAt{anyregRecord + 16 + 4*12 + 2, "\x04"},
			"memory and constants have valid sizes", "anyreg", anyregRecord, "location 4 of record 5: a constant of 4 bytes"},
		{"a constant in a register", object, bytesAt{anyregRecord + 16 + 4*12 + 4, "\x03"},
			"memory and constants have valid sizes", "anyreg", anyregRecord, "location 4 of record 5: a constant with register 3"},
		{"no memory", object, bytesAt{transitionRecord + 16 + 3*12 + 2, "\x00"},
			"memory and constants have valid sizes", "transition", transitionRecord, "location 3 of record 6: an Indirect location of 0 bytes"},
		{"an address of 4 bytes", object, bytesAt{transitionRecord + 16 + 4*12 + 2, "\x04"},
			"memory and constants have valid sizes", "transition", transitionRecord, "location 4 of record 6: an address of 4 bytes"},
		{"constant 1 of 1", object, bytesAt{anyregRecord + 16 + 3*12 + 8, "\x01"},
			"constant indexes are in range", "anyreg", anyregRecord, "location 3 of record 5"},
		{"constant -1", object, bytesAt{anyregRecord + 16 + 3*12 + 8, "\xff\xff\xff\xff"},
			"constant indexes are in range", "anyreg", anyregRecord, "location 3 of record 5"},
		{"a live-out twice", object, bytesAt{liveRecord + 36 + 4, "\x03"},
			"each live-out is listed once", "live", liveRecord, "live-out 1 of record 4 is register 3, after register 3"},
		{"a stack of 1000 bytes", object, bytesAt{16 + 2*24 + 8, "\xe8\x03"},
			"stack sizes agree", "vector", 16 + 2*24, "its frame has 1000 bytes here, but "},
		{"a stack of 1000 bytes, linked", linked, bytesAt{16 + 5*24 + 8, "\xe8\x03"},
			"stack sizes agree", "transition", 16 + 5*24, " by CFI"},
		{"less stack", sized, bytesAt{16 + 5*24 + 8, "\x01"},
			"stack sizes agree", "transition", 16 + 5*24, " in .stack_sizes"},
		{"another size elsewhere", mac, bytesAt{16 + 2*24 + 8, "\xe8\x03"},
			"stack sizes agree", "_vector", 16 + 2*24, " by its instructions"},
		{"another size in compact unwind", mac, bytesAt{16 + 5*24 + 8, "\xe8\x03"},
			"stack sizes agree", "_transition", 16 + 5*24, " by compact unwind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := clitest.ChangedObject(t, c.path, "broken.o", func(b []byte, at int) []byte {
				require.NotEqual(t, c.change.bytes, string(b[at+c.change.at:][:len(c.change.bytes)]), "the change is none")
				copy(b[at+c.change.at:], c.change.bytes)
				return b
			})
			r := clitest.Run(t, "maps", "--check", "--json", path)
			require.Equal(t, 1, r.Code, r.Stderr)
			broken, _, errors := verdict(t, r)
			require.Empty(t, errors)
			require.Len(t, broken, 1, "%v", broken)
			require.Len(t, broken[c.rule], 1, "%v", broken)
			v := broken[c.rule][0]
			require.Contains(t, v["what"], c.what)
			require.Equal(t, "0", fmt.Sprint(v["map"]))
			where := fmt.Sprintf("map 0, +%#x", c.offset)
			if c.function != "" {
				require.Equal(t, c.function, v["function"])
				where += ", " + c.function
			} else {
				require.NotContains(t, v, "function")
			}
			require.Equal(t, fmt.Sprint(c.offset), fmt.Sprint(v["offset"]))
			r = clitest.Run(t, "maps", "--check", path)
			require.Equal(t, 1, r.Code)
			require.Empty(t, r.Stderr)
			require.Contains(t, r.Stdout, "BROKEN  "+c.rule+"  1 of ")
			require.Contains(t, r.Stdout, where)
			require.Contains(t, r.Stdout, c.what)
		})
	}

	// Inconsistent counts are an error.
	path := clitest.ChangedObject(t, object, "broken.o", func(b []byte, at int) []byte { b[at+12]++; return b })
	r := clitest.Run(t, "maps", "--check", "--json", path)
	require.Equal(t, 1, r.Code)
	_, _, errors := verdict(t, r)
	require.Len(t, errors, 1)
	require.Contains(t, errors[0], ".llvm_stackmaps+0xc: the functions claim 6 records, the header 7")
	r = clitest.Run(t, "maps", "--check", path)
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Stdout, "the functions claim 6 records, the header 7")
	require.NotContains(t, r.Stdout, "  kept ")
}

// TestCheckOfLinkedFile requires that a violation in one of several maps is reported with the map's number.
func TestCheckOfLinkedFile(t *testing.T) {
	t.Parallel()
	shapes, err := filepath.Abs("../../deopt/stackmap/testdata/shapes.ll")
	require.NoError(t, err)
	one, two := livetest.Object(t, 19, "sm_spill.ll", "-relocation-model=pic"), livetest.Object(t, 19, shapes)
	linked := livetest.Link(t, "two", links["no-pie"], one, two)
	first := sectionSize(t, one)
	path := clitest.ChangedObject(t, linked, "broken", func(b []byte, at int) []byte { b[at+first+dynamicRecord+16+4] = 200; return b })
	broken, _, errors := verdict(t, clitest.Run(t, "maps", "--check", "--json", path))
	require.Empty(t, errors)
	require.Len(t, broken, 1)
	v := broken["registers are the architecture's"]
	require.Len(t, v, 1)
	require.Equal(t, "1", fmt.Sprint(v[0]["map"]))
	require.Equal(t, "dynamic", v[0]["function"])
	require.Equal(t, fmt.Sprint(first+dynamicRecord), fmt.Sprint(v[0]["offset"]))
	require.Contains(t, clitest.Run(t, "maps", "--check", path).Stdout, fmt.Sprintf("map 1, +%#x, dynamic: ", first+dynamicRecord))
}

const sites = `
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
declare void @callee()
define void @f(i64 %a, i32 %b) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %a, i32 42)
  ret void
}
define void @g(i64 %a) gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2, i32 0, ptr elementtype(void ()) @callee, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 %a, i64 5) ]
  ret void
}
`

// TestCheckAgainstIR requires that a module which is not the compiled one violates a rule.
func TestCheckAgainstIR(t *testing.T) {
	t.Parallel()
	const stackmap, statepoint = "i64 1, i32 0, i64 %a, i32 42", `"deopt"(i64 %a, i64 5)`
	object := livetest.Object(t, 19, clitest.TempFile(t, "sites.ll", sites))
	for _, c := range []struct {
		name, from, to, rule, function string
		what                           []string
	}{
		{"as compiled", "", "", "", "", nil},
		{"one site more", "  ret void\n}\ndefine void @g", "  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 9, i32 0)\n  ret void\n}\ndefine void @g",
			"every site has a record", "", []string{"the stackmap of @f at line 9, of id 9, has no record"}},
		{"one site less", "  call void (i64, i32, ...) @llvm.experimental.stackmap(" + stackmap + ")\n", "",
			"every record has a site", "f", []string{"record 1 of @f"}},
		{"one operand more", stackmap, stackmap + ", i64 %a", "operand counts agree", "f", []string{"record 1 of @f", "has 2 live values", "3"}},
		{"one operand less", stackmap, "i64 1, i32 0, i64 %a", "operand counts agree", "f", []string{"record 1 of @f", "has 2 live values", "1"}},
		{"one deopt value more", statepoint, `"deopt"(i64 %a, i64 5, i64 6)`, "operand counts agree", "g", []string{"record 2 of @g"}},
		{"another constant", stackmap, "i64 1, i32 0, i64 %a, i32 43", "constants agree", "f", []string{"record 1 of @f", "the constant 42", "43"}},
		{"another deopt constant", statepoint, `"deopt"(i64 %a, i64 -5)`, "constants agree", "g", []string{"record 2 of @g", "the constant 5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t, sites, c.from)
			module := clitest.TempFile(t, "sites.ll", strings.Replace(sites, c.from, c.to, 1))
			r := clitest.Run(t, "maps", "--check", "--json", object, "--ir", module)
			broken, _, errors := verdict(t, r)
			require.Empty(t, errors)
			if c.rule == "" {
				require.Empty(t, broken)
				require.NotContains(t, clitest.Run(t, "maps", "--check", object, "--ir", module).Stdout, "not checked")
				return
			}
			require.Equal(t, 1, r.Code)
			require.Len(t, broken, 1, "%v", broken)
			require.Len(t, broken[c.rule], 1, "%v", broken)
			for _, text := range c.what {
				require.Contains(t, broken[c.rule][0]["what"], text)
			}
			if c.function != "" {
				require.Equal(t, c.function, broken[c.rule][0]["function"])
			}
			r = clitest.Run(t, "maps", "--check", object, "--ir", module)
			require.Equal(t, 1, r.Code)
			require.Contains(t, r.Stdout, c.what[0])
		})
	}
}

const lossy = `
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
declare void @callee()
define void @extended(x86_fp80 %e, i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %a, x86_fp80 %e, i64 %a)
  ret void
}
define void @aggregate({i64, i64} %s, i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, {i64, i64} %s, i64 %a)
  ret void
}
define void @pushed(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f, i128 %wide) gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 3, i32 0, ptr elementtype(void ()) @callee, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i128 %wide, i64 %a) ]
  ret void
}
define void @whole(i64 %a, double %d, <4 x float> %v) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, i64 %a, double %d, <4 x float> %v)
  ret void
}
`

// TestCheckFindsWhatIsLost requires that values which LLVM records partly or not at all are found by their types.
func TestCheckFindsWhatIsLost(t *testing.T) {
	t.Parallel()
	module := clitest.TempFile(t, "lossy.ll", lossy)
	object := livetest.Object(t, 19, module)
	r := clitest.Run(t, "maps", "--check", "--json", object, "--ir", module)
	require.Equal(t, 1, r.Code, r.Stderr)
	broken, _, errors := verdict(t, r)
	require.Empty(t, errors)
	require.Len(t, broken, 1, "%v", broken)
	found := map[string]string{}
	for _, v := range broken["no location is lost"] {
		found[v["function"].(string)] = v["what"].(string)
	}
	require.Len(t, found, 3, "%v", found)
	require.Contains(t, found["extended"], "record 1 of @extended has no location for operand 1, of type x86_fp80")
	require.Contains(t, found["aggregate"], "record 2 of @aggregate does not hold operand 0, of type { i64, i64 }: LLVM records only the first element")
	require.Contains(t, found["pushed"], "record 3 of @pushed does not hold operand 0, of type i128")
}

// sectionSize returns the size of an object's stack maps, from llvm-size.
func sectionSize(t *testing.T, path string) int {
	t.Helper()
	out, err := exec.Command(livetest.LLVM(t, 19, "llvm-size"), "-A", path).Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		var name string
		var size int
		if n, _ := fmt.Sscan(line, &name, &size); n == 2 && name == ".llvm_stackmaps" {
			return size
		}
	}
	require.FailNow(t, "no stack maps", "%s", out)
	return 0
}
