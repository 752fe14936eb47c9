//go:build !(linux && amd64)

package tracer

// DebugFires reports whether breakpoints in debug registers are hit: this platform uses none.
func DebugFires() bool { return false }
