package abi

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// returned lists constants of types that a function may return. memory marks types that LLVM returns in memory, and x87 those that are partly on the x87
// stack; these cannot be compared. unknown marks types whose place no document defines.
var returned = []struct {
	value                string
	memory, x87, unknown bool
}{
	{value: "i1 true"}, {value: "i8 -5"}, {value: "i16 -300"}, {value: "i24 8000000"}, {value: "i32 -70000"}, {value: "i33 -4294967290"},
	{value: "i64 81985529216486895"}, {value: "i65 -3"}, {value: "i96 1234567890123456789012345"}, {value: "i128 170141183460469231731687303715884105720"},
	{value: "i129 -7"}, {value: "i192 -98765432109876543210987654321"}, {value: "i200 5", memory: true}, {value: "i256 77", memory: true},
	{value: "ptr inttoptr (i64 305419896 to ptr)"},
	{value: "half 0xH3E00"}, {value: "float 2.5"}, {value: "double 3.25"}, {value: "fp128 0xL00000000000000004000800000000000"},
	{value: "x86_fp80 0xK4000C000000000000000", unknown: true},
	{value: "{i64, i64} {i64 1, i64 2}"}, {value: "{i64, double} {i64 3, double 4.5}"}, {value: "{double, double} {double 1.5, double 2.5}"},
	{value: "{double, i32} {double 1.5, i32 9}"}, {value: "{float, float} {float 1.5, float 2.5}"}, {value: "<{i8, i64}> <{i8 7, i64 8}>"},
	{value: "{i8, i16, i32} {i8 -1, i16 -2, i32 -3}"}, {value: "{i1, i8} {i1 true, i8 3}"}, {value: "{i64, i128} {i64 1, i128 -2}"},
	{value: "{i128, i128} {i128 1, i128 2}", memory: true}, {value: "{i64, i64, i64, i64} {i64 1, i64 2, i64 3, i64 4}", memory: true},
	{value: "{double, double, double} {double 1.0, double 2.0, double 3.0}", x87: true},
	{value: "{i64, {i32, double}, [1 x float]} {i64 1, {i32, double} {i32 2, double 3.5}, [1 x float] [float 4.5]}"},
	{value: "{i64, double, i64, double, i64} {i64 1, double 2.5, i64 3, double 4.5, i64 5}"},
	{value: "[2 x i64] [i64 5, i64 6]"}, {value: "[3 x i8] [i8 5, i8 6, i8 7]"}, {value: "[4 x i8] [i8 5, i8 6, i8 7, i8 8]", memory: true},
	{value: "{fp128, double} {fp128 0xL00000000000000003FFF000000000000, double 4.0}"}, {value: "{} {}"}, {value: "{half, half} {half 0xH3E00, half 0xH4100}"},
	{value: "<4 x i32> <i32 1, i32 2, i32 3, i32 -4>"}, {value: "<2 x i64> <i64 1, i64 -2>"}, {value: "<16 x i8> <i8 1, i8 2, i8 3, i8 4, i8 5, i8 6, i8 7, i8 8, i8 9, i8 10, i8 11, i8 12, i8 13, i8 14, i8 15, i8 16>"},
	{value: "<8 x i16> <i16 1, i16 2, i16 3, i16 4, i16 5, i16 6, i16 7, i16 8>"}, {value: "<2 x double> <double 1.5, double 2.5>"},
	{value: "<4 x float> <float 1.5, float 2.5, float 3.5, float 4.5>"}, {value: "<2 x float> <float 1.5, float 2.5>"}, {value: "<2 x i32> <i32 5, i32 6>"},
	{value: "<2 x i8> <i8 5, i8 6>"}, {value: "<4 x i16> <i16 5, i16 6, i16 7, i16 8>"},
	{value: "<2 x ptr> <ptr null, ptr inttoptr (i64 77 to ptr)>"},
	{value: "<8 x i32> <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8>"}, {value: "<4 x double> <double 1.5, double 2.5, double 3.5, double 4.5>"},
	{value: "<8 x i64> <i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8>"},
	{value: "{<4 x float>, i64, double} {<4 x float> <float 1.5, float 2.5, float 3.5, float 4.5>, i64 3, double 4.5}"},
	{value: "{<4 x i32>, <2 x i64>, <4 x i32>} {<4 x i32> <i32 1, i32 2, i32 3, i32 4>, <2 x i64> <i64 1, i64 2>, <4 x i32> <i32 5, i32 6, i32 7, i32 8>}"},
	{value: "{<4 x float>, <4 x float>, double} {<4 x float> zeroinitializer, <4 x float> <float 1.5, float 2.5, float 3.5, float 4.5>, double 4.5}", x87: true}, {value: "{fp128, fp128, fp128} zeroinitializer", memory: true}, {value: "{half, half, half} {half 0xH3E00, half 0xH4100, half 0xH4200}"},
	{value: "{double, double, double, double, double} zeroinitializer", memory: true},
	{value: "<3 x i32> <i32 1, i32 2, i32 3>", unknown: true}, {value: "<4 x i1> <i1 1, i1 0, i1 1, i1 0>", unknown: true}, {value: "<1 x i64> <i64 9>", unknown: true},
	{value: "<8 x half> zeroinitializer", unknown: true}, {value: "bfloat 0xR4010", unknown: true},
}

// callers is a program that calls each function and prints the registers at its return. It also prints whether the function stored through the hidden
// argument for a result in memory.
const callers = `
#include <stdio.h>
#include <string.h>
extern void *functions[]; extern long count;
static unsigned char regs[24 + 4 * 64] __attribute__((aligned(64)));
static unsigned char memory[256] __attribute__((aligned(64)));
void dump(void *f, void *memory, void *regs);
__asm__("dump: push %rbx; mov %rdx, %rbx; mov %rdi, %rax; mov %rsi, %rdi\n"
	"vpcmpeqd %xmm0, %xmm0, %xmm0; vpcmpeqd %xmm1, %xmm1, %xmm1; vpcmpeqd %xmm2, %xmm2, %xmm2; vpcmpeqd %xmm3, %xmm3, %xmm3\n"
	"mov $-1, %rdx; mov $-1, %rcx; call *%rax\n"
	"mov %rax, (%rbx); mov %rdx, 8(%rbx); mov %rcx, 16(%rbx)\n"
#ifdef ZMM
	"vmovdqu64 %zmm0, 24(%rbx); vmovdqu64 %zmm1, 88(%rbx); vmovdqu64 %zmm2, 152(%rbx); vmovdqu64 %zmm3, 216(%rbx)\n"
#else
	"vmovdqu %ymm0, 24(%rbx); vmovdqu %ymm1, 88(%rbx); vmovdqu %ymm2, 152(%rbx); vmovdqu %ymm3, 216(%rbx)\n"
#endif
	"pop %rbx; ret");
int main(void) {
	for (long k = 0; k < count; k++) {
		memset(memory, 0xa5, sizeof memory);
		dump(functions[k], memory, regs);
		int stored = 0;
		for (unsigned i = 0; i < sizeof memory; i++) stored |= memory[i] != 0xa5;
		printf("%d ", stored);
		for (unsigned i = 0; i < sizeof regs; i++) printf("%02x", regs[i]);
		puts("");
	}
}
`

// TestResultsAsNativeCodeReturnsThem requires that native functions return the interpreter's results for all target features, and that a changed bit in a
// register is found.
func TestResultsAsNativeCodeReturnsThem(t *testing.T) {
	livetest.Slow(t)
	flags, err := os.ReadFile("/proc/cpuinfo")
	require.NoError(t, err)
	avx512 := strings.Contains(string(flags), " avx512f ")
	for _, c := range []struct {
		version int
		attrs   string
		level   string
	}{{14, "", "-O2"}, {19, "", "-O0"}, {19, "+avx2", "-O2"}, {22, "", "-O2"}, {22, "+avx512f,+avx512vl", "-O2"}, {22, "+avx2", "-O0"}} {
		// On a processor with 64-byte registers, run each case also without using them.
		for _, wide := range []bool{false, true} {
			if wide && !avx512 || !wide && strings.Contains(c.attrs, "512") {
				continue
			}
			t.Run(fmt.Sprint(c.version, c.attrs, c.level, map[bool]string{false: "ymm", true: "zmm"}[wide]), func(t *testing.T) {
				requireReturned(t, c.version, c.attrs, c.level, wide)
			})
		}
	}
}

func requireReturned(t *testing.T, version int, attrs, level string, wide bool) {
	var text, table strings.Builder
	n := 0
	for k, r := range returned {
		if version == 14 && strings.HasPrefix(r.value, "bfloat") {
			continue // llc 14 cannot select instructions for it
		}
		typ := typeOf(r.value)
		fmt.Fprintf(&text, "define %s @f%d() {\n  ret %s\n}\n", typ, k, r.value)
		fmt.Fprintf(&table, ", ptr @f%d", k)
		n++
	}
	fmt.Fprintf(&text, "@functions = global [%d x ptr] [%s]\n@count = global i64 %d\n", n, table.String()[2:], n)
	dumps := dumped(t, text.String(), version, attrs, level, wide)
	m, err := ir.Parse("returned.ll", []byte(text.String()))
	require.NoError(t, err)
	in, err := interp.New(m, interp.Options{})
	require.NoError(t, err)
	k := 0
	for i, r := range returned {
		f := m.Func(fmt.Sprintf("f%d", i))
		if f == nil {
			continue
		}
		stored, regs := parseDump(t, dumps[k], wide)
		k++
		res, err := in.Call(context.Background(), f, nil)
		require.NoError(t, err, r.value)
		got := CompareResult(res.Value, "", regs, in.Made)
		require.True(t, r.unknown || r.memory == stored, r.value)
		switch {
		case r.memory || r.x87:
			require.Equal(t, "its type is returned in memory, or on the x87 stack, which is not supported", got.Why, r.value)
		case r.unknown:
			require.Contains(t, got.Why, "cannot tell where a value of type ", r.value)
		default:
			require.Equal(t, Compared{Same: true, Parts: got.Parts}, got, r.value)
			requireFound(t, res.Value, got, regs, wide)
			read, err := ReturnedValue(res.Value.Type(), "", regs)
			if !inFixedRegisters(res.Value.Type()) {
				require.ErrorContains(t, err, "cannot tell where a value of type ", r.value)
				require.Equal(t, frame.ResultElsewhere, frame.CodeOf(err))
				break
			}
			require.NoError(t, err, r.value)
			require.True(t, SameBits(res.Value, read), r.value)
		}
	}
}

// typeOf returns the type with which a constant begins.
func typeOf(value string) string {
	depth := 0
	for i, r := range value {
		switch r {
		case '{', '<', '[':
			depth++
		case '}', '>', ']':
			depth--
		case ' ':
			if depth == 0 {
				return value[:i]
			}
		}
	}
	return value
}

func dumped(t *testing.T, text string, version int, attrs, level string, wide bool) []string {
	dir := t.TempDir()
	source, object, caller, program := filepath.Join(dir, "m.ll"), filepath.Join(dir, "m.o"), filepath.Join(dir, "c.c"), filepath.Join(dir, "c")
	require.NoError(t, os.WriteFile(source, []byte("target triple = \"x86_64-pc-linux-gnu\"\n"+text), 0o600))
	require.NoError(t, os.WriteFile(caller, []byte(callers), 0o600))
	args := []string{level, "-mattr=" + attrs, "-filetype=obj", "-relocation-model=pic", "-o", object, source}
	if version == 14 {
		args = append(args, "-opaque-pointers")
	}
	out, err := exec.Command(livetest.LLVM(t, version, "llc"), args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	define := "-DYMM"
	if wide {
		define = "-DZMM"
	}
	out, err = exec.Command(livetest.Tool(t, "gcc"), define, "-o", program, caller, object).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(program).Output()
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func parseDump(t *testing.T, line string, wide bool) (stored bool, regs *machine.Registers) {
	mark, text, _ := strings.Cut(line, " ")
	b, err := hex.DecodeString(text)
	require.NoError(t, err)
	width := 32
	if wide {
		width = 64
	}
	regs = machine.NewRegisters(machine.AMD64, "not printed")
	for i := range 3 {
		regs.Set(machine.DWARFReg(i), b[8*i:][:8])
	}
	for i := range 4 {
		regs.Set(machine.DWARFReg(17+i), b[24+64*i:][:width])
	}
	return mark == "1", regs
}

// requireFound changes the lowest bit of each part in its register and requires that the difference is reported. It accepts that parts cannot be compared if
// code for wider registers returns them elsewhere.
func requireFound(t *testing.T, v interp.Value, got Compared, regs *machine.Registers, wide bool) {
	for i, p := range got.Parts {
		name, off := p.Register, 0
		name, _, _ = strings.Cut(name, ":")
		if at, rest, ok := strings.Cut(name, "+"); ok {
			name = at
			_, err := fmt.Sscan(rest, &off)
			require.NoError(t, err)
		}
		reg, ok := map[string]machine.DWARFReg{"rax": 0, "rdx": 1, "rcx": 2}[name]
		if !ok {
			reg = 17 + machine.DWARFReg(name[3]-'0')
		}
		changed := regs.Clone()
		b, err := regs.Bytes(reg)
		require.NoError(t, err)
		other := append([]byte(nil), b...)
		other[off] ^= 1
		changed.Set(reg, other)
		diff := CompareResult(v, "", changed, func(uint64) bool { return false })
		require.False(t, diff.Same, "%s%s of %s", p.Register, p.Path, v.Format())
		if v.Type().Kind == ir.VectorKind && BitWidth(v.Type().Elem)*v.Len() > 256 && !wide {
			require.Equal(t, "only 32 bytes of xmm0 are available", diff.Why)
			continue
		}
		require.Empty(t, diff.Why)
		if len(diff.Parts) == len(got.Parts) && diff.Parts[i].Register == p.Register {
			require.False(t, diff.Parts[i].Same)
		}
	}
}

// TestCompareResult requires that undefined values equal any value, and that some types cannot be compared.
func TestCompareResult(t *testing.T) {
	double := &ir.Type{Kind: ir.DoubleKind}
	regs := machine.NewRegisters(machine.AMD64, "not there")
	regs.SetUint(0, 0xffffffff00000007)
	regs.Set(17, []byte{0, 0, 0, 0, 0, 0, 0xf8, 0xff, 1, 2, 3, 4, 5, 6, 7, 8}) // the default NaN of x86
	none := func(uint64) bool { return false }
	_, err := ReturnedValue(ir.I64, "", machine.NewRegisters(machine.AMD64, "not there"))
	require.Equal(t, frame.NotCaptured, frame.CodeOf(err), "%v", err)
	_, err = ReturnedValue(ir.I64, "ghccc", regs)
	require.Equal(t, frame.ResultElsewhere, frame.CodeOf(err), "%v", err)
	undef, err := interp.Undef(ir.I64)
	require.NoError(t, err)
	require.Equal(t, Compared{Same: true}, CompareResult(interp.Value{}, "", regs, none))
	require.True(t, CompareResult(undef, "", regs, none).Same)
	require.True(t, CompareResult(interp.FromUint(ir.I32, 7), "fastcc", regs, none).Same)
	require.True(t, CompareResult(interp.FromUint(double, 0x7ff8000000000000), "", regs, none).Same)
	require.False(t, CompareResult(interp.FromUint(double, 0x7ff0000000000000), "", regs, none).Same)
	diff := CompareResult(interp.FromUint(ir.I32, 6), "", regs, none)
	require.Equal(t, []ResultPart{{"", "rax", interp.FromUint(ir.I32, 6), diff.Parts[0].Native, false}}, diff.Parts)
	require.Equal(t, "7", diff.Parts[0].Native.Format())
	for why, r := range map[string]Compared{
		"the calling convention hotspotcc":                            CompareResult(interp.FromUint(ir.I32, 7), "hotspotcc", regs, none), // a convention of a fork of LLVM
		"the calling convention ghccc":                                CompareResult(interp.FromUint(ir.I32, 7), "ghccc", regs, none),
		"the result registers of ppc64 are not known":                 CompareResult(interp.FromUint(ir.I32, 7), "", machine.NewRegisters(machine.PPC64, ""), none),
		"rdx: not there":                                              CompareResult(interp.FromUint(&ir.Type{Kind: ir.IntKind, Bits: 128}, 7), "", regs, none),
		"the result is 0x8, which is in the interpreter's own memory": CompareResult(interp.FromUint(ir.Ptr, 8), "", regs, func(v uint64) bool { return v == 8 }),
	} {
		require.EqualError(t, r.err, why)
		require.Equal(t, Compared{Why: why, err: r.err}, r)
	}
}
