package vmlayout

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
)

// TestUnreadIsNoMismatch requires that a frame is not compared with info if its method, or the number of its operands, cannot be read.
func TestUnreadIsNoMismatch(t *testing.T) {
	const text = `
def frames(site):
    ops = site.operands
    f = frame(ops[0], 1)
    f.push(row(ops[1].pointee("i64"), ops[2], 8))
    return f
def info(method, position): return {"stack": 3}
`
	l, err := Parse("a.star", []byte(text))
	require.NoError(t, err)
	operands := []Operand{value("i64", "%m"), value("ptr", "%p"), value("i64", "%n")}
	shape, err := l.Frames(&Site{Kind: "statepoint", Operands: operands})
	require.NoError(t, err)
	for _, c := range []struct {
		name                   string
		count                  uint64
		lost                   int // number of the operand that cannot be read, or -1
		mismatch, reason, info string
	}{
		{"two operands", 2, -1, `2 on the operand stack, but in info "stack" is 3`, "", "3"},
		{"number too large", maxRow + 1, -1, "", "", "3"},
		{"number unavailable", 2, 2, "", "", "3"},
		{"method unavailable", 2, 0, "", "its method: ", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			values := slots(operands, map[int]uint64{0: 7, 1: names64, 2: c.count})
			if c.lost >= 0 {
				values[c.lost].Status, values[c.lost].Bytes = frame.Missing, nil
			}
			vm := shape.Read(&Source{Slots: values, Memory: memory{names64: strings.Repeat("\x01", 64)}, Static: memory{}, Order: binary.LittleEndian})
			require.Equal(t, c.mismatch, vm.Frames[0].Mismatch)
			require.Equal(t, c.info, vm.Frames[0].Info["stack"])
			require.NotEmpty(t, vm.Lacks())
			if c.mismatch == "" {
				require.Empty(t, vm.Mismatches())
				require.True(t, strings.HasPrefix(vm.Frames[0].Reason, c.reason), vm.Frames[0].Reason)
			}
		})
	}
}
