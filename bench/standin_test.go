package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

// TestStandInsAreAsTheIntrinsics requires that each function that replaces an intrinsic returns the same results.
func TestStandInsAreAsTheIntrinsics(t *testing.T) {
	values := []string{"0", "1", "-1", "127", "-127", "100", "31", "8"}
	types := map[string]string{"fshl": "i8, i8, i8", "abs": "i8, i1"}
	for name := range standIns {
		params := types[name]
		if params == "" {
			params = "i8, i8"
		}
		src := "declare i8 @llvm." + name + ".i8(" + params + ")\n"
		n := 0
		for _, a := range values {
			for _, b := range values {
				args := fmt.Sprintf("i8 %s, i8 %s", a, b)
				switch name {
				case "fshl":
					args += ", i8 " + b
				case "abs":
					args = "i8 " + a + ", i1 false"
				}
				src += fmt.Sprintf("define i8 @f%d() {\n  %%r = call i8 @llvm.%s.i8(%s)\n  ret i8 %%r\n}\n", n, name, args)
				n++
			}
		}
		results := func(src string) (list []string) {
			m, err := ir.Parse("test.ll", []byte(src))
			require.NoError(t, err, src)
			in, err := interp.New(m, interp.Options{})
			require.NoError(t, err)
			for k := range n {
				r, err := in.Call(t.Context(), m.Func(fmt.Sprint("f", k)), nil)
				require.NoError(t, err, src)
				list = append(list, r.Value.Format())
			}
			return list
		}
		other := withoutIntrinsics(src)
		require.NotContains(t, other, "@llvm.")
		require.Equal(t, results(src), results(other), other)
	}
}
