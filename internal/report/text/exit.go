package text

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine/names"
)

// exitPrinter prints the line of an exit.
type exitPrinter struct {
	style Style
	line  *bytes.Buffer
}

// PrintExit prints an exit: one line, and if the frames of the thread are known, the frames below it.
func PrintExit(b *bytes.Buffer, s Style, x *trace.Exited) {
	fmt.Fprintf(b, "%s  %d", x.Seconds(), x.Thread.ID)
	if x.Thread.Name != "" { // the name is empty if the thread has ended
		fmt.Fprintf(b, " %s", Printable(x.Thread.Name))
	}
	(&exitPrinter{s, b}).place(x)
	for i := range x.Frames {
		PrintFrame(b, s, &x.Frames[i].Frame)
	}
	if len(x.Frames) > 0 && !x.End.Complete {
		fmt.Fprintf(b, "  %s\n", s.Yellow(Printable(x.End.Reason)))
	}
}

// place writes the end of the line of an exit: the location, and the slots unless the frames show them.
func (w *exitPrinter) place(x *trace.Exited) {
	b := w.line
	f := x.Frame
	b.WriteString("  ")
	if x.Point.Symbol != "" {
		fmt.Fprintf(b, "%s called by ", Printable(names.Demangled(x.Point.Symbol)))
	}
	if f == nil {
		fmt.Fprintf(b, "%s\n", w.style.Yellow("unknown caller: "+Printable(x.End.Reason)))
		return
	}
	b.WriteString(w.style.Bold(Place(&f.Frame)))
	if f.Record == nil {
		fmt.Fprintf(b, "  %s\n", w.style.Yellow("no record"))
		return
	}
	if len(f.Source) > 0 {
		fmt.Fprintf(b, " at %s", Printable(deopt.SourceText(f.Source[0])))
	}
	fmt.Fprintf(b, "  record %d %s", f.Record.ID, f.Record.Site)
	if m := f.Record.Moment; m != frame.Before && m != frame.Unknown {
		fmt.Fprintf(b, ", %s", strings.ReplaceAll(string(m), "-", " "))
	}
	if len(x.Frames) > 0 {
		b.WriteByte('\n')
		return
	}
	if vm := f.VM; vm != nil && len(vm.Frames) > 0 {
		w.vmFrames(vm)
		b.WriteByte('\n')
		return
	}
	w.slots(f.Slots)
	for i := range f.Also {
		fmt.Fprintf(b, "  or record %d %s", f.Also[i].Record.ID, f.Also[i].Record.Site)
		w.slots(f.Also[i].Slots)
	}
	if f.VM != nil {
		fmt.Fprintf(b, "  %s", w.style.Yellow("no VM frames: "+Printable(f.VM.Error)))
	}
	if len(f.Slots) == 0 && len(f.Notes) > 0 {
		fmt.Fprintf(b, "  %s", w.style.Dim("("+Printable(f.Notes[len(f.Notes)-1])+")"))
	}
	b.WriteByte('\n')
}

// shortReason bounds a reason on the line of an exit, in characters.
const shortReason = 40

// vmFrames writes the VM frames of an exit, with the values of the innermost one.
func (w *exitPrinter) vmFrames(vm *frame.VM) {
	b := w.line
	for n := range vm.Frames {
		f := &vm.Frames[n]
		if n > 0 {
			b.WriteString("  in ")
		} else {
			b.WriteString("  ")
		}
		b.WriteString(vmTitle(w.style, f))
		if f.Reason != "" {
			b.WriteString(" " + w.style.Yellow("("+Printable(f.Reason)+")"))
		}
		if n > 0 {
			continue
		}
		for k := range f.Locals {
			w.placed("local", &f.Locals[k])
		}
		for k := range f.Stack {
			w.placed("stack", &f.Stack[k])
		}
		for _, name := range slices.Sorted(maps.Keys(f.Extra)) {
			v := f.Extra[name]
			fmt.Fprintf(b, " %s=%s", Printable(name), w.vmValue(&v))
		}
	}
}

// placed writes a local variable or an element of the operand stack, with its value.
func (w *exitPrinter) placed(what string, v *frame.VMValue) {
	for _, part := range [...]string{" ", placeOf(what, v), "=", w.vmValue(v)} {
		w.line.WriteString(part)
	}
}

// vmValue returns a value as it appears on the line of an exit.
func (w *exitPrinter) vmValue(v *frame.VMValue) string {
	switch {
	case v.Object != nil:
		return fmt.Sprintf("object(%d)", *v.Object)
	case v.Status == frame.Missing:
		return w.style.Yellow("unavailable(" + shortened(v.Reason) + ")")
	case v.Status == frame.Dead, v.Status == frame.Undefined:
		return string(v.Status)
	case v.Status == frame.Guessed:
		return w.style.Yellow("guess(" + Printable(cmp.Or(v.Value, string(v.Hex))) + ")")
	}
	if v.Text != "" {
		return Printable(v.Text)
	}
	value := Printable(cmp.Or(v.Value, string(v.Hex)))
	if v.TextReason != "" {
		value += " (no text: " + shortened(v.TextReason) + ")"
	}
	return value
}

// shortened returns a reason as it appears on the line of an exit.
func shortened(reason string) string {
	why := Printable(reason)
	if utf8.RuneCountInString(why) > shortReason {
		why = strings.TrimRight(string([]rune(why)[:shortReason]), " ") + "…"
	}
	return why
}

func (w *exitPrinter) slots(list []frame.Slot) {
	for i := range list {
		w.line.WriteByte(' ')
		if i == 0 {
			w.line.WriteByte(' ')
		}
		w.slot(&list[i])
	}
}

func (w *exitPrinter) slot(s *frame.Slot) {
	name := Printable(s.Name)
	if name == "" {
		name = fmt.Sprintf("#%d", s.Index)
	}
	w.line.WriteString(name)
	if s.Operand != "" {
		w.line.WriteString("←" + Printable(s.Operand))
	}
	w.line.WriteByte('=')
	switch {
	case s.Status == frame.Undefined:
		w.line.WriteString("undef")
	case s.Status == frame.Missing:
		w.line.WriteString(w.style.Yellow("unavailable(" + shortened(s.Reason) + ")"))
	default:
		value := Printable(cmp.Or(s.Value, string(s.Hex)))
		if s.Status == frame.Guessed {
			value = w.style.Yellow("guess(" + value + ")")
		}
		w.line.WriteString(value)
	}
}

// PrintPlanned prints one byte that a trace would overwrite.
func PrintPlanned(b *bytes.Buffer, p *trace.Planned) {
	is := "????" // the memory is unreadable
	if p.Byte != "" {
		is = string(p.Byte)
	}
	becomes := "→ 0xcc"
	switch {
	case p.Hardware:
		becomes = "stays "
	case p.Shared:
		becomes = "shared"
	}
	line := func(where, what string) {
		fmt.Fprintf(b, "%s  %4s %s  %s  %s\n", p.Address, is, becomes, pad(where, where, functionWidth), what)
	}
	if p.Symbol != "" {
		line(Printable(names.Demangled(p.Symbol)), "entry")
	}
	for _, x := range p.Exits {
		where := fmt.Sprintf("(+%#x)", x.Offset)
		if x.Function != "" {
			where = fmt.Sprintf("%s+%#x", Printable(names.Demangled(x.Function)), x.Offset)
		}
		what := fmt.Sprintf("record %d, %s, %s", x.Record, x.Site, strings.ReplaceAll(string(x.Moment), "-", " "))
		if x.Note != "" {
			what += " (" + Printable(x.Note) + ")"
		}
		line(where, what)
	}
}
