package interp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// weakNames returns a mask with a bit for each of five names that is defined.
const weakNames = `declare extern_weak void @nowhere()
declare extern_weak i32 @puts(ptr)
declare extern_weak void @given()
@nothing = extern_weak global i8
@stdout = extern_weak global ptr
@table = global [2 x ptr] [ptr @nowhere, ptr @puts]
define i32 @main() {
  %a = icmp ne ptr @nowhere, null
  %b = icmp ne ptr @puts, null
  %c = icmp ne ptr @nothing, null
  %d = icmp ne ptr @stdout, null
  %p = load ptr, ptr @table
  %e = icmp ne ptr %p, null
  %a1 = select i1 %a, i32 1, i32 0
  %b1 = select i1 %b, i32 2, i32 0
  %c1 = select i1 %c, i32 4, i32 0
  %d1 = select i1 %d, i32 8, i32 0
  %e1 = select i1 %e, i32 16, i32 0
  %ab = or i32 %a1, %b1
  %cd = or i32 %c1, %d1
  %abcd = or i32 %ab, %cd
  %all = or i32 %abcd, %e1
  ret i32 %all
}
define i1 @there() {
  %g = icmp ne ptr @given, null
  ret i1 %g
}`

// TestWeakNamesThatNothingDefinesAreNull requires that the address of an undefined weak name is null, as in a linked program.
func TestWeakNamesThatNothingDefinesAreNull(t *testing.T) {
	sameAsLinked(t, weakNames, "19")
	in, m := machineOf(t, weakNames)
	res, err := in.Main(context.Background(), nil)
	require.NoError(t, err)
	require.Equal(t, "10", res.Value.Format())
	res, err = in.Call(context.Background(), m.Func("there"), nil)
	require.NoError(t, err)
	require.Equal(t, "false", res.Value.Format())
}

func TestWeakNamesThatAreDefined(t *testing.T) {
	given := func(*interp.Invocation) (interp.Value, error) { return interp.Value{}, nil }
	other := parse(t, "define void @given() { ret void }")
	for _, x := range []struct {
		name, want string
		options    interp.Options
	}{
		{"by a function in Go", "true", interp.Options{Funcs: map[string]interp.Builtin{"given": given}}},
		{"by another module", "true", interp.Options{Modules: []*ir.Module{other}}},
		{"by the target", "true", interp.Options{Symbol: func(_ *ir.Module, name string) (machine.Addr, bool) { return 0x1000, name == "given" }}},
		{"perhaps by the target", "undef", interp.Options{Symbol: func(*ir.Module, string) (machine.Addr, bool) { return 0, false }}},
	} {
		t.Run(x.name, func(t *testing.T) {
			m := parse(t, weakNames)
			in, err := interp.New(m, x.options)
			require.NoError(t, err)
			res, err := in.Call(context.Background(), m.Func("there"), nil)
			require.NoError(t, err)
			require.Equal(t, x.want, res.Value.Format())
		})
	}
}
