//go:build !amd64 && !arm64

package tracer

// hasTables reports whether the tracer supports this architecture.
const hasTables = false

// On other architectures the tracer cannot control a process. These types exist so that packages which import this one build.
type (
	General struct{}
	Code    [1]byte
)

// Trap is not used on this architecture.
var Trap Code

// HardwareBreakpoints is the number of breakpoints that debug registers can hold for a thread.
const HardwareBreakpoints = 0
