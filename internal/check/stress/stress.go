package stress

import (
	"context"
	"io"
	"os"
	"time"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/ptrace"
)

// Options selects the exits to deoptimize, and bounds the runs. Run ignores Thread of [deopt.Options].
type Options struct {
	deopt.Options
	trace.ExitFilter
	At          []*names.Pattern // as in [trace.Options]
	Seed        uint64
	Probability float64 // fraction of the exits that are chosen
	Only        []Exit  // if not empty, exactly these exits are chosen
	Stdin       string  // a file, opened anew by each run; "": /dev/null
	// Steps bounds the instructions of the interpreter for each exit; 0: 10,000,000.
	Steps  uint64
	Time   time.Duration // bounds each run of the command; 0: a minute
	Reruns int           // bounds the runs that narrow a difference; 0: 64
	Keep   string        // directory for a core of the exit that makes a difference; "": none
	Warn   func(string)  // receives warnings for the user; not nil
	// With is the command of the user's own interpreter, which runs the VM frames of an exit; "": the reference interpreter. Errors receives its
	// standard error.
	With   string
	Errors io.Writer
	// Describe returns [trace.Options].Describe for each run. Nil: the targets' descriptions of themselves are not read.
	Describe func(warn func(string)) described.Ask
	// Progress is called at the start of each run; nil: no call.
	Progress func(string)
}

// These are the defaults of the bounds in [Options].
const (
	DefaultSteps  = 10_000_000
	DefaultTime   = time.Minute
	DefaultReruns = 64
)

func (o *Options) setDefaults() {
	if o.Steps == 0 {
		o.Steps = DefaultSteps
	}
	if o.Time == 0 {
		o.Time = DefaultTime
	}
	if o.Reruns == 0 {
		o.Reruns = DefaultReruns
	}
	if o.Stdin == "" {
		o.Stdin = os.DevNull
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

// stresser runs one command repeatedly.
type stresser struct {
	command []string
	options Options
	report  Report
	warned  map[string]bool
	bound   uint64 // most exits of a run; 0: not known yet
}

// Run runs a command untouched and then with exits deoptimized, and compares both. The report is valid if the error is nil. When ctx is done, the
// error is its cause.
func Run(ctx context.Context, command []string, o Options) (*Report, error) {
	if err := ptrace.Controls(); err != nil {
		return nil, err
	}
	began := time.Now()
	o.setDefaults()
	s := &stresser{command: command, options: o, warned: map[string]bool{}}
	s.report = Report{Schema: Schema, Command: command, Seed: o.Seed, Probability: o.Probability, Only: o.Only, Reasons: trace.Reasons{}, Differences: []Difference{}}
	err := s.run(ctx)
	s.report.Seconds = time.Since(began).Seconds()
	if err != nil {
		return nil, err
	}
	return &s.report, nil
}

func (s *stresser) run(ctx context.Context) error {
	r := &s.report
	s.options.Progress("runs untouched")
	var err error
	if r.Untouched, err = s.untouched(ctx); err != nil {
		return err
	}
	if r.Untouched.TimedOut {
		r.undecided("it runs for longer than %v without deoptimizations: use a longer --time", s.options.Time)
		return nil
	}
	s.options.Progress("runs stressed")
	first, err := s.attempt(ctx, plan{at: func(e Exit) action {
		if s.options.chooses(e) {
			return interpret
		}
		return skip
	}, all: len(s.options.Only)})
	if err != nil {
		return err
	}
	r.Stressed, r.Exits, r.Chosen, r.Committed = &first.Outcome, first.exits, first.chosen, uint64(len(first.committed))
	r.Left, r.Reasons, r.Failed, r.Overwritten = first.chosen-r.Committed, first.reasons, first.failed, first.overwritten
	if r.Differences = differences(r.Untouched, r.Stressed); len(r.Differences) == 0 {
		r.Status, r.Differences = Same, []Difference{}
		return nil
	}
	return s.narrow(ctx, first)
}

// warn issues each warning once for all runs.
func (s *stresser) warn(text string) {
	if !s.warned[text] {
		s.warned[text] = true
		s.options.Warn(text)
	}
}
