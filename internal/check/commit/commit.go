package commit

import (
	"context"
	"errors"
	"fmt"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// Commit holds the changes after which a process continues in the caller as if the native functions had returned the interpreter's results. [Prepare]
// makes a Commit, and [Commit.Write] applies it; the process is unchanged until then.
type Commit struct {
	report    *frame.Resumed
	session   *ptrace.Session
	tid       int
	memory    []ptrace.Change
	registers map[machine.DWARFReg][]byte
}

// Prepare runs as [deopt.View.Run] does, over a process under control, and computes the changes of a commit. Committed in the report lists them too.
// The process must stay stopped from before the view was made until [Commit.Write].
//
// Prepare returns an error if a commit is not possible: a frame was not found by CFI, the run has effects outside of the process's memory, a value is
// unknown, or the place of the result is unknown. It takes the callee-saved registers from CFI, assuming that code preserves only the registers that
// its calling convention requires (with llc's -enable-ipra it preserves more). It does not write the errno of a function of <math.h>.
func Prepare(ctx context.Context, session *ptrace.Session, s *deopt.Stack, l deopt.Limits) (*frame.Resumed, *Commit, error) {
	to, err := begin(session, s.Thread, s.Frames)
	if err != nil {
		return nil, nil, err
	}
	outer := s.Frames[len(s.Frames)-1]
	if f := outer.To(); f == nil || !deopt.SameType(to.native.Sig.Elem, f.Sig.Elem) {
		return nil, nil, fmt.Errorf("the caller of %s expects a value of type %v, but the function that resumes returns another type", outer.Title(), to.native.Sig.Elem)
	}
	report, run, changes, err := runOnce(ctx, s, l, 0, to)
	if err != nil {
		return report, nil, err
	}
	if err := checkRepeatable(ctx, s, l, to, run, changes); err != nil {
		return report, nil, err
	}
	return to.commit(session, s.Thread, report, run.Result.Value, changes)
}

// begin returns the state in which the thread will continue. It is called before the interpreter runs, and returns an error if no commit is possible.
func begin(session *ptrace.Session, t *deopt.Thread, stack []*deopt.Frame) (*continuation, error) {
	to, err := continuationOf(t, stack)
	if err != nil {
		return nil, err
	}
	switch shadow, err := session.ShadowStack(t.ID); {
	case err != nil:
		return nil, fmt.Errorf("cannot determine whether the process has a shadow stack: %w", err)
	case shadow:
		return nil, errors.New("the process has a shadow stack: the return addresses of the discarded frames cannot be removed from it")
	}
	to.maps, err = stack[0].View().Target().Mappings()
	return to, err
}

// commit makes a Commit from an interpreter's result and its changes to memory. The report lists the same changes.
func (c *continuation) commit(session *ptrace.Session, t *deopt.Thread, report *frame.Resumed, result interp.Value, changes []memoryChange) (*frame.Resumed, *Commit, error) {
	parts, err := placeResult(result, c)
	if err != nil {
		return report, nil, err
	}
	made := &Commit{report: report, session: session, tid: t.ID, registers: c.registers}
	out := &frame.Committed{Left: c.left, Continues: c.place(), Result: parts, Memory: []frame.CommittedMemory{}}
	for _, change := range changes {
		made.memory = append(made.memory, ptrace.Change{Addr: change.addr, Data: change.new})
		out.Bytes += len(change.new)
		out.Memory = append(out.Memory, frame.CommittedMemory{Address: frame.HexOf(change.addr), Size: len(change.new),
			Old: fmt.Sprintf("%x", change.old), New: fmt.Sprintf("%x", change.new)})
	}
	if out.Registers, err = c.report(t.Frames[0].Physical().Registers); err != nil {
		return report, nil, err
	}
	report.Committed = out
	return report, made, nil
}

// runOnce runs the interpreter on the stack once, with its own memory moved by shift, and returns the memory changes of a commit.
func runOnce(ctx context.Context, s *deopt.Stack, l deopt.Limits, shift uint64, to *continuation) (*frame.Resumed, *deopt.Ran, []memoryChange, error) {
	report, run, err := s.Run(ctx, l, shift)
	if err != nil {
		return report, nil, nil, err
	}
	if err := onlyInside(run); err != nil {
		return report, nil, nil, err
	}
	list, err := changed(run.Machine.Touched(), s.Frames[0].View().Target(), to.maps, to.dead)
	return report, run, list, err
}

// otherBase is the offset of the interpreter's own memory in a second run. All of its bytes are non-zero, because a program may keep only a part of
// an address.
const otherBase = 0x2b_1a6f_5e30

// checkRepeatable repeats the run of the stack, with the interpreter's own memory at other addresses, and returns an error if results differ. Such
// results depend on the addresses of that memory, which does not exist in native code.
func checkRepeatable(ctx context.Context, s *deopt.Stack, l deopt.Limits, to *continuation, first *deopt.Ran, changes []memoryChange) error {
	_, second, others, err := runOnce(ctx, s, l, otherBase, to)
	if err != nil {
		return frame.Errorf("with the interpreter's own memory elsewhere: %w", err)
	}
	if at, differ := differing(changes, others); differ {
		return frame.Errorf("the value that the interpreter stored at %v depends on the addresses of its own memory", at)
	}
	if !first.Result.Value.Equal(second.Result.Value) {
		return fmt.Errorf("the result depends on the addresses of the interpreter's own memory: %s, or %s", first.Result.Value.Format(), second.Result.Value.Format())
	}
	return nil
}

// Write applies all changes of the commit to the process, or none, and records it in the report. When the process resumes, the thread continues in
// the caller.
func (c *Commit) Write() error {
	if err := c.session.Commit(c.tid, c.memory, c.registers); err != nil {
		return err
	}
	c.report.Committed.Written = true
	return nil
}

// onlyInside returns an error if a run has effects outside of the process's memory.
func onlyInside(r *deopt.Ran) error {
	for _, c := range r.Result.Called {
		if c.Effect >= interp.EffectState {
			return fmt.Errorf("the interpreter called @%s, whose effect would be lost: only its stores to the process's memory can be written back", c.Name)
		}
	}
	return nil
}
