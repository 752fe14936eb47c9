package text

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/roots"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/static/maps"
)

// PrintRootMaps prints the roots of each safepoint in the maps of a file. function selects functions; nil selects all.
func PrintRootMaps(w io.Writer, s Style, m *maps.Maps, function *names.Pattern) (sum roots.FileSummary, err error) {
	out := bufio.NewWriterSize(w, pile)
	_, _ = io.WriteString(out, notesOf(s, m))
	for _, i := range m.Images {
		_, _ = io.WriteString(out, imageTitle(s, i)) // Flush returns the error
		for f, list := range roots.FileFunctions(i, function, &sum) {
			fmt.Fprintf(out, "\n  %s\n", s.Bold(functionTitle(f)))
			for k := range list {
				printSafepoint(out, s, &list[k])
			}
		}
	}
	fmt.Fprintf(out, "\n%s\n", rootMapsSummary(s, &sum))
	return sum, out.Flush()
}

// printSafepoint prints a safepoint and its pairs.
func printSafepoint(w io.Writer, s Style, p *roots.Safepoint) {
	where := fmt.Sprintf("    returns to +%#x", p.Offset)
	if p.Address != "" {
		where += fmt.Sprintf(" (%s)", p.Address)
	}
	where += fmt.Sprintf("  record %d", p.ID)
	switch {
	case p.Line > 0:
		where += fmt.Sprintf(", line %d", p.Line)
	case !p.Certain():
		where += ", reads as a statepoint"
	}
	fmt.Fprintln(w, where)
	if p.Note != "" {
		fmt.Fprintf(w, "      %s\n", s.Yellow(Printable(p.Note)))
	}
	for k := range p.Pairs {
		pair := &p.Pairs[k]
		line := fmt.Sprintf("        %-*s %-*s %s", nameWidth, Printable(pair.Name), typeWidth, Printable(pair.Type), s.Dim(placeOfPointer(&pair.Pointer)))
		if b := pair.Base; b != nil {
			line += s.Dim("  base: " + strings.TrimLeft(Printable(b.Name)+" ", " ") + placeOfPointer(b))
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	for k := range p.Allocas {
		fmt.Fprintf(w, "        %-*s %-*s %s\n", nameWidth, "", typeWidth, "", s.Dim(p.Allocas[k].String()+"  stack object"))
	}
	if len(p.Pairs) == 0 && len(p.Allocas) == 0 {
		fmt.Fprintf(w, "        %s\n", s.Dim("no roots"))
	}
}

// placeOfPointer returns the location of a pointer, the number of pointers in that location, and the possible names.
func placeOfPointer(p *roots.Pointer) string {
	text := p.Location.String()
	if p.Pointers > 0 {
		text += " = " + Count(p.Pointers, "pointer")
	}
	if names := (&frame.GC{OneOf: p.OneOf, OneOfMore: p.OneOfMore}).Possible(); names != "" {
		text += "  " + Printable(names)
	}
	return text
}

// rootMapsSummary returns the last line.
func rootMapsSummary(s Style, sum *roots.FileSummary) string {
	parts := []string{
		fmt.Sprintf("%s at %s in %s", Count(sum.Pairs, "pair"), Count(sum.Safepoints, "safepoint"), Count(sum.Functions, "function")),
	}
	if sum.Derived > 0 {
		parts = append(parts, fmt.Sprintf("%d derived", sum.Derived))
	}
	if sum.Allocas > 0 {
		parts = append(parts, Count(sum.Allocas, "stack object"))
	}
	if sum.Unsure > 0 {
		parts = append(parts, s.Yellow(fmt.Sprintf("%d only read as statepoints (--ir)", sum.Unsure)))
	}
	if sum.Unreadable > 0 {
		parts = append(parts, s.Yellow(Count(sum.Unreadable, "image")+" unreadable"))
	}
	return strings.Join(parts, " · ")
}

// PrintRootMapCounts prints the number of safepoints and pairs of each function, sorted by the number of pairs, most first, and then by name.
func PrintRootMapCounts(w io.Writer, s Style, m *maps.Maps, function *names.Pattern) (sum roots.FileSummary, err error) {
	type count struct {
		name              string
		pairs, safepoints int
	}
	out := bufio.NewWriterSize(w, pile)
	_, _ = io.WriteString(out, notesOf(s, m))
	for _, i := range m.Images {
		_, _ = io.WriteString(out, imageTitle(s, i)) // Flush returns the error
		var all []count
		for f, list := range roots.FileFunctions(i, function, &sum) {
			c := count{name: functionTitle(f), safepoints: len(list)}
			for k := range list {
				c.pairs += len(list[k].Pairs)
			}
			all = append(all, c)
		}
		slices.SortStableFunc(all, func(a, b count) int { return cmp.Or(cmp.Compare(b.pairs, a.pairs), cmp.Compare(a.name, b.name)) })
		for _, c := range all {
			fmt.Fprintf(out, "  %7d at %-14s %s\n", c.pairs, Count(c.safepoints, "safepoint"), s.Bold(c.name))
		}
	}
	fmt.Fprintf(out, "\n%s\n", rootMapsSummary(s, &sum))
	return sum, out.Flush()
}

// rootMapsFunction is a function with its safepoints.
type rootMapsFunction struct {
	Name       string            `json:"name,omitempty"`
	Demangled  string            `json:"demangled,omitempty"`
	Address    frame.Hex         `json:"address,omitempty"`
	Safepoints []roots.Safepoint `json:"safepoints"`
}

// WriteRootMaps writes the safepoints and their roots as JSON. It writes one function at a time, because a file may have a million records.
func WriteRootMaps(w io.Writer, m *maps.Maps, function *names.Pattern) (sum roots.FileSummary, err error) {
	p := &mapsJSON{out: w}
	p.begin(roots.FileSchema, m)
	for n, i := range m.Images {
		head := i.JSON()
		head.Dialect, head.Also, head.Maps = "", nil, nil
		p.openWith("    ", n > 0, head, "functions")
		some := false
		for f, list := range roots.FileFunctions(i, function, &sum) {
			const indent = "        "
			p.separate(indent, some)
			is := f.JSON()
			p.b = append(p.b, p.marshal(indent, rootMapsFunction{is.Name, is.Demangled, is.Address, list})...)
			if some = true; len(p.b) > pile {
				p.flush()
			}
		}
		p.closeAt("    ", some)
	}
	p.end("  ", len(m.Images) > 0)
	p.member("  ", "summary", sum, false)
	p.say("\n}\n")
	p.flush()
	return sum, p.err
}
