package text

import (
	"fmt"
	"io"
	"strings"

	"example.com/reframe/deopt/frame"
)

// printDirect prints the variables of a frame without a record.
func printDirect(w io.Writer, s Style, list []frame.Direct) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "        %s\n", s.Dim("not at a record; variables in its memory, located by other records of its function:"))
	for i := range list {
		d := &list[i]
		printVariable(w, s, d)
		if d.Status == frame.Guessed {
			fmt.Fprintf(w, "          %s\n", s.Dim("("+Printable(d.Reason)+")"))
		}
	}
}

// printVariable prints the name, type, content and address of a variable.
func printVariable(w io.Writer, s Style, d *frame.Direct) {
	shown := frame.Slot{Name: d.Name, Variable: d.Variable, Type: d.Type, Value: d.Value, Hex: d.Hex, Status: d.Status, Reason: d.Reason}
	if d.Name == "" {
		shown.Name = d.Location.String()
	}
	name := nameOf(&shown)
	plain, value := content(s, &shown)
	where := fmt.Sprintf("record %d", d.Record)
	if d.Address != "" {
		where = fmt.Sprintf("%s = %s, record %d", d.Address, d.Place, d.Record)
	}
	line := fmt.Sprintf("        %-*s %-*s %s  %s", nameWidth, name, typeWidth, Printable(d.Type.Source), pad(plain, value, valueWidth), s.Dim(where))
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

// direct prints the variables of a frame without a record, with the sources of their addresses and the reasons why contents are uncertain.
func (p *explainer) direct(list []frame.Direct) {
	for i := range list {
		d := &list[i]
		printVariable(&p.out, p.Style, d)
		fewer := "recorded as " + d.Location.String()
		if d.Records > 1 {
			fewer += fmt.Sprintf(" by record %d and %s", d.Record, Count(d.Records-1, "other"))
		}
		p.line("          %s", p.Dim(fewer))
		if d.Status == frame.Guessed {
			p.line("          %s", p.Yellow(Printable(d.Reason)))
		}
	}
}
