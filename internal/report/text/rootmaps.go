package text

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
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
	printNotes(out, s, m)
	for _, i := range m.Images {
		printImageTitle(out, s, i)
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

func printNotes(w io.Writer, s Style, m *maps.Maps) {
	for _, note := range m.Notes {
		fmt.Fprintln(w, s.Yellow(Printable(note)))
	}
}

// printImageTitle prints the name and the kind of an image, and why its maps cannot be read.
func printImageTitle(w io.Writer, s Style, i *maps.Image) {
	what := i.Format
	if i.Arch != nil {
		what += ", " + i.Arch.Title
	}
	fmt.Fprintf(w, "%s  %s\n", s.Bold(Printable(i.Name)), s.Dim(strings.TrimPrefix(what, ", ")))
	if i.Err != nil {
		fmt.Fprintf(w, "  %s\n", s.Yellow(Printable(i.Err.Error())))
	}
}

// functionTitle returns the name of a function of a map.
func functionTitle(f *maps.Function) string {
	return cmp.Or(Printable(f.Demangled), "(no symbol)")
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

// placeOfPointer returns the location of a pointer, the number of pointers in it, and the names that are possible.
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

// PrintRootMapCounts prints the number of safepoints and pairs of each function, those with the most pairs first, then by name.
func PrintRootMapCounts(w io.Writer, s Style, m *maps.Maps, function *names.Pattern) (sum roots.FileSummary, err error) {
	type count struct {
		name              string
		pairs, safepoints int
	}
	out := bufio.NewWriterSize(w, pile)
	printNotes(out, s, m)
	for _, i := range m.Images {
		printImageTitle(out, s, i)
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

// rootMapsImage is an image without its functions.
type rootMapsImage struct {
	Name   string `json:"name"`
	Format string `json:"format,omitempty"`
	Arch   string `json:"arch,omitempty"`
	Error  string `json:"error,omitempty"`
}

// rootMapsFunction is a function with its safepoints.
type rootMapsFunction struct {
	Name       string            `json:"name,omitempty"`
	Demangled  string            `json:"demangled,omitempty"`
	Address    frame.Hex         `json:"address,omitempty"`
	Safepoints []roots.Safepoint `json:"safepoints"`
}

// WriteRootMaps writes the same as JSON, one function at a time: a file may have a million records.
func WriteRootMaps(w io.Writer, m *maps.Maps, function *names.Pattern) (sum roots.FileSummary, err error) {
	out := bufio.NewWriterSize(w, pile)
	var failed error
	encoded := func(v any) []byte {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		failed = cmp.Or(failed, e.Encode(v))
		return SafeJSON(bytes.TrimRight(text.Bytes(), "\n"))
	}
	put := func(v any) { _, _ = out.Write(encoded(v)) } // Flush returns the error
	say := func(text string) { _, _ = out.WriteString(text) }
	say("{\n  \"schema\": ")
	put(roots.FileSchema)
	say(",\n  \"source\": ")
	put(m.Source)
	if len(m.Notes) > 0 {
		say(",\n  \"notes\": ")
		put(m.Notes)
	}
	say(",\n  \"images\": [")
	for n, i := range m.Images {
		if n > 0 {
			say(",")
		}
		image := rootMapsImage{Name: i.Name, Format: i.Format}
		if i.Arch != nil {
			image.Arch = i.Arch.Name
		}
		if i.Err != nil {
			image.Error = i.Err.Error()
		}
		say("\n    ")
		_, _ = out.Write(bytes.TrimSuffix(encoded(image), []byte("}")))
		say(", \"functions\": [")
		some := false
		for f, list := range roots.FileFunctions(i, function, &sum) {
			if some {
				say(",")
			}
			some = true
			is := f.JSON()
			say("\n      ")
			put(rootMapsFunction{is.Name, is.Demangled, is.Address, list})
		}
		say("]}")
	}
	say("],\n  \"summary\": ")
	put(sum)
	say("\n}\n")
	return sum, cmp.Or(failed, out.Flush())
}
