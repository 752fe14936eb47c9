package prompt

import (
	"context"
	"fmt"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/report/explain"
	"example.com/reframe/internal/vm/condition"
)

// locals implements the locals command.
func (p *Prompt) locals(context.Context, string) error {
	at, err := p.Session.Level()
	if err != nil {
		return err
	}
	if at.VM != nil {
		p.vmLocals(at)
		return nil
	}
	if at.Physical != nil {
		if at.Physical.Record == nil && !at.Physical.Interprets() {
			return fmt.Errorf("%s has no record, so its values are unknown%s", at.Physical.Title(), frame.Noted(at.Physical.Notes))
		}
		p.Printer.Frame(p.out, &at.Physical.Frame)
		return nil
	}
	list, err := p.Session.SlotsOf(at)
	p.Printer.Slots(p.out, list)
	return err
}

// print implements the print command.
func (p *Prompt) print(_ context.Context, args string) error {
	hex := false
	if rest, is := strings.CutPrefix(args, "/x"); is {
		hex, args = true, strings.TrimSpace(rest)
	}
	if args == "" {
		return wrong("")
	}
	is, err := p.Session.Expression(args)
	if err != nil {
		return err
	}
	p.printf("%s\n", p.valueText(is, hex))
	return nil
}

// valueText returns a value on one line, with its type and, for a number, its bits.
func (p *Prompt) valueText(is *frame.Slot, hex bool) string {
	switch {
	case is.Status == frame.Missing:
		return "unavailable: " + p.Printer.Printable(is.Reason)
	case is.Status == frame.Undefined:
		return "undef: " + p.Printer.Printable(is.Reason)
	}
	text := p.Printer.Printable(is.Value)
	if text == "" || hex && is.Hex != "" {
		text = string(is.Hex)
	}
	if is.Type.Source != "" {
		text = p.Printer.Printable(is.Type.Source) + " " + text
	}
	if is.Status == frame.Guessed {
		text = "guess: " + text
	}
	return text
}

// list implements the list command.
func (p *Prompt) list(context.Context, string) error {
	at, err := p.Session.Level()
	if err != nil {
		return err
	}
	if at.VM != nil {
		p.vmList(at)
		return nil
	}
	const around = 6
	before, behind := around, around
	if i := at.Place(); p.listed > 0 && i != nil { // a repeated list shows the next lines
		before, behind = i.Line-p.listed-1, p.listed+2*around-i.Line
	}
	lines, err := p.Session.List(at, before, behind)
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		p.listed = 0
		p.printf("the function ends here\n")
		return nil
	}
	if i := at.Place(); p.listed == 0 {
		p.printf("%s\n", p.Printer.Dim("@"+p.Printer.Printable(i.Block.Func.Name)+" of "+p.Printer.Printable(i.Block.Func.Module.Name)))
	}
	for _, l := range lines {
		if l.Source != "" {
			p.printf("         %s\n", p.Printer.Dim("; "+p.Printer.Printable(l.Source)))
		}
		p.printf("%s\n", p.irLine(l.Number, l.Text, l.Here, l.Value))
		p.listed = l.Number
	}
	return nil
}

// These are limits, in characters, for a long line of IR: the whole line, its shown beginning, and its shown end.
const (
	irLong  = 150
	irBegin = 60
	irEnd   = 120
)

// shortened removes the middle of a long line of IR. It keeps the values of a site, which are the operands of its bundle.
func shortened(text string) string {
	all := []rune(text)
	if len(all) <= irLong {
		return text
	}
	end := string(all[len(all)-irEnd:])
	if _, bundle, is := strings.Cut(text, ` [ "deopt"(`); is {
		if end = `[ "deopt"(` + bundle; len([]rune(end)) > irEnd {
			end = string([]rune(end)[:irEnd]) + "…"
		}
	}
	return string(all[:irBegin]) + " … " + end
}

// irWidth is the width of the column of IR before a column of values.
const irWidth = 64

// irLine formats a line of IR with its number, and a value next to it.
func (p *Prompt) irLine(n int, text string, here bool, value string) string {
	mark := "  "
	if here {
		mark = "=>"
	}
	text = shortened(p.Printer.Printable(text))
	if !strings.HasSuffix(text, ":") && !strings.HasPrefix(text, "define") && text != "}" {
		text = "  " + text
	}
	line := fmt.Sprintf("%s %4d  %s", mark, n, text)
	if value != "" {
		line = fmt.Sprintf("%-*s %s", irWidth, line, p.Printer.Bold("; "+p.Printer.Printable(value)))
	}
	return line
}

// address evaluates an expression to an address.
func (p *Prompt) address(text string) (machine.Addr, error) {
	is, err := p.Session.Expression(text)
	if err != nil {
		return 0, err
	}
	if !is.Read() || is.Hex == "" {
		return 0, fmt.Errorf("%s is not an address: it is %s", text, p.valueText(is, false))
	}
	var v uint64
	if _, err := fmt.Sscanf(string(is.Hex), "0x%x", &v); err != nil {
		return 0, fmt.Errorf("%s is not an address: it is %s", text, is.Hex)
	}
	return machine.Addr(v), nil
}

// disassemble implements the disassemble command.
func (p *Prompt) disassemble(_ context.Context, args string) error {
	var at *machine.Addr
	if args != "" {
		a, err := p.address(args)
		if err != nil {
			return err
		}
		at = &a
	}
	e, err := p.Session.Explain(at)
	if err != nil {
		return err
	}
	for n := range e.Places {
		if code := e.Places[n].Code; code != nil {
			p.Printer.Disassembly(p.out, code)
		}
	}
	return nil
}

// registers implements the registers command.
func (p *Prompt) registers(context.Context, string) error {
	at, err := p.Session.Level()
	if err != nil {
		return err
	}
	if at.Physical == nil {
		return fmt.Errorf("the interpreter has no registers; leave shows the physical frames again")
	}
	for _, r := range session.Registers(at) {
		p.printf("  %-6s %s\n", strings.TrimPrefix(r.Name, "$"), p.valueText(&r, true))
	}
	return nil
}

// explain implements the explain command.
func (p *Prompt) explain(_ context.Context, args string) error {
	e, err := p.Session.Explain(nil)
	if err != nil {
		return err
	}
	t, err := p.Session.Target()
	if err != nil {
		return err
	}
	if args == "" {
		return p.Printer.Explanation(p.out, e, t)
	}
	return p.explainSlot(e, args)
}

// explainSlot explains how one value was read. For a value of a virtual machine it names the value of the record from which it was read.
func (p *Prompt) explainSlot(e *explain.Explanation, name string) error {
	for n := range e.Places {
		at := &e.Places[n]
		index := -1
		if at.VM != nil {
			for _, v := range at.VM.All() {
				switch {
				case v.Name != name:
				case v.Value.Slot != nil:
					index = *v.Value.Slot
					p.printf("%s is made of slot %d%s\n", name, index, how(v.Value))
				default:
					p.printf("%s is %s\n", name, p.Printer.Printable(without(v.Value)))
					return nil
				}
			}
		}
		for k := range at.Values {
			v := &at.Values[k]
			if v.Index == index || index < 0 && (condition.Plain(v.Name) == condition.Plain(name) || fmt.Sprintf("#%d", v.Index) == name || has(v.As, name)) {
				p.Printer.Value(p.out, v)
				return nil
			}
		}
	}
	return fmt.Errorf("the record has no value %s; explain without a name lists them", name)
}

// how describes the type to which the layout's codec decoded the bits.
func how(v *frame.VMValue) string {
	if v.Type == "" {
		return ""
	}
	return ", read as " + v.Type
}

// without describes a value of a virtual machine that was not read from a slot of the record.
func without(v *frame.VMValue) string {
	switch {
	case v.Object != nil:
		return fmt.Sprintf("object %d, which was not allocated: its fields are in the record", *v.Object)
	case v.Status == frame.Dead:
		return "dead"
	case v.Status == frame.Missing:
		return "unavailable: " + v.Reason
	}
	return v.Value + ", as the layout says"
}

func has(list []string, name string) bool {
	for _, s := range list {
		if condition.Plain(s) == condition.Plain(name) {
			return true
		}
	}
	return false
}
