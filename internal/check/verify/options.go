package verify

import (
	"io"
	"time"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/internal/vm/protocol"
)

// Options select the exits that are verified and set their bounds. Thread of [deopt.Options] excludes the exits of all other threads.
type Options struct {
	deopt.Options
	trace.ExitFilter
	At          []*names.Pattern // as in [trace.Options]
	Skip, Limit uint64           // numbers of exits that are skipped first, and that are verified; 0: no limit
	Every       uint64           // verify only every n-th exit; 0 and 1: all
	// Steps bounds the instructions of the interpreter and of the native code, for each exit; 0: 1,000,000.
	Steps uint64
	Time  time.Duration // bounds the time of the native code for one exit; 0: 10 s
	// Memory bounds, in bytes, the memory of the process that is copied to find the stores of native code; 0: 1 GiB.
	Memory uint64
	Tail   int    // number of last instructions that are reported for a difference; 0: 20
	Keep   string // the directory for a core of each exit with a difference; "": none
	// Picture copies [Verified.Before] even with With, which does not need it.
	Picture bool
	Wait    bool // as in [trace.Options]
	// FromEntry also compares each exit with a run of its function's baseline from the entry. The baseline is the function in which the layouts
	// resume, the function named Baseline in the modules, or the function's own IR. EntriesOf are functions whose activations are verified from the
	// entry, instead of exits.
	FromEntry bool
	// ByLayout compares exits whose resume point a layout describes with a run from the entry, if FromEntry is not set. If that is impossible, the
	// summary counts the reason ([Summary].ExitOnly).
	ByLayout  bool
	Baseline  string
	EntriesOf []*names.Pattern
	// With is the command of the user's own interpreter, which continues from each exit's VM frames instead of the reference interpreter; "": none.
	// Its standard error goes to Errors. It runs in WithDir ("": the current directory) with the environment WithEnv (nil: that of this process).
	// Describe is as in [trace.Options].
	With    string
	WithDir string
	WithEnv []string
	Errors  io.Writer
	// Answered is called with the answer of With's interpreter and its memory, while the process is still stopped at the exit; nil: no call. Its
	// error ends the verification.
	Answered func(*trace.Exited, *protocol.Answer, *protocol.Overlay) error
	Describe described.Ask
	// For ends the verification after this time, even during an exit; 0: no limit.
	For  time.Duration
	Warn func(string)
}

func (o *Options) setDefaults() {
	if o.Steps == 0 {
		o.Steps = 1e6
	}
	if o.Time == 0 {
		o.Time = 10 * time.Second
	}
	if o.Tail == 0 {
		o.Tail = 20
	}
	o.AtReturn, o.AtPatchpointReturn = true, o.With != ""
}
