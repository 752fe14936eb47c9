package vmframes_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/test/tinyvmtest"
)

// A passage is a run of the interpreter. It starts with the frames of an exit, and ends when the outermost of them returns.
type passage struct {
	key     tinyvmtest.Key // key of the arrival at which the frames were passed
	depth   int            // number of frames below the outermost passed frame
	stopped bool           // a callee had stopped the program
	start   tinyvmtest.Arrival
	places  map[int]int // the index in the rows of roots of each object of start, by the object's number

	answer *protocol.Answer
	fuel   int64 // remaining fuel
	ended  bool  // the interpreter has stopped the program
	ends   []end
}

// An end is the state of compiled code that waits for the return of the passed frames. The operands of its first frame are the result and the objects
// of the start.
type end struct {
	tinyvmtest.Arrival
	depth int // of the innermost waiting frame, or -1 if no frame waits
}

// passageOf reads the interpreter's result for an exit at which the process is still stopped. memory is the interpreter's view of the process, with
// its stores.
func passageOf(x *trace.Exited, a *protocol.Answer, memory machine.Memory) (*passage, error) {
	switch {
	case a.Unsupported+a.Malformed != "":
		return nil, errors.New(a.Unsupported + a.Malformed)
	case a.Returned == nil:
		return nil, errors.New("the interpreter does not say what was returned")
	}
	target, vm := x.Frame.View().Target(), x.Frame.VM
	p := &passage{answer: a, places: map[int]int{}}
	for _, of := range []struct {
		memory  machine.Memory
		fuel    *int64
		stopped *bool
	}{{target, &p.key.Fuel, &p.stopped}, {memory, &p.fuel, &p.ended}} {
		for _, name := range []string{"tinyvm_fuel", "tinyvm_stopped"} {
			symbol, ok := target.FindSymbol(name)
			if !ok {
				return nil, errors.New("there is no " + name)
			}
			v, err := word(of.memory, symbol.Addr)
			if err != nil {
				return nil, err
			}
			if name == "tinyvm_fuel" {
				*of.fuel = int64(v)
			} else {
				*of.stopped = v != 0
			}
		}
	}
	objects, err := p.begin(x, vm, target)
	if err != nil {
		return nil, err
	}
	return p, p.end(x, objects, memory)
}

// begin reads the frames that were passed to the interpreter, and returns the objects that they refer to.
func (p *passage) begin(x *trace.Exited, vm *frame.VM, target machine.Memory) ([]reached, error) {
	s := newShown(vm, target)
	waits := vm.Frames[0].Resume == frame.Calling
	var call tinyvmtest.Frame
	if waits {
		returned, err := handover.Returned(x.Frame, x.Stack().Returned)
		if err != nil {
			return nil, err
		}
		bits, err := returned.Bits.Uint()
		if err != nil {
			return nil, err
		}
		call.Stack = []tinyvmtest.Value{s.boxed(bits)}
	}
	frames, err := s.frames(waits)
	if err != nil {
		return nil, err
	}
	if p.depth, err = depth(&vm.Frames[len(vm.Frames)-1]); err != nil {
		return nil, err
	}
	p.start.Frames = append([]tinyvmtest.Frame{call}, frames...)
	if p.start.Heap, err = s.heap(); err != nil {
		return nil, err
	}
	p.key.Method, p.key.Position, p.key.Depth = frames[0].Method, frames[0].Position, p.depth+len(frames)-1
	if waits {
		p.key.Position++
	}
	return s.found, nil
}

// end reads the state after the interpreter has answered.
func (p *passage) end(x *trace.Exited, objects []reached, memory machine.Memory) error {
	bits, err := p.answer.Returned.Bits.Uint()
	if err != nil {
		return err
	}
	read := func(vm *frame.VM) (e end, err error) {
		s := newShown(vm, memory)
		roots := []tinyvmtest.Value{s.boxed(bits)}
		for n, o := range objects {
			if !o.is {
				p.places[n] = len(roots)
				roots = append(roots, s.reference(o))
			}
		}
		e.depth, e.Frames = -1, []tinyvmtest.Frame{{Stack: roots}}
		if vm != nil {
			frames, err := s.frames(true)
			if err != nil {
				return e, err
			}
			under, err := depth(&vm.Frames[len(vm.Frames)-1])
			if err != nil {
				return e, err
			}
			e.depth, e.Frames = under+len(frames)-1, append(e.Frames, frames...)
		}
		e.Heap, err = s.heap()
		return e, err
	}
	further := x.Frames[slices.Index(x.Frames, x.Frame)+1:]
	for _, f := range append([]*deopt.Frame{nil}, further...) {
		var vm *frame.VM
		if f != nil {
			// A deoptimized frame stays on the stack below the interpreter, which continues with its values.
			if f.Record == nil || f.Record.Site == string(ir.DeoptimizeSite) {
				continue
			}
			if vm = f.VM; vm == nil || vm.Error != "" {
				return fmt.Errorf("%s has no frames", f.Title())
			}
		}
		e, err := read(vm)
		if err != nil {
			return err
		}
		p.ends = append(p.ends, e)
	}
	return nil
}

// waiting removes the result of a call from the innermost frame. The frame is then as it was while it waited.
func waiting(frames []tinyvmtest.Frame) (result tinyvmtest.Value, _ []tinyvmtest.Frame) {
	frames = slices.Clone(frames)
	f := &frames[0]
	last := len(f.Stack) - 1
	result = f.Stack[last]
	f.Position, f.Stack = f.Position-1, f.Stack[:last:last]
	return result, frames
}

// slots returns the values of frames.
func slots(frames []tinyvmtest.Frame) (all []tinyvmtest.Value) {
	for _, f := range frames {
		all = slices.Concat(all, f.Locals, f.Stack, f.Monitors)
	}
	return all
}

// differs returns the differences from the plain interpreter: those of the frames that were passed, and those of the state after their return.
func (p *passage) differs(h *history, log map[tinyvmtest.Key]tinyvmtest.Arrival) (start, after string) {
	from, to, err := h.span(p)
	if err != nil {
		return err.Error(), ""
	}
	last := log[h.keys[len(h.keys)-1]] // the state, unless a later arrival is found
	began, was := last, last
	var objects map[int]int // numbers of objects in p.start, by the plain interpreter's numbers
	if from >= 0 {
		began = log[h.keys[from]]
		if p.depth < 1 || p.depth > began.Depth {
			return fmt.Sprintf("%d frames are under the outermost, and %d under the innermost", p.depth, began.Depth), ""
		}
		objects, start = p.begins(began)
	}
	if to >= 0 {
		was = log[h.keys[to]]
	}
	if after = p.comesTo(h, from, to); after == "" && p.fuel != was.Fuel {
		after = fmt.Sprintf("%d of fuel is left, and %d was", p.fuel, was.Fuel)
	}
	if after != "" {
		return start, after
	}

	// A waiting frame has the same values before and after the passage. They also identify the frame's objects after it.
	var result tinyvmtest.Value
	outer := was.Frames[len(was.Frames)-p.depth:]
	if to >= 0 {
		result, outer = waiting(outer)
	}
	roots, places := []tinyvmtest.Value{result}, []int{0}
	values := slots(outer)
	for n, v := range slots(began.Frames[len(began.Frames)-p.depth:]) {
		if v.Ref == nil {
			continue
		}
		if number, ok := objects[*v.Ref]; ok {
			at, ok := p.places[number]
			if !ok {
				return fmt.Sprintf("object %d does not exist, and a frame further out has it", number), ""
			}
			roots, places = append(roots, values[n]), append(places, at)
		}
	}
	for _, e := range p.ends {
		if e.depth >= p.depth {
			return start, fmt.Sprintf("a frame further out has %d under it, and those that were handed over %d", e.depth, p.depth)
		}
		var mine tinyvmtest.Frame
		for _, at := range places {
			mine.Stack = append(mine.Stack, e.Frames[0].Stack[at])
		}
		e.Frames = append([]tinyvmtest.Frame{mine}, e.Frames[1:]...)
		was.Frames = append([]tinyvmtest.Frame{{Stack: roots}}, outer[len(outer)-1-e.depth:]...)
		if after = tinyvmtest.Compare(was, e.Arrival); after != "" {
			return start, after
		}
	}
	return start, ""
}

// begins compares the frames that were passed to the interpreter with those of the plain interpreter.
func (p *passage) begins(was tinyvmtest.Arrival) (objects map[int]int, difference string) {
	var call tinyvmtest.Frame
	if len(p.start.Frames[0].Stack) > 0 {
		if len(was.Frames[0].Stack) == 0 {
			return nil, "the plain interpreter has no result of a call there"
		}
		var result tinyvmtest.Value
		result, was.Frames = waiting(was.Frames)
		call.Stack = []tinyvmtest.Value{result}
	}
	was.Frames = append([]tinyvmtest.Frame{call}, was.Frames...)
	return tinyvmtest.Match(was, p.start)
}

// comesTo compares the end of the passage, and the output up to it, with the plain interpreter's run.
func (p *passage) comesTo(h *history, from, to int) string {
	printed, why, back := "", "", to >= 0
	if from >= 0 {
		upTo := len(h.keys)
		if back {
			upTo = to
		}
		printed = strings.Join(h.lines[h.printed[from]:h.printed[upTo]], "")
	}
	// Main.main is called once and therefore never compiled. So a passage that does not return has stopped the program.
	if !back {
		if why = h.stoppedBy(); why == "" {
			return "the plain interpreter returned to nobody"
		}
	}
	switch threw := p.answer.Threw; {
	case (threw == nil) != back || threw != nil && threw.Text != why:
		return fmt.Sprintf("stopped by %q, and the interpreter says %+v", why, threw)
	case p.ended == back:
		return fmt.Sprintf("tinyvm_stopped is %v", p.ended)
	case p.answer.Output != printed:
		return fmt.Sprintf("%q was printed, and %q by the plain interpreter", p.answer.Output, printed)
	}
	return ""
}
