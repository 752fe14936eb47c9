package flags

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"example.com/reframe/deopt"
)

// frameNumber is the number of a frame as users write it: 0, 1, … from the innermost frame, or -1, -2, … from the outermost. It is stored in the form
// of [deopt.Choice].
type frameNumber struct{ to *int }

// Frame adds --frame, the number of a frame. It sets number to -1 if the flag is not given. A frame counted from the outermost one is stored as an
// offset from [deopt.Outermost].
func Frame(f *pflag.FlagSet, number *int, u Usage) {
	*number = -1
	f.VarP(frameNumber{number}, "frame", "f", u["frame"])
}

// String returns the number as it was written.
func (n frameNumber) String() string {
	if n.to == nil || *n.to == -1 {
		return "-1"
	}
	c := deopt.Choice{Frame: *n.to}
	return strconv.Itoa(c.Number())
}

// Set reads a number.
func (n frameNumber) Set(text string) error {
	v, err := strconv.ParseInt(text, 0, 32)
	if err != nil {
		return fmt.Errorf("expected the number of a frame, got %q", text)
	}
	if *n.to = int(v); v < 0 {
		*n.to = deopt.Outermost(-int(v))
	}
	return nil
}

// Type names the kind of value for help.
func (frameNumber) Type() string { return "int" }
