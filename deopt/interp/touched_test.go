package interp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/interp"
	"reframe/deopt/ir"
	"reframe/deopt/machine"
)

func pointerTo(addr uint64) interp.Value { return interp.FromUint(ir.Ptr, addr) }

const storing = `
target datalayout = "e-p:64:64-i64:64"
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @malloc(i64)
declare i64 @strlen(ptr)
declare double @llvm.pow.f64(double, double)
declare i64 @strtol(ptr, ptr, i32)
declare i32 @puts(ptr)
@here = constant [3 x i8] c"hi\00"
define i64 @look(ptr %p) {
  %v = load i64, ptr %p
  ret i64 %v
}
define ptr @all(ptr %p) {
  store i32 7, ptr %p                                                    ; a word
  %cross = getelementptr i8, ptr %p, i64 8188
  store i64 -1, ptr %cross                                               ; over the end of the second page
  %wide = getelementptr i8, ptr %p, i64 16384
  call void @llvm.memset.p0.i64(ptr %wide, i8 1, i64 4, i1 false)
  %u = getelementptr i8, ptr %p, i64 16388
  store i32 undef, ptr %u
  %own = alloca i64
  store i64 1, ptr %own
  ret ptr %own
}
define ptr @calls(ptr %s, double %x) {
  %m = call ptr @malloc(i64 8)
  %n = call i64 @strlen(ptr %s)
  %n2 = call i64 @strlen(ptr @here)
  %y = call double @llvm.pow.f64(double %x, double 2.0)
  %i = call i64 @strtol(ptr %s, ptr null, i32 10)
  ret ptr %m
}
define i32 @exits(ptr %s) {
  %n = call i64 @strlen(ptr %s)
  %e = call i32 @unheard.of()
  ret i32 %e
}
declare i32 @unheard.of()
define ptr @made(i32 %which) {
  %own = alloca i64
  switch i32 %which, label %stack [ i32 1, label %constant i32 2, label %text ]
stack:
  ret ptr %own
constant:
  ret ptr @here
text:
  ret ptr @look
}
`

// Five pages of a target at 0x10000, the fourth of which is not there, and some of the last.
func storingTarget() pieces {
	return pieces{0x10000: make([]byte, 3*interp.PageSize), 0x14000: {9, 9, 9, 9, 9, 9, 9, 9}}
}

func TestTouchedPages(t *testing.T) {
	m := parse(t, storing)
	in, err := interp.New(m, interp.Options{Memory: storingTarget()})
	require.NoError(t, err)
	_, err = in.Call(context.Background(), m.Func("look"), []interp.Value{pointerTo(0x10008)})
	require.NoError(t, err)
	for p := range in.Touched() {
		require.Fail(t, "what is only read is not touched", "%v", p.Addr)
	}
	res, err := in.Call(context.Background(), m.Func("all"), []interp.Value{pointerTo(0x10000)})
	require.NoError(t, err)
	own, _ := res.Value.Uint()
	require.True(t, in.Made(own))
	require.Equal(t, 4, res.Writes)
	var got []string
	for p := range in.Touched() {
		require.Len(t, p.Data, 4096)
		require.Len(t, p.Undefined, 4096)
		from := 0
		switch p.Addr {
		case 0x11000:
			from = 4088
		}
		got = append(got, fmt.Sprintf("%v %x %x", p.Addr, p.Data[from:from+8], p.Undefined[from:from+8]))
		if p.Addr == 0x14000 {
			require.Equal(t, byte(0xff), p.Undefined[8], "the target does not have it")
		}
	}
	require.Equal(t, []string{
		"0x10000 0700000000000000 0000000000000000",
		"0x11000 00000000ffffffff 0000000000000000",
		"0x12000 ffffffff00000000 0000000000000000",
		"0x14000 0101010100000000 00000000ffffffff",
	}, got)
	for p := range in.Touched() {
		require.Equal(t, machine.Addr(0x10000), p.Addr)
		break
	}
}

func TestCalledFunctions(t *testing.T) {
	m := parse(t, storing)
	target := pieces{0x10000: append([]byte("12\x00"), make([]byte, 300)...), 0x11000: append([]byte("99999999999999999999\x00"), make([]byte, 300)...)}
	in, err := interp.New(m, interp.Options{Memory: target})
	require.NoError(t, err)
	call := func(f string, args ...interp.Value) []interp.Called {
		res, err := in.Call(context.Background(), m.Func(f), args)
		if f != "exits" {
			require.NoError(t, err)
		}
		return res.Called
	}
	x := interp.FromFloat64(&ir.Type{Kind: ir.DoubleKind}, 3)
	want := []interp.Called{
		{Name: "malloc", Effect: interp.EffectState, Count: 1},
		{Name: "strlen", Effect: interp.EffectNone, Count: 2},
		{Name: "llvm.pow", Effect: interp.EffectMath, Count: 1},
		{Name: "strtol", Effect: interp.EffectMemory, Count: 1},
	}
	for range 2 {
		require.Equal(t, want, call("calls", pointerTo(0x10000), x))
	}
	want[3].Effect = interp.EffectState // it set errno
	require.Equal(t, want, call("calls", pointerTo(0x11000), x))
	require.Empty(t, call("look", pointerTo(0x10000)))
	require.Equal(t, want[1].Name, call("exits", pointerTo(0x10000))[0].Name, "of a run that failed too")

	in, err = interp.New(m, interp.Options{Memory: target, Funcs: map[string]interp.Builtin{
		"strlen": func(c *interp.Invocation) (interp.Value, error) { return c.Return(0) }}})
	require.NoError(t, err)
	require.Equal(t, interp.Called{Name: "strlen", Effect: interp.EffectOutside, Count: 2}, call("calls", pointerTo(0x10000), x)[1])
}

func TestMadeAddresses(t *testing.T) {
	m := parse(t, storing)
	in, err := interp.New(m, interp.Options{Memory: storingTarget()})
	require.NoError(t, err)
	// Doubles such as 2.0 have the bits of such addresses: only what was given is one.
	for _, v := range []uint64{0, 0x10000, 0x4000000000000000, 0x4800000000000000, 0x5000000000000000, 0x5400000000000000, 0x5800000000000000, 0x6000000000000000, 0x7fffffffffffffff} {
		require.False(t, in.Made(v), "%#x", v)
	}
	for which, base := range []uint64{0x4800000000000000, 0x5400000000000000, 0x6000000000000010} {
		res, err := in.Call(context.Background(), m.Func("made"), []interp.Value{interp.FromUint(ir.I32, uint64(which))})
		require.NoError(t, err)
		v, _ := res.Value.Uint()
		require.Equal(t, base, v)
		require.True(t, in.Made(v))
	}
	require.False(t, in.Made(0x4000000000000000))
	require.False(t, in.Made(0x5800000000000000))
}
