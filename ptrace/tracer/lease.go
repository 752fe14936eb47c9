package tracer

import (
	"sync/atomic"
	"unsafe"
)

// lease counts how often the tracer has resumed the target without breakpoints. The count is in memory that the client and the tracer share, and the
// tracer increments it before any thread resumes. If a client reads memory of a stopped target and then finds the count unchanged, the target was
// stopped during the read.
type lease struct{ memory []byte }

func (l *lease) word() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(l.memory)))
}

// count returns the count, or 0 after close.
func (l *lease) count() uint32 {
	if l.memory == nil { // closed
		return 0
	}
	return l.word().Load()
}

// revoke increments the count.
func (l *lease) revoke() { l.word().Add(1) }
