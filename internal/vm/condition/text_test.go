package condition

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
)

// TestTexts requires that the facts about a virtual machine's frames can be compared with texts and numbers.
func TestTexts(t *testing.T) {
	position, index := int64(17), int64(2)
	f := &frame.Frame{VM: &frame.VM{Frames: []frame.VMFrame{
		{Method: "Point.norm", Position: &position, Resume: frame.Reexecute, Info: map[string]string{"line": "40", "why": "no int"},
			Locals: []frame.VMValue{{Index: &index, Name: "total", Type: "i32", Kind: frame.Type{Kind: frame.Int, Bits: 32}, Value: "7", Hex: "0x7", Bytes: []byte{7, 0, 0, 0}, Status: frame.OK}}},
		{Method: "main", Resume: frame.Calling},
	}}}
	for text, want := range map[string]Answer{
		`method == "Point.norm"`:                         Yes,
		`method != "Point.norm"`:                         No,
		`method == "Point.norm" and position == 17`:      Yes,
		`method == "Point.norm" && position > 17`:        No,
		`resume == "reexecute"`:                          Yes,
		`caller[1].method == "main"`:                     Yes,
		`caller[1].position == 3`:                        Absent,
		`info.line == 40 and info.why == "no int"`:       Yes,
		`info.line == "40"`:                              Yes,
		`info.line < 40 or info.why == "an int"`:         No,
		`total == 7`:                                     Yes,
		`info.file == "a"`:                               Absent,
		`caller[1].method == method`:                     No,
		`method == "a" or local[2] == 7 and position==1`: No,
	} {
		c, err := Parse(text)
		require.NoError(t, err, text)
		is, why := c.Of(f.Facts())
		require.Equal(t, want, is, "%s: %s", text, why)
	}
}

// TestImpossible requires an error for a condition that is false at all exits.
func TestImpossible(t *testing.T) {
	for text, want := range map[string]string{
		`method > 3`:                           `method > 3: at "method > 3": a text can only be compared with == and !=`,
		`method == 3`:                          `method == 3: at "method == 3": method is a text, never a number`,
		`"a" < method`:                         `"a" < method: at "\"a\" < method": a text can only be compared with == and !=`,
		`resume == "reexecutes"`:               `resume == "reexecutes": at "resume == \"reexecutes\"": resume is never "reexecutes": it is reexecute, after, in-call or rethrow`,
		`position == "seventeen"`:              `position == "seventeen": at "position == \"seventeen\"": position is a number, never a text`,
		`position == 3 and position == 4`:      `position == 3 and position == 4: at "position == 4": position cannot have two values`,
		`method == "a" and (method == "b")`:    `method == "a" and (method == "b"): at "method == \"b\")": method cannot have two values`,
		`(position == 3 or position == 4) + 1`: "",
	} {
		_, err := Parse(text)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.EqualError(t, err, want)
	}
}
