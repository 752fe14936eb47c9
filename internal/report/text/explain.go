package text

import (
	"fmt"
	"io"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/report/explain"
	"example.com/reframe/ptrace"
)

// PrintExplanation prints an explanation as text.
func PrintExplanation(w io.Writer, s Style, e *explain.Explanation, t *ptrace.Target) error {
	p := &explainer{Style: s}
	p.line("%s", titleOf(s, t))
	for _, note := range e.Target.Notes {
		p.line("%s", s.Yellow(Printable(note)))
	}
	for n := range e.Places {
		p.place(&e.Places[n])
	}
	if e.More > 0 {
		p.line("")
		p.line("and %s more", Count(e.More, "place"))
	}
	_, err := io.WriteString(w, p.out.String())
	return err
}

// explainer prints an explanation as text.
type explainer struct {
	Style
	out strings.Builder
}

// line prints one line. The caller made text of the target printable.
func (p *explainer) line(format string, args ...any) {
	p.out.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

// title starts a section.
func (p *explainer) title(text string) {
	p.line("")
	p.line("%s", p.Bold(text))
}

func (p *explainer) place(at *explain.Place) {
	p.title(placeTitle(at))
	for _, f := range at.Frames {
		if at.Frame == nil || *at.Frame != f {
			p.line("  frame #%d of thread %d is stopped here: -t %d -f %d", f.Index, f.TID, f.TID, f.Index)
		}
	}
	p.codePlace(&at.In)
	if len(at.Stack) > 0 {
		p.title("how it was found")
		for n := range at.Stack {
			p.unwound(&at.Stack[n])
		}
	}
	p.records(at)
	if len(at.Values) > 0 {
		p.title("its values")
		for n := range at.Values {
			p.value(&at.Values[n])
		}
	}
	if len(at.Direct) > 0 {
		p.title("variables in its memory, by other records of its function")
		p.direct(at.Direct)
	}
	if at.VM != nil {
		p.vm(at)
	}
	if at.Carries != nil {
		p.carries(at.Carries)
	}
	if at.Code != nil {
		p.disassembly(at.Code)
	}
}

func placeTitle(at *explain.Place) string {
	where := symbol(at.In.Symbol, string(at.Address))
	switch {
	case at.Frame != nil:
		return fmt.Sprintf("frame #%d of thread %d: %s", at.Frame.Index, at.Frame.TID, where)
	case len(at.Frames) == 0:
		return where + ", where no frame is stopped"
	}
	return where
}

// symbol returns a function name and the offset into the function. It returns fallback if s is nil.
func symbol(s *explain.SymbolRange, fallback string) string {
	if s == nil {
		return fallback
	}
	return fmt.Sprintf("%s+%#x", Printable(names.Short(s.Name)), s.Offset)
}

// fact prints one row of a table of facts.
func (p *explainer) fact(name, format string, args ...any) {
	p.line("  %-9s %s", name, fmt.Sprintf(format, args...))
}

func (p *explainer) codePlace(in *explain.CodePlace) {
	if m := in.Mapping; m != nil {
		path := m.Path
		if path == "" {
			path = "no file"
		}
		p.fact("mapping", "%s-%s %s %s", m.Start, m.End, m.Permissions, Printable(path))
	}
	if o := in.Object; o != nil {
		p.fact("object", "JIT object %d of %d: %d bytes at %s, registered at %s in %s", o.Number, o.Of, o.Size, o.Start, o.Entry, base(o.List))
	} else if in.Module != "" {
		p.fact("file", "%s", Printable(in.Module))
	}
	if s := in.Section; s != nil {
		p.fact("section", "%s %s-%s", Printable(s.Name), s.Start, s.End)
	}
	if s := in.Symbol; s != nil {
		size := "its symbol has no size"
		if s.Size > 0 {
			size = Count(int(s.Size), "byte")
		}
		label := "symbol"
		if s.NamedBy != "" {
			label = spelled(s.NamedBy)
		}
		p.fact(label, "%s at %s, %s", Printable(names.Short(s.Name)), s.Start, size)
	}
	for n, text := range sourceLines(in.Source) {
		label := "source"
		if n > 0 {
			label = ""
		}
		p.fact(label, "%s", text)
	}
	if in.Why != "" {
		p.fact("", "%s", p.Yellow(Printable(in.Why)))
	}
}

func (p *explainer) unwound(u *explain.UnwoundFrame) {
	name := string(u.PC)
	if u.Function != "" && u.Offset != nil {
		name = fmt.Sprintf("%s %s+%#x", u.PC, Printable(names.Short(u.Function)), *u.Offset)
	}
	found := ""
	if u.Rule == string(unwind.FromRegisters) {
		found = "  by the thread's registers"
	}
	p.line("  %-4s %s%s", fmt.Sprintf("#%d", u.Index), name, p.Dim(found))
	if u.Guess != "" {
		p.line("       %s", p.Yellow(Printable(u.Guess)))
	}
	for _, t := range u.Tried {
		p.line("       tried %s", Printable(t))
	}
	switch {
	case u.CFARule != "" && u.CFA != "":
		p.line("       %s: CFA = %s = %s%s", u.LeftBy, u.CFARule, u.CFA, listed(u.Registers))
	case u.CFARule != "":
		p.line("       %s: no CFA%s", u.LeftBy, listed(u.Registers))
	case u.CFA != "" && u.LeftBy != "":
		p.line("       %s: CFA = %s", u.LeftBy, u.CFA)
	case u.CFA != "":
		p.line("       CFA = %s", u.CFA)
	default:
		p.line("       no CFA: %s", p.Yellow(Printable(u.NoCFA)))
	}
	if f := u.FDE; f != nil {
		p.line("       %s", p.Dim(fmt.Sprintf("%s+%#x of %s: FDE %s-%s, row %s-%s", f.Section, f.Offset, base(f.Image), f.Start, f.End, f.RowStart, f.RowEnd)))
	}
}

func listed(rules []string) string {
	if len(rules) == 0 {
		return ""
	}
	return ", " + strings.Join(rules, ", ")
}

func (p *explainer) records(at *explain.Place) {
	notes := at.Notes
	if len(at.Records) == 0 && len(notes) == 0 {
		return
	}
	switch {
	case len(at.Records) > 0 && at.Records[0].Matched:
		p.title("its record")
	case at.Frame != nil:
		p.title("no record")
	default:
		p.title("the records here")
	}
	for n := range at.Records {
		r := &at.Records[n]
		if n == 1 && at.Records[0].Matched {
			p.line("  not:")
		}
		p.record(r)
	}
	for _, n := range notes {
		p.line("  %s", p.Dim("("+Printable(n)+")"))
	}
}

func (p *explainer) record(r *explain.NearRecord) {
	line := fmt.Sprintf("  %s at %s", p.Bold(fmt.Sprintf("record %d", r.ID)), r.Address)
	if r.Name != "" {
		line += fmt.Sprintf(", %s+%#x", Printable(names.Short(r.Name)), r.Offset)
	}
	if r.Site != string(frame.Unknown) {
		line += ", " + r.Site
	}
	if r.Line > 0 {
		line += fmt.Sprintf(" of %s:%d", base(r.Module), r.Line)
	}
	if r.Moment != "" && r.Moment != frame.Unknown {
		line += ", " + strings.ReplaceAll(string(r.Moment), "-", " ")
	}
	p.line("%s", line)
	p.line("    %s", Printable(r.Why))
}

func (p *explainer) value(x *explain.Value) {
	name := fmt.Sprintf("#%d", x.Index)
	if x.Name != "" {
		name = nameOf(&x.Slot)
	}
	value := x.Value
	if value == "" {
		value = string(x.Hex)
	}
	switch x.Status {
	case frame.Missing:
		value = p.Yellow("unavailable: " + Printable(x.Reason))
	case frame.Undefined:
		value = p.Dim("undef: " + Printable(x.Reason))
	case frame.Guessed:
		value = p.Yellow("guess: " + Printable(value))
	}
	as := ""
	if len(x.As) > 0 {
		as = "  → " + Printable(strings.Join(x.As, ", "))
	}
	p.line("  %-*s %-*s %s%s", nameWidth, name, typeWidth, Printable(x.Type.Source), value, as)
	for _, part := range append([]string{x.Where, x.Origin, x.Sum}, dumped(x.Raw, x.Reading)...) {
		if part != "" {
			p.line("    %s", p.Dim(Printable(part)))
		}
	}
	p.collected(x.GC)
}

// collected prints the role of a value for the garbage collector, according to the record.
func (p *explainer) collected(g *frame.GC) {
	switch {
	case g == nil:
	case !g.Pair:
		p.line("    %s", p.Yellow("no gc pair: the record does not list it for the collector"))
	case g.Base == nil:
		text := "gc pair: it is its own base"
		if names := g.Possible(); names != "" {
			text += "; " + names
		}
		p.line("    %s", p.Dim(Printable(text)))
	default:
		p.line("    %s", p.Dim(Printable(fmt.Sprintf("gc pair: its base is value %d; %s", *g.Base, g))))
	}
}

// dumpedBytes is the number of bytes of a value on one line.
const dumpedBytes = 16

// dumped returns the lines that show the bytes of a value and their interpretation.
func dumped(raw, reading string) []string {
	rows := wordsInRows(raw, dumpedBytes)
	switch {
	case reading == "":
	case len(rows) == 1:
		rows[0] += "   " + reading
	default:
		rows = append(rows, reading)
	}
	return rows
}

func (p *explainer) carries(c *explain.CarriesOn) {
	p.title("where it resumes")
	for _, x := range c.Exits {
		taken := "not taken"
		if x.Taken {
			taken = "taken"
		}
		p.line("  %s, exits[%d] to %s: %s", base(x.Layout), x.Index, Printable(x.To), taken)
		for _, w := range x.When {
			p.line("    %s", when(&w))
		}
	}
	if c.Resume == nil {
		p.line("  nowhere: %s", p.Yellow(Printable(c.Why)))
		return
	}
	p.line("  → %s, by %s", resumePoint(c.Resume), Printable(c.By))
}

// when describes the outcome of a condition of a layout.
func when(w *explain.WhenTried) string {
	out := fmt.Sprintf("when live value %d equals %d: ", w.Operand, w.Equals)
	switch {
	case w.Why != "":
		return out + "it is unavailable: " + Printable(w.Why)
	case w.Holds:
		return out + "it does"
	}
	return out + "it is " + Printable(w.Value)
}

func (p *explainer) disassembly(d *explain.Disassembly) {
	p.title("the code")
	p.instructions(d)
}

func (p *explainer) instructions(d *explain.Disassembly) {
	if d.Why != "" {
		p.line("  %s", p.Yellow(Printable(d.Why)))
	}
	widest := 0
	for _, i := range d.Instructions {
		widest = max(widest, len(i.Bytes))
	}
	for _, i := range d.Instructions {
		mark, offset, notes := "  ", "", ""
		if i.Here {
			mark = "=>"
		}
		if i.Offset != nil {
			offset = fmt.Sprintf("+%#x", *i.Offset)
		}
		if len(i.Notes) > 0 {
			notes = "   ; " + Printable(strings.Join(i.Notes, ", "))
		}
		p.line("  %s %s %-7s %-*s  %s%s", mark, i.Address, offset, widest, i.Bytes, Printable(i.Text), p.Dim(notes))
	}
}
