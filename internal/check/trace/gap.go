package trace

import (
	"fmt"
	"time"
)

// Gap is a time in which the process ran without breakpoints, because this process was stopped or its output was not read. How many exits are missing is
// not known.
type Gap struct {
	After, Time time.Duration // since the trace began, and how long
}

// Seconds spells how long after the beginning of the trace it began.
func (g Gap) Seconds() string { return seconds(g.After) }

// String describes it.
func (g Gap) String() string {
	return fmt.Sprintf("exits are missing: reframe was stopped, or its output was not read, and the process ran without breakpoints for %.3f s", g.Time.Seconds())
}

// Gaps returns for how long the process ran without breakpoints, because this process was stopped or its output was not read.
func (w *Watcher) Gaps() time.Duration { return w.tracer.missing }
