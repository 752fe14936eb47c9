//go:build !(linux && amd64)

package tracer

// DebugFires returns false: the tracer uses no debug registers on this platform.
func DebugFires() bool { return false }
