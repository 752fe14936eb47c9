//go:build !(linux && amd64)

package tracer

// DebugFires reports whether breakpoints in debug registers are hit: there are none that are used.
func DebugFires() bool { return false }
