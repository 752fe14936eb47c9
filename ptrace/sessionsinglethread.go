package ptrace

import (
	"context"
	"fmt"
	"time"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/tracer"
)

// SingleThreadOptions limit how far a thread runs alone.
type SingleThreadOptions struct {
	// Returns lists the returns of functions at which the thread stops.
	Returns []Return
	// Hits makes the thread also stop at counted breakpoints; otherwise it passes them. A breakpoint at which the run starts does not stop it if an
	// event or an earlier run has stopped the thread there.
	Hits bool
	// Pass lists counted breakpoints that the thread passes even with Hits.
	Pass []machine.Addr
	// Loads makes the thread stop at uncounted breakpoints, at which code is registered or loaded, so that the run can be resumed. Without Loads the
	// run ends there.
	Loads bool
	// Fatal makes the thread stop before an instruction of its own ends the process by a signal without a handler. The process ends when the thread
	// resumes.
	Fatal bool
	// Inside is the code that is single-stepped: ranges in ascending order. Calls to other code run at full speed until they return.
	Inside []machine.Range
	// Entries lists functions. The thread stops before the first instruction of one if code in Inside calls it, directly or through stubs.
	Entries []machine.Addr
	Steps   uint64        // maximum number of instructions
	Time    time.Duration // approximate maximum time
	Tail    int           // number of last instructions to store; at most 65536
}

// Return is the return address of a function, with its canonical frame address. The function has returned when the thread is at Addr and its stack
// pointer is CFA, or at most Pops bytes above it, because a function may pop arguments. Other stack pointers belong to other activations, for example
// of coroutines, whose stacks may be anywhere.
type Return struct {
	Addr, CFA machine.Addr
	Pops      uint64
}

// SingleThreadRun is the result of running a thread alone.
type SingleThreadRun struct {
	// Stopped is the reason why the run ended before the thread reached a return, breakpoint or entry, or "".
	Stopped string
	Late    bool         // the time limit was the reason for Stopped, so the run can be resumed
	Return  int          // index in Returns of the return that it reached, or -1
	Hit     machine.Addr // breakpoint that it reached, or 0
	Load    bool         // Hit is an uncounted breakpoint
	Entered machine.Addr // entry that it reached, or 0
	Back    Return       // the return of the function at Entered
	Passed  uint64       // number of counted breakpoints that it passed
	Signal  int          // first signal that its own instructions raised, or 0
	// Handling reports whether a handler of such a signal has begun and may not have returned.
	Handling bool
	Fatal    int          // signal that would end the process, if the thread stopped before it, or 0
	Fault    machine.Addr // address that the instruction which raised Fatal accessed, or 0 if the kernel does not report it
	Steps    uint64
	Outside  time.Duration // time in code outside of [SingleThreadOptions].Inside
	// Tail holds the addresses of the last instructions, oldest first.
	Tail []machine.Addr
	// Calls holds the addresses outside of [SingleThreadOptions].Inside to which the thread went, each once, in order.
	Calls []machine.Addr
	// Thread has all registers at the current stop.
	Thread machine.Thread
}

// RunSingleThread runs one thread while all others are stopped, until a function returns or the thread reaches a breakpoint. Afterwards all threads
// are stopped again. Signals to the thread are postponed, except those that its own instructions raise. If ctx is done, RunSingleThread returns its
// cause, and only [Session.Detach] may be called after that.
func (s *Session) RunSingleThread(ctx context.Context, tid int, o SingleThreadOptions) (*SingleThreadRun, error) {
	r := tracer.Request{Op: tracer.Alone, TID: tid, Alone: tracer.SingleThreadOptions{Hits: o.Hits, Loads: o.Loads, Fatal: o.Fatal, Steps: o.Steps, Time: o.Time, Tail: o.Tail}}
	for _, to := range o.Returns {
		r.Alone.Returns = append(r.Alone.Returns, tracer.Return{Addr: uint64(to.Addr), CFA: uint64(to.CFA), Pops: to.Pops})
	}
	for _, in := range o.Inside {
		r.Alone.Inside = append(r.Alone.Inside, tracer.Range{Start: uint64(in.Start), End: uint64(in.End)})
	}
	for _, at := range o.Entries {
		r.Alone.Entries = append(r.Alone.Entries, uint64(at))
	}
	for _, at := range o.Pass {
		r.Alone.Pass = append(r.Alone.Pass, uint64(at))
	}
	reply, err := s.driver.DoUntil(ctx, r)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, s.explain(fmt.Sprintf("cannot run thread %d alone", tid), err)
	}
	run := reply.Alone
	return &SingleThreadRun{Stopped: run.Stopped, Late: run.Late, Return: run.Return, Hit: machine.Addr(run.Hit), Load: run.Load, Entered: machine.Addr(run.Entered),
		Back: Return{Addr: machine.Addr(run.Back.Addr), CFA: machine.Addr(run.Back.CFA)}, Passed: run.Passed, Signal: run.Signal, Handling: run.Handling, Fatal: run.Fatal, Fault: machine.Addr(run.Fault), Steps: run.Steps, Outside: run.Outside,
		Tail: addresses(run.Tail), Calls: addresses(run.Calls), Thread: s.thread(&run.Thread, true)}, nil
}

func addresses(list []uint64) []machine.Addr {
	out := make([]machine.Addr, len(list))
	for i, a := range list {
		out[i] = machine.Addr(a)
	}
	return out
}

// KernelArea returns the memory of a stopped thread in which the kernel records the thread's processor (rseq(2)). The kernel may change it whenever
// the thread resumes. The range is empty if the thread has not registered such an area.
func (s *Session) KernelArea(tid int) (machine.Range, error) {
	reply, err := s.driver.Do(tracer.Request{Op: tracer.Rseq, TID: tid})
	if err != nil {
		return machine.Range{}, s.explain("cannot read its threads", err)
	}
	return machine.Range{Start: machine.Addr(reply.Rseq.Start), End: machine.Addr(reply.Rseq.End)}, nil
}
