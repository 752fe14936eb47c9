package deopt_test

import (
	"bufio"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// The kinds of site.
const (
	sweepStackMap   = "stackmap"
	sweepPatchPoint = "patchpoint"
	sweepAnyReg     = "anyregcc"
	sweepDeopt      = "statepoint"
)

// vectorSites describes how the vectors of a program reach their sites.
type vectorSites struct {
	version int
	kind    string
	from    string // loaded (in a register if possible), spilled, argument (of the function) or constant
	avx512  bool   // xmm16 to xmm31 and the mask registers exist, and are spilled too
	flags   []string
	quarter int // with FIDELITY=all: the quarter of the types that a statepoint uses
}

func (w vectorSites) String() string {
	return fmt.Sprintf("LLVM %d %s %s %s", w.version, w.kind, w.from, strings.Join(w.flags, " "))
}

// clobbers returns all registers that a vector may be in.
func (w vectorSites) clobbers() string {
	var list []string
	for n := range 16 {
		list = append(list, fmt.Sprintf("~{xmm%d}", n))
	}
	if w.avx512 {
		for n := 16; n < 32; n++ {
			list = append(list, fmt.Sprintf("~{xmm%d}", n))
		}
		for n := range 8 {
			list = append(list, fmt.Sprintf("~{k%d}", n))
		}
	}
	return strings.Join(append(list, "~{memory}"), ",")
}

// function writes @fN, which has one site with a vector between two numbers, and stores the elements of the vector, 16 bytes each, to @logged. Its
// argument is the address of the vector in memory.
func (w vectorSites) function(out *strings.Builder, n int, t frametest.Vector) {
	const attributes = `noinline gc  "statepoint-example"` // two spaces after gc, so that livetest does not rewrite the calls
	clobber := fmt.Sprintf("  call void asm sideeffect \"\", %q()\n", w.clobbers())
	value, site := "%v", ""
	switch w.from {
	case "argument":
		fmt.Fprintf(out, "define void @f%d(%s %%v, ptr %%p, i64 %%a) %s {\n", n, t, attributes)
	default:
		fmt.Fprintf(out, "define void @f%d(ptr %%p, i64 %%a) %s {\n", n, attributes)
		if w.from == "constant" {
			value = constantVector(t, n)
		} else {
			out.WriteString(t.Load("%v", "ptr %p"))
		}
	}
	live := fmt.Sprintf("i64 77, %s %s, i64 %%a", t, value)
	switch w.kind {
	case sweepStackMap:
		site = fmt.Sprintf("call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %d, i32 4, %s)", n, live)
	case sweepPatchPoint:
		site = fmt.Sprintf("call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 %d, i32 4, ptr null, i32 0, %s)", n, live)
	case sweepAnyReg:
		site = fmt.Sprintf("call anyregcc void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 %d, i32 4, ptr null, i32 2, i64 %%a, %s %s, %s)", n, t, value, live)
	case sweepDeopt:
		site = fmt.Sprintf(`call void @nothing() [ "deopt"(%s) ]`, live)
	}
	if w.from == "spilled" {
		out.WriteString(clobber)
	}
	fmt.Fprintf(out, "  %s\n", site)
	if w.from == "spilled" {
		out.WriteString(clobber)
	}
	for i := range t.N {
		fmt.Fprintf(out, "  %%e%d = extractelement %s %s, i32 %d\n  %%n%d = %s\n", i, t, value, i, i, t.Number(fmt.Sprintf("%%e%d", i)))
		wide := fmt.Sprintf("%%n%d", i)
		if t.Bits() < 128 {
			fmt.Fprintf(out, "  %%w%d = zext i%d %s to i128\n", i, t.Bits(), wide)
			wide = fmt.Sprintf("%%w%d", i)
		}
		fmt.Fprintf(out, "  store volatile i128 %s, ptr getelementptr (i128, ptr @logged, i64 %d), align 16\n", wide, i)
	}
	out.WriteString("  ret void\n}\n")
}

// constantVector returns a vector of different numbers, as far as the element type permits.
func constantVector(t frametest.Vector, seed int) string {
	parts := make([]string, t.N)
	for i := range parts {
		n := new(big.Int).Exp(big.NewInt(int64(seed%50*2+7)), big.NewInt(int64(i%23+1)), new(big.Int).Lsh(big.NewInt(1), uint(t.Bits())))
		switch {
		case t.Element == "ptr":
			parts[i] = fmt.Sprintf("ptr inttoptr (i64 %v to ptr)", n)
		case t.Element[0] == 'i':
			parts[i] = fmt.Sprintf("%s %v", t.Element, n)
		default:
			parts[i] = fmt.Sprintf("%s bitcast (i%d %v to %s)", t.Element, t.Bits(), n, t.Element)
		}
	}
	return "<" + strings.Join(parts, ", ") + ">"
}

// largest is the number of elements that the log has room for.
const largest = 64

// module returns a program with a function for each of the types, for the object host.
func (w vectorSites) module(types []frametest.Vector) string {
	var out strings.Builder
	out.WriteString(`target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
declare i32 @printf(ptr, ...)
declare i32 @fflush(ptr)
@text = private constant [22 x i8] c"V %d %d %016lx%016lx\0A\00"
`)
	fmt.Fprintf(&out, "@logged = internal global [%d x i128] zeroinitializer\n", largest)
	// Use numbers without a pattern that are neither NaN nor denormal in any floating-point format.
	fmt.Fprintf(&out, "@in = internal global [%d x i8] [", 16*largest)
	state := uint32(2463534242)
	for i := range 16 * largest {
		state ^= state << 13
		state ^= state >> 17
		state ^= state << 5
		if i > 0 {
			out.WriteString(", ")
		}
		fmt.Fprintf(&out, "i8 %d", state>>11&0xff)
	}
	out.WriteString("]\n")
	fmt.Fprintf(&out, `define void @nothing() noinline {
  call void asm sideeffect "", "~{memory}"()
  ret void
}
define void @tell(i32 %%f, i32 %%count) noinline {
entry:
  br label %%loop
loop:
  %%i = phi i32 [ 0, %%entry ], [ %%j, %%loop ]
  %%at = getelementptr i128, ptr @logged, i32 %%i
  %%lo = load volatile i64, ptr %%at, align 16
  %%above = getelementptr i64, ptr %%at, i32 1
  %%hi = load volatile i64, ptr %%above, align 8
  %%p = call i32 (ptr, ...) @printf(ptr @text, i32 %%f, i32 %%i, i64 %%hi, i64 %%lo)
  %%j = add i32 %%i, 1
  %%c = icmp ult i32 %%j, %%count
  br i1 %%c, label %%loop, label %%done
done:
  %%q = call i32 @fflush(ptr null)
  ret void
}
define i64 @entry(i64 %%n) {
`)
	for n, t := range types {
		in := fmt.Sprintf("ptr getelementptr (i8, ptr @in, i64 %d)", n%13)
		if w.from == "argument" {
			out.WriteString(t.Load(fmt.Sprintf("%%v%d", n), in))
			fmt.Fprintf(&out, "  call void @f%d(%s %%v%d, %s, i64 %d)\n", n, t, n, in, 1000+n)
		} else {
			fmt.Fprintf(&out, "  call void @f%d(%s, i64 %d)\n", n, in, 1000+n)
		}
		fmt.Fprintf(&out, "  call void @tell(i32 %d, i32 %d)\n", n, t.N)
	}
	out.WriteString("  ret i64 0\n}\n")
	if w.version > 14 {
		// -O0 passes a bfloat as a float and calls the runtime library to truncate it again; Debian's libgcc 12 has no such function. This
		// truncation loses no bits, because the numbers were bfloats before.
		out.WriteString(`define bfloat @__truncsfbf2(float %f) {
  %bits = bitcast float %f to i32
  %top = lshr i32 %bits, 16
  %half = trunc i32 %top to i16
  %b = bitcast i16 %half to bfloat
  ret bfloat %b
}
`)
	}
	for n, t := range types {
		w.function(&out, n, t)
	}
	return out.String()
}

// sweepCount counts the results of values.
type sweepCount struct {
	right       int
	wrong       int
	indirect    int
	notCompiled int
	nonsense    int // vectors of which the program itself logged an element with bits outside of its type
	unavailable map[string]int
}

// run compiles and runs a program, and compares the vector of each site with the program's output. It counts types that the code generator rejects;
// if it rejects only some, run divides the program.
func (w vectorSites) run(t *testing.T, types []frametest.Vector, count *sweepCount) {
	t.Helper()
	if len(types) == 0 {
		return
	}
	path := filepath.Join(t.TempDir(), "vectors.ll")
	require.NoError(t, os.WriteFile(path, []byte(w.module(types)), 0o644))
	object := livetest.TryObject(t, w.version, path, append([]string{"-relocation-model=pic"}, w.flags...)...)
	if object == "" {
		if len(types) == 1 {
			count.notCompiled++
			return
		}
		w.run(t, types[:len(types)/2], count)
		w.run(t, types[len(types)/2:], count)
		return
	}
	p, begin := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{})
	m, err := ir.ParseFile(livetest.IR(t, w.version, path))
	require.NoError(t, err)
	lines := exitsOf(t, p, begin, deopt.Options{Modules: []*ir.Module{m}})
	require.NoError(t, p.Wait())
	logged := map[string][]*big.Int{}
	output := bufio.NewScanner(strings.NewReader(p.Output()))
	for output.Scan() {
		var f, i int
		var digits string
		if n, _ := fmt.Sscanf(output.Text(), "V %d %d %s", &f, &i, &digits); n == 3 {
			v, ok := new(big.Int).SetString(digits, 16)
			require.True(t, ok)
			name := fmt.Sprintf("f%d", f)
			logged[name] = append(logged[name], v)
		}
	}
	require.Len(t, lines, len(types), "%v: each site is met once", w)
	for _, l := range lines {
		var n int
		_, err := fmt.Sscanf(l.function, "f%d", &n)
		require.NoError(t, err)
		typ := types[n]
		require.Len(t, logged[l.function], typ.N)
		if slices.ContainsFunc(logged[l.function], func(e *big.Int) bool { return e.BitLen() > typ.Bits() }) {
			count.nonsense++ // the program itself logged a number of 8 bits for an i6
			continue
		}
		require.Len(t, l.slots, 3, "%v %v", w, typ)
		require.Equal(t, "77", l.slots[0].Value)
		require.Equal(t, fmt.Sprint(1000+n), l.slots[2].Value, "%v %v", w, typ)
		s := l.slots[1]
		if s.Status != frame.OK {
			require.NotEmpty(t, s.Reason)
			require.Empty(t, s.Hex)
			count.unavailable[s.Reason]++
			continue
		}
		right := assert.Equal(t, packedHex(typ, logged[l.function]), string(s.Hex), "%v %v in %+v", w, typ, s.Location)
		if typ.Element[0] == 'i' {
			right = assert.Equal(t, spelledVector(typ, logged[l.function]), s.Value, "%v %v", w, typ) && right
		}
		if !right {
			count.wrong++
			continue
		}
		count.right++
		if s.Location.Kind == "Indirect" {
			count.indirect++
		}
	}
}

// exit is one exit of a process: the function, and the contents of its record.
type exit struct {
	function string
	slots    []frame.Slot
}

// exitsOf returns the exits of a process from its start to its end.
func exitsOf(t *testing.T, p *livetest.Process, begin func(), o deopt.Options) (list []exit) {
	t.Helper()
	s := frametest.Open(t, p)
	begin() // begin sends the input for which the process waits once the session has resumed it
	warn := func(text string) { require.Fail(t, text) }
	_, err := trace.Run(t.Context(), s, trace.Options{Options: o, Warn: warn}, func(x *trace.Exited) error {
		list = append(list, exit{x.Frame.Function, x.Frame.Slots})
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, s.Detach())
	return list
}

// packedHex returns the number of the packed elements, the first in the least significant bits (LangRef, "Vector Type").
func packedHex(t frametest.Vector, elements []*big.Int) string {
	all := new(big.Int)
	for i, e := range elements {
		all.Or(all, new(big.Int).Lsh(e, uint(i*t.Bits())))
	}
	return "0x" + all.Text(16)
}

// spelledVector formats a vector of integers as slots show it.
func spelledVector(t frametest.Vector, elements []*big.Int) string {
	parts := make([]string, len(elements))
	for i, e := range elements {
		switch top := uint(t.Bits() - 1); {
		case t.Bits() == 1:
			parts[i] = fmt.Sprint(e.Sign() != 0)
		case e.Bit(int(top)) != 0:
			parts[i] = new(big.Int).Sub(e, new(big.Int).Lsh(big.NewInt(1), top+1)).String()
		default:
			parts[i] = e.String()
		}
	}
	return "<" + strings.Join(parts, ", ") + ">"
}

// sweepTypes returns the vectors of each length and element type.
func sweepTypes(lengths []int, elements ...string) (types []frametest.Vector) {
	for _, n := range lengths {
		for _, e := range elements {
			types = append(types, frametest.Vector{N: n, Element: e})
		}
	}
	return types
}

// TestVectorsOfIllegalTypes requires that vectors whose type fits no register are read where the code generator put their elements, at each kind of
// site, in registers and spilled. The values must be those that the program printed. With FIDELITY=all it covers all types and ways.
func TestVectorsOfIllegalTypes(t *testing.T) {
	livetest.Slow(t)
	lowered := sweepTypes([]int{2}, "i1", "i7", "i24", "i33", "i63", "i64", "double", "ptr")
	lowered = append(lowered, sweepTypes([]int{4}, "i1", "i7", "i12", "i24", "i31", "i32", "float")...)
	lowered = append(lowered, sweepTypes([]int{8}, "i1", "i7", "i9", "i15", "i16")...)
	lowered = append(lowered, sweepTypes([]int{16}, "i1", "i3", "i7", "i8")...)
	stored := slices.Concat(lowered, sweepTypes([]int{1, 3, 5, 17}, "i1", "i7", "i24", "i128", "half", "float", "x86_fp80", "fp128", "ptr"))
	for _, w := range []vectorSites{
		{version: 16, kind: sweepStackMap, from: "spilled", flags: []string{"-O2"}},
		{version: 22, kind: sweepStackMap, from: "loaded", flags: []string{"-O2"}},
		{version: 19, kind: sweepPatchPoint, from: "spilled", flags: []string{"-O2"}},
		{version: 22, kind: sweepAnyReg, from: "constant", flags: []string{"-O0"}},
		{version: 14, kind: sweepDeopt, from: "loaded", flags: []string{"-O2"}},
		{version: 22, kind: sweepDeopt, from: "argument", flags: []string{"-O0", "-use-registers-for-deopt-values"}},
	} {
		t.Run(w.String(), func(t *testing.T) {
			types := lowered
			if w.kind == sweepDeopt {
				types = stored
			}
			count := sweepCount{unavailable: map[string]int{}}
			w.run(t, types, &count)
			require.Zero(t, count.notCompiled)
			require.Zero(t, count.nonsense)
			require.Empty(t, count.unavailable)
			require.Equal(t, w.from == "spilled" || w.kind == sweepDeopt, count.indirect > 0)
		})
	}
	if os.Getenv("FIDELITY") != "all" {
		return
	}
	total := sweepCount{unavailable: map[string]int{}}
	byFlags := map[string]*sweepCount{}
	for _, w := range sweepWays(t) {
		t.Run("all "+w.String(), func(t *testing.T) {
			count := sweepCount{unavailable: map[string]int{}}
			w.run(t, w.types(t), &count)
			t.Log(count.String())
			total.add(count)
			flags := fmt.Sprintf("LLVM %d %s", w.version, w.flags[len(w.flags)-1])
			if byFlags[flags] == nil {
				byFlags[flags] = &sweepCount{unavailable: map[string]int{}}
			}
			byFlags[flags].add(count)
		})
	}
	for _, flags := range slices.Sorted(maps.Keys(byFlags)) {
		t.Logf("%s: %v", flags, byFlags[flags])
	}
	t.Logf("in all %v", &total)
}

// String returns the counts and the reasons for unavailable values.
func (c *sweepCount) String() string {
	unavailable := 0
	for _, n := range c.unavailable {
		unavailable += n
	}
	return fmt.Sprintf("right %d (in slots %d), unavailable %d, wrong %d, not compiled %d, nonsense in the program too %d %v",
		c.right, c.indirect, unavailable, c.wrong, c.notCompiled, c.nonsense, c.unavailable)
}

// add adds the counts of another sweep.
func (c *sweepCount) add(other sweepCount) {
	c.right += other.right
	c.wrong += other.wrong
	c.indirect += other.indirect
	c.notCompiled += other.notCompiled
	c.nonsense += other.nonsense
	for why, n := range other.unavailable {
		c.unavailable[why] += n
	}
}

// sweepFeatures is a set of vector registers for which programs are compiled.
type sweepFeatures struct {
	flag    string
	needs   []string // required processor features, as in /proc/cpuinfo
	largest int      // bytes of the largest vector register
	masks   int      // bytes of the largest mask, 0 for none
	lane    int      // width of the narrowest integers that the largest register supports
}

var allSweepFeatures = []sweepFeatures{
	{largest: 16, lane: 8},
	{flag: "-mattr=+avx2", needs: []string{"avx2"}, largest: 32, lane: 8},
	{flag: "-mattr=+avx512f", needs: []string{"avx512f"}, largest: 64, masks: 2, lane: 32},
	{flag: "-mattr=+avx512bw,+avx512vl,+avx512dq", needs: []string{"avx512bw", "avx512vl", "avx512dq"}, largest: 64, masks: 8, lane: 8},
}

// takes reports whether the code generator of a release may accept the vector v, whose recorded size is one of sizes. It excludes the vectors that
// crash the code generator; others that it rejects are counted as not compiled.
func (f sweepFeatures) takes(version int, v frametest.Vector, sizes []int) bool {
	return slices.ContainsFunc(sizes, func(size int) bool {
		if size < 16 {
			return size <= f.masks
		}
		if version == 14 && 8*size != v.N*v.Bits() {
			return false // LLVM 14 does not promote operands to a larger vector
		}
		return size <= f.largest && (size < f.largest || 8*size/v.N >= f.lane)
	})
}

// sweepWays returns all ways of the whole sweep that this processor can run. GlobalISel is not one of them: it does not support such sites, and falls
// back to the other selectors.
func sweepWays(t *testing.T) (ways []vectorSites) {
	t.Helper()
	processor, err := os.ReadFile("/proc/cpuinfo")
	require.NoError(t, err)
	has := strings.Fields(string(processor))
	for _, version := range []int{14, 16, 19, 22} {
		for _, kind := range []string{sweepStackMap, sweepPatchPoint, sweepAnyReg, sweepDeopt} {
			levels := []string{"-O0", "-O0 -fast-isel=false", "-O2"}
			if kind == sweepDeopt {
				levels = []string{"-O0", "-O2", "-O2 -use-registers-for-deopt-values"}
			}
			for i, from := range []string{"loaded", "spilled", "argument", "constant"} {
				for _, f := range allSweepFeatures {
					if slices.ContainsFunc(f.needs, func(feature string) bool { return !slices.Contains(has, feature) }) {
						continue
					}
					for j, level := range levels {
						flags := strings.Fields(level + " " + f.flag)
						ways = append(ways, vectorSites{version, kind, from, f.masks > 0, flags, (i + j) % 4})
					}
				}
			}
		}
	}
	return ways
}

// types returns the types to try with a way. Statepoints accept all types: each way tries a quarter of them, so that the ways of one release and one
// register set together try each type three times. Other sites get the types that a processor with these registers may accept, and without any flag
// all types.
func (w vectorSites) types(t *testing.T) (types []frametest.Vector) {
	t.Helper()
	var lengths []int
	for n := 1; n <= 17; n++ {
		lengths = append(lengths, n)
	}
	var elements []string
	for _, bits := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 128} {
		elements = append(elements, fmt.Sprintf("i%d", bits))
	}
	elements = append(elements, "half", "bfloat", "float", "double", "x86_fp80", "fp128", "ptr")
	layout, err := ir.ParseDataLayout("")
	require.NoError(t, err)
	features := allSweepFeatures[0]
	for _, f := range allSweepFeatures[1:] {
		if slices.Contains(w.flags, f.flag) {
			features = f
		}
	}
	alone := w.from == "loaded" && w.kind == sweepStackMap && slices.Equal(w.flags, []string{"-O2"})
	for i, v := range sweepTypes(append(lengths, 31, 32, 33, 64), elements...) {
		if w.kind == sweepDeopt {
			if i%4 == w.quarter {
				types = append(types, v)
			}
			continue
		}
		m, err := ir.Parse("type.ll", []byte("declare void @f("+v.String()+")\n"))
		require.NoError(t, err)
		sizes, _ := abi.LaneSizes(m.Funcs[0].Params[0].Typ, layout, "amd64")
		if alone || features.takes(w.version, v, sizes) {
			types = append(types, v)
		}
	}
	return types
}
