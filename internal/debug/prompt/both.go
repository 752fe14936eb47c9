package prompt

import (
	"context"
	"errors"
	"fmt"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/debug/session"
)

// both implements the both command.
func (p *Prompt) both(ctx context.Context, args string) error {
	n, err := number(args, 1)
	if err != nil {
		return err
	}
	for range n {
		pair, err := p.Session.Both(ctx)
		if pair != nil && (err != nil || pair.Differs || pair.Why != "" || pair.Returned) {
			p.pair(pair)
			return err
		}
		if err != nil {
			return err
		}
	}
	if pair := p.Session.Pair(); pair != nil {
		p.pair(pair)
	}
	return nil
}

// diff implements the diff command.
func (p *Prompt) diff(context.Context, string) error {
	pair := p.Session.Diff()
	switch {
	case pair == nil:
		return errors.New("native code and the interpreter have not run side by side; use both")
	case !pair.Differs && pair.Why == "":
		p.printf("they agree\n")
		return nil
	}
	p.pair(pair)
	return nil
}

// pair prints the places at which both sides are stopped, and their values side by side.
func (p *Prompt) pair(pair *session.Pair) {
	p.listed = 0
	switch {
	case pair.Frame != nil:
		p.printf("%s, after %s\n", p.Printer.Place(&pair.Frame.Frame), instructions(pair.Steps))
		if i := pair.At; i != nil {
			p.printf("%s\n", p.irLine(i.Line, i.Block.Func.Module.LineText(i.Line), true, ""))
		}
	case pair.Returned:
		p.printf("both have returned, after %s\n", instructions(pair.Steps))
	}
	if pair.Note != "" {
		p.printf("%s\n", p.Printer.Printable(pair.Note))
	}
	if len(pair.Rows) > 0 {
		p.printf("  %-*s %-*s %-*s  %s\n", nameWidth, "", typeWidth, "", valueWidth, "interpreter", "native code")
	}
	for n := range pair.Rows {
		p.row(&pair.Rows[n])
	}
	for _, r := range pair.Result {
		p.side("result"+r.Path, r.Type, r.Interpreter, r.Native, r.Same)
	}
	for _, m := range pair.Memory {
		at := string(m.Address)
		if m.Near != "" {
			at += " " + m.Near
		}
		p.side(at, "", m.Interpreter, m.Native, false)
	}
	if more := pair.Words - uint64(len(pair.Memory)); pair.Words > uint64(len(pair.Memory)) {
		p.printf("  and %d more words of memory\n", more)
	}
	if c := pair.Call; c != nil {
		p.printf("  %s\n", p.Printer.Printable(c.String()))
		if c.Only == "" {
			p.side("argument", c.Type, c.Interpreter, c.Native, false)
		}
	}
	switch {
	case pair.Why != "":
		p.printf("cannot compare: %s\n", p.Printer.Printable(pair.Why))
	case pair.Failed != "":
		p.printf("the interpreter cannot continue: %s\n", p.Printer.Printable(pair.Failed))
	case pair.Elsewhere():
		p.printf("%s\n", p.Printer.Bold("they are at different places"))
	case pair.Differs:
		p.printf("%s\n", p.Printer.Bold("they differ"))
	default:
		p.printf("they agree\n")
	}
}

// These are the widths of the columns of values side by side.
const (
	nameWidth  = 8
	typeWidth  = 6
	valueWidth = 22
)

// row prints a value of a record on both sides.
func (p *Prompt) row(r *session.Row) {
	name := r.Name
	if name == "" {
		name = fmt.Sprintf("#%d", r.Native.Index)
	}
	ours := p.valueText(untyped(&r.Interpreted), false)
	if r.Why != "" && !r.Interpreted.Read() {
		ours = "?"
	}
	theirs := p.valueText(untyped(&r.Native), false)
	if r.Why != "" {
		theirs += "  (" + p.Printer.Printable(r.Why) + ")"
	}
	p.side(name, r.Type.Source, ours, theirs, r.Same || r.Why != "")
}

// untyped returns a slot without its type: the type has its own column.
func untyped(s *frame.Slot) *frame.Slot {
	plain := *s
	plain.Type.Source = ""
	return &plain
}

func (p *Prompt) side(name, typ, ours, theirs string, same bool) {
	line := fmt.Sprintf("  %-*s %-*s %-*s  %s", nameWidth, p.Printer.Printable(name), typeWidth, p.Printer.Printable(typ), valueWidth, p.Printer.Printable(ours), p.Printer.Printable(theirs))
	if !same {
		line = p.Printer.Bold(line + "  differs")
	}
	p.printf("%s\n", line)
}
