package verify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine"
)

// TestKeyOfFailure requires that failures of a record are equal only if the same side failed in the same way, at any address.
func TestKeyOfFailure(t *testing.T) {
	key := func(interpreter, native string) string {
		v := &Verified{Exit: &trace.Exited{Frame: &deopt.Frame{Frame: frame.Frame{Function: "f", Record: &frame.Record{ID: 3}}}}}
		v.Interpreter.Failed, v.Native.Failed = interpreter, native
		is, _ := v.key()
		return is
	}
	segv := func(at machine.Addr) string { return (&fatal{signal: 11, fault: at}).String() }
	require.Equal(t, key("", segv(16)), key("", segv(32)))
	require.NotEqual(t, key("", segv(16)), key("", (&fatal{signal: 4, fault: 16}).String()))
	require.NotEqual(t, key("", segv(16)), key("its interpreter reports malformed frames: a", ""))
	require.Equal(t, key("its interpreter reports malformed frames: a", ""), key("its interpreter reports malformed frames: b", ""))
}
