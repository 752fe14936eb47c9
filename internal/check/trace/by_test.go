package trace

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
)

// TestOtherValues requires that exits beyond the bound have their own counter, even if a method has the name that is shown for them.
func TestOtherValues(t *testing.T) {
	c := &counts{}
	exit := func(method string) {
		f := &deopt.Frame{}
		f.VM = &frame.VM{Frames: []frame.VMFrame{{Method: method, Resume: frame.Reexecute}}}
		c.countBy(&Exited{Frame: f}, []string{"method"})
	}
	exit("others")
	for n := range maxBy - 1 {
		exit(fmt.Sprint(n))
	}
	exit("one more")
	exit("and one more")
	exit("others")
	var list []ByCount
	for _, b := range c.by.sorted() {
		if b.Count > 1 {
			list = append(list, b)
		}
	}
	require.ElementsMatch(t, []ByCount{{Values: []string{"others"}, Count: 2}, {Values: []string{"others"}, Count: 2, Other: true}}, list)
}
