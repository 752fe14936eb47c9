package verify

import (
	"fmt"
	"slices"
	"time"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// stretch bounds what native code may still run up to the return, or to the next exit or entry that is followed.
type stretch struct {
	steps uint64
	time  time.Duration
	look  uint64 // steps up to the next look at its stack
	slice uint64 // steps between the last two looks
}

// least is the remaining time once the time is up.
const least = time.Millisecond

// firstLook is the number of instructions after which the stack is looked at for the first time; each later look comes after twice as many. Most exits
// return before the first one. The number is large enough for [interpSteps] of the default [Options].Steps: an interpreter that has used these up, while
// native code runs this long, ends without a comparison ([prediction.atMost]).
const firstLook = 1 << 14

func newStretch(o *Options) *stretch { return &stretch{o.Steps, o.Time, firstLook, firstLook} }

// next returns the number of instructions up to the next look. The owner of a [Beside] looks itself.
func (s *stretch) next(aside bool) uint64 {
	if aside {
		return s.steps
	}
	return min(s.steps, s.look)
}

// took counts a run, and reports whether the stack is to be looked at: when its turn comes, and once all steps are used up.
func (s *stretch) took(run *ptrace.AloneRun, since time.Time) (look bool) {
	before := s.steps
	s.steps -= min(s.steps, run.Steps)
	s.time = max(least, s.time-time.Since(since))
	s.look -= min(s.look, run.Steps)
	if s.look == 0 {
		s.slice *= 2
		s.look, look = s.slice, true
	}
	return look || s.steps == 0 && before > 0
}

// returns is the call of a frame: where it returns to.
type returns struct{ to, cfa machine.Addr }

// maxNestedCalls bounds the calls in progress that are examined: more than the interpreter may nest (50,000).
const maxNestedCalls = 1 << 16

// nested returns the calls in progress of a stopped thread, innermost first, as far as the frames are certain.
func (v *verifier) nested(registers *machine.Registers) (list []returns) {
	u := *v.watcher.View().Unwinder()
	u.Max = maxNestedCalls
	frames := u.Walk(registers, nil).Frames
	for n := 0; n+1 < len(frames); n++ {
		if f := &frames[n]; f.NoCFA != "" || f.Guess != "" || frames[n+1].Guess != "" {
			break
		}
		list = append(list, returns{frames[n+1].PC, frames[n].CFA})
	}
	return list
}

// sparedLevels is the number of calls that native code may nest beyond the interpreter: the interpreter runs functions of the C library itself that
// are recursive in native code. qsort(3), which halves its array, nests 64 calls at most.
const sparedLevels = 64

// manyLevels is the number of nested calls at which an interpreter that has reached a bound is taken for one that recurses without end. Others run a loop,
// and native code may come to the next hit of their record.
const manyLevels = 1024

// runaway returns the evidence that native code calls itself without end where the interpreter ended, or "". Each call in progress of
// the module's native code is a call in progress of its IR: compilers remove calls by inlining and tail calls, and add none. So one place cannot
// have called more often than the interpreter nests calls. This holds only for the function's own IR: another baseline may loop instead.
func (p *prediction) runaway(v *verifier, nested []returns) string {
	if p.ask != nil || p.gone != "" || p.with != nil || p.atLimit() || p.fn != p.native() {
		return ""
	}
	end := slices.IndexFunc(nested, func(r returns) bool { return r.to == p.call.to.Addr && r.cfa == p.call.to.CFA })
	deepest := p.machine.Deepest()
	if end <= deepest+sparedLevels { // also where the activation was not found
		return ""
	}
	code, counts := v.watcher.Code(), map[machine.Addr]int{}
	for _, r := range nested[:end] {
		if counts[r.to]++; counts[r.to] > deepest+sparedLevels && slices.ContainsFunc(code, func(c machine.Range) bool { return c.Contains(r.to - 1) }) {
			return fmt.Sprintf("its calls nest without end: more than %d return to %v, and the interpreter nests %d at most", deepest+sparedLevels, r.to, deepest)
		}
	}
	return ""
}

// atLimit reports whether the interpreter was ended by a bound of its own.
func (p *prediction) atLimit() bool {
	return p.failed != nil && (p.failed.Kind == interp.KindSteps || p.failed.Kind == interp.KindDepth)
}

// endRunaway looks at native code that has run for long. It concludes all pending predictions where native code calls itself without end, and where
// it can be compared with none of them any more, as all their interpreters recurse up to a bound.
func (v *verifier) endRunaway(run *ptrace.AloneRun) (done bool, err error) {
	if run.Thread.ID == 0 || run.Thread.Registers == nil || run.Fatal != 0 || run.Return >= 0 {
		return false, nil
	}
	vain := true
	for _, p := range v.pending {
		vain = vain && p.atLimit() && p.machine.Deepest() >= manyLevels && p.out.Interpreter.Steps < p.atMost() && (p.entry == nil || v.options.EntriesOf != nil)
	}
	away, found := map[*prediction]string{}, false
	if !vain && v.mayRunAway(run.Thread.Registers) {
		nested := v.nested(run.Thread.Registers)
		for _, p := range v.pending {
			away[p] = p.runaway(v, nested)
			found = found || away[p] != ""
		}
	}
	if !vain && !found {
		return false, nil
	}
	pending := v.pending
	v.pending, v.crossings, v.now = nil, nil, nil
	for _, p := range pending {
		p.finish()
		p.out.Native.Steps = p.steps
		switch {
		case away[p] != "":
			p.differs(v, away[p])
		case p.gone != "":
			p.out.notComparable(p.gone)
		case p.untilNext(v):
		case p.atLimit():
			p.out.notComparable("the interpreter does not get to the return: " + p.failed.Error())
		default:
			p.out.notComparable("native code did not come to the return: its calls nest without end")
		}
	}
	return true, v.report(pending)
}

// mayRunAway reports whether the stack is deep enough for a recursion without end: each call takes at least a word of it.
func (v *verifier) mayRunAway(registers *machine.Registers) bool {
	arch := registers.Arch()
	sp, err := registers.Addr(arch.SP)
	return err == nil && slices.ContainsFunc(v.pending, func(p *prediction) bool {
		return p.ask == nil && p.machine != nil && sp < p.call.to.CFA && uint64(p.call.to.CFA-sp) > uint64(arch.Pointer*(p.machine.Deepest()+sparedLevels))
	})
}
