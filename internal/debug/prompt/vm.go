package prompt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/vm/protocol"
)

// standsInVM prints the position of the virtual machine's interpreter, or its result.
func (p *Prompt) standsInVM(r *session.VMRun) error {
	p.listed = 0
	if err := p.Session.SetLevel(0); err != nil {
		return err
	}
	name := p.Printer.Printable(r.Name())
	answer, failed := r.Ended()
	switch {
	case failed != nil:
		p.printf("%s cannot continue: %s\n", name, p.Printer.Printable(failed.Error()))
	case answer != nil:
		p.printf("%s %s, says %s after %s\n", p.Printer.Printable(r.Method()), p.Printer.Bold(p.Printer.Printable(cameTo(answer))), name, instructions(r.Steps()))
		return nil
	}
	at, err := p.Session.Level()
	if err != nil {
		return err
	}
	p.vmLine(at)
	p.vmInstruction(at)
	return nil
}

// cameTo describes the result of a run.
func cameTo(a *protocol.Answer) string {
	switch v := a.Returned; {
	case a.Threw != nil:
		return "ended with an exception: " + a.Threw.Text
	case v == nil:
		return "returned nothing"
	default:
		return fmt.Sprintf("returned %s %s", v.Type, v.Said())
	}
}

// vmLine prints the position of the virtual machine's interpreter in a method.
func (p *Prompt) vmLine(at session.Level) {
	f := &at.VM.VM.Frames[0]
	how := ""
	if f.Resume != frame.Reexecute {
		how = ", " + strings.ReplaceAll(f.Resume, "-", " ")
	}
	p.printf("%-4s %s  %s%s\n", fmt.Sprintf("#%d", at.Number), p.Printer.Dim("vm    "), p.Printer.Bold(p.Printer.Printable(f.Method)+" @ "+position(f)), how)
}

func position(f *frame.VMFrame) string {
	if f.Position == nil {
		return "?"
	}
	return fmt.Sprint(*f.Position)
}

// vmInstruction prints the instruction at a method's position, if the interpreter reports it.
func (p *Prompt) vmInstruction(at session.Level) {
	if at.VM.Text != "" {
		p.printf("=> %4s  %s\n", position(&at.VM.VM.Frames[0]), p.Printer.Printable(at.VM.Text))
	}
}

// vmLocals prints the values of a method, and the objects that were not allocated.
func (p *Prompt) vmLocals(at session.Level) {
	is := *at.VM.VM
	is.Frames = is.Frames[:1]
	p.Printer.VM(p.out, &is)
}

// vmList prints the known information about a method's position.
func (p *Prompt) vmList(at session.Level) {
	p.vmLine(at)
	p.vmInstruction(at)
	info := at.VM.VM.Frames[0].Info
	for _, key := range slices.Sorted(maps.Keys(info)) {
		p.printf("         %s %s\n", p.Printer.Printable(key), p.Printer.Printable(info[key]))
	}
}
