package interp_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

// results runs @f with each body and requires the text of %r.
func results(t *testing.T, list []struct{ body, result, want string }) {
	t.Helper()
	for _, c := range list {
		in, m := machineOf(t, declarations+"define "+c.result+" @f() {\n  "+c.body+"\n  ret "+c.result+" %r\n}")
		res, err := in.Call(context.Background(), m.Func("f"), nil)
		require.NoError(t, err, c.body)
		require.Equal(t, c.want, res.Value.Format(), c.body)
	}
}

const declarations = `declare i8 @llvm.abs.i8(i8, i1)
declare i8 @llvm.ctlz.i8(i8, i1)
declare i8 @llvm.cttz.i8(i8, i1)
declare i8 @llvm.umin.i8(i8, i8)
declare i8 @llvm.sshl.sat.i8(i8, i8)
declare i8 @llvm.fshl.i8(i8, i8, i8)
declare { i8, i1 } @llvm.uadd.with.overflow.i8(i8, i8)
declare i8 @llvm.vector.reduce.and.v2i8(<2 x i8>)
declare double @llvm.sqrt.f64(double)
declare double @sqrt(double)
define double @same(double %x) {
  ret double %x
}
define double @one(double %x) {
  ret double 1.0
}
define double @passed(double %x) {
  %r = musttail call double @same(double %x)
  ret double %r
}
define double @promised(double %x) {
  %r = musttail call nnan double @same(double %x)
  ret double %r
}
declare double @llvm.fabs.f64(double)
declare double @llvm.copysign.f64(double, double)
declare i32 @llvm.fptosi.sat.i32.f64(double)
declare i64 @llvm.lrint.i64.f64(double)
declare { double, i32 } @llvm.frexp.f64.i32(double)
declare <2 x i1> @llvm.get.active.lane.mask.v2i1.i32(i32, i32)
`

// TestFlagsMakePoison requires poison for operations that violate their flags (LangRef, "Poison Values" and each instruction's flags), and no poison
// otherwise.
func TestFlagsMakePoison(t *testing.T) {
	results(t, []struct{ body, result, want string }{
		{"%r = add nsw i8 127, 1", "i8", "poison"}, {"%r = add nsw i8 127, -1", "i8", "126"},
		{"%r = add nuw i8 -1, 1", "i8", "poison"}, {"%r = add nuw i8 127, 1", "i8", "-128"},
		{"%r = sub nsw i8 -128, 1", "i8", "poison"}, {"%r = sub nuw i8 1, 2", "i8", "poison"},
		{"%r = mul nsw i8 16, 8", "i8", "poison"}, {"%r = mul nuw i8 16, 16", "i8", "poison"}, {"%r = mul nuw i8 16, 8", "i8", "-128"},
		{"%r = mul nsw i100 633825300114114700748351602687, 2", "i100", "poison"},
		{"%r = shl nsw i8 64, 1", "i8", "poison"}, {"%r = shl nuw i8 64, 1", "i8", "-128"}, {"%r = shl nuw i8 -128, 1", "i8", "poison"},
		{"%r = shl i8 1, 8", "i8", "poison"}, {"%r = lshr i128 1, 128", "i128", "poison"}, {"%r = ashr i7 1, 100", "i7", "poison"},
		{"%r = lshr exact i8 6, 1", "i8", "3"}, {"%r = ashr exact i8 -3, 1", "i8", "poison"}, {"%r = lshr exact i128 3, 1", "i128", "poison"},
		{"%r = udiv exact i8 7, 2", "i8", "poison"}, {"%r = sdiv exact i8 -6, 2", "i8", "-3"}, {"%r = sdiv exact i100 7, 2", "i100", "poison"},
		{"%r = or disjoint i8 5, 1", "i8", "poison"}, {"%r = or disjoint i8 4, 1", "i8", "5"}, {"%r = or disjoint i128 18446744073709551616, 18446744073709551617", "i128", "poison"},
		{"%r = zext nneg i8 -1 to i16", "i16", "poison"}, {"%r = zext nneg i8 5 to i16", "i16", "5"}, {"%r = uitofp nneg i8 -1 to float", "float", "poison"},
		{"%r = trunc nuw i16 256 to i8", "i8", "poison"}, {"%r = trunc nsw i16 128 to i8", "i8", "poison"}, {"%r = trunc nsw i16 -128 to i8", "i8", "-128"},
		{"%r = trunc nuw i16 255 to i8", "i8", "-1"}, {"%r = trunc nuw nsw i16 255 to i8", "i8", "poison"},
		{"%r = icmp samesign ult i8 -1, 1", "i1", "poison"}, {"%r = icmp samesign ult i8 1, 2", "i1", "true"},
		{"%r = fadd nnan double 0x7FF8000000000000, 1.0", "double", "poison"}, {"%r = fadd ninf double 0x7FF0000000000000, 1.0", "double", "poison"},
		{"%r = fmul ninf float 0x47E0000000000000, 2.0", "float", "poison"}, {"%r = fdiv nnan double 0.0, 0.0", "double", "poison"},
		{"%r = fadd nnan ninf double 1.0, 1.0", "double", "2.0"}, {"%r = fcmp nnan oeq double 0x7FF8000000000000, 1.0", "i1", "poison"},
		{"%r = fneg nnan double 0x7FF8000000000000", "double", "poison"},
		{"%r = fptosi double 128.0 to i8", "i8", "poison"}, {"%r = fptoui double -1.0 to i8", "i8", "poison"}, {"%r = fptosi double -128.9 to i8", "i8", "-128"},
		{"%r = fptoui double 0x7FF0000000000000 to i128", "i128", "poison"}, {"%r = fptosi fp128 0xL00000000000000007FFF800000000000 to i64", "i64", "poison"},
		{"%r = extractelement <2 x i8> <i8 1, i8 2>, i32 2", "i8", "poison"},
		{"%r = insertelement <2 x i8> <i8 1, i8 2>, i8 3, i32 2", "<2 x i8>", "<poison, poison>"},
		{"%r = shufflevector <2 x i8> <i8 1, i8 2>, <2 x i8> zeroinitializer, <3 x i32> <i32 1, i32 poison, i32 0>", "<3 x i8>", "<2, poison, 1>"},
		{"%r = call i8 @llvm.abs.i8(i8 -128, i1 true)", "i8", "poison"}, {"%r = call i8 @llvm.abs.i8(i8 -128, i1 false)", "i8", "-128"},
		{"%r = call i8 @llvm.ctlz.i8(i8 0, i1 true)", "i8", "poison"}, {"%r = call i8 @llvm.cttz.i8(i8 0, i1 true)", "i8", "poison"},
		{"%r = call i8 @llvm.sshl.sat.i8(i8 1, i8 8)", "i8", "poison"}, {"%r = call nnan double @llvm.sqrt.f64(double -1.0)", "double", "poison"},
		{"%r = call <2 x i1> @llvm.get.active.lane.mask.v2i1.i32(i32 0, i32 0)", "<2 x i1>", "<poison, poison>"},
	})
}

// TestPoisonTravels requires poison for results that depend on a poison operand, and known values for others.
func TestPoisonTravels(t *testing.T) {
	results(t, []struct{ body, result, want string }{
		{"%r = and i8 poison, 0", "i8", "poison"}, {"%r = or i8 poison, -1", "i8", "poison"}, {"%r = mul i8 poison, 0", "i8", "poison"},
		{"%r = xor i8 poison, poison", "i8", "poison"}, {"%r = sub i128 poison, poison", "i128", "poison"}, {"%r = and i200 poison, 0", "i200", "poison"},
		{"%r = shl i8 1, poison", "i8", "poison"}, {"%r = lshr i8 poison, 7", "i8", "poison"}, {"%r = udiv i8 poison, 3", "i8", "poison"},
		{"%r = icmp eq i8 poison, 1", "i1", "poison"}, {"%r = icmp uge i8 poison, 0", "i1", "poison"}, {"%r = fcmp true double poison, 0.0", "i1", "poison"},
		{"%r = fadd double poison, 0x7FF8000000000000", "double", "poison"}, {"%r = fneg fp128 poison", "fp128", "poison"},
		{"%r = select i1 poison, i8 1, i8 1", "i8", "poison"}, {"%r = select i1 true, i8 1, i8 poison", "i8", "1"}, {"%r = select i1 false, i8 1, i8 poison", "i8", "poison"},
		{"%r = select i1 undef, i8 1, i8 poison", "i8", "poison"}, {"%r = select i1 undef, i8 7, i8 7", "i8", "7"},
		{"%r = select <2 x i1> <i1 poison, i1 true>, <2 x i8> <i8 1, i8 2>, <2 x i8> zeroinitializer", "<2 x i8>", "<poison, 2>"},
		{"%r = add <2 x i8> <i8 poison, i8 1>, <i8 1, i8 1>", "<2 x i8>", "<poison, 2>"},
		{"%r = insertelement <2 x i8> poison, i8 5, i32 1", "<2 x i8>", "<poison, 5>"}, {"%r = insertelement <2 x i8> <i8 1, i8 2>, i8 5, i32 poison", "<2 x i8>", "<poison, poison>"},
		{"%r = extractelement <2 x i8> <i8 poison, i8 2>, i32 1", "i8", "2"},
		{"%r = insertvalue { i8, i32 } poison, i32 5, 1", "{ i8, i32 }", "{poison, 5}"},
		{"%r = trunc i16 poison to i8", "i8", "poison"}, {"%r = zext i8 poison to i128", "i128", "poison"}, {"%r = sext i8 poison to i16", "i16", "poison"},
		{"%r = bitcast <2 x i8> <i8 poison, i8 1> to i16", "i16", "poison"}, {"%r = bitcast <2 x i16> <i16 poison, i16 257> to <4 x i8>", "<4 x i8>", "<poison, poison, 1, 1>"},
		{"%r = bitcast <2 x i8> <i8 undef, i8 1> to <1 x i16>", "<1 x i16>", "<undef>"},
		{"%r = freeze i8 poison", "i8", "0"}, {"%r = freeze <2 x i8> <i8 poison, i8 3>", "<2 x i8>", "<0, 3>"}, {"%r = freeze i200 poison", "i200", "0"},
		{"%r = getelementptr i8, ptr poison, i64 1", "ptr", "poison"}, {"%r = ptrtoint ptr poison to i64", "i64", "poison"},
		{"%r = call i8 @llvm.umin.i8(i8 poison, i8 0)", "i8", "poison"}, {"%r = call i8 @llvm.fshl.i8(i8 1, i8 2, i8 poison)", "i8", "poison"},
		{"%r = call { i8, i1 } @llvm.uadd.with.overflow.i8(i8 poison, i8 0)", "{ i8, i1 }", "{poison, poison}"},
		{"%r = call i8 @llvm.vector.reduce.and.v2i8(<2 x i8> <i8 poison, i8 0>)", "i8", "poison"},
		{"%r = call double @llvm.fabs.f64(double poison)", "double", "poison"}, {"%r = call double @llvm.copysign.f64(double 1.0, double poison)", "double", "poison"},
		{"%r = call i32 @llvm.fptosi.sat.i32.f64(double poison)", "i32", "poison"}, {"%r = call i64 @llvm.lrint.i64.f64(double 1.0e300)", "i64", "undef"},
		{"%r = call { double, i32 } @llvm.frexp.f64.i32(double 0x7FF0000000000000)", "{ double, i32 }", "{inf, undef}"},
		// Memory records poison for each bit, but a loaded scalar with any poison bit is poison as a whole.
		{"%p = alloca i32\n  store i32 0, ptr %p\n  store i8 poison, ptr %p\n  %r = load i32, ptr %p", "i32", "poison"},
		{"%p = alloca i32\n  store i32 258, ptr %p\n  store i8 poison, ptr %p\n  %r = load <4 x i8>, ptr %p", "<4 x i8>", "<poison, 1, 0, 0>"},
		{"%p = alloca i32\n  store i32 poison, ptr %p\n  store i32 9, ptr %p\n  %r = load i32, ptr %p", "i32", "9"},
		{"%p = alloca i64\n  store i64 poison, ptr %p\n  %q = load i64, ptr %p\n  %r = or i64 %q, -1", "i64", "poison"},
		{"%p = alloca <4 x i1>\n  store <4 x i1> <i1 true, i1 poison, i1 undef, i1 false>, ptr %p\n  %r = load <4 x i1>, ptr %p", "<4 x i1>", "<true, poison, undef, false>"},
		{"%p = alloca i32\n  store i8 1, ptr %p\n  %a = load i32, ptr %p\n  %r = and i32 %a, 255", "i32", "1"},
	})
}

func TestPoisonThatDecidesIsAnError(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"%r = udiv i8 1, poison", "@f, block %0, line 2: %r = udiv i8: the divisor is poison"},
		{"%r = srem i128 1, poison", "@f, block %0, line 2: %r = srem i128: the divisor is poison"},
		{"%r = udiv i8 1, undef", "@f, block %0, line 2: %r = udiv i8: the divisor is undefined"},
		{"%r = load i8, ptr poison", "@f, block %0, line 2: %r = load i8: the address is poison"},
		{"%x = add nsw i8 127, 1\n  %c = icmp eq i8 %x, 0\n  br i1 %c, label %a, label %a\na:", "@f, block %0, line 4: br: the condition %c is poison"},
	} {
		in, m := machineOf(t, "define void @f() {\n  "+c.body+"\n  ret void\n}")
		_, err := in.Call(context.Background(), m.Func("f"), nil)
		require.EqualError(t, err, c.want)
	}
}

func TestPoisonValue(t *testing.T) {
	in, m := machineOf(t, "define <2 x i8> @f() {\n  ret <2 x i8> poison\n}")
	res, err := in.Call(context.Background(), m.Func("f"), nil)
	require.NoError(t, err)
	v := res.Value
	require.False(t, v.Defined())
	require.Equal(t, "<poison, poison>", v.Format())
	u, err := interp.Undef(vector(2, ir.I8))
	require.NoError(t, err)
	require.False(t, v.Equal(u))
	_, ok := v.Bytes(nil)
	require.False(t, ok)
}

// TestFloatsThatAreHandedOnArePromised checks the fast-math flags of phi, select and call, which pass floats on without computing them (LangRef,
// "Fast-Math Flags").
func TestFloatsThatAreHandedOnArePromised(t *testing.T) {
	const nan, inf = "double 0x7FF8000000000000", "double 0x7FF0000000000000"
	results(t, []struct{ body, result, want string }{
		{"%r = select nnan i1 true, " + nan + ", double 1.0", "double", "poison"},
		{"%r = select nnan i1 false, " + nan + ", double 1.0", "double", "1.0"}, // the operand that is not selected may violate the flag
		{"%r = select ninf i1 true, " + nan + ", double 1.0", "double", "nan"},
		{"%r = select ninf <2 x i1> <i1 true, i1 false>, <2 x double> <" + inf + ", double 1.0>, <2 x double> <double 3.0, double 2.0>", "<2 x double>", "<poison, 2.0>"},
		{"br label %b\nb:\n  %r = phi nnan double [ 0x7FF8000000000000, %0 ]", "double", "poison"},
		{"br label %b\nb:\n  %r = phi double [ 0x7FF8000000000000, %0 ]", "double", "nan"},
		{"br label %b\nb:\n  %r = phi ninf <2 x double> [ <" + inf + ", double 2.0>, %0 ]", "<2 x double>", "<poison, 2.0>"},
		{"%r = call nnan double @same(" + nan + ")", "double", "poison"},
		{"%r = call double @same(" + nan + ")", "double", "nan"},
		{"%r = call nnan double @same(double 2.0)", "double", "2.0"},
		{"%r = call ninf double @one(" + inf + ")", "double", "poison"}, // an argument that violates the promise
		{"%r = call nnan double @one(" + inf + ")", "double", "1.0"},
		{"%r = call nnan double @passed(" + nan + ")", "double", "poison"},
		{"%r = call double @promised(" + nan + ")", "double", "poison"},
		{"%r = call ninf double @promised(" + inf + ")", "double", "poison"},
		{"%r = call double @promised(" + inf + ")", "double", "inf"},
		{"%r = call nnan double @sqrt(double -1.0)", "double", "poison"},
		{"%r = call nnan double @sqrt(double 4.0)", "double", "2.0"},
		{"%r = call nnan double @llvm.sqrt.f64(double 4.0)", "double", "2.0"},
	})
}

func TestFloatsOfResumedCalleesArePromised(t *testing.T) {
	in, m := machineOf(t, `define double @same(double %x) {
  ret double %x
}
define double @f() {
  %r = call ninf double @same(double 0x7FF0000000000000)
  ret double %r
}`)
	same, f := m.Func("same"), m.Func("f")
	body, err := f.Body()
	require.NoError(t, err)
	inner, err := same.Body()
	require.NoError(t, err)
	for x, want := range map[float64]string{math.Inf(1): "poison", 2: "2.0"} {
		res, err := in.ResumeStack(t.Context(), []interp.Activation{
			{Point: interp.Point{Block: inner[0]}, Values: map[ir.Value]interp.Value{same.Params[0]: interp.FromFloat64(m.Func("f").Sig.Elem, x)}},
			{Point: interp.Point{Block: body[0], Index: 1}, Call: body[0].Instrs[0]},
		})
		require.NoError(t, err)
		require.Equal(t, want, res.Value.Format())
	}
}
