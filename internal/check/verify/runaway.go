package verify

import (
	"errors"
	"fmt"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// nestedCall identifies the call of a frame by its return address and CFA.
type nestedCall struct{ to, cfa machine.Addr }

// maxNestedCalls bounds the nested calls that are examined. It exceeds the limit of the interpreter (50,000).
const maxNestedCalls = 1 << 16

// nested returns the nested calls of a stopped thread, innermost first, as far as the frames are certain.
func (v *verifier) nested(registers *machine.Registers) (list []nestedCall) {
	u := *v.watcher.View().Unwinder()
	u.Max = maxNestedCalls
	frames := u.Walk(registers, nil).Frames
	for n := 0; n+1 < len(frames); n++ {
		if f := &frames[n]; f.NoCFA != "" || f.Guess != "" || frames[n+1].Guess != "" {
			break
		}
		list = append(list, nestedCall{frames[n+1].PC, frames[n].CFA})
	}
	return list
}

// extraNesting is the number of calls that native code may nest beyond the interpreter. The interpreter implements recursive functions of the C
// library itself. qsort(3), which halves its array, nests 64 calls at most.
const extraNesting = 64

// deepNesting is the number of nested calls from which an interpreter that reached a bound counts as recursing without end. With fewer nested calls
// it runs a loop, and native code may reach the next hit of the record.
const deepNesting = 1024

// endRunaway checks native code that has run for long. It concludes all pending predictions if native code recurses without end, or if no prediction
// can be compared because all interpreters recursed to a bound.
func (v *verifier) endRunaway(run *ptrace.SingleThreadRun) (done bool, err error) {
	if run.Thread.ID == 0 || run.Thread.Registers == nil || run.Fatal != 0 || run.Return >= 0 {
		return false, nil
	}
	allAtLimit := true
	for _, p := range v.pending {
		allAtLimit = allAtLimit && p.interp.atLimit() && p.interp.machine.Deepest() >= deepNesting && p.out.Interpreter.Steps < p.native.atMost() && (p.entry == nil || v.options.EntriesOf != nil)
	}
	evidence, found := map[*prediction]string{}, false
	if !allAtLimit && v.mayRunAway(run.Thread.Registers) {
		nested := v.nested(run.Thread.Registers)
		for _, p := range v.pending {
			evidence[p] = v.comparison(p).runawayEvidence(nested)
			found = found || evidence[p] != ""
		}
	}
	if !allAtLimit && !found {
		return false, nil
	}
	pending := v.pending
	v.pending, v.nativeCalls, v.call = nil, nil, nil
	for _, p := range pending {
		p.finish()
		p.out.Native.Steps = p.native.steps
		switch {
		case evidence[p] != "":
			v.comparison(p).differs(evidence[p])
		case p.interp.incomparable != nil:
			p.out.notComparable(p.interp.incomparable)
		case v.comparison(p).atNextHit():
		case p.interp.atLimit():
			p.out.notComparable(frame.Errorf("the interpreter does not return: %w", p.interp.failed))
		default:
			p.out.notComparable(errors.New("native code did not return: its calls nest without end"))
		}
	}
	return true, v.reportAll(pending)
}

// mayRunAway reports whether the stack is deep enough for unlimited recursion: each call takes at least a word.
func (v *verifier) mayRunAway(registers *machine.Registers) bool {
	arch := registers.Arch()
	sp, err := registers.Addr(arch.SP)
	return err == nil && slices.ContainsFunc(v.pending, func(p *prediction) bool {
		return p.interp.pending == nil && p.interp.machine != nil && sp < p.call.to.CFA && uint64(p.call.to.CFA-sp) > uint64(arch.Pointer*(p.interp.machine.Deepest()+extraNesting))
	})
}

// runawayEvidence returns the evidence that native code recurses without end although the interpreter ended, or "". Each nested call of the module's
// native code is a nested call of its IR: compilers remove calls by inlining and tail calls, and do not add nested calls. So one call site cannot
// have more nested calls than the interpreter. This holds only for the function's own IR, because another baseline may loop instead of recursing.
func (c *comparison) runawayEvidence(nested []nestedCall) string {
	if c.interp.pending != nil || c.interp.incomparable != nil || c.with != nil || c.interp.atLimit() || c.origin.fn != c.origin.native {
		return ""
	}
	end := slices.IndexFunc(nested, func(r nestedCall) bool { return r.to == c.call.to.Addr && r.cfa == c.call.to.CFA })
	deepest := c.interp.machine.Deepest()
	if end <= deepest+extraNesting { // this includes an activation that was not found
		return ""
	}
	code, counts := c.v.watcher.Code(), map[machine.Addr]int{}
	for _, r := range nested[:end] {
		if counts[r.to]++; counts[r.to] > deepest+extraNesting && slices.ContainsFunc(code, func(c machine.Range) bool { return c.Contains(r.to - 1) }) {
			return fmt.Sprintf("its calls nest without end: more than %d return to %v, and the interpreter nests %d at most", deepest+extraNesting, r.to, deepest)
		}
	}
	return ""
}
