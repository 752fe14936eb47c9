package frame_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
)

// TestFollow requires that a path through objects by names and by offsets leads to its value, also if the objects form a cycle. A wrong path must
// lead to no value.
func TestFollow(t *testing.T) {
	n := func(i int64) *int64 { return &i }
	i32 := func(text string) frame.VMValue { return frame.VMValue{Type: "i32", Value: text, Status: frame.OK} }
	named := i32("7")
	named.Name = "price"
	vm := &frame.VM{
		Frames: []frame.VMFrame{{Locals: []frame.VMValue{{Index: n(0), Object: n(1)}, {Index: n(1), Type: "i32", Value: "3", Status: frame.OK}}}},
		Objects: []frame.VMObject{
			{ID: 1, Class: "Item", Fields: []frame.VMField{{At: 8, VMValue: named}, {At: 16, VMValue: frame.VMValue{Name: "next", Object: n(2)}}}},
			{ID: 2, Class: "List", Fields: []frame.VMField{{At: 0, Element: true, VMValue: i32("9")}, {At: 1, Element: true, VMValue: frame.VMValue{Object: n(1)}}}},
		},
	}
	for path, want := range map[string]string{
		"local[0].price": "7", "local[0].8": "7", "local[0].next.0": "9", "local[0].next.1.next.1.price": "7", "object[1].price": "7", "local[1]": "3",
		"object[2]": "object 2, not allocated: List {[0] = i32 9, [1] = object 1}", "local[0].next": "object 2, not allocated: List {[0] = i32 9, [1] = object 1}",
		"object[1]": "object 1, not allocated: Item {price = i32 7, next = object 2}",
	} {
		is, ok := vm.Follow(path)
		require.True(t, ok, path)
		require.Equal(t, want, is.Value, path)
		require.Equal(t, path, is.Name)
	}
	for _, path := range []string{"local[0].prize", "local[1].price", "local[7].price", "object[3]", "object[3].price", "object[x]", "object[1", "", ".", "local[0].price.8"} {
		_, ok := vm.Follow(path)
		require.False(t, ok, path)
	}
	_, ok := (*frame.VM)(nil).Follow("local[0].price")
	require.False(t, ok)
}
