package interp_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// given returns values for a frame, keyed by the parameters and instructions of f with the given names.
func given(t *testing.T, f *ir.Func, values map[string]interp.Value) map[ir.Value]interp.Value {
	t.Helper()
	_, err := f.Body()
	require.NoError(t, err)
	m := map[ir.Value]interp.Value{}
	for name, v := range values {
		key := f.Value(name)
		require.NotNil(t, key, "%%%s", name)
		m[key] = v
	}
	return m
}

func i64(v int64) interp.Value { return interp.FromUint(ir.I64, uint64(v)) }

const sumOfSquares = `
define i64 @sum(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [0,%entry],[%i1,%loop]
  %acc = phi i64 [0,%entry],[%acc1,%loop]
  %sq = mul i64 %i, %i
  %acc1 = add i64 %acc, %sq
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, %n
  br i1 %c, label %loop, label %done
done:
  ret i64 %acc1
}
`

func TestResumeFinishesTheSum(t *testing.T) {
	in, m := machineOf(t, sumOfSquares)
	f := m.Func("sum")
	values := given(t, f, map[string]interp.Value{"i": i64(25), "acc": i64(4900), "n": i64(1000)})
	res, err := in.Resume(context.Background(), interp.Point{Block: f.Block("loop")}, values)
	require.NoError(t, err)
	require.Equal(t, "332833500", res.Value.Format()) // sum of squares below 1000
	require.Equal(t, "i64", res.Type.String())
	require.EqualValues(t, 975*7+1, res.Steps)

	// In the middle of the block: %acc1 is live, %acc is not.
	values = given(t, f, map[string]interp.Value{"i": i64(25), "acc1": i64(5525), "n": i64(1000)})
	res, err = in.Resume(context.Background(), interp.Point{Block: f.Block("loop"), Index: 4}, values)
	require.NoError(t, err)
	require.Equal(t, "332833500", res.Value.Format())
}

func TestResumeNamesAllThatIsMissing(t *testing.T) {
	in, m := machineOf(t, sumOfSquares)
	f := m.Func("sum")
	_, err := in.Resume(context.Background(), interp.Point{Block: f.Block("loop")}, given(t, f, map[string]interp.Value{"acc": i64(1)}))
	var missing *interp.MissingError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []string{"%n", "%i"}, missing.Names)
	require.EqualError(t, err, "cannot resume @sum in block %loop: no value for %n, %i")
}

// TestResumeOfWhatIsTold requires that Tell derives a missing value from given values: an integer from its extension, and a struct from its elements.
func TestResumeOfWhatIsTold(t *testing.T) {
	in, m := machineOf(t, `define i32 @f(i1 %c, i8 %n, { i32, { i8, i1 } } %s) {
entry:
  %c.wide = zext i1 %c to i32
  %n.wide = sext i8 %n to i64
  %s.0 = extractvalue { i32, { i8, i1 } } %s, 0
  %s.1 = extractvalue { i32, { i8, i1 } } %s, 1
  %s.1.0 = extractvalue { i8, i1 } %s.1, 0
  %s.1.1 = extractvalue { i8, i1 } %s.1, 1
  %s.1.1.wide = zext i1 %s.1.1 to i32
  br label %on
on:
  %w = zext i8 %n to i32
  %r = select i1 %c, i32 %w, i32 7
  %x = extractvalue { i32, { i8, i1 } } %s, 1, 1
  %y = zext i1 %x to i32
  %z = extractvalue { i32, { i8, i1 } } %s, 0
  %p = shl i32 %r, %y
  %q = add i32 %p, %z
  ret i32 %q
}`)
	f := m.Func("f")
	at := interp.Point{Block: f.Block("on")}
	i32 := func(v uint64) interp.Value { return interp.FromUint(ir.I32, v) }
	for c, want := range []string{"1014", "1508"} {
		values := given(t, f, map[string]interp.Value{"c.wide": i32(uint64(c)), "n.wide": i64(-2),
			"s.0": i32(1000), "s.1.0": interp.FromUint(&ir.Type{Kind: ir.IntKind, Bits: 8}, 3), "s.1.1.wide": i32(1)})
		interp.Tell(values)
		res, err := in.Resume(context.Background(), at, values)
		require.NoError(t, err)
		require.Equal(t, want, res.Value.Format())
	}
	// One element of %s is missing, and all elements of %c.
	values := given(t, f, map[string]interp.Value{"n.wide": i64(-2), "s.0": i32(1000), "s.1.1.wide": i32(1)})
	interp.Tell(values)
	_, err := in.Resume(context.Background(), at, values)
	require.EqualError(t, err, "cannot resume @f in block %on: no value for %c, %s")
}

func TestResumeRefusesWhatDoesNotFit(t *testing.T) {
	in, m := machineOf(t, sumOfSquares)
	f := m.Func("sum")
	values := given(t, f, map[string]interp.Value{"i": interp.FromUint(ir.I32, 1), "acc": i64(0), "n": i64(5)})
	_, err := in.Resume(context.Background(), interp.Point{Block: f.Block("loop")}, values)
	require.EqualError(t, err, "%i is a value of type i32; expected i64")
	_, err = in.Resume(context.Background(), interp.Point{Block: f.Block("loop"), Index: 1}, values)
	require.EqualError(t, err, "cannot resume @sum among the phis of block %loop")
	_, err = in.Resume(context.Background(), interp.Point{Block: f.Block("loop"), Index: 99}, values)
	require.EqualError(t, err, "the block has no instruction at index 99")
}

// pieces is a target whose memory consists of a few ranges, by their start addresses.
type pieces map[machine.Addr][]byte

func (p pieces) ReadMemory(b []byte, addr machine.Addr) error {
	for start, data := range p {
		if addr >= start && uint64(addr-start)+uint64(len(b)) <= uint64(len(data)) {
			copy(b, data[addr-start:])
			return nil
		}
	}
	return &machine.MemoryError{Addr: addr, Len: len(b), Why: "not mapped"}
}

const statepoint = `
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32, i32)
declare i64 @llvm.experimental.gc.result.i64(token)
define i64 @callee(i64 %x) {
  %r = add i64 %x, 1
  ret i64 %r
}
define i64 @f(ptr addrspace(1) %o, ptr %slot) gc "statepoint-example" {
entry:
  %d = getelementptr i64, ptr addrspace(1) %o, i64 1
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 1, i32 0, ptr elementtype(i64 (i64)) @callee, i32 1, i32 0, i64 41, i32 0, i32 0) [ "deopt"(i64 7), "gc-live"(ptr addrspace(1) %o, ptr addrspace(1) %d) ]
  %r = call i64 @llvm.experimental.gc.result.i64(token %t)
  %d2 = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 1)
  %v = load i64, ptr addrspace(1) %d2
  %s = load i64, ptr %slot
  store i64 %v, ptr %slot
  %s2 = load i64, ptr %slot
  %a = add i64 %v, %s
  %b = add i64 %a, %s2
  %c = add i64 %b, %r
  ret i64 %c
}
`

func TestResumeAfterStatepointReadsTheTarget(t *testing.T) {
	target := pieces{
		0x10008: {100, 0, 0, 0, 0, 0, 0, 0},                  // the heap: a few bytes of one page
		0x7ff00: append(make([]byte, 8), make([]byte, 8)...), // the stack
	}
	target[0x7ff00][8] = 5
	m := parse(t, statepoint)
	in, err := interp.New(m, interp.Options{Memory: target})
	require.NoError(t, err)
	f := m.Func("f")
	values := given(t, f, map[string]interp.Value{
		"o":    interp.FromUint(f.Params[0].Typ, 0x10000),
		"d":    interp.FromUint(f.Params[0].Typ, 0x10008),
		"slot": interp.FromUint(ir.Ptr, 0x7ff08),
		"t":    i64(1000), // the result of @callee
	})
	p := interp.Point{Block: f.Block("entry"), Index: 2}
	res, err := in.Resume(context.Background(), p, values)
	require.NoError(t, err)
	require.Equal(t, "1205", res.Value.Format()) // 100 + 5 + 100 + 1000
	require.Equal(t, 1, res.Writes)
	require.Equal(t, byte(5), target[0x7ff00][8], "the target is as it was")

	delete(values, f.Value("t"))
	_, err = in.Resume(context.Background(), p, values)
	require.EqualError(t, err, "cannot resume @f in block %entry: no value for %r")
	values[f.Value("r")] = i64(2000)
	res, err = in.Resume(context.Background(), p, values)
	require.NoError(t, err)
	require.Equal(t, "2300", res.Value.Format()) // the slot now contains 100, in the view

	// A run from the start calls the statepoint's callee.
	res, err = in.Call(context.Background(), f, []interp.Value{
		interp.FromUint(f.Params[0].Typ, 0x10000), interp.FromUint(ir.Ptr, 0x7ff08),
	})
	require.NoError(t, err)
	require.Equal(t, "342", res.Value.Format())

	// Bytes that the target does not have remain inaccessible.
	values[f.Value("d")] = interp.FromUint(f.Params[0].Typ, 0x10010)
	_, err = in.Resume(context.Background(), p, values)
	var fault *interp.FaultError
	require.ErrorAs(t, err, &fault)
	require.Equal(t, interp.FaultError{Addr: 0x10010, Size: 8, Why: "not mapped", Err: fault.Err}, *fault)
}

func TestGlobalsAreBoundToTheTarget(t *testing.T) {
	const src = `
@live = global i64 1
@lost = global i64 2
@fixed = constant i64 3
@elsewhere = external global i64
define i64 @live_value() {
  %v = load i64, ptr @live
  ret i64 %v
}
define i64 @fixed_value() {
  %v = load i64, ptr @fixed
  ret i64 %v
}
define i64 @lost_value() {
  %p = getelementptr i64, ptr @lost, i64 0
  %v = load i64, ptr %p
  ret i64 %v
}
define ptr @lost_address() {
  ret ptr @lost
}
define void @elsewhere_value() {
  store i64 1, ptr @elsewhere
  ret void
}
`
	m := parse(t, src)
	in, err := interp.New(m, interp.Options{
		Memory: pieces{0x5000: {44, 0, 0, 0, 0, 0, 0, 0}},
		Symbol: func(_ *ir.Module, name string) (machine.Addr, bool) { return 0x5000, name == "live" },
	})
	require.NoError(t, err)
	for name, want := range map[string]string{"live_value": "44", "fixed_value": "3"} {
		res, err := in.Call(context.Background(), m.Func(name), nil)
		require.NoError(t, err)
		require.Equal(t, want, res.Value.Format())
	}
	_, err = in.Call(context.Background(), m.Func("lost_address"), nil)
	require.NoError(t, err, "only touching it is an error")
	_, err = in.Call(context.Background(), m.Func("lost_value"), nil)
	require.ErrorContains(t, err, "the global @lost has no address in the target, so its value cannot be known")
	_, err = in.Call(context.Background(), m.Func("elsewhere_value"), nil)
	require.ErrorContains(t, err, "@elsewhere is defined outside of the module and has no address in the target")

	alone, err := interp.New(m, interp.Options{})
	require.NoError(t, err)
	for name, want := range map[string]string{"live_value": "1", "lost_value": "2"} {
		res, err := alone.Call(context.Background(), m.Func(name), nil)
		require.NoError(t, err)
		require.Equal(t, want, res.Value.Format())
	}
}

func TestCallsThroughTheTargetsPointers(t *testing.T) {
	const src = `
declare ptr @malloc(i64)
define i64 @seven() {
  ret i64 7
}
define i64 @call(ptr %f) {
  %r = call i64 %f()
  ret i64 %r
}
define ptr @alloc(ptr %f) {
  %r = call ptr %f(i64 8)
  store i64 0, ptr %r
  ret ptr %r
}
`
	m := parse(t, src)
	in, err := interp.New(m, interp.Options{
		Memory: pieces{},
		Symbol: func(_ *ir.Module, name string) (machine.Addr, bool) { return 0x9000, name == "seven" },
		SymbolAt: func(a machine.Addr) (string, bool) {
			name := map[machine.Addr]string{0x9000: "seven", 0xa000: "malloc", 0xb000: "pause"}[a]
			return name, name != ""
		},
	})
	require.NoError(t, err)
	call := func(f string, a uint64) (*interp.Result, error) {
		return in.Call(context.Background(), m.Func(f), []interp.Value{interp.FromUint(ir.Ptr, a)})
	}
	res, err := call("call", 0x9000)
	require.NoError(t, err)
	require.Equal(t, "7", res.Value.Format())
	_, err = call("alloc", 0xa000)
	require.NoError(t, err)
	_, err = call("call", 0xb000)
	require.ErrorContains(t, err, "a call of @pause is not supported: it exists only as native code")
	_, err = call("call", 0xc000)
	require.ErrorContains(t, err, "a call of 0xc000, which is not a function of the module, is not supported")
	_, err = call("call", 0)
	require.ErrorContains(t, err, "call of a null pointer")
}

func TestSharedSumFromTheRepository(t *testing.T) {
	const path = "../../testdata/programs/deoptimize.ll"
	src, err := os.ReadFile(path)
	require.NoError(t, err)
	in, m := machineOf(t, string(src))
	f := m.Func("sum")
	res, err := in.Resume(context.Background(), interp.Point{Block: f.Block("loop")},
		given(t, f, map[string]interp.Value{"i": i64(25), "acc": i64(4900), "n": i64(1000)}))
	require.NoError(t, err)
	require.Equal(t, "332833500", res.Value.Format())

	_, err = in.Call(context.Background(), m.Func("main"), nil)
	var exit *interp.DeoptimizeError
	require.ErrorAs(t, err, &exit)
	require.Len(t, exit.Live, 4)
	for k, want := range []string{"3", "26", "5525", "1000"} {
		require.Equal(t, want, exit.Live[k].Format())
	}
}
