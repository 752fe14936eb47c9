//go:build !amd64

package ptrace

// zmmOffset says that this processor has no such registers.
func zmmOffset() int { return 0 }
