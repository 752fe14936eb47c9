package text

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
)

// TestSlotsPrintable requires that a value that is text of the target cannot control the terminal.
func TestSlotsPrintable(t *testing.T) {
	slot := frame.Slot{Name: "info.file", Value: "a\x1b[2Jb", Status: frame.OK}
	plain, painted := content(Style{}, &slot)
	require.NotContains(t, plain+painted, "\x1b")
	require.Contains(t, plain, "[2Jb")

	var line bytes.Buffer
	w := &exitPrinter{line: &line}
	w.slot(&slot)
	require.NotContains(t, line.String(), "\x1b")
	require.Contains(t, line.String(), "info.file=a")
}
