//go:build !amd64 && !arm64

package guard

// hasTables says that this architecture has what the guard needs.
const hasTables = false

// Of other architectures no process can be controlled; those that talk to the guard are built nevertheless.
type (
	General struct{}
	Code    [1]byte
)

// Trap has no meaning here.
var Trap Code

// HardwareBreakpoints is how many there are.
const HardwareBreakpoints = 0
