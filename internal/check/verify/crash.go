package verify

import (
	"errors"
	"slices"
	"syscall"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// handleCrash concludes the pending predictions when the thread is stopped at a signal that has no handler and ends the process.
func (v *verifier) handleCrash(run *ptrace.SingleThreadRun) error {
	f := fatal{signal: run.Fatal, fault: run.Fault}
	f.sp, _ = run.Thread.Registers.Addr(run.Thread.Registers.Arch().SP)
	if f.overflows(v) {
		f.nested = v.nested(run.Thread.Registers)
	}
	return v.concludeCrash(f)
}

// fatal describes a signal, raised by an instruction, that ends the process.
type fatal struct {
	signal  int
	fault   machine.Addr // the address that the instruction accessed; 0 if the kernel does not report it
	sp      machine.Addr // 0 if unknown
	handler bool         // a handler received the signal, and ended the process
	nested  []nestedCall // the calls in progress, if the stack may be exhausted
}

func (f *fatal) String() string {
	return f.TextWith(func(at uint64) string { return machine.Addr(at).String() })
}

// TextWith implements [frame.Addressed].
func (f *fatal) TextWith(spell func(uint64) string) string {
	text := "it raised " + ptrace.SignalName(f.signal)
	if f.fault != 0 {
		text += ", address " + spell(uint64(f.fault))
	}
	if f.handler {
		return text + ", and the process ended in its handler"
	}
	return text + ", without a handler"
}

// concludeCrash concludes the pending predictions after native code has ended the process.
func (v *verifier) concludeCrash(f fatal) error {
	pending, inStep := v.pending, v.inStep()
	v.pending, v.nativeCalls, v.call = nil, nil, nil
	for _, p := range pending {
		p.out.Native.Steps = p.native.steps
		switch {
		case slices.Contains(inStep, p):
			if err := p.skipFrees(v); err != nil {
				for _, q := range pending {
					q.finish()
				}
				return err
			}
			p.finish()
			v.comparison(p).atCrash(f)
		case p.interp.pending != nil:
			p.out.notComparable(frame.Errorf("native code did not return from the call of %s: %s", calleeOf(p.interp.pending), &f))
		default:
			p.out.notComparable(frame.Errorf("native code did not return: %v", &f))
		}
		p.finish()
	}
	return v.reportAll(pending)
}

// skipFrees lets the interpreter continue past calls that release memory, because a compiler may omit them. The code after these calls shows whether
// the interpreter also fails.
func (p *prediction) skipFrees(v *verifier) error {
	for p.interp.pending != nil && p.interp.pending.Result.Kind == ir.VoidKind && allocates(p.interp.pending.Name) {
		err := p.stopped(v, p.interp.runner.resume(interp.Value{}))
		why, ok := asIncomparable(err)
		switch {
		case ok:
			p.interp.pending, p.interp.incomparable = nil, why
		case err != nil:
			return err
		}
	}
	return nil
}

// matches reports whether the interpreter failed for the reason for which the processor raised the signal.
func (f *fatal) matches(failed *interp.RunError) bool {
	is := func(signals ...syscall.Signal) bool { return slices.Contains(signals, syscall.Signal(f.signal)) }
	switch failed.Kind {
	case interp.KindFault:
		fault := (*interp.FaultError)(nil)
		if !is(syscall.SIGSEGV, syscall.SIGBUS) || !errors.As(failed, &fault) {
			return false
		}
		// The kernel reports the address of the first byte of an access, or of the second page that it touches. For a non-canonical address it reports
		// none.
		return f.fault == 0 || f.fault&^(imagePage-1) == fault.Addr&^(imagePage-1) || f.fault-fault.Addr < machine.Addr(max(fault.Size, 1))
	case interp.KindDivision:
		return is(syscall.SIGFPE)
	case interp.KindUnreachable:
		return is(syscall.SIGILL, syscall.SIGTRAP)
	case interp.KindAbort:
		return is(syscall.SIGABRT, syscall.SIGILL, syscall.SIGTRAP)
	}
	return false
}

// maxProbe bounds the distance below the stack pointer at which code touches its stack. LLVM probes each page of a larger frame only with a flag.
const maxProbe = 1 << 20

// overflows reports whether native code exhausted its stack; the stack of the interpreter has no such limit.
func (f *fatal) overflows(v *verifier) bool {
	if syscall.Signal(f.signal) != syscall.SIGSEGV || f.fault == 0 || f.sp == 0 || f.fault+maxProbe < f.sp || f.fault > f.sp+imagePage {
		return false
	}
	maps, err := v.watcher.View().Target().Mappings()
	return err == nil && !slices.ContainsFunc(maps, func(m machine.Mapping) bool { return m.Write && m.Contains(f.fault) })
}

// atCrash compares the crash of a process with the interpreter's outcome.
func (c *comparison) atCrash(f fatal) {
	out := c.out
	switch {
	case c.interp.incomparable != nil:
		out.notComparable(c.interp.incomparable)
		return
	case f.overflows(c.v):
		if why := c.runawayEvidence(f.nested); why != "" {
			c.differs(why)
		} else {
			out.notComparable(errors.New("native code has used up its stack"))
		}
		return
	case c.interp.pending != nil && !allocates(c.interp.pending.Name) && c.mayHaveMade(c.interp.pending): // code generators do not omit allocations
		out.notComparable(frame.Errorf("native code did not reach the call of %s, which it may have omitted: %s", calleeOf(c.interp.pending), &f))
		return
	case c.interp.atLimit():
		out.notComparable(frame.Errorf("the interpreter does not return: %w", c.interp.failed))
		return
	case c.interp.failed != nil && f.matches(c.interp.failed):
		out.Status = Same
		return
	}
	c.differs(f.String())
}

// mayHaveMade reports whether native code may have made a call that was not seen, or may have omitted it. It returns false for a crash by a jump to
// an address without code.
func (c *comparison) mayHaveMade(call *interp.Invocation) bool {
	maps, err := c.v.watcher.View().Target().Mappings()
	code := func(at machine.Addr) bool {
		return err != nil || slices.ContainsFunc(maps, func(m machine.Mapping) bool { return m.Exec && m.Contains(at) })
	}
	if len(c.native.called) > 0 && !slices.ContainsFunc(c.native.called, code) {
		c.native.ranOutside = false
	}
	return c.native.mayLack(call)
}
