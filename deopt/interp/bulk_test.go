package interp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/machine"
)

// TestMoveAcrossPagesAsGoCopies requires that a move of overlapping ranges has the result of Go's copy, also across pages.
func TestMoveAcrossPagesAsGoCopies(t *testing.T) {
	const size = 4 * 4096
	for _, c := range []struct{ to, from, n int }{
		{1, 0, size - 1}, {0, 1, size - 1}, {5000, 0, 9000}, {0, 5000, 9000}, {4095, 4096, 4097}, {4096, 4095, 4097}, {8192, 0, 8192}, {7, 7, 9000}, {100, 90, 20},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			in, m := machineOf(t, fmt.Sprintf(`@m = global [%d x i8] zeroinitializer
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
define ptr @f() {
  br label %%l
l:
  %%i = phi i64 [ 0, %%0 ], [ %%j, %%l ]
  %%p = getelementptr i8, ptr @m, i64 %%i
  %%x = mul i64 %%i, 167
  %%b = trunc i64 %%x to i8
  store i8 %%b, ptr %%p
  %%j = add i64 %%i, 1
  %%c = icmp eq i64 %%j, %d
  br i1 %%c, label %%e, label %%l
e:
  %%u = getelementptr i8, ptr @m, i64 6000
  store i8 undef, ptr %%u
  %%to = getelementptr i8, ptr @m, i64 %d
  %%from = getelementptr i8, ptr @m, i64 %d
  call void @llvm.memmove.p0.p0.i64(ptr %%to, ptr %%from, i64 %d, i1 false)
  ret ptr @m
}`, size, size, c.to, c.from, c.n))
			res, err := in.Call(context.Background(), m.Func("f"), nil)
			require.NoError(t, err)
			at, _ := res.Value.Uint()
			want, shadow := make([]byte, size), make([]byte, size)
			for k := range want {
				want[k] = byte(k * 167)
			}
			want[6000], shadow[6000] = 0, 0xff
			copy(want[c.to:c.to+c.n], want[c.from:c.from+c.n])
			copy(shadow[c.to:c.to+c.n], shadow[c.from:c.from+c.n])
			data, undefined := make([]byte, size), make([]byte, size)
			require.NoError(t, in.Peek(data, undefined, machine.Addr(at)))
			require.Equal(t, want, data)
			require.Equal(t, shadow, undefined)
		})
	}
}

// TestLengthsThatAreTooLongTakeNoMemory requires that a length beyond the accessible memory ends the run before memory is allocated for it.
func TestLengthsThatAreTooLongTakeNoMemory(t *testing.T) {
	for _, call := range []string{
		"call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 549755813888, i1 false)",
		"call void @llvm.memmove.p0.p0.i64(ptr %p, ptr %p, i64 549755813888, i1 false)",
		"call ptr @memmem(ptr %p, i64 549755813888, ptr %p, i64 1)",
		"call i64 @write(i32 1, ptr %p, i64 549755813888)",
	} {
		m := parse(t, `declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @memmem(ptr, i64, ptr, i64)
declare i64 @write(i32, ptr, i64)
define void @f() {
  %p = alloca i64
  store i64 0, ptr %p
  `+call+`
  ret void
}`)
		in, err := interp.New(m, interp.Options{MaxSteps: 1 << 40, MaxMemory: 1 << 40})
		require.NoError(t, err)
		_, err = in.Call(context.Background(), m.Func("f"), nil)
		require.ErrorContains(t, err, "outside of every alloca of the running functions", call)
	}
}

// TestStringsAtTheEndsOfManyBlocks requires that the time to find the end of a heap block does not depend on the number of blocks. With this many
// blocks, a search through all of them would not end.
func TestStringsAtTheEndsOfManyBlocks(t *testing.T) {
	in, m := machineOf(t, `declare ptr @malloc(i64)
declare i32 @strcmp(ptr, ptr)
define i64 @f() {
  br label %l
l:
  %i = phi i64 [ 0, %0 ], [ %j, %l ]
  %p = call ptr @malloc(i64 4)
  store i32 0, ptr %p
  %x = call i32 @strcmp(ptr %p, ptr %p)
  %j = add i64 %i, 1
  %c = icmp eq i64 %j, 200000
  br i1 %c, label %e, label %l
e:
  ret i64 %j
}`)
	res, err := in.Call(context.Background(), m.Func("f"), nil)
	require.NoError(t, err)
	require.Equal(t, "200000", res.Value.Format())
}
