package deopt_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// conventionChain is a chain of calls of one convention, below a site whose values LLVM keeps in registers: v0 to v9, the doubles d0 to d3 and
// the vectors w0 to w2. @middle changes registers and saves those that it must. @over calls @plain, a C function, and so must save all
// callee-saved registers of its own convention. @leaf has a stackmap that records the number from which all values are computed.
const conventionChain = `target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
@now = global i64 0
@sink = global i64 0
@pair = global <2 x double> zeroinitializer
define CC void @leaf() noinline uwtable ATTR {
  %n = load volatile i64, ptr @now
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %n)
  ret void
}
define CC void @middle() noinline uwtable ATTR {
  %a = load volatile i64, ptr @now
  %b = load volatile i64, ptr @now
  %c = load volatile i64, ptr @now
  call void asm sideeffect "movq $$77, %r12; movq $$77, %r14; movq $$77, %rsi; xorps %xmm2, %xmm2; xorps %xmm9, %xmm9", "~{r12},~{r14},~{rsi},~{xmm2},~{xmm9}"()
  call CC void @leaf()
  %d = mul i64 %a, %b
  %e = xor i64 %d, %c
  store volatile i64 %e, ptr @sink
  ret void
}
define void @plain() noinline uwtable ATTR {
  %a = load volatile i64, ptr @now
  call CC void @leaf()
  store volatile i64 %a, ptr @sink
  ret void
}
define CC void @over() noinline uwtable ATTR {
  call void @plain()
  call void asm sideeffect "", "~{xmm1},~{xmm9},~{rcx},~{r9},~{r13}"()
  ret void
}
define i64 @entry(i64 %s) uwtable {
  store volatile i64 %s, ptr @now
VALUES  call CC void @middle() "statepoint-id"="7" [ "deopt"(LIVE) ]
  call CC void @over() "statepoint-id"="8" [ "deopt"(LIVE) ]
  %r0 = add i64 %s, 0
  store volatile double %d0, ptr @sink
  store volatile double %d1, ptr @sink
  store volatile double %d2, ptr @sink
  store volatile double %d3, ptr @sink
  store volatile <2 x double> %w0, ptr @pair
  store volatile <2 x double> %w1, ptr @pair
  store volatile <2 x double> %w2, ptr @pair
USES  ret i64 %r10
}
`

// chainOf returns the text for a convention.
func chainOf(cc, attribute string) string {
	var values, uses strings.Builder
	var live []string
	values.WriteString("  %f = sitofp i64 %s to double\n  %z = insertelement <2 x double> undef, double %f, i32 0\n")
	values.WriteString("  %y = shufflevector <2 x double> %z, <2 x double> undef, <2 x i32> zeroinitializer\n")
	for k := range 10 {
		fmt.Fprintf(&values, "  %%m%d = mul i64 %%s, %d\n  %%v%d = add i64 %%m%d, %d\n", k, 2*k+3, k, k, k)
		fmt.Fprintf(&uses, "  %%r%d = xor i64 %%r%d, %%v%d\n", k+1, k, k)
		live = append(live, fmt.Sprintf("i64 %%v%d", k))
	}
	for k := range 4 {
		fmt.Fprintf(&values, "  %%d%d = fmul double %%f, %d.5\n", k, k)
		live = append(live, fmt.Sprintf("double %%d%d", k))
	}
	for k := range 3 {
		fmt.Fprintf(&values, "  %%w%d = fmul <2 x double> %%y, <double %d.25, double %d.75>\n", k, k, k)
		live = append(live, fmt.Sprintf("<2 x double> %%w%d", k))
	}
	return strings.NewReplacer("CC ", cc+" ", "ATTR ", attribute, "VALUES", values.String(), "LIVE", strings.Join(live, ", "), "USES", uses.String()).Replace(conventionChain)
}

// expected returns the values of @entry for its arguments, as text.
func (chainValues) expected(now int64) (list []string) {
	number := func(x float64) string {
		if x == math.Trunc(x) {
			return strconv.FormatFloat(x, 'f', 1, 64)
		}
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	for k := range 10 {
		list = append(list, strconv.FormatInt(now*int64(2*k+3)+int64(k), 10))
	}
	f := float64(now)
	for k := range 4 {
		list = append(list, number(f*(float64(k)+0.5)))
	}
	for k := range 3 {
		list = append(list, "<"+number(f*(float64(k)+0.25))+", "+number(f*(float64(k)+0.75))+">")
	}
	return list
}

// chainValues is a run of a chain.
type chainValues struct {
	version       int
	cc, attribute string
}

// eachExit runs the chain, and calls exit at each exit in @leaf with the number recorded there, the frame of @entry, and a description of the
// exit. If named is set, the module gives the values names.
func (c chainValues) eachExit(t *testing.T, named bool, exit func(about string, now frame.Slot, entry *deopt.Frame)) {
	path := filepath.Join(t.TempDir(), "chain.ll")
	require.NoError(t, os.WriteFile(path, []byte(chainOf(c.cc, c.attribute)), 0o600))
	o := deopt.Options{}
	if named {
		m, err := ir.ParseFile(path)
		require.NoError(t, err)
		o.Modules = []*ir.Module{m}
	}
	s := frametest.Launched(t, livetest.ObjectHostCommand(t, livetest.PICObject(t, c.version, path, "-O2", "-use-registers-for-deopt-values"), livetest.ObjectHostOptions{Rounds: 3}))
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	exits := 0
	_, err := trace.Run(ctx, s, trace.Options{Options: o, ExitFilter: trace.ExitFilter{Records: []uint64{1}}, Full: true, Wait: true, Warn: func(string) {}}, func(x *trace.Exited) error {
		exits++
		about := fmt.Sprintf("LLVM %d, %s %s, exit %d", c.version, c.cc, c.attribute, exits)
		at := slices.IndexFunc(x.Frames, func(f *deopt.Frame) bool { return f.Function == "entry" })
		require.Contains(t, []int{2, 3}, at, about) // after @leaf and @middle, or @leaf, @plain and @over
		exit(about, x.Frame.Slots[0], x.Frames[at])
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, s.Detach())
	require.Positive(t, exits)
}

// read runs the chain and fails if a value is wrong. It returns the number of expected values and of values read.
func (c chainValues) read(t *testing.T) (want, read int) {
	c.eachExit(t, true, func(about string, number frame.Slot, entry *deopt.Frame) {
		now, err := strconv.ParseInt(number.Value, 10, 64)
		require.NoError(t, err, about)
		expected := c.expected(now)
		require.Len(t, entry.Slots, len(expected), about)
		for k, slot := range entry.Slots {
			if want++; slot.Status != frame.OK {
				t.Logf("%s: %s: %s", about, slot.Name, slot.Reason)
				continue
			}
			read++
			assert.Equal(t, expected[k], slot.Value, "%s %s", about, slot.Name)
		}
	})
	return want, read
}

// TestConventionsKeepRegisters requires that values in callee-saved registers of the callee's convention are read through any number of its frames,
// and equal the program's values. Conventions that preserve less than C's must not cause wrong values.
func TestConventionsKeepRegisters(t *testing.T) {
	livetest.Slow(t)
	var turns livetest.Turns
	for _, version := range []int{14, 16, 19, 22} {
		for _, cc := range []string{"ccc", "preserve_mostcc", "preserve_allcc", "coldcc", "x86_regcallcc", "swiftcc", "swifttailcc", "tailcc", "fastcc", "win64cc", "anyregcc"} {
			if version == 22 && (cc == "swifttailcc" || cc == "anyregcc") {
				continue // llc 22 runs out of registers
			}
			if turns.Out(3) {
				continue
			}
			want, read := chainValues{version, cc, ""}.read(t)
			assert.Equal(t, want, read, "LLVM %d, %s", version, cc)
		}
	}
}

// TestConventionsThatKeepLess covers functions of cxx_fast_tls that do not unwind: they save the registers that C's functions push in other
// registers, and their CFI omits that. Functions of intel_ocl_bi preserve less if compiled for AVX-512. A caller's values in such registers must be
// unavailable, and no value wrong.
func TestConventionsThatKeepLess(t *testing.T) {
	for _, version := range []int{14, 16, 19, 22} {
		for _, c := range []chainValues{{version, "cxx_fast_tlscc", "nounwind "}, {version, "intel_ocl_bicc", ""}} {
			want, read := c.read(t)
			assert.Less(t, read, want, "LLVM %d, %s", version, c.cc)
		}
	}
}

// readWithoutModule does the same as read, but without a module: conventions are unknown, and each value is an integer of the location's size.
func (c chainValues) readWithoutModule(t *testing.T) (want, read int) {
	c.eachExit(t, false, func(about string, number frame.Slot, entry *deopt.Frame) {
		now, err := strconv.ParseUint(strings.TrimPrefix(string(number.Hex), "0x"), 16, 64)
		require.NoError(t, err, about)
		slots := entry.Slots
		slots = slots[len(slots)-17:] // the first slots are the constants of every statepoint
		for k, slot := range slots {
			if want++; slot.Status != frame.OK {
				continue
			}
			read++
			hex := fmt.Sprintf("0x%x", int64(now)*int64(2*k+3)+int64(k))
			f := float64(now)
			switch d, w := float64(k-10), float64(k-14); {
			case k >= 14:
				hex = fmt.Sprintf("0x%x%016x", math.Float64bits(f*(w+0.75)), math.Float64bits(f*(w+0.25)))
			case k >= 10:
				hex = fmt.Sprintf("0x%x", math.Float64bits(f*(d+0.5)))
			}
			hex = "0x" + cmp.Or(strings.TrimLeft(hex[2:], "0"), "0")
			has := string(slot.Hex)
			if k >= 10 && k < 14 && len(has) > 18 { // the double is in the first half of the spilled register
				has = has[:2] + has[len(has)-16:]
			}
			assert.Equal(t, hex, has, "%s, value %d in %v", about, k, slot.Location)
		}
	})
	return want, read
}

// TestConventionsWithoutModule covers functions of unknown convention. Their code shows which registers it changes although the CFI does not restore
// them. A caller's values in such registers must be unavailable, and no value wrong. For C's functions all callee-saved registers are read.
func TestConventionsWithoutModule(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{14, 16, 19, 22} {
		for _, c := range []chainValues{{version, "cxx_fast_tlscc", "nounwind "}, {version, "hhvmcc", ""}, {version, "intel_ocl_bicc", ""}, {version, "preserve_mostcc", ""},
			{version, "preserve_nonecc", ""}, {version, "swifttailcc", "nounwind "}} {
			if version < 19 && c.cc == "preserve_nonecc" || version == 22 && (c.cc == "swifttailcc" || c.cc == "preserve_nonecc") {
				continue // LLVM of this release lacks the convention, or runs out of registers
			}
			want, read := c.readWithoutModule(t)
			switch c.cc {
			case "hhvmcc", "swifttailcc", "preserve_nonecc": // these functions save the registers that they change
				assert.Equal(t, want, read, "LLVM %d %s", version, c.cc)
			default:
				assert.Less(t, read, want, "LLVM %d %s", version, c.cc)
				assert.Greater(t, read, want/2, "LLVM %d %s", version, c.cc)
			}
		}
	}
}

// TestUpperHalvesAreNotKept requires that a preserve_all function is known to keep only the lower halves of the ymm registers that it saves: it
// clears the upper halves before it returns.
func TestUpperHalvesAreNotKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "upper.ll")
	require.NoError(t, os.WriteFile(path, []byte(`target triple = "x86_64-pc-linux-gnu"
define preserve_allcc void @f() "target-features"="+avx" {
  call void asm sideeffect "", "~{xmm9}"()
  ret void
}`), 0o600))
	for _, version := range []int{14, 16, 19, 22} {
		assembly, err := exec.Command(livetest.LLVM(t, version, "llc"), path, "-o", "-").Output()
		require.NoError(t, err)
		require.Regexp(t, `vmovups\s.*\(%rsp\), %ymm9.*\n\s+vzeroupper\n\s+retq`, string(assembly), "LLVM %d", version)
	}
}
