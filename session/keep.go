package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reframe/deopt"
	"reframe/deopt/commit"
	"reframe/deopt/explain"
	"reframe/deopt/frame"
	"reframe/deopt/machine"
	"reframe/deopt/trace"
	"reframe/ptrace"
	"reframe/replay"
)

// Commit has the interpreter resume from the exit to the return of the function, and makes the process what that came to: the thread stands in
// the caller then. The stack is what was resumed. The error says why nothing was written.
func (s *Session) Commit(ctx context.Context) (*frame.Resumed, *deopt.Stack, error) {
	if s.process == nil {
		return nil, nil, errors.New("a core cannot be written to")
	}
	s.LeaveRun()
	stack, err := s.picked()
	if err != nil {
		return nil, nil, err
	}
	stack.Result = s.result
	report, c, err := commit.Prepare(ctx, s.process, stack, s.config.Limits)
	if err == nil {
		err = c.Write()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("nothing is committed: %w", err)
	}
	s.moved()
	s.stop = Stop{Why: Committed}
	return report, stack, nil
}

// Record keeps the moment as a core.
func (s *Session) Record(ctx context.Context, path string, o ptrace.RecordOptions) (*ptrace.RecordedCore, error) {
	v, err := s.View()
	if err != nil {
		return nil, err
	}
	t := v.Target() // which the interpreter reads, too
	t.KeepTouched()
	if len(s.config.Modules) > 0 {
		soon, cancel := context.WithTimeout(ctx, touching)
		defer cancel()
		v.Touch(soon, deopt.Limits{Steps: touched, Calls: s.config.Limits.Calls})
	}
	o.Thread = s.thread
	return t.WriteCore(ctx, path, o)
}

// What the interpreter reads is in a core that is recorded: of each frame so many instructions, and for so long of all. They are those of reframe record.
const (
	touched  = 1_000_000
	touching = time.Second // of a loop that never ends as much as of one that is slow
)

// Script is the text of a replay script about a core of this moment, which does what was done here: it has the values that were set, and wants
// the result that the interpreter comes to with them.
func (s *Session) Script(ctx context.Context, o replay.First) (string, error) {
	text, err := replay.FirstScript(ctx, o)
	if err != nil || len(s.done) == 0 {
		return text, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n# As it was tried: with other values.\n")
	for _, d := range s.done {
		fmt.Fprintf(&b, "set %s %s\n", replay.Quoted(d.Slot), replay.Quoted(d.Value))
	}
	if s.vm != nil && s.child != nil {
		fmt.Fprintf(&b, "resume --with %s\n", replay.Quoted(hereFrom(o.Script)+s.child.Command))
		if a, _ := s.vm.Ended(); a != nil && a.Returned != nil && a.Threw == nil {
			fmt.Fprintf(&b, "returns %s\n", replay.Quoted(a.Returned.Said()))
		}
	} else {
		b.WriteString("resume\n")
	}
	if s.run != nil {
		if r, _ := s.run.Ended(); r != nil && r.ExitCode == nil && !r.Value.IsNone() {
			fmt.Fprintf(&b, "returns %s\n", replay.Quoted(r.Value.Format()))
		}
	}
	if head, files, ok := strings.Cut(text, "\n-- "); ok {
		return head + "\n" + b.String() + "\n-- " + files, nil
	}
	return text + b.String(), nil
}

// hereFrom has a shell go to the current directory, in which the command of an interpreter was given, from where a script lies; "" where nobody knows a way.
func hereFrom(script string) string {
	here, err := os.Getwd()
	if err != nil {
		return ""
	}
	at, err := filepath.Abs(filepath.Dir(script))
	if err != nil {
		return ""
	}
	way, err := filepath.Rel(at, here)
	if err != nil {
		return ""
	}
	return `cd "$SCRIPTDIR/` + way + `" && `
}

// Explain says how the physical frame came to be that is looked at, where the interpreter goes on the one that it began with, or what is known of a place in the code.
func (s *Session) Explain(address *machine.Addr) (*explain.Explanation, error) {
	v, err := s.View()
	if err != nil {
		return nil, err
	}
	q := explain.Question{Address: address, Frame: -1}
	if address == nil {
		at, err := s.Level()
		switch {
		case err != nil:
			return nil, err
		case s.vm != nil && (at.Physical == nil || at.Number == 0):
			q.Frame = s.vm.taken().Index
		case at.Physical == nil, s.run != nil && at.Number == 0: // where its run has ended, too
			t, err := s.Thread()
			if err != nil {
				return nil, err
			}
			q.Frame = max(0, s.place(t.Frames, s.stack.Frames[0]))
		default:
			q.Frame = at.Physical.Index
		}
		v = s.threadOnly(v)
	}
	return explain.Explain(v, q)
}

// Disassembly decodes the code around an address, as [explain.Code] does.
func (s *Session) Disassembly(at machine.Addr, before, behind int) (*explain.Disassembly, error) {
	v, err := s.View()
	if err != nil {
		return nil, err
	}
	return explain.Code(v, at, before, behind), nil
}

// Exits are the places in the code of the target, as it is now, at which exits can be seen.
func (s *Session) Exits() ([]trace.Planned, error) {
	t, err := s.Target()
	if err != nil {
		return nil, err
	}
	list, err := trace.Plan(t, trace.Options{Options: s.config.Options, Warn: s.config.Warn})
	if shared := (*trace.SharedError)(nil); errors.As(err, &shared) {
		err = nil // it is about breakpoints
	}
	return list, err
}
