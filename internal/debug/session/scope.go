package session

import (
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/condition"
)

// Slots lists the values at the selected line of the backtrace, for use in expressions. For a physical frame these are its slots and the slots of the
// virtual machine's frames in it. For an interpreter they are the known values.
func (s *Session) Slots() ([]frame.Slot, error) {
	at, err := s.Level()
	if err != nil {
		return nil, err
	}
	return s.SlotsOf(at)
}

// SlotsOf is [Session.Slots] for any line of the backtrace.
func (s *Session) SlotsOf(at Level) ([]frame.Slot, error) {
	switch {
	case at.Physical != nil:
		return at.Physical.Facts(), nil
	case at.VM != nil:
		return at.VM.VM.Facts(), nil
	}
	return s.run.slots(at.Number)
}

// slots returns the values of an activation as slots.
func (r *Run) slots(n int) (list []frame.Slot, err error) {
	values, err := r.Values(n)
	if len(values) == 0 {
		return nil, err
	}
	dl := r.exec.At(n).Block.Func.Module.Layout
	for k, v := range values {
		list = append(list, r.slot(k, v.Name, dl, v.Value))
	}
	return list, err
}

// slot returns a value of the run as a slot.
func (r *Run) slot(index int, name string, dl *ir.DataLayout, v interp.Value) frame.Slot {
	s := frame.Slot{Index: index, Name: name, Type: interp.FrameType(dl, v.Type()), Status: frame.OK, Value: v.Format()}
	if raw, ok := v.Bytes(dl); ok {
		s.Bytes, s.Hex = raw, frame.HexBytes(raw, r.stack.Frames[0].View().Target().Arch().Order)
	} else {
		s.Clear(frame.Undefined, frame.Because(frame.NotReached, s.Value))
	}
	return s
}

// Expression evaluates an expression at the selected line of the backtrace, from its slots and from the registers of a physical frame. If the text is
// only the name of a slot, it returns that slot, which may have any type. The result of any other expression must be a number or a truth value.
func (s *Session) Expression(text string) (*frame.Slot, error) {
	at, err := s.Level()
	if err != nil {
		return nil, err
	}
	return s.ExpressionAt(at, text)
}

// ExpressionAt is [Session.Expression] for any line of the backtrace.
func (s *Session) ExpressionAt(at Level, text string) (*frame.Slot, error) {
	e, err := condition.ParseExpression(text)
	if err != nil {
		return nil, err
	}
	slots, err := s.SlotsOf(at)
	if err != nil {
		return nil, err
	}
	slots = append(slices.Clip(slots), Registers(at)...)
	if at.Physical != nil {
		for _, name := range e.Names() {
			if name.Find(slots) != nil {
				continue
			}
			if is, ok := at.Physical.VM.Follow(name.Text); ok {
				slots = append(slots, is)
			}
		}
	}
	if name, only := e.Slot(); only {
		if is := name.Find(slots); is != nil {
			return is, nil
		}
	}
	out, hex, err := e.Value(slots)
	if err != nil && at.Physical == nil && strings.Contains(text, "$") {
		return nil, fmt.Errorf("%w; the interpreter has no registers", err)
	}
	if err != nil {
		return nil, err
	}
	return &frame.Slot{Status: frame.OK, Value: out, Hex: frame.Hex(hex)}, nil
}

// slotOf finds a slot of a frame by its name, with or without %, or by its number: #0.
func slotOf(f *deopt.Frame, name string) (*frame.Slot, error) {
	all := f.Values()
	var names []string
	for n := range all {
		is := &all[n]
		if is.Name != "" && condition.Plain(is.Name) == condition.Plain(name) || name == fmt.Sprintf("#%d", is.Index) && n < len(f.Slots) {
			return is, nil
		}
		if is.Name != "" {
			names = append(names, is.Name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no slots%s", f.Title(), frame.Noted(f.Notes))
	}
	return nil, fmt.Errorf("slot %s not found; the slots are %s", name, strings.Join(names, " "))
}

// ReadMemory implements [machine.Memory]: it reads the memory of the interpreter's run, or without a run the memory of the target.
func (s *Session) ReadMemory(p []byte, addr machine.Addr) error {
	if s.vm != nil {
		return s.vm.Memory().ReadMemory(p, addr)
	}
	if s.run != nil {
		unknown := make([]byte, len(p))
		if err := s.run.machine.Peek(p, unknown, addr); err != nil {
			return err
		}
		for n, bits := range unknown {
			if bits != 0 {
				return &machine.MemoryError{Addr: addr + machine.Addr(n), Len: 1, Why: "undefined in the run"}
			}
		}
		return nil
	}
	t, err := s.Target()
	if err != nil {
		return err
	}
	return t.ReadMemory(p, addr)
}

// Place returns the instruction of a line of the backtrace: for the interpreter the next one, for a physical frame the site of its record in the
// compiled module. It returns nil if no module has the instruction.
func (l *Level) Place() *ir.Instr {
	switch {
	case l.Run != nil:
		return l.Run.At
	case l.Physical == nil:
		return nil
	}
	if m := l.Physical.Match(); m != nil && m.Site != nil {
		return m.Site.Instr
	}
	return nil
}

// Line is a line of a module, with the values that are known at the selected line of the backtrace.
type Line struct {
	Number int
	Text   string
	Here   bool // the line has the next instruction, or the site
	Value  string
	Source string // the source line of the instruction, such as "loop.c:12"; "" if it is the same as in the previous line
}

// List returns lines of the function around the instruction of a line of the backtrace: before lines before it, and behind lines after it.
func (s *Session) List(at Level, before, behind int) ([]Line, error) {
	is := at.Place()
	if is == nil {
		if at.Physical != nil {
			return nil, fmt.Errorf("%s: no module gives its instruction%s", at.Physical.Title(), frame.Noted(at.Physical.Notes))
		}
		return nil, errEnded
	}
	f := is.Block.Func
	blocks, err := f.Body()
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	slots, err := s.SlotsOf(at)
	if err != nil {
		return nil, err
	}
	for _, v := range slots {
		if v.Read() {
			values[v.Name] = v.Value
		}
	}
	shown, sources := map[int]string{}, map[int]string{}
	first, last := blocks[0].Line, is.Line
	for _, b := range blocks {
		before := ""
		for _, i := range b.Instrs {
			last = max(last, i.Line)
			if list := deopt.SourceOf(i); len(list) > 0 {
				if now := deopt.SourceText(list[0]); now != before {
					before, sources[i.Line] = now, now
				}
			}
			if v := values[i.Ref()]; v != "" && i.Name != "" {
				shown[i.Line] = v
			}
		}
	}
	first = min(first, blocks[0].Instrs[0].Line) - 1 // the line with the function's name
	var list []Line
	for n := max(first, is.Line-before); n <= min(last+1, is.Line+behind); n++ {
		list = append(list, Line{n, f.Module.LineText(n), n == is.Line, shown[n], sources[n]})
	}
	return list, nil
}
