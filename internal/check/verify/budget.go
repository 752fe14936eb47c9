package verify

import (
	"time"

	"example.com/reframe/ptrace"
)

// budget bounds the instructions and the time that native code may still take until the return, or until the next followed exit or entry.
type budget struct {
	steps    uint64
	time     time.Duration
	check    uint64 // steps until the next check of the stack
	interval uint64 // steps between the last two checks
}

// minTime is the time that native code still gets once its time is used up.
const minTime = time.Millisecond

// firstCheck is the number of instructions before the stack is checked for the first time; each later check comes after twice as many. Most exits
// return before the first. With the default [Options].Steps it is also so large that, once the interpreter has used up [interpSteps], the exit is not
// comparable ([nativeRun.atMost]).
const firstCheck = 1 << 14

func newBudget(o *Options) *budget { return &budget{o.Steps, o.Time, firstCheck, firstCheck} }

// next returns the number of instructions until the next check of the stack, or all of them.
func (b *budget) next(unchecked bool) uint64 {
	if unchecked {
		return b.steps
	}
	return min(b.steps, b.check)
}

// spend counts a run, and reports whether to check the stack now: when the next check is due, and when all steps are used up.
func (b *budget) spend(run *ptrace.SingleThreadRun, since time.Time) (check bool) {
	before := b.steps
	b.steps -= min(b.steps, run.Steps)
	b.time = max(minTime, b.time-time.Since(since))
	b.check -= min(b.check, run.Steps)
	if b.check == 0 {
		b.interval *= 2
		b.check, check = b.interval, true
	}
	return check || b.steps == 0 && before > 0
}
