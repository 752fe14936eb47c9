package ptrace

import (
	"context"
	"fmt"
	"time"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/tracer"
)

// AloneOptions bound how far a thread runs alone.
type AloneOptions struct {
	// Returns lists places to stop at: the return addresses of functions.
	Returns []Return
	// Hits makes it stop at counted breakpoints too, which it otherwise passes. The place where it starts is not one, if it came there by an event
	// or by such a stop.
	Hits bool
	// Pass lists counted breakpoints that it passes all the same.
	Pass []machine.Addr
	// Loads makes it stop at uncounted breakpoints too, where code is registered or loaded; otherwise the run ends there.
	Loads bool
	// Fatal makes it stop before its own instructions end the process by a signal without a handler. The process ends when it resumes.
	Fatal bool
	// Inside is the code that is followed instruction by instruction: ranges in ascending order. Called code outside of them runs at full speed
	// until it returns.
	Inside []machine.Range
	// Entries are functions to stop at, before their first instruction, where code Inside calls them, by whatever stubs.
	Entries []machine.Addr
	Steps   uint64        // at most so many instructions
	Time    time.Duration // at most about so long
	Tail    int           // how many of the last instructions are kept; 65536 at most
}

// Return is the address to which a function returns, and its canonical frame address. The function has returned when the thread comes to Addr
// with the stack pointer CFA, or up to Pops bytes above, which the function may take off the stack. Other stack pointers belong to other
// activations: those of coroutines may lie anywhere.
type Return struct {
	Addr, CFA machine.Addr
	Pops      uint64
}

// AloneRun is the result of running a thread alone.
type AloneRun struct {
	// Stopped is the reason why it reached none of the places to stop at, or "".
	Stopped string
	Late    bool         // the reason is that the time was up: it can be resumed
	Return  int          // the index of the return that it reached, or -1
	Hit     machine.Addr // the breakpoint it reached, or 0
	Load    bool         // that is an uncounted one
	Entered machine.Addr // the entry that it reached, or 0, and
	Back    Return       // where that returns to
	Passed  uint64       // hits at which it did not stop
	Signal  int          // the first signal that its own instructions raised, or 0
	// Handling reports that a handler of such a signal has begun, and is not known to have returned.
	Handling bool
	Fatal    int          // the one that ends the process, where it stopped before that, or 0
	Fault    machine.Addr // what the instruction accessed that raised it, or 0 where the kernel does not say
	Steps    uint64
	Outside  time.Duration // that code outside of [AloneOptions].Inside took
	// Tail are the addresses of the last instructions, oldest first.
	Tail []machine.Addr
	// Calls are the addresses outside of [AloneOptions].Inside to which it went, each once, in order.
	Calls []machine.Addr
	// Thread has all registers, at its current stop.
	Thread machine.Thread
}

// Alone runs one thread alone from its current place, instruction by instruction, while all others are stopped, until a function returns or a
// breakpoint is reached. Afterwards all are stopped again. Signals to the thread are held back, except those that its own instructions raise. If
// ctx is done it returns its cause, and only [Session.Detach] is allowed after that.
func (s *Session) Alone(ctx context.Context, tid int, o AloneOptions) (*AloneRun, error) {
	r := tracer.Request{Op: tracer.Alone, TID: tid, Alone: tracer.AloneOptions{Hits: o.Hits, Loads: o.Loads, Fatal: o.Fatal, Steps: o.Steps, Time: o.Time, Tail: o.Tail}}
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
	reply, err := s.tracer.DoUntil(ctx, r)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, s.explain(fmt.Sprintf("cannot run thread %d alone", tid), err)
	}
	run := reply.Alone
	return &AloneRun{Stopped: run.Stopped, Late: run.Late, Return: run.Return, Hit: machine.Addr(run.Hit), Load: run.Load, Entered: machine.Addr(run.Entered),
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

// KernelArea returns the memory of a stopped thread in which the kernel records where it runs (rseq(2)): it may change whenever the thread resumes.
// It is empty if there is none.
func (s *Session) KernelArea(tid int) (machine.Range, error) {
	reply, err := s.tracer.Do(tracer.Request{Op: tracer.Rseq, TID: tid})
	if err != nil {
		return machine.Range{}, s.explain("cannot read its threads", err)
	}
	return machine.Range{Start: machine.Addr(reply.Rseq.Start), End: machine.Addr(reply.Rseq.End)}, nil
}
