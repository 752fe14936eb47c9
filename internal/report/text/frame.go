package text

import (
	"fmt"
	"io"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/machine/names"
)

// These are the widths of the columns of a frame's line.
const (
	functionWidth = 30
	nameWidth     = 8
	variableWidth = 24 // bounds the name column of a frame whose slots are source variables
	typeWidth     = 6
	valueWidth    = 21
)

// PrintFrame prints one frame and its slots.
func PrintFrame(w io.Writer, s Style, f *frame.Frame) {
	where := Place(f)
	kind := fmt.Sprintf("%-6s", f.Kind)
	if f.Kind == frame.JIT {
		kind = s.Green(kind)
	}
	line := fmt.Sprintf("  %-4s %s  %s", fmt.Sprintf("#%d", f.Index), kind, pad(where, s.Bold(where), functionWidth))
	sources := sourceLines(f.Source)
	if len(sources) == 1 && f.Record == nil && f.Resume == nil && len("  #000 native  ")+max(runes(where), functionWidth)+2+runes(sources[0]) <= lineWidth {
		line, sources = line+"  "+sources[0], nil
	}
	if f.Rule != string(unwind.FromRegisters) && f.Rule != string(unwind.FromCFI) {
		line += "  " + s.Dim("by "+f.Rule) // only for unusual unwind rules
	}
	if f.NamedBy != "" {
		line += "  " + s.Dim("named by "+spelled(f.NamedBy))
	}
	if f.Record != nil {
		line += fmt.Sprintf("  record %d, %s", f.Record.ID, Site(f.Record))
	}
	if f.Resume != nil {
		line += "   → " + resumePoint(f.Resume)
	}
	fmt.Fprintln(w, strings.TrimRight(line, " "))
	for _, text := range sources {
		fmt.Fprintf(w, "        %s\n", text)
	}
	width := nameWidth
	for i := range f.Slots {
		if f.Slots[i].Variable != "" || f.Slots[i].Operand != "" {
			width = max(width, min(runes(nameOf(&f.Slots[i])), variableWidth))
		}
	}
	for i := range f.Slots {
		if !f.VM.Shows(&f.Slots[i]) {
			printSlot(w, s, &f.Slots[i], width)
		}
	}
	for i := range f.Also {
		also := &f.Also[i]
		fmt.Fprintf(w, "        %s\n", s.Dim(fmt.Sprintf("record %d, %s, at the same address:", also.Record.ID, Site(&also.Record))))
		for k := range also.Slots {
			printSlot(w, s, &also.Slots[k], width)
		}
		for _, n := range also.Notes {
			fmt.Fprintf(w, "        %s\n", s.Dim("("+Printable(n)+")"))
		}
	}
	printDirect(w, s, f.Direct)
	for _, n := range f.Notes {
		fmt.Fprintf(w, "        %s\n", s.Dim("("+Printable(n)+")"))
	}
	if f.VM != nil {
		callers := inlinedInto
		if f.Interprets() {
			callers = "called by"
		}
		printVM(w, s, f.VM, callers)
	}
}

// Site describes the site of a record: its kind, and whether its call has not started, is running, or has returned.
func Site(r *frame.Record) string {
	if r.Moment == frame.Unknown {
		return "kind of site unknown"
	}
	return fmt.Sprintf("%s, %s", r.Site, strings.ReplaceAll(string(r.Moment), "-", " "))
}

// spelled returns a word of the JSON as people write it: perf-map becomes perf map.
func spelled(word string) string { return strings.ReplaceAll(word, "-", " ") }

// Place returns the location of a frame as gdb would show it.
func Place(f *frame.Frame) string {
	if f.Offset == nil {
		if f.Module != "" {
			return fmt.Sprintf("%s in %s", f.PC, base(f.Module))
		}
		return string(f.PC)
	}
	name := string(f.PC)
	if f.Function != "" {
		name = Printable(names.Short(f.Function))
		return fmt.Sprintf("%s+%#x", name, *f.Offset)
	}
	return fmt.Sprintf("%s (+%#x)", name, *f.Offset)
}

func base(path string) string { return Printable(path[strings.LastIndexByte(path, '/')+1:]) }

// resumePoint describes the place at which a frame resumes.
func resumePoint(r *frame.Resume) string {
	out := fmt.Sprintf("%s, block %%%s", Printable(r.Function), Printable(r.Block))
	switch {
	case r.After != "":
		return out + ", after " + Printable(r.After)
	case r.At != "":
		return out + ", at " + Printable(r.At)
	}
	return out
}

// nameOf returns the name of a slot: its source variable, if known, its name in the module, and the operand of the site if the layout renames it.
func nameOf(slot *frame.Slot) string {
	name := Printable(slot.Name)
	if name == "" {
		name = fmt.Sprintf("#%d", slot.Index) // a constant in the source has no name
	}
	if slot.Operand != "" && slot.Operand != slot.Name { // the operand's name at the site
		name += " ← " + Printable(slot.Operand)
	}
	if slot.Variable != "" {
		name = Printable(slot.Variable) + " = " + name
	}
	return name
}

// joined returns the location of a value, followed by the value's role for the collector.
func joined(where string, gc *frame.GC) string {
	if text := gc.String(); text != "" {
		where += "  " + Printable(text)
	}
	return where
}

func printSlot(w io.Writer, s Style, slot *frame.Slot, width int) {
	name := nameOf(slot)
	plain, value := content(s, slot)
	where := ""
	if slot.Location != nil {
		where = joined(slot.Location.String(), slot.GC)
	}
	line := fmt.Sprintf("        %-*s %-*s %s  %s", width, name, typeWidth, Printable(slot.Type.Source), pad(plain, value, valueWidth), s.Dim(where))
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

// content returns the value of a slot, or the reason why it has none, plain and painted.
func content(s Style, slot *frame.Slot) (plain, painted string) {
	plain = slot.Value
	if plain == "" {
		plain = string(slot.Hex)
	}
	plain = Printable(plain) // a value may contain text of the target
	painted = plain
	switch slot.Status {
	case frame.Missing:
		plain = "unavailable: " + Printable(slot.Reason)
		painted = s.Yellow(plain)
	case frame.Undefined:
		plain = "undef: " + Printable(slot.Reason)
		painted = s.Dim(plain)
	case frame.Guessed: // the frame gives the reason
		plain = "guess: " + plain
		painted = s.Yellow(plain)
	}
	return plain, painted
}
