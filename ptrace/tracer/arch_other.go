//go:build !amd64 && !arm64

package tracer

// hasTables reports that this architecture has what the tracer needs.
const hasTables = false

// On other architectures no process can be controlled; the users of the tracer are built nevertheless.
type (
	General struct{}
	Code    [1]byte
)

// Trap has no meaning here.
var Trap Code

// HardwareBreakpoints is the number of breakpoints that the processor holds for a thread.
const HardwareBreakpoints = 0
