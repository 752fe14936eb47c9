//go:build !(linux && amd64)

package tracer

// DebugFires returns false, because the tracer does not use debug registers on this platform.
func DebugFires() bool { return false }
