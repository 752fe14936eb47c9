package verify

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
)

// comparison compares both sides of a prediction: at the return of the function, at a crash of native code, or at a native call.
type comparison struct {
	*prediction
	v *verifier
}

// comparison returns a comparison of native code with the interpreter, for one prediction.
func (v *verifier) comparison(p *prediction) *comparison { return &comparison{p, v} }

// atReturn compares native code with the prediction, at the return of the function.
func (c *comparison) atReturn(regs *machine.Registers) {
	out := c.out
	out.Native.Steps = c.native.steps
	switch {
	case c.native.signal != 0:
		out.notComparable(errors.New(c.native.raisedReason()))
	case c.interp.incomparable != nil:
		out.notComparable(c.interp.incomparable)
	case c.with != nil:
		c.atReturnWith(regs)
		return
	case c.interp.pending != nil:
		c.missedCall()
	case c.interp.failed != nil:
		c.failure()
	default:
		if out.Call = c.extraCall(); out.Call != nil {
			out.Status = Different
		} else {
			c.resultAndMemory(regs)
		}
	}
	if c.withdraw(); out.Status == Different {
		c.explain()
	}
}

// failure compares a run of the interpreter that did not reach the return with native code that did.
func (c *comparison) failure() {
	out := c.out
	if c.interp.atLimit() && out.Interpreter.Steps < c.native.atMost() {
		out.notComparable(frame.Errorf("the interpreter does not return: %w", c.interp.failed))
		return
	}
	if why := patchedCode(c.v.watcher.View(), c.origin, &c.interp); why != "" {
		out.notComparable(errors.New(why))
		return
	}
	out.Status = Different
	out.Interpreter.Failed = c.interp.failed.Error()
}

// resultAndMemory compares the results of both sides, and then the memory that both sides left.
func (c *comparison) resultAndMemory(regs *machine.Registers) {
	out := c.out
	result := abi.CompareResult(c.interp.result.Value, c.origin.cc, regs, c.interp.machine.Made)
	memory := c.v.withoutShared(compareMemory(c.effects.now, c.v.watcher.View().Target(), c.interp.machine.Touched(), c.origin.dead, c.origin.below, c.native.ranOutside, c.interp.machine.Made))
	different := result.Why == "" && !result.Same || len(memory.Diffs) > 0
	if different {
		if why := c.whyDoubtful(); why != "" {
			out.notComparable(errors.New(why))
			return
		}
	}
	for _, part := range result.Parts {
		out.Result = append(out.Result, ResultPart{Path: part.Path, Register: part.Register, Type: part.Interp.Type().String(),
			Interpreter: part.Interp.Format(), Native: part.Native.Format(), Same: part.Same})
	}
	out.NativeOnly, out.Words = !c.native.ranOutside, memory.Words
	for _, d := range memory.Diffs {
		out.Memory = append(out.Memory, d.report())
	}
	switch {
	case different:
		out.Status = Different
	case result.Why != "":
		out.notComparable(frame.Errorf("the result: %w", result.Reason()))
	case memory.why != nil:
		out.notComparable(memoryWhy(memory.why))
	default:
		out.Status = Same
	}
}

// differs reports a difference: native code does not return, for the reason failed, but the interpreter ended in another way.
func (c *comparison) differs(failed string) {
	out := c.out
	if c.with == nil {
		if why := c.whyDoubtful(); why != "" {
			out.notComparable(errors.New(why))
			return
		}
	}
	out.Status, out.Native.Failed = Different, failed
	if c.interp.failed != nil {
		out.Interpreter.Failed = c.interp.failed.Error()
	}
	if c.with == nil {
		c.withdraw()
	}
	if out.Status == Different {
		c.explain()
	}
}

// memoryWhy returns why with the prefix "memory: ", unless why is [errSharedMemory], which already names the memory.
func memoryWhy(why error) error {
	if why == errSharedMemory {
		return why
	}
	return frame.Errorf("memory: %w", why)
}

// report returns the difference in the form in which a report shows it.
func (d *memoryDiff) report() MemoryDifference {
	out := MemoryDifference{Address: frame.HexOf(d.Addr), addr: d.Addr, Size: d.Size,
		Before: hexBytes(d.Before, nil), Interpreter: hexBytes(d.Interp, d.Undefined), Native: hexBytes(d.Native, nil)}
	for n := range d.Native {
		if (d.Interp[n]^d.Native[n])&^d.Undefined[n] != 0 {
			out.bytes = append(out.bytes, d.Addr+machine.Addr(n))
		}
	}
	return out
}

// hexBytes spells bytes in the order of their addresses; a byte with an undefined bit is "??".
func hexBytes(b, undefined []byte) string {
	var s strings.Builder
	for i, c := range b {
		if i > 0 && i%8 == 0 {
			s.WriteByte(' ')
		}
		if i < len(undefined) && undefined[i] != 0 {
			s.WriteString("??")
			continue
		}
		fmt.Fprintf(&s, "%02x", c)
	}
	return s.String()
}

// instruction formats an instruction of the process with its address.
func (v *verifier) instruction(text *isa.Window, at machine.Addr) string {
	spelled, _ := text.Text(text.From(at), at, v.watcher.View().Space().Named)
	where := at.String()
	if name := v.watcher.View().Space().Named(at); name != "" {
		where = name
	}
	return where + " " + spelled
}

// explain adds the details of a difference: the names of addresses and the last instructions of both sides.
func (c *comparison) explain() {
	out := c.out
	n := c.v.whereabouts(out.Exit)
	for i := range out.Memory {
		out.Memory[i].Near = n.memory(out.Memory[i].addr)
	}
	if c.v.lockstep {
		return // the owner of a Lockstep shows the state of both sides itself
	}
	for _, at := range c.native.called {
		out.Outside = append(out.Outside, n.called(at))
	}
	text := isa.NewWindow(c.v.watcher.View().Target(), isa.Of(c.v.watcher.View().Target().Arch()))
	for _, at := range c.native.tail {
		out.Native.Tail = append(out.Native.Tail, c.v.instruction(text, at))
	}
	if c.with != nil {
		out.Interpreter.Tail = c.with.answer.Tail
		return
	}
	out.Interpreter.Tail = c.interpreterTail()
}

// interpreterTail repeats the run of the interpreter, over the memory of the exit, and returns its last instructions.
func (c *comparison) interpreterTail() (tail []string) {
	type ran struct {
		line int
		text string
	}
	n := c.v.options.Tail
	var last []ran
	err := c.reruns.trace(func(t interp.Traced) {
		b := t.Instr.Block
		r := ran{t.Instr.Line, fmt.Sprintf("%-20s %s", b.Func.Name+":"+b.Name, strings.TrimSpace(b.Func.Module.LineText(t.Instr.Line)))}
		if !t.Value.IsNone() {
			r.text += "  ; " + t.Value.Format()
		}
		if last = append(last, r); len(last) > 2*n {
			last = slices.Delete(last, 0, len(last)-n)
		}
	})
	if err != nil {
		return nil
	}
	for _, r := range last[max(0, len(last)-n):] {
		tail = append(tail, fmt.Sprintf("%5d %s", r.line, r.text))
	}
	return tail
}
