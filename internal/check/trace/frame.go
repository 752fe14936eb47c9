package trace

import (
	"time"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/condition"
	"example.com/reframe/ptrace"
)

// Exited is one exit: a hit of a [Tracepoint] by a thread.
type Exited struct {
	Number uint64        // number of the hit, from 1; several records at one address share a hit
	After  time.Duration // since the trace began
	Thread machine.Thread
	Point  *Tracepoint
	// Frame is the frame of the exit. At a [Tracepoint].Symbol it is the caller's frame, nil if none was found.
	Frame *deopt.Frame
	// Frames lists all frames of the thread, innermost first, if requested, and End is the reason why the walk ended.
	Frames []*deopt.Frame
	End    unwind.End
	// Stops reports whether the condition that ends the trace holds.
	Stops bool

	came   reach          // the way in which the thread has reached a place that is [Tracepoint].Doubtful
	others []*deopt.Frame // Frame for other functions that the linker folded into the same code
}

// Fulfils reports whether a condition holds at the exit.
func (x *Exited) Fulfils(c *condition.Condition) bool {
	return x.answer(c) == condition.Yes
}

// answer evaluates a condition for the exit. If several frames are possible, it returns Yes if the condition holds for one of them.
func (x *Exited) answer(c *condition.Condition) condition.Answer {
	is, _ := answer(x.Frame, c)
	for _, f := range x.others {
		if other, _ := answer(f, c); is == condition.Absent || other == condition.Yes {
			is = other
		}
	}
	return is
}

// answer returns the result of a condition for the frame's slots. A nil frame has no slots.
func answer(f *deopt.Frame, c *condition.Condition) (condition.Answer, string) {
	if f == nil {
		return c.Of(nil)
	}
	return c.Of(f.Facts())
}

// prepare computes the parts of the frame that are the same at each hit of the place.
func (p *Tracepoint) prepare(v *deopt.View) {
	p.ready = true
	f := v.FrameAt(p.code, p.Addr, p.match)
	f.Kind, f.PC, f.Module, f.Offset = frame.JIT, frame.HexOf(p.Addr), p.Module, &p.Offset
	f.Function, f.Demangled = p.Function, names.IfMangled(p.Function)
	f.Record = &frame.Record{ID: p.Record, Site: p.Site, Offset: uint64(p.match.Entry.Record.Offset), Moment: p.Moment}
	if p.Note != "" {
		f.Notes = append(f.Notes, p.Note)
	}
	f.Notes = append(f.Notes, p.match.Uncertain()...)
	if why := f.WhyUncertain(); why != nil {
		f.AddNote(why)
	}
	if p.Addr == p.match.Entry.Addr || p.Moment == frame.After { // a thread stopped before a call makes that call
		p.why = f.Reached(p.match)
		p.doubt = p.why != "" && p.match.Kind != ""
	}
	if p.match.Site != nil { // use only the source line of the module, because the thread waits while other files are read
		f.Source = deopt.SourceOf(p.match.Site.Instr)
	}
	p.base = f.Frame
}

// frame builds the abstract frame of a thread that is stopped at the place, which it has reached in the way came.
func (p *Tracepoint) frame(v *deopt.View, physical unwind.Frame, came reach) (*deopt.Frame, error) {
	if !p.ready {
		p.prepare(v)
	}
	f := v.Describe(p.base, physical, p.code, p.match)
	f.Notes = f.Notes[:len(f.Notes):len(f.Notes)] // so that notes about this hit do not appear at the next one
	f.Index, f.Rule = physical.Index, string(physical.Rule)
	if physical.NoCFA == "" {
		f.CFA = frame.HexOf(physical.CFA)
	}
	if p.why != "" && came != byCall {
		f.Notes = append(f.Notes, p.why)
	}
	if p.doubt && came != byCall {
		return f, nil
	}
	return f, f.Fill()
}

// hitMemory holds the registers and the memory that the tracing process read at a hit.
type hitMemory struct {
	registers *machine.Registers
	reads     []ptrace.Read
	data      [][]byte
}

// ReadMemory implements [machine.Memory].
func (m *hitMemory) ReadMemory(p []byte, addr machine.Addr) error {
	for i, r := range m.reads {
		base, err := m.registers.Addr(r.Reg)
		from := base + machine.Addr(r.Offset)
		if err == nil && i < len(m.data) && m.data[i] != nil && addr >= from && uint64(addr-from)+uint64(len(p)) <= uint64(len(m.data[i])) {
			copy(p, m.data[i][addr-from:])
			return nil
		}
	}
	return &machine.MemoryError{Addr: addr, Len: len(p), Why: "it could not be read when the thread stopped here"}
}

// WhyNone returns the reason why no frame can be resumed from the exit, independent of its values, or "".
func (x *Exited) WhyNone() string {
	if why := x.WhyNoRecord(); why != nil {
		return why.Error()
	}
	return ""
}

// WhyNoRecord is [Exited.WhyNone] as an error, whose addresses [frame.TextWith] finds; nil if the exit can be resumed.
func (x *Exited) WhyNoRecord() error {
	switch {
	case x.Frame == nil:
		return frame.Errorf("no frame was found: %w", x.End.Why())
	case x.Frame.Record == nil:
		return frame.Errorf("no record describes the place%v", x.Frame.Noted())
	case x.doubtful():
		return frame.Errorf("the place may be reached without its site%v", x.Frame.Noted())
	}
	return nil
}

// doubtful reports whether the thread may have reached the place without passing its site.
func (x *Exited) doubtful() bool { return x.Point.doubt && x.came != byCall }

// Stack returns the frame of the exit, ready to resume. It requires all frames of the thread. If the site's call has returned, Stack takes its result
// from the registers.
func (x *Exited) Stack() *deopt.Stack {
	s := &deopt.Stack{Thread: &deopt.Thread{ID: x.Thread.ID, Name: x.Thread.Name, Frames: x.Frames, End: x.End}, Frames: []*deopt.Frame{x.Frame}}
	if x.Point.Moment == frame.After && x.Point.Symbol == "" {
		s.Returned = x.Thread.Registers
	}
	return s
}

// Returns returns the return address of x.Frames[at], and the CFA that identifies its activation; ok is false for the last frame.
func (x *Exited) Returns(at int) (to ptrace.Return, ok bool) {
	if at < 0 || at+1 >= len(x.Frames) {
		return to, false
	}
	return ptrace.Return{Addr: x.Frames[at+1].Physical().PC, CFA: x.Frames[at].Physical().CFA}, true
}
