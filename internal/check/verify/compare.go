package verify

import (
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
)

// compare compares native code with the prediction, at the return of the function.
func (p *prediction) compare(v *verifier, regs *machine.Registers) {
	out := p.out
	out.Native.Steps = p.native.steps
	switch {
	case p.native.signal != 0:
		out.notComparable(p.native.raised())
	case p.interp.incomparable != "":
		out.notComparable(p.interp.incomparable)
	case p.with != nil:
		p.compareWith(v, regs)
		return
	case p.interp.pending != nil:
		p.missed()
	case p.interp.failed != nil:
		p.compareFailed(v)
	default:
		if out.Call = p.extra(v); out.Call != nil {
			out.Status = Different
		} else {
			p.compareAll(v, regs)
		}
	}
	if p.undecided(v); out.Status == Different {
		p.explain(v)
	}
}

// compareFailed compares a run that did not reach the return with native code, which did.
func (p *prediction) compareFailed(v *verifier) {
	out := p.out
	if p.interp.atLimit() && out.Interpreter.Steps < p.native.atMost() {
		out.notComparable("the interpreter does not get to the return: " + p.interp.failed.Error())
		return
	}
	if why := p.patched(v); why != "" {
		out.notComparable(why)
		return
	}
	out.Status = Different
	out.Interpreter.Failed = p.interp.failed.Error()
}

func (p *prediction) compareAll(v *verifier, regs *machine.Registers) {
	out := p.out
	result := abi.CompareResult(p.interp.result.Value, p.origin.cc, regs, p.interp.machine.Made)
	memory := v.withoutShared(compareMemory(p.effects.now, v.watcher.View().Target(), p.interp.machine.Touched(), p.origin.dead, p.origin.below, p.native.ranOutside, p.interp.machine.Made))
	different := result.Why == "" && !result.Same || len(memory.Diffs) > 0
	if different {
		why := p.loose()
		if why == "" {
			why = p.patched(v)
		}
		if why != "" {
			out.notComparable(why)
			return
		}
	}
	for _, part := range result.Parts {
		out.Result = append(out.Result, ResultPart{Path: part.Path, Register: part.Register, Type: part.Interp.Type().String(),
			Interpreter: part.Interp.Format(), Native: part.Native.Format(), Same: part.Same})
	}
	out.NativeOnly, out.Words = !p.native.ranOutside, memory.Words
	for _, d := range memory.Diffs {
		out.Memory = append(out.Memory, d.report())
	}
	switch {
	case different:
		out.Status = Different
	case result.Why != "":
		out.notComparable("the result: " + result.Why)
	case memory.Why != "":
		out.notComparable(memoryWhy(memory.Why))
	default:
		out.Status = Same
	}
}

// memoryWhy returns the reason why memory cannot be compared.
func memoryWhy(why string) string {
	if why == sharedMemory {
		return why
	}
	return "memory: " + why
}

// report returns the difference in the form that is reported.
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

// hexBytes spells bytes in the order of their addresses; those that have an undefined bit are "??".
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

// explain adds the details of a difference: the names of addresses and the last instructions of both.
func (p *prediction) explain(v *verifier) {
	out := p.out
	n := v.whereabouts(out.Exit)
	for i := range out.Memory {
		out.Memory[i].Near = n.memory(out.Memory[i].addr)
	}
	if v.aside {
		return // the owner has the state of both
	}
	for _, at := range p.native.called {
		out.Outside = append(out.Outside, n.called(at))
	}
	text := isa.NewWindow(v.watcher.View().Target(), isa.Of(v.watcher.View().Target().Arch()))
	for _, at := range p.native.tail {
		out.Native.Tail = append(out.Native.Tail, v.instruction(text, at))
	}
	if p.with != nil {
		out.Interpreter.Tail = p.with.answer.Tail
		return
	}
	out.Interpreter.Tail = p.interpreterTail(v)
}

// interpreterTail repeats the run of the interpreter, over memory as it was at the exit, and returns its last instructions.
func (p *prediction) interpreterTail(v *verifier) (tail []string) {
	type ran struct {
		line int
		text string
	}
	n := v.options.Tail
	var last []ran
	err := p.reruns.trace(func(t interp.Traced) {
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

// instruction formats an instruction of the process with its address.
func (v *verifier) instruction(text *isa.Window, at machine.Addr) string {
	spelled, _ := text.Text(text.From(at), at, v.watcher.View().Space().Named)
	where := at.String()
	if name := v.watcher.View().Space().Named(at); name != "" {
		where = name
	}
	return where + " " + spelled
}
