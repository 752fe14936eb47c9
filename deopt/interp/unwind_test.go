package interp_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

// TestLandingPadsAreAsNative compares landing pads that clang does not emit with native code, such as those with tokens of statepoints.
func TestLandingPadsAreAsNative(t *testing.T) {
	const file = "testdata/unwind/statepoint.ll"
	program := filepath.Join(t.TempDir(), "program")
	clang(t, "19", "-w", "-no-pie", "-x", "ir", file, "-o", program, "-lstdc++")
	same(t, native(t, nil, program), endedAs(t, file, program))
}

// stackOf returns activations of @inner and of @outer, which waits at its invoke. given names the values of @outer to set.
func stackOf(t *testing.T, m *ir.Module, given ...string) []interp.Activation {
	outer, err := m.Func("outer").Body()
	require.NoError(t, err)
	inner, err := m.Func("inner").Body()
	require.NoError(t, err)
	values := map[ir.Value]interp.Value{}
	for _, name := range given {
		for _, p := range m.Func("outer").Params {
			if p.Name == name {
				values[p] = i64(3)
			}
		}
		for _, i := range outer[0].Instrs {
			if i.Name == name {
				values[i] = i64(4)
			}
		}
	}
	return []interp.Activation{
		{Point: interp.Point{Block: inner[0]}},
		{Point: interp.Point{Block: outer[1]}, Call: outer[0].Instrs[1], Values: values},
	}
}

const throwing = `declare ptr @__cxa_allocate_exception(i64)
declare void @__cxa_throw(ptr, ptr, ptr)
declare i32 @__gxx_personality_v0(...)
@_ZTIl = external constant ptr
@_ZTIi = external constant ptr
define i64 @inner() {
  %e = call ptr @__cxa_allocate_exception(i64 8)
  store i64 5, ptr %e
  call void @__cxa_throw(ptr %e, ptr @_ZTIl, ptr null)
  unreachable
}
declare ptr @__cxa_begin_catch(ptr)
declare void @__cxa_end_catch()
`

// TestResumedFramesAreUnwound requires that an exception unwinds to a frame that was resumed at an invoke, if the frame has the values that are live
// at its landing pad.
func TestResumedFramesAreUnwound(t *testing.T) {
	outer := func(clause string) *ir.Module {
		return parse(t, throwing+`define i64 @outer(i64 %a, i64 %b) personality ptr @__gxx_personality_v0 {
entry:
  %c = add i64 %a, %b
  %r = invoke i64 @inner() to label %ok unwind label %pad
ok:
  %s = add i64 %r, %a
  ret i64 %s
pad:
  %p = phi i64 [ %c, %entry ]
  %l = landingpad { ptr, i32 } `+clause+`
  %ex = extractvalue { ptr, i32 } %l, 0
  %o = call ptr @__cxa_begin_catch(ptr %ex)
  %v = load i64, ptr %o
  call void @__cxa_end_catch()
  %x = mul i64 %v, %p
  %y = add i64 %x, %b
  ret i64 %y
}`)
	}
	m := outer("catch ptr @_ZTIl")
	run := func(m *ir.Module, given ...string) (*interp.Result, error) {
		in, err := interp.New(m, interp.Options{MaxSteps: 1e6})
		require.NoError(t, err)
		return in.ResumeStack(context.Background(), stackOf(t, m, given...))
	}
	res, err := run(m, "a", "b", "c")
	require.NoError(t, err)
	require.Equal(t, "23", res.Value.Format()) // 5 * 4 + 3
	_, err = run(m, "a")
	require.ErrorContains(t, err, "cannot resume with the exception in @outer, block %pad: no value for %b, %c")
	// No interpreted frame handles the exception, and the next outer frame is unknown. So no cleanup may run.
	_, err = run(outer("cleanup catch ptr @_ZTIi"), "a", "b", "c")
	require.ErrorContains(t, err, "an exception of type 'long', which leaves the outermost interpreted frame, is not supported: resume a frame further out")
}

// TestHostileExceptions requires that invalid uses of exceptions in hostile modules end with an error.
func TestHostileExceptions(t *testing.T) {
	const pad = `define void @f() personality ptr @__gxx_personality_v0 {
  %r = invoke i64 @inner() to label %ok unwind label %pad
ok:
  ret void
pad:
`
	for _, c := range []struct {
		name, src string
		kind      interp.Kind
		message   string
	}{
		{"no landing pad", pad + "  ret void\n}", interp.KindUnsupported, "ret as the target of an exception"},
		{"a clause that is no type", pad + "  %l = landingpad { ptr, i32 } catch ptr @f\n  ret void\n}", interp.KindFault, "the address of code cannot be read"},
		{"a clause of a null type_info", pad + "  %l = landingpad { ptr, i32 } catch ptr @zero\n  ret void\n}\n@zero = global [2 x ptr] zeroinitializer", interp.KindUnsupported, "the class of the type_info"},
		{"a landingpad of another type", pad + "  %l = landingpad { ptr, i64 } cleanup\n  ret void\n}", interp.KindUnsupported, "a landingpad of type"},
		{"an undefined clause", pad + "  %l = landingpad { ptr, i32 } catch ptr undef\n  ret void\n}", interp.KindUndef, "the type of a clause"},
		{"resume of nothing", "define void @f() {\n  resume { ptr, i32 } zeroinitializer\n}", interp.KindFault, "is not a thrown exception"},
		{"resume of an undefined one", "define void @f() {\n  resume { ptr, i32 } undef\n}", interp.KindUndef, ""},
		{"resume of another type", "define void @f() {\n  resume i32 1\n}", interp.KindUnsupported, "resume of type"},
		{"throw of nothing", "define void @f() {\n  call void @__cxa_throw(ptr null, ptr @_ZTIl, ptr null)\n  ret void\n}", interp.KindFault, "which __cxa_allocate_exception did not return"},
		{"a handler of nothing", "define void @f() {\n  %p = call ptr @__cxa_begin_catch(ptr null)\n  ret void\n}", interp.KindFault, "is not a thrown exception"},
		{"the end of no handler", "define void @f() {\n  call void @__cxa_end_catch()\n  ret void\n}", interp.KindUnsupported, "the end of a handler that native code entered"},
		{"a landing pad that is entered", "define void @f() {\n  br label %pad\npad:\n  %l = landingpad { ptr, i32 } cleanup\n  ret void\n}", interp.KindModule, "was not reached by an exception"},
		{"exceptions without end", "define void @f() {\n  br label %l\nl:\n  %p = call ptr @__cxa_allocate_exception(i64 0)\n  br label %l\n}", interp.KindMemory, ""},
		{"types without end", "define void @f() {\n  br label %l\nl:\n  %k = phi i64 [ 0, %0 ], [ %n, %l ]\n  %n = add i64 %k, 1\n  %p = inttoptr i64 %n to ptr\n" +
			"  %i = call i32 @llvm.eh.typeid.for(ptr %p)\n  br label %l\n}\ndeclare i32 @llvm.eh.typeid.for(ptr)", interp.KindMemory, ""},
		{"an exception that is too large", "define void @f() {\n  %p = call ptr @__cxa_allocate_exception(i64 -1)\n  ret void\n}", interp.KindMemory, ""},
		{"a class that is its own base", pad + `  %l = landingpad { ptr, i32 } catch ptr @u
  ret void
}
@u = global { ptr, ptr } { ptr getelementptr (ptr, ptr @_ZTVN10__cxxabiv117__class_type_infoE, i32 2), ptr @m }
@m = constant [2 x i8] c"U\00"`, interp.KindUnsupported, "a class with more than"},
		{"throw again and again", pad + "  %l = landingpad { ptr, i32 } catch ptr null\n  %x = extractvalue { ptr, i32 } %l, 0\n  br label %again\nagain:\n" +
			"  invoke void @_Unwind_Resume(ptr %x) to label %again unwind label %back\nback:\n  %k = landingpad { ptr, i32 } cleanup catch ptr null\n  br label %again\n}\ndeclare void @_Unwind_Resume(ptr)", interp.KindSteps, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := throwing + c.src
			if c.name == "a class that is its own base" {
				src = `@_ZTVN10__cxxabiv120__si_class_type_infoE = external global ptr
@_ZTVN10__cxxabiv117__class_type_infoE = external global ptr
@loop = global { ptr, ptr, ptr } { ptr getelementptr (ptr, ptr @_ZTVN10__cxxabiv120__si_class_type_infoE, i32 2), ptr @loops, ptr @loop }
@loops = constant [2 x i8] c"L\00"
` + strings.ReplaceAll(throwing, "ptr @_ZTIl, ptr null", "ptr @loop, ptr null") + c.src
			}
			m := parse(t, src)
			in, err := interp.New(m, interp.Options{MaxSteps: 1e5, MaxMemory: 1 << 20})
			require.NoError(t, err)
			_, err = in.Call(context.Background(), m.Func("f"), nil)
			var run *interp.RunError
			require.ErrorAs(t, err, &run)
			require.Equal(t, c.kind.String(), run.Kind.String(), "%v", err)
			require.ErrorContains(t, err, c.message)
		})
	}
}
