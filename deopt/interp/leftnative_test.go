package interp_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// TestLeftToNative requires that native code runs the functions of libstdc++ that the interpreter also has as IR, and the exception functions that
// return to their caller.
func TestLeftToNative(t *testing.T) {
	for name, want := range map[string]bool{"printf": true, "elsewhere": true, "strlen": false, "longjmp": false, "_ZNSt9exceptionD2Ev": true,
		"_ZNSt11logic_erroraSERKS_": true, "_ZN5Other4nameEv": true, "__cxa_begin_catch": true, "__cxa_throw": false, "_Unwind_Resume": false} {
		require.Equal(t, want, interp.LeftToNative(name), name)
	}
}

// TestNative requires that Options.Native runs functions without IR, except for built-in ones that do not depend on the state of the process.
func TestNative(t *testing.T) {
	m, err := ir.Parse("native.ll", []byte(`
declare i32 @elsewhere(i32, ptr)
declare ptr @malloc(i64)
declare i64 @strlen(ptr)
declare i32 @_setjmp(ptr)
@text = constant [4 x i8] c"abc\00"
define i64 @f(ptr %p) {
  %room = alloca [240 x i8]
  store i32 7, ptr %room
  %a = call i32 @elsewhere(i32 3, ptr %room)
  %m = call ptr @malloc(i64 16)
  %n = call i64 @strlen(ptr @text)
  %b = call i32 %p(i32 %a)
  %c = load i32, ptr %room
  %s = call i32 @_setjmp(ptr %room)
  %x = ptrtoint ptr %m to i64
  %y = zext i32 %b to i64
  %z = zext i32 %c to i64
  %1 = add i64 %x, %y
  %2 = add i64 %1, %z
  %3 = add i64 %2, %n
  ret i64 %3
}`))
	require.NoError(t, err)
	var in *interp.Interp
	var asked []string
	in, err = interp.New(m, interp.Options{Native: func(c *interp.Invocation) (interp.Value, error) {
		asked = append(asked, c.Name)
		require.Equal(t, ir.OpCall, c.Site().Op)
		switch c.Name {
		case "elsewhere":
			at, err := c.Addr(1)
			require.NoError(t, err)
			require.Equal(t, uint64(240), in.Extent(at, 1000))
			require.Equal(t, uint64(4), in.Extent(at+236, 100))
			require.Equal(t, uint64(10), in.Extent(at, 10))
			require.NoError(t, in.Changed(at, []byte{1, 0, 0, 0}))
			require.Error(t, in.Changed(at+240, []byte{1}))
			return c.Return(5)
		case "malloc":
			return c.Return(0x1000)
		case "":
			require.Equal(t, machine.Addr(0x7000), c.At)
			require.Equal(t, "5", c.Args[0].Format())
			return c.Return(30)
		}
		return interp.Value{}, errors.New("what is it?")
	}})
	require.NoError(t, err)
	res, err := in.Call(context.Background(), m.Func("f"), []interp.Value{interp.FromUint(ir.Ptr, 0x7000)})
	require.NoError(t, err)
	require.Equal(t, []string{"elsewhere", "malloc", ""}, asked)
	require.Equal(t, "4130", res.Value.Format()) // 0x1000 + 30 + 1 + 3
	effects := map[string]interp.Effect{}
	for _, c := range res.Called {
		effects[c.Name] = c.Effect
	}
	require.Equal(t, map[string]interp.Effect{"elsewhere": interp.EffectNative, "malloc": interp.EffectNative, "": interp.EffectNative, "strlen": interp.EffectNone, "_setjmp": interp.EffectState}, effects)
}

type changing struct{ bytes []byte }

func (c *changing) ReadMemory(p []byte, addr machine.Addr) error {
	copy(p, c.bytes[addr%0x1000:])
	return nil
}

// TestChanged requires that a run sees memory that native code changed, whether it was read before or not, and does not count it as a store.
func TestChanged(t *testing.T) {
	m, err := ir.Parse("changed.ll", []byte(`
declare void @native()
define i32 @f(ptr %p, ptr %q) {
  %a = load i32, ptr %p
  call void @native()
  %b = load i32, ptr %p
  %c = load i32, ptr %q
  %1 = mul i32 %a, 10000
  %2 = mul i32 %b, 100
  %3 = add i32 %1, %2
  %4 = add i32 %3, %c
  ret i32 %4
}`))
	require.NoError(t, err)
	mem := &changing{bytes: make([]byte, 0x1000)}
	mem.bytes[0], mem.bytes[64] = 1, 2
	var in *interp.Interp
	in, err = interp.New(m, interp.Options{Memory: mem, Native: func(c *interp.Invocation) (interp.Value, error) {
		mem.bytes[0], mem.bytes[64] = 3, 4
		require.NoError(t, in.Changed(0x5000, []byte{3}))
		require.NoError(t, in.Changed(0x6040, []byte{4}))
		return interp.Value{}, nil
	}})
	require.NoError(t, err)
	res, err := in.Call(context.Background(), m.Func("f"), []interp.Value{interp.FromUint(ir.Ptr, 0x5000), interp.FromUint(ir.Ptr, 0x6040)})
	require.NoError(t, err)
	require.Equal(t, "10304", res.Value.Format())
	for range in.Touched() {
		t.Fatal("it stored nothing")
	}
}

// TestNativeHint requires that without Options.Native a call of a function without IR ends the run, and that the error advises what to do.
func TestNativeHint(t *testing.T) {
	m, err := ir.Parse("native.ll", []byte("declare void @elsewhere()\ndefine void @f() {\n  call void @elsewhere()\n  ret void\n}\n"))
	require.NoError(t, err)
	for hint, want := range map[string]string{"": "it exists only as native code; link the module that defines it (llvm-link), or resume a frame further out", "ask somebody": "it exists only as native code; ask somebody"} {
		in, err := interp.New(m, interp.Options{Hint: hint})
		require.NoError(t, err)
		_, err = in.Call(context.Background(), m.Func("f"), nil)
		require.ErrorContains(t, err, "a call of @elsewhere is not supported: "+want)
	}
}

// TestUnmapped requires that a store to a page is dropped after native code has unmapped that page and mapped it again.
func TestUnmapped(t *testing.T) {
	m, err := ir.Parse("gone.ll", []byte(`
declare void @native()
define i32 @f(ptr %p, ptr %q) {
  store i32 7, ptr %p
  store i32 8, ptr %q
  %old = load i32, ptr %p
  call void @native()
  %a = load i32, ptr %p
  %b = load i32, ptr %q
  %1 = mul i32 %a, 10
  %2 = add i32 %1, %b
  ret i32 %2
}`))
	require.NoError(t, err)
	mem := &changing{bytes: make([]byte, 0x1000)}
	var in *interp.Interp
	in, err = interp.New(m, interp.Options{Memory: mem, Native: func(*interp.Invocation) (interp.Value, error) {
		in.Unmapped(0x5000, 0x1000)
		return interp.Value{}, nil
	}})
	require.NoError(t, err)
	res, err := in.Call(context.Background(), m.Func("f"), []interp.Value{interp.FromUint(ir.Ptr, 0x5ffc), interp.FromUint(ir.Ptr, 0x6000)})
	require.NoError(t, err)
	require.Equal(t, "8", res.Value.Format())
	stored := map[machine.Addr]bool{}
	for p := range in.Touched() {
		stored[p.Addr] = true
	}
	require.Equal(t, map[machine.Addr]bool{0x6000: true}, stored)
}
