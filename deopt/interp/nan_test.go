package interp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

// TestNaNsAreThoseOfX86 requires that each operation yields the NaN of SSE2 (Intel SDM vol. 1, table 4-7), on every processor.
func TestNaNsAreThoseOfX86(t *testing.T) {
	const (
		first, second = "0x7ff8000000001234", "0xfff8000000005678"
		signaling     = "0x7ff0000000001234"
		firstF        = "0x7fc01234"
		secondF       = "0xffc05678"
		signalingF    = "0x7f801234"
	)
	for _, c := range []struct {
		typ, op string
		args    []string // bit patterns
		want    uint64
	}{
		{"double", "fdiv", []string{"0", "0"}, 0xfff8000000000000},
		{"double", "fsub", []string{"0x7ff0000000000000", "0x7ff0000000000000"}, 0xfff8000000000000},
		{"double", "fadd", []string{first, second}, 0x7ff8000000001234},
		{"double", "fadd", []string{second, first}, 0xfff8000000005678},
		{"double", "fmul", []string{"0x3ff0000000000000", second}, 0xfff8000000005678},
		{"double", "fmul", []string{signaling, "0x3ff0000000000000"}, 0x7ff8000000001234},
		{"double", "fsub", []string{first, signaling}, 0x7ff8000000001234},
		{"double", "frem", []string{"0x3ff0000000000000", "0"}, 0xfff8000000000000},
		{"double", "fdiv", []string{signaling, second}, 0x7ff8000000001234},
		{"float", "fdiv", []string{"0", "0"}, 0xffc00000},
		{"float", "fadd", []string{firstF, secondF}, 0x7fc01234},
		{"float", "fmul", []string{secondF, firstF}, 0xffc05678},
		{"float", "fadd", []string{signalingF, "0x3f800000"}, 0x7fc01234},
		{"float", "frem", []string{"0x3f800000", "0"}, 0xffc00000},
		{"double", "sqrt", []string{"0xbff0000000000000"}, 0xfff8000000000000},
		{"double", "floor", []string{signaling}, 0x7ff8000000001234},
		{"double", "rint", []string{second}, 0xfff8000000005678},
		{"float", "sqrt", []string{"0xbf800000"}, 0xffc00000},
		{"float", "trunc", []string{signalingF}, 0x7fc01234},
		{"double", "fma", []string{"0x7ff0000000000000", "0", "0x3ff0000000000000"}, 0xfff8000000000000},
		{"double", "fma", []string{"0x3ff0000000000000", first, second}, 0x7ff8000000001234},
		{"float", "fma", []string{"0x7f800000", "0", "0x3f800000"}, 0xffc00000},
		{"double", "fptrunc", []string{"0xfff8000020000000"}, 0xffc00001},
		{"float", "fpext", []string{signalingF}, 0x7ff8024680000000},
	} {
		t.Run(fmt.Sprint(c.typ, " ", c.op, c.args), func(t *testing.T) {
			bits := map[string]string{"double": "i64", "float": "i32"}
			out := c.typ
			params, args, casts := "", "", ""
			for k := range c.args {
				params += fmt.Sprintf(", %s %%i%d", bits[c.typ], k)
				casts += fmt.Sprintf("  %%a%d = bitcast %s %%i%d to %s\n", k, bits[c.typ], k, c.typ)
				args += fmt.Sprintf(", %s %%a%d", c.typ, k)
			}
			var run, declare string
			switch c.op {
			case "fptrunc":
				out, run = "float", "fptrunc double %a0 to float"
			case "fpext":
				out, run = "double", "fpext float %a0 to double"
			case "fadd", "fsub", "fmul", "fdiv", "frem":
				run = fmt.Sprintf("%s %s %%a0, %%a1", c.op, c.typ)
			default:
				suffix := map[string]string{"double": "f64", "float": "f32"}[c.typ]
				run = fmt.Sprintf("call %s @llvm.%s.%s(%s)", c.typ, c.op, suffix, args[2:])
				declare = fmt.Sprintf("declare %s @llvm.%s.%s(%s)\n", c.typ, c.op, suffix, strings.Repeat(", "+c.typ, len(c.args))[2:])
			}
			m, err := ir.Parse("nan.ll", []byte(declare+fmt.Sprintf("define %s @f(%s) {\n%s  %%r = %s\n  %%o = bitcast %s %%r to %s\n  ret %s %%o\n}\n",
				bits[out], params[2:], casts, run, out, bits[out], bits[out])))
			require.NoError(t, err)
			in, err := interp.New(m, interp.Options{})
			require.NoError(t, err)
			var values []interp.Value
			for k, text := range c.args {
				var v uint64
				_, err := fmt.Sscan(text, &v)
				require.NoError(t, err)
				values = append(values, interp.FromUint(m.Func("f").Params[k].Typ, v))
			}
			r, err := in.Call(context.Background(), m.Func("f"), values)
			require.NoError(t, err)
			got, ok := r.Value.Uint()
			require.True(t, ok)
			require.Equal(t, fmt.Sprintf("%x", c.want), fmt.Sprintf("%x", got))
		})
	}
}
