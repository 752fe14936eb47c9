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

// Explanation says how a frame came to be, or what is known of places in the code. It is
// plain data, made while the target could be read.
type Explanation struct {
	Schema string       `json:"schema"`
	Target frame.Target `json:"target"`
	Asked  string       `json:"asked"` // in words
	Places []Place      `json:"places"`
	More   int          `json:"more,omitempty"` // places of the record that are not among them

	unopened bool // files of the process could not be opened
}

// Place is one place in the code. Where one frame that stands there was meant, it is explained.
type Place struct {
	Address frame.Hex  `json:"address"`
	Frame   *FrameName `json:"frame,omitempty"` // that is explained; nil for none
	// Frames are all that stand here.
	Frames  []FrameName    `json:"frames"`
	In      CodePlace      `json:"in"`
	Stack   []UnwoundFrame `json:"stack,omitempty"` // from frame #0 up to this one
	Records []NearRecord   `json:"records"`         // that matched, and those near
	Values  []Value        `json:"values,omitempty"`
	Direct  []frame.Direct `json:"direct,omitempty"` // of a frame without a record, as in [frame.Frame]
	VM      *frame.VM      `json:"vm,omitempty"`     // frames of a virtual machine, whose values say which of Values they are read from
	Carries *CarriesOn     `json:"carries_on,omitempty"`
	Notes   []string       `json:"notes,omitempty"`
	Code    *Disassembly   `json:"code,omitempty"` // nil where the place is one of several of a record

	partial bool // a value of its frame is unavailable
}

// FrameName names a frame.
type FrameName struct {
	TID   int `json:"tid"`
	Index int `json:"index"`
}

// Question says what is to be explained: a frame or, with Address or Record, a place. With neither,
// and no number, it is the innermost frame that has a record.
type Question struct {
	Address *machine.Addr
	Record  *uint64
	Frame   int // its number as a [deopt.Choice] has it, or -1
}

// ErrNotFound is wrapped where there is nothing to explain.
var ErrNotFound = errors.New("nothing to explain")

// maxPlaces bounds how many places of one record are reported. LLVM gives one id to all statepoints
// that ask for none.
const maxPlaces = 32

// Explain answers a question. The target has to be held: code and memory are read that nothing
// has asked for yet, for a record all registered objects. Where the question is about an address or a record, and exactly one frame
// stands there, that is explained. An error wraps [ErrNotFound].
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

// frames lists the frames of a number, or all, of which something holds.
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

// asked returns the frame of a number, or with -1 the innermost one that has a record, of the first
// thread that has one.
func asked(v *deopt.View, number int) (standing, error) {
	all := frames(v, number, func(f *deopt.Frame) bool { return number != -1 || f.Record != nil })
	choice := deopt.Choice{Frame: number}
	switch {
	case len(all) > 0:
		return all[0], nil
	case choice.Numbered():
		return standing{}, fmt.Errorf("%w: there is no frame %d; %s", ErrNotFound, choice.Number(), v.HowMany())
	}
	return standing{}, fmt.Errorf("%w: no frame has a record; ask for one by its number (-f), for an address or for a record: %s", ErrNotFound, v.WhyNone())
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
		return fmt.Errorf("%w: nothing is mapped at %v", ErrNotFound, addr)
	case !m.Exec:
		return fmt.Errorf("%w: %v is no code: it lies in %s, %s", ErrNotFound, addr, mapped(m), permissions(m))
	}
	p := explainCode(v, addr)
	p.Frames = namesOfAll(all)
	e.Places = []Place{p}
	return nil
}

// explainRecord explains all places that a record has.
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

// as is the frame as a record at its address has it, which need not be its first one.
func (s standing) as(e sites.RecordEntry) standing {
	for _, m := range s.frame.Others() {
		if m.Entry.Map == e.Map && m.Entry.Record.Pos == e.Record.Pos {
			return standing{s.thread, s.frame.Recorded(m)}
		}
	}
	return s
}

// isOf reports whether a record is the frame's.
func isOf(f *deopt.Frame, e sites.RecordEntry) bool {
	return f.Match() != nil && f.Match().Entry.Map == e.Map && f.Match().Entry.Record.Pos == e.Record.Pos
}

// howMany says among how many records nothing was found.
func howMany(v *deopt.View) string {
	n := 0
	for _, c := range v.Space().WithRecords() {
		n += c.Records.Len()
	}
	if n == 0 {
		return "; " + v.WhyNone()
	}
	return fmt.Sprintf(" of the %d that are known", n)
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

// explainFrame explains a frame that stands at a place together with others.
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

// Partial reports whether a value of a frame that is explained could not be had.
func (e *Explanation) Partial() bool {
	return e.unopened || slices.ContainsFunc(e.Places, func(p Place) bool { return p.partial })
}

// Sources is [deopt.View.Sources] of the places that are explained.
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
