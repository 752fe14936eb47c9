package tracer

import (
	"sync/atomic"
	"unsafe"
)

// lease counts, in memory that the client and the tracer share, how often the tracer has let the target run. The tracer counts before any thread
// resumes. So a client that reads memory of a stopped target, and then finds the count unchanged, knows that the target was stopped while it read.
type lease struct{ memory []byte }

func (l *lease) word() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(l.memory)))
}

// count returns the count.
func (l *lease) count() uint32 {
	if l.memory == nil { // closed
		return 0
	}
	return l.word().Load()
}

// revoke counts once more.
func (l *lease) revoke() { l.word().Add(1) }
