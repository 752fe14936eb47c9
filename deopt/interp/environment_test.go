package interp_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// environments lists floating-point environments of real programs, by architecture.
var environments = map[*machine.Arch][]machine.FloatControl{
	machine.AMD64: {
		{MXCSR: 0x1f80, X87: 0x37f}, // the default environment
		{MXCSR: 0x9fc0, X87: 0x37f}, // -ffast-math: FTZ and DAZ
		{MXCSR: 0x9f80, X87: 0x37f}, // FTZ alone
		{MXCSR: 0x1fc0, X87: 0x37f}, // DAZ alone
	},
	machine.ARM64: {{}, {FPCR: 1 << 24}, {FPCR: 1 << 25}},
}

// TestUnusualFloatEnvironmentsAreRefused requires an error for arithmetic if the thread rounds in another direction or to another precision.
func TestUnusualFloatEnvironmentsAreRefused(t *testing.T) {
	source, err := os.ReadFile("testdata/environment/environment.ll")
	require.NoError(t, err)
	m := parse(t, string(source))
	const downward, upward, zero = "rounding downward", "rounding upward", "rounding toward zero"
	both := ", subnormal operands and results are zero"
	for _, c := range []struct {
		arch     *machine.Arch
		control  machine.FloatControl
		function string
		says     string
	}{
		{machine.AMD64, machine.FloatControl{MXCSR: 0x3f80, X87: 0x37f}, "add64", downward},
		{machine.AMD64, machine.FloatControl{MXCSR: 0x5f80, X87: 0x37f}, "mul32", upward},
		{machine.AMD64, machine.FloatControl{MXCSR: 0xffc0, X87: 0x37f}, "sqrt64", zero + both},
		{machine.AMD64, machine.FloatControl{MXCSR: 0x7f80, X87: 0x37f}, "lrint64", zero},
		{machine.AMD64, machine.FloatControl{MXCSR: 0x7f80, X87: 0x37f}, "trunc32", zero},
		{machine.AMD64, machine.FloatControl{MXCSR: 0x7f80, X87: 0x37f}, "uint64", zero},
		{machine.AMD64, machine.FloatControl{MXCSR: 0x1f80, X87: 0x27f}, "xadd", "x87: precision of 53 bits"},
		{machine.AMD64, machine.FloatControl{MXCSR: 0x1f80, X87: 0x07f}, "xmul", "x87: precision of 24 bits"},
		{machine.AMD64, machine.FloatControl{MXCSR: 0x1f80, X87: 0xb7f}, "xsqrt", "x87: rounding upward"},
		{machine.ARM64, machine.FloatControl{FPCR: 2 << 22}, "add64", downward},
		{machine.ARM64, machine.FloatControl{FPCR: 1<<24 | 1<<22}, "div64", upward + both},
		{machine.ARM64, machine.FloatControl{FPCR: 2}, "fma64", "alternate behavior, FPCR 0x2"},
	} {
		in, err := interp.New(m, interp.Options{Arch: c.arch, Floats: &c.control})
		require.NoError(t, err)
		require.Equal(t, c.says, in.FloatEnvironment())
		_, err = called(in, m, c.function, [3]uint64{})
		var run *interp.RunError
		require.ErrorAs(t, err, &run, "%+v", c)
		require.Equal(t, interp.KindUnsupported, run.Kind, "%v", err)
		require.ErrorContains(t, err, "in the floating-point environment of the thread ("+c.says+")")
	}
}

// TestFloatEnvironmentIsTheProcessors requires that the interpreter computes the processor's results in each environment.
func TestFloatEnvironmentIsTheProcessors(t *testing.T) {
	livetest.Slow(t)
	for arch, list := range environments {
		t.Run(arch.Name, func(t *testing.T) {
			source, err := os.ReadFile("testdata/environment/environment.ll")
			require.NoError(t, err)
			compiler, triple, run := "gcc", "x86_64-linux-gnu", []string(nil)
			text, order := string(source), functionsOf(t)
			if arch == machine.ARM64 {
				compiler, triple, run = "aarch64-linux-gnu-gcc", "aarch64-linux-gnu", []string{livetest.Tool(t, "qemu-aarch64")}
				text, _, _ = strings.Cut(text, "; x87\n")
				order = order[:strings.Count(text, "define i64")]
			}
			dir := t.TempDir()
			module, object, program := filepath.Join(dir, "environment.ll"), filepath.Join(dir, "environment.o"), filepath.Join(dir, "environment")
			require.NoError(t, os.WriteFile(module, []byte(text), 0o600))
			livetest.Make(t, livetest.LLVM(t, 19, "llc"), "-O1", "-mtriple="+triple, "-filetype=obj", "-relocation-model=pic", module, "-o", object)
			livetest.Make(t, livetest.Tool(t, compiler), "-O1", "-static", "testdata/environment/environment.c", object, "-lm", "-o", program)
			calls := environmentCalls(order)
			for _, c := range list {
				first, second := uint64(c.MXCSR), uint64(c.X87)
				if arch == machine.ARM64 {
					first = c.FPCR
				}
				command := append(append([]string{}, run...), program, fmt.Sprintf("%x", first), fmt.Sprintf("%x", second))
				ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
				cmd := exec.CommandContext(ctx, command[0], command[1:]...)
				var input bytes.Buffer
				for _, call := range calls {
					fmt.Fprintf(&input, "%d %x %x %x\n", call.function, call.args[0], call.args[1], call.args[2])
				}
				cmd.Stdin = &input
				native, err := cmd.Output()
				cancel()
				require.NoError(t, err)
				lines := strings.Fields(string(native))
				require.Len(t, lines, len(calls))
				m := parse(t, text)
				in, err := interp.New(m, interp.Options{Arch: arch, Floats: &c, MaxSteps: 50e6})
				require.NoError(t, err)
				refused := 0
				for k, call := range calls {
					want, err := strconv.ParseUint(lines[k], 16, 64)
					require.NoError(t, err)
					got, err := called(in, m, order[call.function], call.args)
					if run := (*interp.RunError)(nil); err != nil {
						require.ErrorAs(t, err, &run)
						require.Equal(t, interp.KindUnsupported, run.Kind, "%v", err)
						require.Equal(t, "rint64", order[call.function], "%v", err)
						refused++
						continue
					}
					if undetermined(order[call.function], call.args, want, got) {
						continue
					}
					require.Equal(t, fmt.Sprintf("%#x", want), fmt.Sprintf("%#x", got), "%s(%#x) in %+v", order[call.function], call.args, c)
				}
				require.Less(t, refused, len(calls)/20)
			}
		})
	}
}

// functionsOf returns the names of the functions that the program calls. The index of a name is the number that selects the function.
func functionsOf(t *testing.T) (names []string) {
	source, err := os.ReadFile("testdata/environment/environment.c")
	require.NoError(t, err)
	for _, line := range strings.Split(string(source), "\n") {
		if strings.HasPrefix(line, "#define LONG") || strings.HasPrefix(line, "\tX(") {
			for _, x := range regexp.MustCompile(`X\((\w+)\)`).FindAllStringSubmatch(line, -1) {
				names = append(names, x[1])
			}
		}
	}
	return names
}

func called(in *interp.Interp, m *ir.Module, name string, args [3]uint64) (uint64, error) {
	var list []interp.Value
	f := m.Func(name)
	for k, p := range f.Params {
		list = append(list, interp.FromUint(p.Typ, args[k]))
	}
	r, err := in.Call(context.Background(), f, list)
	if err != nil {
		return 0, err
	}
	v, _ := r.Value.Uint()
	return v, nil
}

// undetermined reports whether LLVM does not define the difference between two results: the sign of a zero that is a minimum or maximum, the bits of
// a NaN, or an integer result for a float that does not fit.
func undetermined(name string, args [3]uint64, want, got uint64) bool {
	x := math.Float64frombits(args[0])
	isNaN := func(v uint64) bool {
		return math.IsNaN(math.Float64frombits(v)) || strings.HasSuffix(name, "32") && math.IsNaN(float64(math.Float32frombits(uint32(v))))
	}
	switch name {
	case "toint", "lrint64":
		return !(math.Abs(x) < 1<<31)
	case "min64", "max64":
		return want<<1 == 0 && got<<1 == 0 || isNaN(want) && isNaN(got)
	case "xadd", "xsub", "xmul", "xdiv", "xsqrt":
		return math.IsNaN(x) || math.IsNaN(math.Float64frombits(args[1]))
	}
	return isNaN(want) && isNaN(got)
}

type environmentCall struct {
	function int
	args     [3]uint64
}

// environmentCalls returns calls of each function with the smallest and largest operands of the formats, and with random operands.
func environmentCalls(order []string) (calls []environmentCall) {
	r := rand.New(rand.NewPCG(35, 2))
	special := []float64{0, math.Copysign(0, -1), 1, -1, 1.0 / 3, 0.5, 1.5, 5e-324, -5e-324, 0x1p-1022, -0x1p-1022, 0x1.fffffffffffffp-1023, 0x1.8p-1023,
		1e-310, -1e-310, 1e-300, 1e-15, math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.Inf(-1), 0x1p-512, 0x1.0000000000001p-511, 0x1.fffffffffffffp-511,
		0x1p-149, 0x1.8p-149, 0x1p-126, 0x1.fffffffp-127, 0x1.fffffefp127, math.MaxFloat32, 0x1p-16380 + 3, 2.5, -2.5}
	special32 := []float32{0, 1, -1, 1.0 / 3, 1e-45, -1e-45, 0x1p-126, -0x1p-126, 0x1.8p-127, 1e-38, 1e-20, math.MaxFloat32, 0x1.000002p-63, 0x1.fffffep-64, 0x1p-63, 3}
	wide := func() uint64 {
		switch r.IntN(4) {
		case 0:
			return r.Uint64()
		case 1:
			return math.Float64bits(math.Ldexp(1+r.Float64(), -r.IntN(1074)))
		}
		return math.Float64bits(special[r.IntN(len(special))])
	}
	narrow := func() uint64 {
		if r.IntN(3) == 0 {
			return uint64(r.Uint32())
		}
		return uint64(math.Float32bits(special32[r.IntN(len(special32))]))
	}
	for f, name := range order {
		for range 120 {
			draw := wide
			if strings.HasSuffix(name, "32") && !strings.HasPrefix(name, "trunc") && !strings.HasPrefix(name, "sint") || name == "ext64" {
				draw = narrow
			}
			calls = append(calls, environmentCall{f, [3]uint64{draw(), draw(), draw()}})
		}
	}
	return calls
}

const flushing = `
define double @product(double %%a, double %%b) %s {
  %%r = fmul double %%a, %%b
  ret double %%r
}
define float @product32(float %%a, float %%b) %s {
  %%r = fmul float %%a, %%b
  ret float %%r
}
declare double @exp(double)
define double @call(double %%a, double %%b) {
  %%r = call double @exp(double %%a)
  ret double %%r
}
attributes #0 = { "denormal-fp-math"="preserve-sign,preserve-sign" }
attributes #1 = { "denormal-fp-math"="positive-zero" "denormal-fp-math-f32"="ieee" }
`

// TestDenormalAttributeCountsWithoutRegisters requires that the attribute denormal-fp-math applies only if the thread's control registers are
// unknown.
func TestDenormalAttributeCountsWithoutRegisters(t *testing.T) {
	standard, fast := machine.FloatControl{MXCSR: 0x1f80, X87: 0x37f}, machine.FloatControl{MXCSR: 0x9fc0, X87: 0x37f}
	for _, c := range []struct {
		attribute string
		floats    *machine.FloatControl
		wide      float64
		narrow    float32
	}{
		{"", nil, -1e-315, -1e-42},
		{"#0", nil, math.Copysign(0, -1), float32(math.Copysign(0, -1))},
		{"#1", nil, 0, -1e-42},
		{`"denormal-fp-math"="dynamic,dynamic"`, nil, -1e-315, -1e-42},
		{"#0", &standard, -1e-315, -1e-42},
		{"", &fast, math.Copysign(0, -1), float32(math.Copysign(0, -1))},
	} {
		m := parse(t, fmt.Sprintf(flushing, c.attribute, c.attribute))
		in, err := interp.New(m, interp.Options{Floats: c.floats})
		require.NoError(t, err)
		wide, err := called(in, m, "product", [3]uint64{math.Float64bits(-1e-300), math.Float64bits(1e-15)})
		require.NoError(t, err)
		require.Equal(t, math.Float64bits(c.wide), wide, "%+v", c)
		narrow, err := called(in, m, "product32", [3]uint64{uint64(math.Float32bits(-1e-30)), uint64(math.Float32bits(1e-12))})
		require.NoError(t, err)
		require.Equal(t, uint64(math.Float32bits(c.narrow)), narrow, "%+v", c)
		require.True(t, in.UsesFloats())
	}
}

// TestLibraryFunctionsInOtherEnvironments requires an error for a C library function whose result may depend on the thread's floating-point
// environment. A function whose operands and result are all normal must run while the thread flushes subnormal numbers.
func TestLibraryFunctionsInOtherEnvironments(t *testing.T) {
	m := parse(t, fmt.Sprintf(flushing, "", ""))
	for _, c := range []struct {
		mxcsr uint32
		arg   float64
		fails string
	}{
		{0x1f80, 1, ""}, {0x9fc0, 1, ""},
		{0x9fc0, 1e-310, "@exp of or to a subnormal number while the thread flushes them to zero is not supported"},
		{0x5f80, 1, "@exp in the floating-point environment of the thread (rounding upward) is not supported"},
	} {
		in, err := interp.New(m, interp.Options{Floats: &machine.FloatControl{MXCSR: c.mxcsr, X87: 0x37f}})
		require.NoError(t, err)
		v, err := called(in, m, "call", [3]uint64{math.Float64bits(c.arg)})
		if c.fails == "" {
			require.NoError(t, err)
			require.Equal(t, math.Float64bits(math.E), v)
			continue
		}
		require.ErrorContains(t, err, c.fails)
	}
}
