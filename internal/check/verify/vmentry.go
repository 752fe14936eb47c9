package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/ptrace"
)

// entryRun is the run of the user's own interpreter from the first exit of an activation, by single instructions. The exit is at the start of a
// method, so later exits of the activation can be compared with the states of the run.
type entryRun struct {
	start  string // the place of the first exit
	record uint64
	states []vmState
	writes []vmWrite
	memory *protocol.Overlay // memory after the run
	why    string            // the reason why later states are unknown; "" if the run reached its return
	next   int               // the first state that the next exit may have
	fault  string            // key of an earlier difference, which is the likely cause of later ones, or ""

	written, values int // number of bytes of all writes; number of frames and values of all states
}

// vmState is the state of an interpreter before an instruction.
type vmState struct {
	*protocol.Stopped
	writes int // number of writes that the run had made before the instruction
}

// vmWrite is a write to memory by an instruction of the run.
type vmWrite struct {
	state int // the state before the instruction
	addr  machine.Addr
	data  []byte
}

// These bound a run by single instructions.
const (
	maxStates = 20_000
	maxWrites = 16 << 20 // bytes
	maxValues = 2 << 20  // frames and values of all states, of about 200 bytes each
)

// errNoStep is returned for an interpreter that cannot stop between two instructions.
var errNoStep = errors.New("the interpreter cannot stop between two instructions, which --from-entry requires (doc/user/protocol.md, step)")

// placeOf returns a method and a position in it as text.
func placeOf(method string, position *int64) string {
	if position == nil {
		return method
	}
	return fmt.Sprintf("%s @ %d", method, *position)
}

// startsMethod reports whether VM frames are those of a method that so far has only its arguments. The interpreter can run from such frames without
// other state of the compiled code.
func startsMethod(vm *frame.VM) bool {
	return len(vm.Frames) == 1 && vm.Frames[0].Resume == frame.Reexecute && len(vm.Frames[0].Stack)+len(vm.Frames[0].Monitors)+len(vm.Objects) == 0
}

// entryRunOf returns the run of the user's own interpreter from the entry of the activation of a call, or nil if there is none.
func (v *verifier) entryRunOf(c *call) *entryRun {
	for _, p := range v.pending {
		if p.with != nil && p.with.run != nil && p.call == c {
			return p.with.run
		}
	}
	return nil
}

// runFromEntry runs the interpreter from the first exit of an activation to its return, and records each state.
func (v *verifier) runFromEntry(request *protocol.Resume, record uint64, t *ptrace.Target, maps []machine.Mapping) (*entryRun, *protocol.Answer, error) {
	ctx, cancel := context.WithTimeout(v.ctx, v.options.Time)
	defer cancel()
	if err := v.startChild(ctx, t); err != nil {
		return nil, nil, err
	}
	if !v.child.About.Step {
		return nil, nil, errNoStep
	}
	h := handover.Host(v.watcher.View(), maps)
	outermost := request.Frames[len(request.Frames)-1]
	run := &entryRun{start: placeOf(outermost.Method, outermost.Position), record: record, memory: h.Memory}
	h.Memory.Observe(func(addr machine.Addr, data []byte) {
		if run.written += len(data); run.written <= maxWrites {
			run.writes = append(run.writes, vmWrite{max(0, len(run.states)-1), addr, slices.Clone(data)})
		}
	})
	began := time.Now()
	r := *request
	r.Stop = &protocol.Stop{}
	var steps uint64
	var tail []string
	for {
		a, err := v.child.Resume(ctx, &r, h)
		if err != nil {
			return nil, nil, withTimeout(err)
		}
		steps += a.Steps
		if tail = append(tail, a.Tail...); len(tail) > v.options.Tail {
			tail = tail[len(tail)-v.options.Tail:]
		}
		if a.Stopped == nil {
			a.Steps, a.Tail = steps, tail
			if a.Unsupported+a.Malformed != "" {
				run.why = a.Unsupported + a.Malformed
			}
			return run, a, nil
		}
		if len(run.states) == 0 && a.Steps != 0 {
			return nil, nil, fmt.Errorf("its interpreter ran %d instructions before it stopped, not 0 (doc/user/protocol.md, stop)", a.Steps)
		}
		run.add(a.Stopped)
		limit := interpSteps(v.options.Steps)
		if steps >= limit {
			run.why = fmt.Sprintf("it has run %d instructions, the limit of --steps", steps)
			return run, &protocol.Answer{Steps: steps, Tail: tail, Unsupported: run.why}, nil
		}
		r.Frames, r.Objects, r.Returned, r.Stop = a.Stopped.Frames, a.Stopped.Objects, nil, &protocol.Stop{After: 1}
		r.Steps = limit - steps
		if run.why = run.full(); run.why == "" && time.Since(began) > v.options.Time/2 {
			run.why = "half of the time of --timeout was used for single instructions"
		}
		if run.why != "" {
			h.Memory.Observe(nil)
			r.Stop = nil
		}
	}
}

// add adds a state, in which the interpreter has stopped, to the run.
func (r *entryRun) add(s *protocol.Stopped) {
	r.states = append(r.states, vmState{s, len(r.writes)})
	for n := range s.Frames {
		f := &s.Frames[n]
		r.values += 1 + len(f.Locals) + len(f.Stack) + len(f.Monitors) + len(f.Extra)
	}
	for n := range s.Objects {
		r.values += 1 + len(s.Objects[n].Fields)
	}
}

// full returns the bound that the run has reached, or "".
func (r *entryRun) full() string {
	switch {
	case len(r.states) >= maxStates:
		return fmt.Sprintf("only the first %d instructions of a run are compared", maxStates)
	case r.values >= maxValues:
		return fmt.Sprintf("only the first %d values of a run's states are compared", maxValues)
	case r.written > maxWrites:
		return fmt.Sprintf("only the first %d MiB that a run writes are compared", maxWrites>>20)
	}
	return ""
}

// until returns the writes before a state. If state is the number of states, it returns all writes.
func (r *entryRun) until(state int) []vmWrite {
	if state == len(r.states) {
		return r.writes
	}
	return r.writes[:r.states[state].writes]
}

// memoryAt returns the run's memory before the instruction of a state.
func (r *entryRun) memoryAt(state int) *protocol.Overlay {
	o := r.memory.WithoutWrites()
	for _, w := range r.until(state) {
		_ = o.Write(w.data, w.addr) // no error, because the run has already made this write
	}
	return o
}

// at returns the place of a state's instruction, with the text of the instruction.
func (r *entryRun) at(state int) string {
	f := &r.states[state].Frames[0]
	text := placeOf(f.Method, f.Position)
	if f.Text != "" {
		text += " (" + f.Text + ")"
	}
	return text
}
