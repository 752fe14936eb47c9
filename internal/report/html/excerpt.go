package html

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine/names"
)

// Excerpt holds lines of a module around a place, with the values of the names in them.
type Excerpt struct {
	Title    string
	Lines    []Line
	Operands []Operand // the live values of the site
	keys     map[int]bool
}

// Line is one line of a module.
type Line struct {
	Number int
	Pieces []Piece
	Values []Piece // the known values of the names in the line: %i = 26
	Here   bool
	Inner  bool // the line is indented
}

// Operand is a live value of the site.
type Operand struct {
	Piece
	Value string
}

// These are the numbers of lines that are shown before the place, and from the place on.
const (
	linesBefore = 10
	linesFrom   = 6
	// maxCandidates bounds the sites that are shown if the record may belong to several.
	maxCandidates = 3
	// maxLine bounds a line of a module, in runes.
	maxLine = 800
)

// localName matches a local identifier (LangRef, "Identifiers").
var localName = regexp.MustCompile(`%(?:"[^"]*"|[-a-zA-Z$._0-9]+)`)

// label matches the label of a block.
var label = regexp.MustCompile(`^(?:"[^"]*"|[-a-zA-Z$._0-9]+):`)

func (at *Place) excerpts(l limits) (list []*Excerpt) {
	m := at.frame.Match()
	if m == nil {
		return nil
	}
	candidates := m.Sites
	if m.Site != nil {
		candidates = []*ir.Site{m.Site}
	}
	anchored := map[int]bool{}
	for _, s := range candidates[:min(len(candidates), maxCandidates)] {
		title := fmt.Sprintf("the site: line %d of %s, %s in @%s", s.Instr.Line, path.Base(s.Func.Module.Name), s.Kind, names.Short(s.Func.Name))
		if len(candidates) > 1 {
			title = "it may be " + title
		}
		e := &excerpter{at: at, out: &Excerpt{Title: title, keys: anchored}, names: map[string]int{}}
		for k := range at.Values {
			if name := at.Values[k].Name; strings.HasPrefix(name, "%") {
				e.names[name] = k
			}
		}
		e.lines(s.Func, s.Instr.Line, min(l.lines, linesBefore), linesFrom)
		for k, v := range s.Live[:min(len(s.Live), len(at.Values))] {
			e.operand(k, v)
		}
		list = append(list, e.out)
	}
	if to := at.frame.To(); to != nil && at.Carries != nil && at.Carries.By != "" && at.Carries.Resume != nil && (m.Site == nil || to != m.Site.Func) {
		if x := at.resumes(to, anchored, l); x != nil {
			list = append(list, x)
		}
	}
	return list
}

// resumes returns the block in which the frame resumes, if it belongs to another function.
func (at *Place) resumes(to *ir.Func, anchored map[int]bool, l limits) *Excerpt {
	b := to.Block(at.Carries.Resume.Block)
	if b == nil {
		return nil
	}
	e := &excerpter{at: at, names: map[string]int{}, out: &Excerpt{keys: anchored,
		Title: fmt.Sprintf("where it resumes: line %d of %s, block %%%s of @%s", b.Line, path.Base(to.Module.Name), b.Name, names.Short(to.Name))}}
	for k := range at.Values {
		for _, name := range at.Values[k].As {
			e.names[name] = k
		}
	}
	e.lines(to, b.Line, 2, min(l.lines, linesBefore))
	return e.out
}

type excerpter struct {
	at    *Place
	out   *Excerpt
	names map[string]int
}

// lines adds the lines around one of a function.
func (e *excerpter) lines(fn *ir.Func, here, before, from int) {
	for n := max(fn.Line, here-before); n < here+from; n++ {
		text := fn.Module.LineText(n)
		if text == "" && n > here {
			break
		}
		line := Line{Number: n, Here: n == here, Inner: !label.MatchString(text) && !strings.HasPrefix(text, "define") && text != "}"}
		text = short(text, maxLine)
		done, seen := 0, map[int]bool{}
		for _, found := range localName.FindAllStringIndex(text, -1) {
			k, ok := e.names[text[found[0]:found[1]]]
			if !ok {
				continue
			}
			line.Pieces = append(line.Pieces, Piece{Text: text[done:found[0]]}, e.piece(k, text[found[0]:found[1]], n == here))
			if done = found[1]; !seen[k] && e.at.Values[k].Read() {
				seen[k] = true
				line.Values = append(line.Values, Piece{Text: fmt.Sprintf("%s = %s", text[found[0]:found[1]], short(e.at.Values[k].Shown, 40)), Keys: key(k)})
			}
		}
		line.Pieces = append(line.Pieces, Piece{Text: text[done:]})
		e.out.Lines = append(e.out.Lines, line)
		if text == "}" {
			break
		}
	}
}

// piece returns a text that belongs to value k. Links lead to the operand of the site if it is shown, otherwise to the first piece in a line.
func (e *excerpter) piece(k int, text string, anchor bool) Piece {
	p := Piece{Text: text, Keys: key(k)}
	if anchor && !e.out.keys[k] {
		e.out.keys[k] = true
		p.Anchors = []string{"IR-" + key(k)}
	}
	return p
}

// operand adds live value k of a site.
func (e *excerpter) operand(k int, v ir.Value) {
	text := v.Ref()
	if t := v.Type(); t != nil {
		text = t.String() + " " + text
	}
	o := Operand{Piece: e.piece(k, short(text, maxText/2), true), Value: short(e.at.Values[k].Shown, 60)}
	if name := sites.NameOf(v); name == "" && e.at.Values[k].Status == frame.OK {
		o.Value = "" // the text of a constant already shows its value
	} else if !e.at.Values[k].Read() {
		o.Value = string(e.at.Values[k].Status)
	}
	e.out.Operands = append(e.out.Operands, o)
}

// shownIn returns the values that have an anchor in an excerpt.
func shownIn(list []*Excerpt) map[int]bool {
	if len(list) == 0 {
		return nil
	}
	return list[0].keys
}
