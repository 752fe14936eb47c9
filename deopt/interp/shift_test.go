package interp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
)

// TestShift requires that the shift moves all of a run's own addresses, and that the results do not change.
func TestShift(t *testing.T) {
	m := parse(t, `
target datalayout = "e-p:64:64-i64:64"
declare ptr @malloc(i64)
@constant = private constant i64 3
@variable = internal global i64 4
define ptr @stack() {
  %p = alloca i64
  ret ptr %p
}
define ptr @heap() {
  %p = call ptr @malloc(i64 8)
  ret ptr %p
}
define ptr @fixed() {
  ret ptr @constant
}
define ptr @global() {
  ret ptr @variable
}
define ptr @text() {
  ret ptr @stack
}
define ptr @sum() {
  %a = load i64, ptr @constant
  %b = load i64, ptr @variable
  %c = add i64 %a, %b
  %p = inttoptr i64 %c to ptr
  ret ptr %p
}`)
	const shift = 0x2b_1a6f_5e30
	at := func(name string, shift uint64) uint64 {
		in, err := interp.New(m, interp.Options{Shift: shift})
		require.NoError(t, err)
		r, err := in.Call(context.Background(), m.Func(name), nil)
		require.NoError(t, err)
		v, ok := r.Value.Uint()
		require.True(t, ok)
		return v
	}
	for _, name := range []string{"stack", "heap", "fixed", "global", "text"} {
		require.EqualValues(t, uint64(shift), at(name, shift)-at(name, 0), name)
	}
	require.EqualValues(t, 7, at("sum", shift))
}
