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

// How much of debug information is read for one view, as [source.Budget] counts it.
const (
	// QuickSources takes a few milliseconds.
	QuickSources = 1 << 20
	// AllSources are all that a program can have.
	AllSources = 4 << 30
)

// Sources finds out where in the source the frames are: by the DWARF of the images that they are in, else by the debug locations of the module
// that a frame's site is in. It needs no process that is stopped. It returns the files whose own debug information takes more than
// the budget to read; their frames are left as they are, and so are those of libraries for which the system has separate files that do.
func (v *View) Sources(budget int64) (costly []string) {
	var all []*Frame
	for _, t := range v.Threads {
		all = append(all, t.Frames...)
	}
	return FindSources(all, NewSourceReaders(budget))
}

// Sources is [View.Sources] of these frames alone.
func (s *Stack) Sources(budget int64) { FindSources(s.Frames, NewSourceReaders(budget)) }

// SourceReaders are those of the images that frames are in.
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

// sourceByDWARF asks the image of the frame.
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
	place, err := r.At(f.physical.Lookup()) // the call may be the last of its line, or of its function
	if err != nil {
		return err
	}
	if place.Missing != "" {
		f.Notes = append(f.Notes, place.Missing)
	}
	for _, s := range place.Lines {
		if s.Function = names.Short(s.Function); s == (frame.Source{}) {
			break // the function has neither a name nor a place
		}
		f.Source = append(f.Source, s)
	}
	return nil
}

// SourceOf returns the place in the source of an instruction of a module, innermost first, or nil if the module does not contain it.
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

// SourceText returns a place in the source in gdb's form: file:line, or only the file for code without a line.
func SourceText(s frame.Source) string {
	switch {
	case s.File == "" && s.Line == 0:
		return "??"
	case s.Line == 0:
		return s.File
	}
	return fmt.Sprintf("%s:%d", s.File, s.Line)
}
