package deopt

import (
	"errors"
	"fmt"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
)

// ErrNoFrame is wrapped by errors that report that no frame can be resumed.
var ErrNoFrame = errors.New("no frame to resume")

// Choice selects a frame, and its callers with it.
type Choice struct {
	Frame    int            // frame number; -1 for the innermost frame with a record; or the result of [Outermost]
	Function *names.Pattern // function name; nil for any
	// To is the number of the outermost caller to select, 0 for none. [AllCallers] selects as many callers as can be resumed.
	To int
	// Force also selects frames that are guesses or depend on a guess ([Frame.Uncertain]).
	Force bool
}

// Outermost returns the [Choice.Frame] that counts from the outermost frame of a thread: 1 is the outermost frame, 2 the one that it called.
func Outermost(number int) int { return -1 - number }

// Numbered reports whether a frame was chosen by its number, from either end.
func (c *Choice) Numbered() bool { return c.Frame != -1 }

// Is reports whether a frame of a thread has the chosen number. Without a chosen number it reports true.
func (c *Choice) Is(t *Thread, f *Frame) bool {
	return c.Frame == -1 || f.Index == c.Frame || c.Frame < -1 && f.Index == t.total()+1+c.Frame
}

// Number returns the chosen number for messages; it is negative if it counts from the outermost frame.
func (c *Choice) Number() int {
	if c.Frame < -1 {
		return c.Frame + 1
	}
	return c.Frame
}

// Depth returns which frames of a deep stack to keep, so that the chosen frame is among them.
func (c *Choice) Depth() unwind.Depth {
	d := DefaultDepth
	if c.Frame >= d.Inner {
		d.Around = c.Frame
	} else if n := -1 - c.Frame; n > d.Outer {
		d.Outer = min(n, maxOuter)
	}
	return d
}

// maxOuter bounds the frames that are kept at the outermost end of a stack.
const maxOuter = 1 << 17

// AllCallers is the value of [Choice.To] for all callers up to the first that cannot be resumed.
const AllCallers = -1

// Stack holds frames of one thread that are resumed together, innermost first. Each frame but the first waits for the result of the one before it.
type Stack struct {
	Thread *Thread
	Frames []*Frame
	// Result is the result of the call that the innermost frame waits for, in the syntax of [ParseValue]; "" if none is given.
	Result string
	// Force lets uncertain frames resume ([Frame.Uncertain]).
	Force bool
	// Returned holds the registers at the return of that call. It is nil if the call has not returned, or if the thread is not stopped at the return
	// address.
	Returned *machine.Registers
	// End is the reason why Frames has no more callers; "" if no callers were requested.
	End string
}

// Pick returns the chosen frames. The thread was chosen by [Options.Thread].
func (v *View) Pick(c Choice) (*Stack, error) {
	for i := range v.Threads {
		t := &v.Threads[i]
		for at, f := range t.Frames {
			byNumber := c.Is(t, f)
			byName := c.Function == nil || c.Function.Match(f.Function)
			if byNumber && byName && f.Record != nil {
				s := &Stack{Thread: t, Frames: []*Frame{f}, Force: c.Force}
				return s, s.extend(t.Frames[at+1:], c.To)
			}
			if c.Numbered() && byNumber && byName {
				return nil, fmt.Errorf("%w: %s, of thread %d has no stack map record%s",
					ErrNoFrame, f.Title(), t.ID, frame.Noted(f.Notes))
			}
		}
	}
	switch {
	case c.Numbered():
		return nil, fmt.Errorf("%w: there is no frame %d; %s", ErrNoFrame, c.Number(), v.HowMany())
	case c.Function != nil:
		return nil, fmt.Errorf("%w: no frame of %s has a stack map record%s", ErrNoFrame, c.Function.Text, v.NearFunction(c.Function))
	}
	return nil, fmt.Errorf("%w: no frame has a stack map record", ErrNoFrame)
}

// extend adds the callers up to frame number to, or up to the first that cannot be resumed.
func (s *Stack) extend(callers []*Frame, to int) error {
	if to == 0 {
		return nil
	}
	last := s.Frames[0]
	if to > 0 && to < last.Index {
		return fmt.Errorf("%w: frame #%d is not a caller of frame #%d", ErrNoFrame, to, last.Index)
	}
	for _, f := range callers {
		if last.Index == to {
			return nil
		}
		if f.Index != last.Index+1 {
			s.End = fmt.Sprintf("%s is called by frame #%d, which was not rebuilt: the stack is deep; use a larger --depth", last.Title(), last.Index+1)
			break
		}
		if s.End = f.whyNotAfter(last, s.Force); s.End == "" {
			s.End = s.compiledTwice(f)
		}
		if s.End != "" {
			break
		}
		s.Frames = append(s.Frames, f)
		last = f
	}
	switch {
	case last.Index == to:
		return nil
	case s.End == "" && s.Thread.End.Complete:
		s.End = fmt.Sprintf("%s is the outermost frame", last.Title())
	case s.End == "":
		s.End = fmt.Sprintf("%s is the last known frame: %s", last.Title(), s.Thread.End.Reason)
	}
	if to > 0 {
		return fmt.Errorf("%w up to frame #%d: %s", ErrNoFrame, to, s.End)
	}
	return nil
}

// whyNotAfter returns the reason why the frame cannot receive the result of callee, the frame before it, when both are resumed; or "". With force it
// accepts a guess.
func (f *Frame) whyNotAfter(callee *Frame, force bool) string {
	switch {
	case f.Record == nil && f.Kind == frame.Native:
		return f.Title() + " is native code"
	case f.Record == nil:
		return f.Title() + " has no stack map record" + frame.Noted(f.Notes)
	case f.Guess() != "" && !force:
		return fmt.Sprintf("%s may not be the caller: %s", f.Title(), f.Guess())
	case callee.Resume == nil:
		return callee.WhyNotResumed().Error()
	case callee.to == nil:
		return fmt.Sprintf("no module defines @%s, where %s resumes", callee.Resume.Function, callee.Title())
	case f.Resume == nil:
		return f.WhyNotResumed().Error()
	case f.to == nil:
		return fmt.Sprintf("no module defines @%s, where %s resumes", f.Resume.Function, f.Title())
	case !f.to.Module.Layout.Equal(callee.to.Module.Layout):
		return fmt.Sprintf("the data layout of %s is not that of %s, where %s resumes", f.to.Module.Name, callee.to.Module.Name, callee.Title())
	}
	call, result, why := f.Awaited()
	if call == nil {
		return fmt.Sprintf("%s has no pending call: %v", f.Title(), why)
	}
	if f.Resume.At != "" && !f.called(call, callee) {
		return fmt.Sprintf("the last call before the %s of %s is of @%s", f.Record.Site, f.Title(), sites.CalledName(call))
	}
	returned := callee.to.Sig.Elem
	if result != nil && !SameType(result.Typ, returned) {
		return fmt.Sprintf("%s waits for a value of type %v, and @%s returns %v", f.Title(), result.Typ, callee.to.Name, returned)
	}
	return ""
}

// compiledTwice returns the reason if the frame and a frame of the stack belong to two compilations of one module, or "". They cannot be resumed
// together, because the interpreter has only one set of globals per module.
func (s *Stack) compiledTwice(f *Frame) string {
	for _, g := range s.Frames {
		if g.to.Module == f.to.Module && g.imageOf(g.to) != f.imageOf(f.to) {
			return fmt.Sprintf("%s and %s are in one module that was compiled twice", f.Title(), g.Title())
		}
	}
	return ""
}

// SameType reports whether a value of one type can be used as one of the other. Pointee types are ignored.
func SameType(a, b *ir.Type) bool {
	return a.Kind == ir.PointerKind && b.Kind == ir.PointerKind || a.String() == b.String()
}

// Awaited returns the pending call of the frame, and the instruction that is its result: the call itself, or the gc.result of a statepoint. result is
// nil if nothing reads it. If the frame has no pending call, call is nil, and why is the reason.
func (f *Frame) Awaited() (call, result *ir.Instr, why error) {
	switch r := f.Resume; {
	case f.match != nil && f.match.patched != nil && f.match.Moment == frame.Before:
		return nil, nil, fmt.Errorf("its pending call is in a patch over the shadow of its %s", f.Record.Site)
	case r == nil:
		return nil, nil, errors.New("no module or layout gives the place where it resumes")
	case r.After != "":
		return f.match.Site.Instr, f.match.Site.Result(), nil
	case r.At == "":
		return nil, nil, fmt.Errorf("its layout makes it resume at the start of block %%%s", r.Block)
	case !f.physical.Return:
		return nil, nil, fmt.Errorf("it is stopped before its %s", f.Record.Site)
	}
	// The record is at the return address: no machine instruction is between the call and the site, and LLVM keeps the order of calls and sites.
	site := f.match.Site.Instr
	for k := site.Index - 1; k >= 0; k-- {
		i := site.Block.Instrs[k]
		if i.Call == nil || strings.HasPrefix(sites.CalledName(i), "llvm.") || barrier(i) {
			continue
		}
		if i.Typ.Kind == ir.VoidKind {
			return i, nil, nil
		}
		return i, i, nil
	}
	return nil, nil, fmt.Errorf("no call is before its %s in block %%%s", f.Record.Site, site.Block.Name)
}

// barrier reports whether a call is inline assembly that emits no machine instruction.
func barrier(i *ir.Instr) bool {
	assembly, ok := i.Call.Callee.(*ir.InlineAsm)
	return ok && assembly.Empty()
}

// called reports whether callee may have been entered by the call. A call that names a function enters only that function.
func (f *Frame) called(call *ir.Instr, callee *Frame) bool {
	name := sites.CalledName(call)
	if name == "" || name == callee.Function {
		return true
	}
	at, known := f.Symbols(f.to)(name)
	return known && (at == f.physical.Skipped || callee.Offset != nil && at == callee.physical.PC-machine.Addr(*callee.Offset))
}
