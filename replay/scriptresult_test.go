package replay

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
)

func TestSameValue(t *testing.T) {
	for _, c := range []struct {
		kind, value, text string
		same              bool
		bad               bool
	}{
		{"i64", "25", "25", true, false},
		{"i64", "25", "0x19", true, false},
		{"i64", "25", "26", false, false},
		{"i64", "-1", "0xffffffffffffffff", true, false},
		{"i64", "25", "x", false, true},
		{"i1", "true", "1", true, false},
		{"i128", "-1", "0xffffffffffffffffffffffffffffffff", true, false},
		{"double", "2.5", "0x1.4p1", true, false},
		{"double", "0.1", "0.1", true, false},
		{"double", "0.1", "0.10000000000000001", true, false},
		{"double", "nan", "nan", true, false},
		{"double", "nan", "0x7ff8000000000001", false, true}, // the result does not give the bits of the NaN
		{"double", "nan", "0x3ff0000000000000", false, false},
		{"double", "-0.0", "0", false, false},
		{"double", "-0.0", "0x8000000000000000", true, false},
		{"float", "0.1", "0.1", true, false},
		{"ptr", "0x0", "null", true, false},
		{"{ i64, i64 }", "{1, 2}", "{1, 2}", true, false},
		{"{ i64, i64 }", "{1, 2}", "{1, 3}", false, false},
		{"i0", "1", "2", false, false},
		{"i64x", "1", "2", false, false},
	} {
		same, err := sameResult(&frame.Result{Type: c.kind, Value: c.value}, c.text)
		require.Equal(t, c.same, same, c)
		require.Equal(t, c.bad, err != nil, c)
	}
}
