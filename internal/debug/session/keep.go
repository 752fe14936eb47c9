package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/commit"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/report/explain"
	"example.com/reframe/ptrace"
	"example.com/reframe/replay"
)

// Commit runs the interpreter from the exit to the return of the function, and writes the result into the process: the thread is then stopped in the
// caller. It returns the resumed stack. After an error nothing was written.
func (s *Session) Commit(ctx context.Context) (*frame.Resumed, *deopt.Stack, error) {
	if s.process == nil {
		return nil, nil, fmt.Errorf("%s cannot be written to", s.Still())
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

// Record writes the current state of the target as a core.
func (s *Session) Record(ctx context.Context, path string, o ptrace.RecordOptions) (*ptrace.RecordedCore, error) {
	v, err := s.View()
	if err != nil {
		return nil, err
	}
	t := v.Target() // the interpreter reads the same target
	t.KeepTouched()
	if len(s.config.Modules) > 0 {
		soon, cancel := context.WithTimeout(ctx, touching)
		defer cancel()
		v.Touch(soon, deopt.Limits{Steps: touched, Calls: s.config.Limits.Calls})
	}
	o.Thread = s.thread
	return t.WriteCore(ctx, path, o)
}

// A recorded core includes the memory that runs of the interpreter read. These limit the instructions of the run for each frame, and the time of all
// runs. They are the defaults of reframe record.
const (
	touched  = 1_000_000
	touching = time.Second // this bound also ends an endless loop
)

// Script returns the text of a replay script for a core of the current state. The script repeats the user's actions: it sets the same values, and
// expects the result that the interpreter computes from them.
func (s *Session) Script(ctx context.Context, o replay.First) (string, error) {
	text, err := replay.FirstScript(ctx, o)
	if err != nil || len(s.done) == 0 {
		return text, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n# As tried in the session, with changed values.\n")
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

// hereFrom returns a shell command that changes from the folder of a script to the current directory, to which the interpreter's command is relative.
// It returns "" if no path is known.
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

// Explain explains how the selected physical frame was built, or the frame at which the interpreter started, or a place in the code.
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
		case at.Physical == nil, s.run != nil && at.Number == 0: // the run may have ended
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

// Exits lists the places in the current code of the target at which breakpoints can see exits.
func (s *Session) Exits() ([]trace.Planned, error) {
	t, err := s.Target()
	if err != nil {
		return nil, err
	}
	list, err := trace.Plan(t, trace.Options{Options: s.config.Options, Warn: s.config.Warn})
	if shared := (*trace.SharedError)(nil); errors.As(err, &shared) {
		err = nil // the error matters only for setting breakpoints
	}
	return list, err
}
