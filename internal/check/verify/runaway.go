package verify

import (
	"fmt"
	"slices"
	"time"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// stretch bounds what native code may still run until the return, or until the next followed exit or entry.
type stretch struct {
	steps uint64
	time  time.Duration
	look  uint64 // steps until the next check of the stack
	slice uint64 // steps between the last two checks
}

// least is the time that native code still gets once its time is used up.
const least = time.Millisecond

// firstLook is the number of instructions before the stack is checked for the first time; each later check comes after twice as many. Most exits
// return before the first. At the default [Options].Steps it is also large enough that a run of the interpreter which used up [interpSteps] ends
// without a comparison ([nativeRun.atMost]).
const firstLook = 1 << 14

func newStretch(o *Options) *stretch { return &stretch{o.Steps, o.Time, firstLook, firstLook} }

// next returns the number of instructions until the next check. The owner of a [Beside] checks itself.
func (s *stretch) next(aside bool) uint64 {
	if aside {
		return s.steps
	}
	return min(s.steps, s.look)
}

// took counts a run, and reports whether the stack is to be checked now: at its turn, and once all steps are used up.
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

// returns identifies the call of a frame by its return address and CFA.
type returns struct{ to, cfa machine.Addr }

// maxNestedCalls bounds the nested calls that are examined. It exceeds what the interpreter may nest (50,000).
const maxNestedCalls = 1 << 16

// nested returns the nested calls of a stopped thread, innermost first, as far as the frames are certain.
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

// sparedLevels is the number of calls that native code may nest beyond the interpreter, which implements recursive functions of the C library itself.
// qsort(3), which halves its array, nests 64 calls at most.
const sparedLevels = 64

// manyLevels is the number of nested calls from which an interpreter that reached a bound counts as recursing without end. Otherwise it runs a loop,
// and native code may reach the next hit of the record.
const manyLevels = 1024

// endRunaway checks native code that has run for long. It concludes all pending predictions if native code recurses without end, and if none can be
// compared any more, as all interpreters recursed to a bound.
func (v *verifier) endRunaway(run *ptrace.AloneRun) (done bool, err error) {
	if run.Thread.ID == 0 || run.Thread.Registers == nil || run.Fatal != 0 || run.Return >= 0 {
		return false, nil
	}
	vain := true
	for _, p := range v.pending {
		vain = vain && p.interp.atLimit() && p.interp.machine.Deepest() >= manyLevels && p.out.Interpreter.Steps < p.native.atMost() && (p.entry == nil || v.options.EntriesOf != nil)
	}
	away, found := map[*prediction]string{}, false
	if !vain && v.mayRunAway(run.Thread.Registers) {
		nested := v.nested(run.Thread.Registers)
		for _, p := range v.pending {
			away[p] = v.comparison(p).runaway(nested)
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
		p.out.Native.Steps = p.native.steps
		switch {
		case away[p] != "":
			v.comparison(p).differs(away[p])
		case p.interp.incomparable != "":
			p.out.notComparable(p.interp.incomparable)
		case v.comparison(p).atNextHit():
		case p.interp.atLimit():
			p.out.notComparable("the interpreter does not get to the return: " + p.interp.failed.Error())
		default:
			p.out.notComparable("native code did not come to the return: its calls nest without end")
		}
	}
	return true, v.report(pending)
}

// mayRunAway reports whether the stack is deep enough for unlimited recursion: each call takes at least a word.
func (v *verifier) mayRunAway(registers *machine.Registers) bool {
	arch := registers.Arch()
	sp, err := registers.Addr(arch.SP)
	return err == nil && slices.ContainsFunc(v.pending, func(p *prediction) bool {
		return p.interp.pending == nil && p.interp.machine != nil && sp < p.call.to.CFA && uint64(p.call.to.CFA-sp) > uint64(arch.Pointer*(p.interp.machine.Deepest()+sparedLevels))
	})
}

// runaway returns the evidence that native code recurses without end where the interpreter ended, or "". Each nested call of the module's native code
// is a nested call of its IR: compilers remove calls by inlining and tail calls, and add none. So one place cannot have called more often than the
// interpreter nests calls. This holds only for the function's own IR: another baseline may loop instead.
func (c *comparison) runaway(nested []returns) string {
	if c.interp.pending != nil || c.interp.incomparable != "" || c.with != nil || c.interp.atLimit() || c.origin.fn != c.origin.native {
		return ""
	}
	end := slices.IndexFunc(nested, func(r returns) bool { return r.to == c.call.to.Addr && r.cfa == c.call.to.CFA })
	deepest := c.interp.machine.Deepest()
	if end <= deepest+sparedLevels { // also if the activation was not found
		return ""
	}
	code, counts := c.v.watcher.Code(), map[machine.Addr]int{}
	for _, r := range nested[:end] {
		if counts[r.to]++; counts[r.to] > deepest+sparedLevels && slices.ContainsFunc(code, func(c machine.Range) bool { return c.Contains(r.to - 1) }) {
			return fmt.Sprintf("its calls nest without end: more than %d return to %v, and the interpreter nests %d at most", deepest+sparedLevels, r.to, deepest)
		}
	}
	return ""
}
