package trace

import (
	"fmt"
	"time"
)

// Gap is a time in which the traced process ran without breakpoints, because reframe was stopped or its output was not read. The number of missing
// exits is unknown.
type Gap struct {
	After, Time time.Duration // start, since the trace began, and duration
}

// Seconds formats the start of the gap, in seconds since the trace began.
func (g Gap) Seconds() string { return seconds(g.After) }

// String describes the gap.
func (g Gap) String() string {
	return fmt.Sprintf("exits are missing: reframe was stopped, or its output was not read, and the process ran without breakpoints for %.3f s", g.Time.Seconds())
}

// Gaps returns the total time for which the traced process ran without breakpoints, because reframe was stopped or its output was not read.
func (w *Watcher) Gaps() time.Duration { return w.tracer.missing }
