//go:build !amd64 && !arm64

package tracer

// hasTables says that this architecture has what the tracer needs.
const hasTables = false

// Of other architectures no process can be controlled; those that talk to the tracer are built nevertheless.
type (
	General struct{}
	Code    [1]byte
)

// Trap has no meaning here.
var Trap Code

// HardwareBreakpoints is how many there are.
const HardwareBreakpoints = 0
