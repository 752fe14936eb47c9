package interp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

const twoFunctions = `define i32 @twice(i32 %x) {
entry:
  %d = mul i32 %x, 2
  ret i32 %d
}
define i32 @main() {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %t = call i32 @twice(i32 %i)
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, 3
  br i1 %more, label %loop, label %end
end:
  ret i32 %t
}
`

func startMain(t *testing.T, src string, o interp.Options) (*interp.Interp, *interp.Execution, *ir.Module) {
	t.Helper()
	m := parse(t, src)
	in, err := interp.New(m, o)
	require.NoError(t, err)
	x, err := in.StartMain([]string{"test.ll"})
	require.NoError(t, err)
	return in, x, m
}

// TestRunTo requires that RunTo stops where that many single steps stop, with the same values, and that the run can continue from there.
func TestRunTo(t *testing.T) {
	for name, src := range map[string]string{"two functions": twoFunctions, "a function of the library calls back": callsBack} {
		type place struct {
			line, depth int
			value       string
		}
		stand := func(x *interp.Execution) place {
			i := x.At(0)
			v, _ := x.Value(0, i.Block.Instrs[0])
			return place{i.Line, x.Depth(), v.Format()}
		}
		_, x, _ := startMain(t, src, interp.Options{})
		at, before := map[uint64]place{}, []uint64{}
		var want *interp.Result
		for want == nil {
			at[x.Steps()], before = stand(x), append(before, x.Steps())
			var err error
			want, err = x.Step(t.Context())
			require.NoError(t, err)
		}
		for to := uint64(1); to < want.Steps; to++ {
			_, x, _ := startMain(t, src, interp.Options{})
			res, err := x.RunTo(t.Context(), to)
			require.NoError(t, err)
			require.Nil(t, res, "%s, %d", name, to)
			k := 0 // index of the first recorded place at this step count or after it
			for before[k] < to {
				k++
			}
			require.Equal(t, before[k], x.Steps(), "%s, %d", name, to)
			require.Equal(t, at[before[k]], stand(x), "%s, %d", name, to)
			res, err = x.Run(t.Context())
			require.NoError(t, err)
			require.Equal(t, want.Steps, res.Steps)
			require.Equal(t, want.Value.Format(), res.Value.Format())
		}
		_, x, _ = startMain(t, src, interp.Options{})
		res, err := x.RunTo(t.Context(), want.Steps+5)
		require.NoError(t, err)
		require.Equal(t, want.Steps, res.Steps)
	}
}

// TestRunOut requires that RunOut stops at the first instruction at which a run by single steps has at most that number of frames.
func TestRunOut(t *testing.T) {
	for name, src := range map[string]string{"two functions": twoFunctions, "in calls": inCalls} {
		_, x, _ := startMain(t, src, interp.Options{})
		var depths []int
		var steps []uint64
		var want *interp.Result
		for want == nil {
			depths, steps = append(depths, x.Depth()), append(steps, x.Steps())
			var err error
			want, err = x.Step(t.Context())
			require.NoError(t, err)
		}
		out := 0
		for from := range steps {
			for frames := 1; frames < depths[from]; frames++ {
				_, x, _ := startMain(t, src, interp.Options{})
				_, err := x.RunTo(t.Context(), steps[from])
				require.NoError(t, err)
				res, err := x.RunOut(t.Context(), frames)
				require.NoError(t, err)
				require.Nil(t, res)
				k := from
				for depths[k] > frames {
					k++
				}
				require.Equal(t, steps[k], x.Steps(), "%s, from %d to %d frames", name, steps[from], frames)
				require.Equal(t, frames, x.Depth())
				out++
			}
		}
		require.GreaterOrEqual(t, out, 6, name)
	}
	_, x, _ := startMain(t, twoFunctions, interp.Options{})
	res, err := x.RunOut(t.Context(), 0)
	require.NoError(t, err)
	require.NotNil(t, res, "it has returned")
}

// inCalls has nested calls, with results of more than one word, and without a result.
const inCalls = `%pair = type { i32, i32 }
define %pair @both(i32 %x) {
entry:
  %a = call i32 @one(i32 %x)
  %p = insertvalue %pair undef, i32 %a, 0
  %q = insertvalue %pair %p, i32 %x, 1
  ret %pair %q
}
define i32 @one(i32 %x) {
  call void @nothing()
  %y = add i32 %x, 1
  ret i32 %y
}
define void @nothing() {
  ret void
}
define i32 @main() {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %p = call %pair @both(i32 %i)
  %next = extractvalue %pair %p, 0
  %more = icmp ult i32 %next, 3
  br i1 %more, label %loop, label %end
end:
  ret i32 %next
}
`

const callsBack = `declare void @qsort(ptr, i64, i64, ptr)
define i32 @less(ptr %a, ptr %b) {
  %x = load i32, ptr %a
  %y = load i32, ptr %b
  %d = sub i32 %x, %y
  ret i32 %d
}
define i32 @main() {
entry:
  %list = alloca [3 x i32]
  store [3 x i32] [i32 3, i32 1, i32 2], ptr %list
  br label %sort
sort:
  call void @qsort(ptr %list, i64 3, i64 4, ptr @less)
  %first = load i32, ptr %list
  ret i32 %first
}
`

// TestSteps requires the location of a run after each step: the function and line of the next instruction, and the number of frames.
func TestSteps(t *testing.T) {
	_, x, _ := startMain(t, twoFunctions, interp.Options{})
	var places []string
	for n := 0; ; n++ {
		require.Less(t, n, 100)
		i := x.At(0)
		places = append(places, fmt.Sprintf("%s:%d/%d", i.Block.Func.Name, i.Line, x.Depth()))
		res, err := x.Step(context.Background())
		require.NoError(t, err)
		if res != nil {
			require.Equal(t, "4", res.Value.Format())
			// The br, three iterations with six instructions including the phi, and the ret; each iteration also runs two in @twice.
			require.EqualValues(t, 1+3*(5+2)+1, res.Steps)
			break
		}
	}
	turn := []string{"main:11/1", "twice:3/2", "twice:4/2", "main:12/1", "main:13/1", "main:14/1"}
	want := []string{"main:8/1"}
	for range 3 {
		want = append(want, turn...)
	}
	require.Equal(t, append(want, "main:16/1"), places)
	require.Zero(t, x.Depth())
	require.Nil(t, x.At(0))
	_, err := x.Step(context.Background()) // the run has ended: the error is repeated
	require.NoError(t, err)
}

func TestStopAtShowsEveryFrame(t *testing.T) {
	_, x, m := startMain(t, twoFunctions, interp.Options{})
	twice, loop := m.Func("twice"), m.Func("main").Block("loop")
	require.NoError(t, x.StopAt(twice.Block("entry"), true))
	for turn := range 3 {
		res, err := x.Run(context.Background())
		require.NoError(t, err)
		require.Nil(t, res)
		require.Equal(t, 2, x.Depth())
		require.Equal(t, 3, x.At(0).Line)
		require.Equal(t, 11, x.At(1).Line)
		for _, c := range []struct {
			frame int
			v     ir.Value
			want  string
		}{{0, twice.Params[0], fmt.Sprint(turn)}, {1, loop.Instrs[0], fmt.Sprint(turn)}, {0, twice.Block("entry").Instrs[0], "undef"}} {
			v, ok := x.Value(c.frame, c.v)
			require.True(t, ok)
			require.Equal(t, c.want, v.Format())
		}
		_, ok := x.Value(0, loop.Instrs[0])
		require.False(t, ok, "a value of another function")
		_, ok = x.Value(2, twice.Params[0])
		require.False(t, ok, "a frame that is not there")
		product := twice.Block("entry").Instrs[0].Args // the operands %x and 2
		for n, want := range []string{fmt.Sprint(turn), "2"} {
			v, ok := x.Operand(0, product[n])
			require.True(t, ok)
			require.Equal(t, want, v.Format())
		}
		_, ok = x.Operand(2, product[1])
		require.False(t, ok, "a frame that is not there")
	}
	require.NoError(t, x.StopAt(twice.Block("entry"), false))
	require.NoError(t, x.StopAt(loop, true)) // the run does not enter it again
	res, err := x.Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, "4", res.Value.Format())
}

func TestOneExecutionAtATime(t *testing.T) {
	in, x, _ := startMain(t, twoFunctions, interp.Options{})
	_, err := x.Step(context.Background())
	require.NoError(t, err)
	y, err := in.StartMain([]string{"test.ll"})
	require.NoError(t, err)
	_, err = x.Run(context.Background())
	require.EqualError(t, err, "the execution was ended by a later one of the same interpreter")
	res, err := y.Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, "4", res.Value.Format())
}

// TestFramesOfAFailedRun requires that the frames of a failed run can still be read.
func TestFramesOfAFailedRun(t *testing.T) {
	src := strings.Replace(twoFunctions, "mul i32 %x, 2", "udiv i32 2, %x", 1)
	_, x, m := startMain(t, src, interp.Options{})
	_, err := x.Run(context.Background())
	require.EqualError(t, err, "@twice, block %entry, line 3: %d = udiv i32: division by zero")
	require.Equal(t, 2, x.Depth())
	require.Equal(t, 3, x.At(0).Line)
	require.Equal(t, 11, x.At(1).Line)
	v, ok := x.Value(0, m.Func("twice").Params[0])
	require.True(t, ok)
	require.Equal(t, "0", v.Format())
	require.EqualValues(t, 4, x.Steps()) // br, phi, call, udiv
}

func TestTrace(t *testing.T) {
	var lines []string
	_, x, _ := startMain(t, twoFunctions, interp.Options{MaxSteps: 7, Trace: func(i interp.Traced) {
		value := ""
		if !i.Value.IsNone() {
			value = " = " + i.Value.Format()
		}
		lines = append(lines, fmt.Sprintf("%d %v%s", i.Depth, i.Instr.Op, value))
	}})
	_, err := x.Run(context.Background())
	require.EqualError(t, err, "@main, block %loop, line 14: br: not finished after 7 steps")
	require.Equal(t, []string{"0 br", "0 phi = 0", "0 call", "1 mul = 0", "1 ret", "0 add = 1", "0 icmp = true"}, lines)
}

// TestTheLimitOfStepsIsExact requires that a run of n instructions needs a limit of n.
func TestTheLimitOfStepsIsExact(t *testing.T) {
	for limit := uint64(1); limit <= 23; limit++ {
		_, x, _ := startMain(t, twoFunctions, interp.Options{MaxSteps: limit})
		res, err := x.Run(context.Background())
		if limit == 23 {
			require.NoError(t, err)
			require.Equal(t, limit, res.Steps)
			continue
		}
		require.ErrorContains(t, err, fmt.Sprintf("not finished after %d steps", limit))
		require.Contains(t, []uint64{limit, limit + 1}, res.Steps, "a phi comes with the branch to it")
	}
}

func TestProfile(t *testing.T) {
	in, x, _ := startMain(t, twoFunctions, interp.Options{})
	_, err := x.Run(context.Background())
	require.NoError(t, err)
	runs := map[string]uint64{}
	for _, p := range in.Profile() {
		runs[p.Block.Func.Name+":"+p.Block.Name] = p.Runs
	}
	require.Equal(t, map[string]uint64{"main:entry": 1, "main:loop": 3, "main:end": 1, "twice:entry": 3}, runs)
}

// TestSingleStepsAreAsBlocks requires that runs by single steps and by blocks have the same result, output and step count.
func TestSingleStepsAreAsBlocks(t *testing.T) {
	files, err := filepath.Glob("testdata/*.ll")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		var runs []*interp.Result
		for _, trace := range []func(interp.Traced){nil, func(interp.Traced) {}} {
			_, x, _ := startMain(t, string(src), interp.Options{Trace: trace})
			res, err := x.Run(context.Background())
			require.NoError(t, err, file)
			runs = append(runs, res)
		}
		require.Equal(t, runs[0], runs[1], file)
	}
}

// TestMustTail requires that a loop of musttail calls needs no more frames than one call: each replaces its caller's frame.
func TestMustTail(t *testing.T) {
	in, m := machineOf(t, `define i64 @down(i64 %n, i64 %sum) {
  %done = icmp eq i64 %n, 0
  br i1 %done, label %end, label %more
more:
  %less = sub i64 %n, 1
  %s = add i64 %sum, %n
  %r = musttail call i64 @down(i64 %less, i64 %s)
  ret i64 %r
end:
  ret i64 %sum
}
define i64 @start(i64 %n) {
  %r = call i64 @down(i64 %n, i64 0)
  ret i64 %r
}`)
	res, err := in.Call(context.Background(), m.Func("start"), []interp.Value{i64(1_000_000)})
	require.NoError(t, err)
	require.Equal(t, "500000500000", res.Value.Format())
	require.EqualValues(t, 1+1_000_000*5+3+1, res.Steps)
}

func TestDeepRecursionIsAnError(t *testing.T) {
	const src = `define i64 @f(i64 %n) {
  %m = add i64 %n, 1
  %r = call i64 @f(i64 %m)
  ret i64 %r
}`
	for _, c := range []struct {
		o    interp.Options
		kind interp.Kind
		text string
	}{
		{interp.Options{}, interp.KindDepth, "calls are nested deeper than 50000"},
		{interp.Options{MaxDepth: 10_000_000, MaxMemory: 64 << 20}, interp.KindMemory, "the program needs more than 67108864 bytes of memory"},
	} {
		m := parse(t, src)
		in, err := interp.New(m, c.o)
		require.NoError(t, err)
		_, err = in.Call(context.Background(), m.Func("f"), []interp.Value{i64(0)})
		var run *interp.RunError
		require.ErrorAs(t, err, &run)
		require.Equal(t, c.kind, run.Kind)
		require.ErrorContains(t, err, c.text)
	}
}

func TestStrictIsAboutAlignment(t *testing.T) {
	const src = `define i32 @f() {
  %a = alloca [8 x i8], align 8
  store i64 0, ptr %a, align 8
  %p = getelementptr i8, ptr %a, i64 1
  %v = load i32, ptr %p, align 4
  store i32 7, ptr %p, align 2
  ret i32 %v
}`
	in, m := machineOf(t, src)
	res, err := in.Call(context.Background(), m.Func("f"), nil)
	require.NoError(t, err)
	require.Equal(t, "0", res.Value.Format())
	for _, c := range []struct{ from, to, text string }{
		{"", "", "@f, block %0, line 5: %v = load i32: read of 4 bytes at 0x4800000000000001: the address is not a multiple of 4, as the instruction promises"},
		{"align 4", "align 1", "@f, block %0, line 6: store: write of 4 bytes at 0x4800000000000001: the address is not a multiple of 2, as the instruction promises"},
	} {
		m := parse(t, strings.Replace(src, c.from, c.to, 1))
		in, err := interp.New(m, interp.Options{Strict: true})
		require.NoError(t, err)
		_, err = in.Call(context.Background(), m.Func("f"), nil)
		require.EqualError(t, err, c.text)
	}
}

func TestConstantsCannotBeStoredTo(t *testing.T) {
	in, m := machineOf(t, `@c = constant i32 5
@v = global ptr @c
define i32 @f() {
  %p = load ptr, ptr @v
  %x = load i32, ptr %p
  store i32 %x, ptr %p
  ret i32 %x
}`)
	_, err := in.Call(context.Background(), m.Func("f"), nil)
	require.EqualError(t, err, "@f, block %0, line 6: store: write of 4 bytes at 0x5400000000000000: a constant")
}

// TestModulesBelongTogether requires that a declaration in one module resolves to its definition in another.
func TestModulesBelongTogether(t *testing.T) {
	const main = `@shared = external global i32
declare i32 @half(i32)
define i32 @main() {
  store i32 40, ptr @shared
  %f = load i32, ptr @shared
  %h = call i32 @half(i32 %f)
  ret i32 %h
}`
	const other = `@shared = global i32 1
@step = internal global i32 1
define i32 @half(i32 %x) {
  %own = load i32, ptr @shared
  %h = udiv i32 %own, 2
  %s = load i32, ptr @step
  %r = add i32 %h, %s
  ret i32 %r
}`
	run := func(modules ...string) (string, error) {
		m := parse(t, main)
		var o interp.Options
		for k, src := range modules {
			other, err := ir.Parse(fmt.Sprintf("other%d.ll", k), []byte(src))
			require.NoError(t, err)
			o.Modules = append(o.Modules, other)
		}
		in, err := interp.New(m, o)
		if err != nil {
			return "", err
		}
		res, err := in.Call(context.Background(), m.Func("main"), nil)
		if err != nil {
			return "", err
		}
		return res.Value.Format(), nil
	}
	value, err := run(other)
	require.NoError(t, err)
	require.Equal(t, "21", value)
	value, err = run(strings.Replace(other, "@half(i32 %x) {", "@quarter(i32 %x) {", 1), strings.Replace(other, "@shared = global i32 1", "@shared = external global i32", 1))
	require.NoError(t, err)
	require.Equal(t, "21", value)
	value, err = run(strings.ReplaceAll(other, "define ", "define linkonce_odr "), strings.Replace(other, "@shared = global", "@shared = weak global", 1))
	require.NoError(t, err)
	require.Equal(t, "21", value, "the strong definition, where there are others")

	_, err = run(other, strings.Replace(other, "@shared = global i32 1", "@shared = external global i32", 1))
	require.ErrorContains(t, err, "@half, which both other0.ll and other1.ll define, is not supported: give only the modules that the program consists of")
	_, err = run(strings.Replace(other, "define ", "define internal ", 1))
	require.ErrorContains(t, err, "a call of @half is not supported")
	_, err = run("target datalayout = \"E\"\n" + other)
	require.ErrorContains(t, err, "the data layout of other0.ll is not that of test.ll")
}
