package debug_test

import (
	"os"
	"testing"

	"github.com/google/go-dap"
	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestDAPVirtualMachinePositions requires that the process stops at a function breakpoint on a position in a method of a virtual machine, and at a
// breakpoint on a source line that the layout's info gives.
func TestDAPVirtualMachinePositions(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	vm, _, _ := clitest.TinyVM(t)
	meter := livetest.Testdata(t, "..", "examples", "tinyvm", "meter.tvm")
	simple, err := os.ReadFile(livetest.Testdata(t, "..", "internal", "vm", "vmlayout", "layouts", "simple.star"))
	require.NoError(t, err)
	info := "\ndef info(method, position):\n    return {\"source\": \"meter.tvm\", \"line\": str(position + 40)}\n"
	for name, c := range map[string]struct {
		request string
		places  map[string]any
		reason  string
	}{
		"bytecode": {"setFunctionBreakpoints", map[string]any{"breakpoints": []map[string]any{{"name": "Meter.reading @ 4"}}}, "function breakpoint"},
		"line":     {"setBreakpoints", map[string]any{"source": map[string]any{"path": "/src/meter.tvm"}, "breakpoints": []map[string]any{{"line": 44}}}, "breakpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			e := edits(t)
			e.begin("launch", map[string]any{"program": vm, "args": []string{meter}, "layout": clitest.TempFile(t, "vm.star", string(simple)+info)})
			if name == "line" {
				set := ask[*dap.SetBreakpointsResponse](e, c.request, c.places).Body.Breakpoints
				require.True(t, set[0].Verified, set[0].Message)
			} else {
				set := ask[*dap.SetFunctionBreakpointsResponse](e, c.request, c.places).Body.Breakpoints
				require.True(t, set[0].Verified, set[0].Message)
			}
			ask[*dap.ConfigurationDoneResponse](e, "configurationDone", nil)
			at := e.stopped(c.reason)
			require.NotEmpty(t, lineOf(t, e.stack(at.ThreadId), "Meter.reading @4").Name)
			ask[*dap.TerminateResponse](e, "terminate", nil)
			event[*dap.TerminatedEvent](e)
			e.disconnect()
		})
	}
}
