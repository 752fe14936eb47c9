package interp_test

import (
	"context"
	"fmt"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
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

// storingTarget returns a target with memory from 0x10000 on: three pages, a missing page, and the first 8 bytes of a fifth page.
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
		require.Len(t, p.Stored, 512)
		stored := 0
		for _, b := range p.Stored {
			stored += bits.OnesCount8(b)
		}
		got = append(got, fmt.Sprintf("%v %x %x %d %02x", p.Addr, p.Data[from:from+8], p.Undefined[from:from+8], stored, p.Stored[from/8]))
		if p.Addr == 0x14000 {
			require.Equal(t, byte(0xff), p.Undefined[8], "the target does not have it")
		}
	}
	require.Equal(t, []string{
		"0x10000 0700000000000000 0000000000000000 4 0f",
		"0x11000 00000000ffffffff 0000000000000000 4 f0",
		"0x12000 ffffffff00000000 0000000000000000 4 0f",
		"0x14000 0101010100000000 00000000ffffffff 8 ff",
	}, got)
	for p := range in.Touched() {
		require.Equal(t, machine.Addr(0x10000), p.Addr)
		break
	}
}

// TestTouchedBytesThatWereThere requires that Touched marks stored bytes for every kind of store, even if the store did not change them.
func TestTouchedBytesThatWereThere(t *testing.T) {
	m := parse(t, `target datalayout = "e-p:64:64-i64:64"
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.masked.store.v4i8.p0(<4 x i8>, ptr, i32, <4 x i1>)
define void @f(ptr %p) {
  store i8 0, ptr %p
  %two = getelementptr i8, ptr %p, i64 9
  store i16 0, ptr %two
  %set = getelementptr i8, ptr %p, i64 21
  call void @llvm.memset.p0.i64(ptr %set, i8 0, i64 5, i1 false)
  %copied = getelementptr i8, ptr %p, i64 35
  call void @llvm.memcpy.p0.p0.i64(ptr %copied, ptr %p, i64 2, i1 false)
  %pair = getelementptr i8, ptr %p, i64 40
  store { i8, i32 } zeroinitializer, ptr %pair
  %masked = getelementptr i8, ptr %p, i64 48
  call void @llvm.masked.store.v4i8.p0(<4 x i8> zeroinitializer, ptr %masked, i32 1, <4 x i1> <i1 false, i1 true, i1 false, i1 true>)
  %rmw = getelementptr i8, ptr %p, i64 56
  %was = atomicrmw or ptr %rmw, i32 0 monotonic
  %not = getelementptr i8, ptr %p, i64 64
  %no = cmpxchg ptr %not, i32 1, i32 0 monotonic monotonic
  %yes = cmpxchg ptr %not, i8 0, i8 0 monotonic monotonic
  ret void
}`)
	in, err := interp.New(m, interp.Options{Memory: storingTarget()})
	require.NoError(t, err)
	_, err = in.Call(context.Background(), m.Func("f"), []interp.Value{pointerTo(0x10000)})
	require.NoError(t, err)
	seen := 0
	for p := range in.Touched() {
		seen++
		require.Equal(t, "01 06 e0 03 18 f1 0a 0f 01 00", fmt.Sprintf("% x", p.Stored[:10]))
	}
	require.Equal(t, 1, seen)
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
	want[3].Effect = interp.EffectState // this call has set errno
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
	// Addresses that the interpreter has not allocated do not count: doubles such as 2.0 have the same bits.
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
