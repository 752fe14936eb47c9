package deopt_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestOperandsOfALayout requires that a frame shows the operand of each value if a layout swaps the names of two values. A slot must have no
// operand if the layout does not change its name, or if no module gives one.
func TestOperandsOfALayout(t *testing.T) {
	const swapped = `{"schema":"reframe.layout/v1","exits":[
		{"function":"sum_opt","when":[{"operand":0,"equals":3}],"resume":{"function":"sum","block":"loop"},
		 "slots":[{"operand":1,"name":"acc"},{"operand":2,"name":"%i"},{"operand":3,"name":"n"}]}]}`
	l, err := layout.Parse("swapped.json", []byte(swapped))
	require.NoError(t, err)
	for _, version := range []int{16, 19, 22} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			p := livetest.Lli(t, version, "deoptimize.ll", "mcjit")
			known := frametest.Known(t, p)
			known.Layouts = []*layout.Layout{l}
			var got [][2]string
			for _, s := range frametest.One(t, frametest.Look(t, p, false, known), "sum_opt").Slots {
				got = append(got, [2]string{s.Name, s.Operand})
			}
			require.Equal(t, [][2]string{{"%acc", "%i"}, {"%i", "%acc"}, {"%n", ""}}, got)
			plain := frametest.One(t, frametest.Look(t, p, false, deopt.Options{Layouts: []*layout.Layout{l}}), "sum_opt")
			for _, s := range plain.Slots {
				require.Empty(t, s.Operand, "without a module an operand has no name")
			}
		})
	}
}
