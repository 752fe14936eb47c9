package text

import (
	"io"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/report/explain"
	"example.com/reframe/ptrace"
)

// Printer prints the frames and values of a session, in the format of the verbs.
type Printer struct{ Style }

// Frame prints a frame with its slots and the frames of a virtual machine in it.
func (p Printer) Frame(w io.Writer, f *frame.Frame) { PrintFrame(w, p.Style, f) }

// FrameLine prints a frame without its values.
func (p Printer) FrameLine(w io.Writer, f *frame.Frame) {
	line := *f
	line.Slots, line.Notes = nil, nil
	if f.VM != nil {
		vm := frame.VM{Layout: f.VM.Layout, Error: f.VM.Error}
		for _, v := range f.VM.Frames {
			v.Locals, v.Stack, v.Monitors, v.Extra = nil, nil, nil, nil
			vm.Frames = append(vm.Frames, v)
		}
		line.VM = &vm
	}
	PrintFrame(w, p.Style, &line)
}

// Slots prints slots, one per line.
func (p Printer) Slots(w io.Writer, list []frame.Slot) {
	for n := range list {
		printSlot(w, p.Style, &list[n], nameWidth)
	}
}

// VM prints the frames of a virtual machine with their values.
func (p Printer) VM(w io.Writer, vm *frame.VM) { printVM(w, p.Style, vm, inlinedInto) }

// Thread returns the title of a thread.
func (p Printer) Thread(t *deopt.Thread) string { return p.Style.Bold(titleOfThread(t)) }

// Place returns the position of a frame in the code.
func (p Printer) Place(f *frame.Frame) string { return Place(f) }

// Explanation prints an explanation in the format of the verb explain.
func (p Printer) Explanation(w io.Writer, e *explain.Explanation, t *ptrace.Target) error {
	return PrintExplanation(w, p.Style, e, t)
}

// Value prints one value of an explanation.
func (p Printer) Value(w io.Writer, v *explain.Value) {
	x := &explainer{Style: p.Style}
	x.value(v)
	_, _ = io.WriteString(w, x.out.String())
}

// Disassembly prints instructions.
func (p Printer) Disassembly(w io.Writer, d *explain.Disassembly) {
	x := &explainer{Style: p.Style}
	x.instructions(d)
	_, _ = io.WriteString(w, x.out.String())
}

// Resumed prints a finished run.
func (p Printer) Resumed(w io.Writer, r *frame.Resumed, s *deopt.Stack) error {
	return PrintResumed(w, p.Style, r, s.Frames)
}

// Printable makes text of a target safe for a terminal, and keeps its lines.
func (p Printer) Printable(text string) string { return PrintableLines(text) }
