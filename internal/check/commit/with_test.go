package commit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/protocol"
)

// TestResultOf requires that the result of an interpreter is a value of the native function's type, or none.
func TestResultOf(t *testing.T) {
	module, err := ir.Parse("m.ll", []byte(`
declare i1 @bit()
declare i32 @word()
declare i24 @odd()
declare float @single()
declare ptr addrspace(1) @pointer()
declare void @nothing()
`))
	require.NoError(t, err)
	for _, c := range []struct {
		name        string
		is          *protocol.Native
		value, says string
	}{
		{"bit", &protocol.Native{Type: "i1", Bits: "0x1"}, "true", ""},
		{"bit", &protocol.Native{Type: "i1", Bits: "0x2"}, "", "the interpreter returned 0x2, which is not a valid i1"},
		{"word", &protocol.Native{Type: "i32", Bits: "0xffffffff"}, "-1", ""},
		{"word", &protocol.Native{Type: "u32", Bits: "0x0000000000000000000000007"}, "7", ""},
		{"word", &protocol.Native{Type: "i32", Bits: "0xffffffffffffffff"}, "", "the interpreter returned 0xffffffffffffffff, which is not a valid i32"},
		{"word", &protocol.Native{Type: "f32", Bits: "0x0"}, "", "the interpreter returned a value of type f32, but @word returns one of type i32"},
		{"word", &protocol.Native{Type: "i32", Bits: "seven"}, "", `"seven" is not a number of the form "0x2a"`},
		{"odd", &protocol.Native{Type: "i24", Bits: "0xfffffe"}, "-2", ""},
		{"single", &protocol.Native{Type: "f32", Bits: "0x3fc00000"}, "1.5", ""},
		{"single", &protocol.Native{Type: "f32", Bits: "0x100000000"}, "", "the interpreter returned 0x100000000, which is not a valid f32"},
		{"single", &protocol.Native{Type: "f64", Bits: "0x0"}, "", "the interpreter returned a value of type f64, but @single returns one of type float"},
		{"pointer", &protocol.Native{Type: "ref", Bits: "0x7000"}, "0x7000", ""},
		{"pointer", &protocol.Native{Type: "null", Bits: "0x0"}, "0x0", ""},
		{"pointer", &protocol.Native{Type: "null", Bits: "0x1"}, "", "the interpreter returned 0x1, which is not a valid null"},
		{"pointer", &protocol.Native{Type: "i64", Bits: "0x1"}, "", "the interpreter returned a value of type i64, but @pointer returns one of type ptr addrspace(1)"},
		{"pointer", nil, "", "the interpreter returned nothing, but @pointer returns a value of type ptr addrspace(1)"},
		{"nothing", nil, "", ""},
		{"nothing", &protocol.Native{Type: "i64", Bits: "0x1"}, "", "the interpreter returned a value of type i64, but @nothing returns one of type void"},
	} {
		v, err := resultOf(&handover.Ran{Answer: &protocol.Answer{Returned: c.is, Returns: true}}, module.Lookup(c.name).(*ir.Func))
		if c.says != "" {
			require.EqualError(t, err, c.says)
			continue
		}
		require.NoError(t, err, c.name)
		require.Equal(t, c.value == "", v.IsNone(), c.name)
		if c.value != "" {
			require.Equal(t, c.value, v.Format(), c.name)
		}
	}
}
