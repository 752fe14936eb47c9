package verify

import (
	"time"

	"example.com/reframe/ptrace"
)

// budget holds the instructions and the time that native code may still take until the return, or until the next followed exit or entry.
type budget struct {
	steps    uint64
	time     time.Duration
	check    uint64 // steps until the next check of the stack
	interval uint64 // steps between the last two checks
}

// minTime is the time that native code still gets once its time is used up.
const minTime = time.Millisecond

// firstCheck is the number of instructions of native code before its stack is checked for the first time. Each later check comes after twice as many.
// Most activations return before the first check. With the default [Options].Steps, firstCheck is also large enough that [nativeRun.atMost] exceeds
// [interpSteps]: the exit is then not comparable if the interpreter has used up its instructions.
const firstCheck = 1 << 14

func newBudget(o *Options) *budget { return &budget{o.Steps, o.Time, firstCheck, firstCheck} }

// next returns the number of instructions until the next check of the stack. If unchecked is set, it returns the number of all remaining
// instructions.
func (b *budget) next(unchecked bool) uint64 {
	if unchecked {
		return b.steps
	}
	return min(b.steps, b.check)
}

// spend subtracts a run from the budget. It reports whether to check the stack now: when the next check is due, and when all steps are used up.
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
