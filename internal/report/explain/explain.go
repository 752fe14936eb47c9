package explain

import (
	"errors"
	"fmt"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/progspace"
)

// Schema names the JSON of an [Explanation].
const Schema = "reframe.explain/v1"

// Explanation describes how a frame was rebuilt, or describes places in the code. It is plain data: it needs no access to the target.
type Explanation struct {
	Schema string       `json:"schema"`
	Target frame.Target `json:"target"`
	Asked  string       `json:"asked"` // the question as text
	Places []Place      `json:"places"`
	More   int          `json:"more,omitempty"` // the number of further places of the record

	unopened bool // some files of the process could not be opened
}

// Place is a place in the code. If the question selects one frame at it, Place explains that frame.
type Place struct {
	Address frame.Hex  `json:"address"`
	Frame   *FrameName `json:"frame,omitempty"` // the explained frame; nil for none
	// Frames lists all frames whose pc is here.
	Frames  []FrameName    `json:"frames"`
	In      CodePlace      `json:"in"`
	Stack   []UnwoundFrame `json:"stack,omitempty"` // the frames from #0 to this one
	Records []NearRecord   `json:"records"`         // the matched record and those near it
	Values  []Value        `json:"values,omitempty"`
	Direct  []frame.Direct `json:"direct,omitempty"` // for a frame without a record, as in [frame.Frame]
	VM      *frame.VM      `json:"vm,omitempty"`     // frames of a virtual machine; each value names the element of Values from which it is read
	Carries *CarriesOn     `json:"carries_on,omitempty"`
	Notes   []string       `json:"notes,omitempty"`
	Code    *Disassembly   `json:"code,omitempty"` // nil if a record has several places

	partial bool // a value of its frame is unavailable
}

// FrameName names a frame.
type FrameName struct {
	TID   int `json:"tid"`
	Index int `json:"index"`
}

// Question selects a frame or, with Address or Record, a place. If none of these is set, it selects the innermost frame that has a record.
type Question struct {
	Address *machine.Addr
	Record  *uint64
	Frame   int // the number of a frame as in a [deopt.Choice], or -1
}

// ErrNotFound is wrapped by the error for a question that selects nothing.
var ErrNotFound = errors.New("nothing to explain")

// maxPlaces bounds the reported places of one record. LLVM gives one id to all statepoints that have no id in the IR.
const maxPlaces = 32

// Explain answers a question. The target must be stopped: Explain reads code and memory that is not cached yet, and for a record all registered
// objects. If exactly one frame is at the address or record of the question, it explains that frame. An error wraps [ErrNotFound].
func Explain(v *deopt.View, q Question) (*Explanation, error) {
	e := &Explanation{Schema: Schema, Target: v.About(), unopened: progspace.Unopened(v.Target()) != ""}
	var err error
	switch {
	case q.Address != nil:
		e.Asked = fmt.Sprintf("address %v", *q.Address)
		err = explainAddress(v, e, *q.Address, q.Frame)
	case q.Record != nil:
		e.Asked = fmt.Sprintf("record %d", *q.Record)
		err = explainRecord(v, e, *q.Record, q.Frame)
	default:
		var s standing
		if s, err = asked(v, q.Frame); err == nil {
			e.Asked = fmt.Sprintf("frame #%d of thread %d", s.frame.Index, s.thread.ID)
			e.Places = []Place{explainFrame(v, s, []FrameName{s.name()})}
		}
	}
	return e, err
}

// standing is a frame and its thread.
type standing struct {
	thread *deopt.Thread
	frame  *deopt.Frame
}

func (s standing) name() FrameName { return FrameName{s.thread.ID, s.frame.Index} }

func namesOfAll(all []standing) []FrameName {
	out := []FrameName{}
	for _, s := range all {
		out = append(out, s.name())
	}
	return out
}

// frames lists the frames with a number for which holds returns true. The number -1 means all frames.
func frames(v *deopt.View, number int, holds func(*deopt.Frame) bool) []standing {
	var out []standing
	for i := range v.Threads {
		for _, f := range v.Threads[i].Frames {
			if choice := (deopt.Choice{Frame: number}); choice.Is(&v.Threads[i], f) && holds(f) {
				out = append(out, standing{&v.Threads[i], f})
			}
		}
	}
	return out
}

// asked returns the frame with a number, or with -1 the innermost frame that has a record, in the first thread with such a frame.
func asked(v *deopt.View, number int) (standing, error) {
	all := frames(v, number, func(f *deopt.Frame) bool { return number != -1 || f.Record != nil })
	choice := deopt.Choice{Frame: number}
	switch {
	case len(all) > 0:
		return all[0], nil
	case choice.Numbered():
		return standing{}, fmt.Errorf("%w: there is no frame %d; %s", ErrNotFound, choice.Number(), v.HowMany())
	}
	return standing{}, fmt.Errorf("%w: no frame has a record; select one by its number (-f), an address or a record: %s", ErrNotFound, v.WhyNone())
}

func explainAddress(v *deopt.View, e *Explanation, addr machine.Addr, number int) error {
	all := frames(v, number, func(f *deopt.Frame) bool { return f.Physical().PC == addr })
	if len(all) == 1 {
		e.Places = []Place{explainFrame(v, all[0], namesOfAll(all))}
		return nil
	}
	v.Target().ReadObject(addr)
	switch m, ok := v.Target().Mapping(addr); {
	case !ok:
		return fmt.Errorf("%w: no memory is mapped at %v", ErrNotFound, addr)
	case !m.Exec:
		return fmt.Errorf("%w: %v is not code: it is in %s, %s", ErrNotFound, addr, mapped(m), permissions(m))
	}
	p := explainCode(v, addr)
	p.Frames = namesOfAll(all)
	e.Places = []Place{p}
	return nil
}

// explainRecord explains all places of a record.
func explainRecord(v *deopt.View, answer *Explanation, id uint64, number int) error {
	type place struct {
		code  *progspace.Objfile
		entry sites.RecordEntry
		all   []standing
	}
	var places []place
	stand := 0
	v.Target().ReadObjects()
	for _, c := range v.Space().WithRecords() {
		for e := range c.WithID(id) {
			here := place{c, e, frames(v, number, func(f *deopt.Frame) bool { return f.Physical().PC == e.Addr || isOf(f, e) })}
			stand += len(here.all)
			if len(here.all) == 0 && len(places) >= maxPlaces {
				answer.More++
				continue
			}
			places = append(places, here)
		}
	}
	for _, at := range places {
		switch {
		case len(at.all) == 1 && stand == 1:
			answer.Places = append(answer.Places, explainFrame(v, at.all[0].as(at.entry), namesOfAll(at.all)))
		case len(places) == 1 && len(at.all) == 0:
			answer.Places = append(answer.Places, explainCode(v, at.entry.Addr))
		default:
			imagined := v.FrameAt(at.code, at.entry.Addr, nil)
			answer.Places = append(answer.Places, Place{Address: frame.HexOf(at.entry.Addr), Frames: namesOfAll(at.all),
				In: codePlace(v, imagined), Records: []NearRecord{near(imagined, at.entry)}})
		}
	}
	if len(places) == 0 {
		return fmt.Errorf("%w: no record has the id %d%s", ErrNotFound, id, howMany(v))
	}
	return nil
}

// as returns the frame with the values of another record at its address.
func (s standing) as(e sites.RecordEntry) standing {
	for _, m := range s.frame.Others() {
		if m.Entry.Map == e.Map && m.Entry.Record.Pos == e.Record.Pos {
			return standing{s.thread, s.frame.Recorded(m)}
		}
	}
	return s
}

// isOf reports whether a record is the matched record of the frame.
func isOf(f *deopt.Frame, e sites.RecordEntry) bool {
	return f.Match() != nil && f.Match().Entry.Map == e.Map && f.Match().Entry.Record.Pos == e.Record.Pos
}

// howMany returns the end of an error message, the number of records that were searched.
func howMany(v *deopt.View) string {
	n := 0
	for _, c := range v.Space().WithRecords() {
		n += c.Records.Len()
	}
	if n == 0 {
		return "; " + v.WhyNone()
	}
	return fmt.Sprintf(" (%d known)", n)
}

// explainCode explains a place without a frame.
func explainCode(v *deopt.View, addr machine.Addr) Place {
	f := v.FrameAt(v.Space().At(addr), addr, nil)
	p := Place{Address: frame.HexOf(addr), Frames: []FrameName{}, In: codePlace(v, f), Records: around(f), Code: disassembly(f, shownBefore, shownFrom)}
	if len(p.Records) == 0 {
		p.Notes = withoutRecords(f)
	}
	return p
}

// explainFrame explains a frame. all lists the frames at its place.
func explainFrame(v *deopt.View, s standing, all []FrameName) Place {
	f, name := s.frame, s.name()
	p := Place{Address: frame.HexOf(f.Physical().PC), Frame: &name, Frames: all, In: codePlace(v, f),
		Stack: s.unwound(), Records: around(f), Code: disassembly(f, shownBefore, shownFrom), partial: f.Lacks() != ""}
	p.Notes, p.Direct = otherNotes(f, p.Records), f.Direct
	if len(p.Records) == 0 && len(p.Notes) == 0 {
		p.Notes = withoutRecords(f)
	}
	if f.Match() != nil {
		p.Values, p.VM, p.Carries = s.values(), f.VM, carries(f)
	}
	return p
}

// Partial reports whether a value of an explained frame is unavailable.
func (e *Explanation) Partial() bool {
	return e.unopened || slices.ContainsFunc(e.Places, func(p Place) bool { return p.partial })
}

// Sources adds the source lines of the places, as [deopt.View.Sources] does.
func (e *Explanation) Sources(budget int64) {
	r := deopt.NewSourceReaders(budget)
	for n := range e.Places {
		in := &e.Places[n].In
		if in.frame != nil {
			deopt.FindSources([]*deopt.Frame{in.frame}, r)
			in.Source = in.frame.Source
		}
	}
}
