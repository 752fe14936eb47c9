package verify

import (
	"cmp"
	"time"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// nativeRun records the instructions, signals and calls of native code since the start of a prediction.
type nativeRun struct {
	steps      uint64         // instructions that were single-stepped
	outside    time.Duration  // time spent in outside code: code that no given module contains
	tail       []machine.Addr // its last instructions, oldest first
	signal     int            // the first signal that its instructions raised, or 0
	handling   bool           // the handler of such a signal is not known to have returned
	ranOutside bool           // native code called outside code, or may have called it while it was not single-stepped
	called     []machine.Addr // the addresses of outside code that native code called, each once
	seen       map[machine.Addr]bool
}

// add records a run. tail is the number of last instructions to keep.
func (n *nativeRun) add(run *ptrace.SingleThreadRun, tail int) {
	n.steps += run.Steps
	n.outside += run.Outside
	n.signal, n.handling = cmp.Or(n.signal, run.Signal), run.Handling
	n.tail = append(n.tail, run.Tail...)
	n.tail = n.tail[max(0, len(n.tail)-tail):]
}

// addCalls records calls of outside code.
func (n *nativeRun) addCalls(calls []machine.Addr) {
	if n.seen == nil {
		n.seen = map[machine.Addr]bool{}
	}
	n.ranOutside = n.ranOutside || len(calls) > 0
	for _, at := range calls {
		if !n.seen[at] {
			n.seen[at] = true
			n.called = append(n.called, at)
		}
	}
}

// raisedReason returns the reason why native code that raised a signal cannot be compared, or "". The handler has unknown effects, such as making
// memory accessible, or recording the memory that was stored to.
func (n *nativeRun) raisedReason() string {
	if n.signal == 0 {
		return ""
	}
	return "native code raised " + ptrace.SignalName(n.signal)
}

// atMost returns an upper bound for the work of native code, in instructions of the interpreter. It counts 1000 for each single-stepped instruction
// (some fill memory). For outside code, which ran at full speed, it counts the instructions that a processor can run in that time.
func (n *nativeRun) atMost() uint64 {
	const each, eachNanosecond = 1000, 50
	return each*n.steps + eachNanosecond*uint64(n.outside)
}

// mayLack reports whether correct native code may not be seen to make a call that the interpreter makes: the compiler may have omitted the call, or
// native code may have made it while it was not single-stepped.
func (n *nativeRun) mayLack(c *interp.Invocation) bool { return n.ranOutside || mayBeOmitted(c) }
