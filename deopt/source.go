package deopt

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/lines"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/machine/object"
)

// Amounts of debug information to read for one view, as [lines.Budget] counts it.
const (
	// QuickSources takes a few milliseconds.
	QuickSources = 1 << 20
	// AllSources reads everything.
	AllSources = 4 << 30
)

// Sources finds the source lines of the frames: from the DWARF of their images, otherwise from the debug locations of the module with the frame's
// site. It does not need a stopped process. It returns the files whose debug information costs more than the budget to read; their frames stay
// unchanged. A library with a separate debug file over the budget is skipped too, but not returned.
func (v *View) Sources(budget int64) (costly []string) {
	var all []*Frame
	for _, t := range v.Threads {
		all = append(all, t.Frames...)
	}
	return FindSources(all, NewSourceReaders(budget))
}

// Sources does the same as [View.Sources] only for the frames of the stack.
func (s *Stack) Sources(budget int64) { FindSources(s.Frames, NewSourceReaders(budget)) }

// SourceReaders caches the line readers of images.
type SourceReaders struct {
	of     map[*object.Image]*lines.Reader
	budget *lines.Budget
}

func NewSourceReaders(budget int64) *SourceReaders {
	return &SourceReaders{map[*object.Image]*lines.Reader{}, lines.NewBudget(budget)}
}

func FindSources(frames []*Frame, r *SourceReaders) (costly []string) {
	for _, f := range frames {
		if f.code == nil || f.Source != nil {
			continue
		}
		err := f.sourceByDWARF(r)
		name, own := path.Base(f.code.Name), f.code.Image != nil && f.code.Image.Debug() == f.code.Image
		switch {
		case !errors.Is(err, lines.ErrCostly) && err != nil:
			f.Notes = append(f.Notes, "its lines in the source cannot be read: "+err.Error())
		case err != nil && own && !slices.Contains(costly, name):
			costly = append(costly, name)
		}
		if f.Source == nil && f.match != nil && f.match.Site != nil {
			f.Source = SourceOf(f.match.Site.Instr)
		}
	}
	return costly
}

// sourceByDWARF reads the source lines of the frame from its image.
func (f *Frame) sourceByDWARF(all *SourceReaders) error {
	img := f.code.Image
	if img == nil {
		return nil
	}
	r := all.of[img]
	if r == nil {
		r = lines.New(img, all.budget)
		all.of[img] = r
	}
	place, err := r.At(f.physical.Lookup()) // an address inside the call, because the return address may belong to the next line or function
	if err != nil {
		return err
	}
	if place.Missing != "" {
		f.Notes = append(f.Notes, place.Missing)
	}
	for _, s := range place.Lines {
		if s.Function = names.Short(s.Function); s == (frame.Source{}) {
			break // the name of the function and its source line are both unknown
		}
		f.Source = append(f.Source, s)
	}
	return nil
}

// SourceOf returns the source lines of an instruction of a module, innermost first, or nil if the module has none.
func SourceOf(i *ir.Instr) (list []frame.Source) {
	at, ok := i.Source()
	if !ok {
		return nil
	}
	for s := &at; s != nil; s = s.InlinedAt {
		list = append(list, frame.Source{Function: s.Function, File: s.File, Line: s.Line, Column: s.Column, Inlined: s.InlinedAt != nil})
	}
	return list
}

// SourceText returns a source line in gdb's form: file:line, or only the file for code without a line.
func SourceText(s frame.Source) string {
	switch {
	case s.File == "" && s.Line == 0:
		return "??"
	case s.Line == 0:
		return s.File
	}
	return fmt.Sprintf("%s:%d", s.File, s.Line)
}
