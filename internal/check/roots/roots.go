// Package roots lists the roots that the records of a stack's statepoints hold for a garbage collector, and checks them against the heap: its ranges,
// and its objects, which a layout describes. [New] makes the [Report] of a view.
//
// It does not trust the target. Only the layout's function object(addr), whose work is bounded, says what an object is.
package roots

import (
	"cmp"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine/names"
)

// Schema names the JSON of a [Report].
const Schema = "reframe.roots/v1"

// Report holds the roots of all threads.
type Report struct {
	Schema  string       `json:"schema"`
	Target  frame.Target `json:"target"`
	Threads []Thread     `json:"threads"`
	Summary Summary      `json:"summary"`
	Failure *Failure     `json:"object_failure,omitempty"` // failures of the layout's function object(addr); nil for none
	Reached *Walk        `json:"reached,omitempty"`        // the objects that the roots reach, after [Report.Walk]
	Path    *Path        `json:"why,omitempty"`            // to the object that [Report.Why] asks about

	starts   []start
	followed int // roots whose base is in starts
}

// Thread holds the frames of a thread that have roots, innermost first, and the frames without a map between these.
type Thread struct {
	TID    int     `json:"tid"`
	Name   string  `json:"name"`
	Frames []Frame `json:"frames,omitempty"`
	End    string  `json:"end,omitempty"` // why the stack is incomplete, so that roots may be missing
}

// Frame is one frame. A frame without a map has neither Record nor Unknown. A frame whose record does not belong to a statepoint has no roots.
type Frame struct {
	Index    int           `json:"index"`
	Function string        `json:"function,omitempty"`
	PC       frame.Hex     `json:"pc"`
	Offset   *uint64       `json:"offset,omitempty"`
	Module   string        `json:"module,omitempty"`
	Record   *frame.Record `json:"record,omitempty"`
	Guess    string        `json:"guess,omitempty"`   // the reason why the frame may not exist
	Roots    []Root        `json:"roots,omitempty"`   // pointers in pairs, then the addresses of stack objects
	Unknown  string        `json:"unknown,omitempty"` // the reason why the roots of a statepoint are unknown
	Code     frame.Code    `json:"code,omitempty"`    // the kind of that reason

	is *frame.Frame
}

// Is returns the frame of the view.
func (f *Frame) Is() *frame.Frame { return f.is }

// Root is a location that the collector reads, and updates if the object moves.
type Root struct {
	frame.Slot
	BaseOnly bool  `json:"base_only,omitempty"` // only a base of other pointers; the collector need not update it when the object moves
	Alloca   bool  `json:"alloca,omitempty"`    // the value is the address of a stack object, whose content the collector reads
	Found    Found `json:"found,omitempty"`     // the place to which the base points; empty if nothing is known of the heap
	// Object is the object to which the base points, if a layout describes objects.
	Object *Object `json:"object,omitempty"`
}

// Found is the place to which a root's base, or a reference in the heap, points.
type Found string

// These are the places. Those from IsObject on need a layout that describes objects.
const (
	InHeap      Found = "heap"
	InFromSpace Found = "from-space" // the collector has left this space, so the root is stale
	IsNull      Found = "null"
	Outside     Found = "outside"   // outside of all given ranges
	Unchecked   Found = "unchecked" // the root's value is unavailable, the collector need not update its base, or object(addr) failed
	IsObject    Found = "object"    // the start of an object
	InObject    Found = "interior"  // into an object
	InFreed     Found = "freed"     // into freed space
	NoObject    Found = "none"      // no object is there
	NoReference Found = "immediate" // the layout's function reference(bits) says that the word is no reference
)

// Wrong reports whether a root whose base points to this place is wrong: LLVM's base is a pointer to the start of an object. A collector may permit
// pointers to static objects; give the range of these as well, or describe them.
func (f Found) Wrong() bool { return f == InObject || f.Dangles() }

// Dangles reports whether no object in use is at this place.
func (f Found) Dangles() bool {
	return f == InFromSpace || f == Outside || f == InFreed || f == NoObject
}

// Summary counts the contents of a report.
type Summary struct {
	Frames      int `json:"frames"`       // frames at a statepoint
	Roots       int `json:"roots"`        // locations
	Derived     int `json:"derived"`      // roots whose base is another location
	WithoutMaps int `json:"without_maps"` // frames without a map between frames with one
	Unavailable int `json:"unavailable"`  // roots without a certain value, and frames whose roots are not known
	Incomplete  int `json:"incomplete"`   // threads whose stack is incomplete, and 1 if registered objects could not be opened
	Wrong       int `json:"wrong"`        // roots that [Found.Wrong] reports
	Unchecked   int `json:"unchecked"`    // roots that could not be checked although ranges were given or objects are described
	Unknown     int `json:"unknown"`      // frames whose record may belong to a statepoint or to another site
}

// Options selects the contents of a report.
type Options struct {
	Heap     Heap           // without ranges and objects, roots are not checked
	Function *names.Pattern // list only frames of these functions; nil for all
}

// New makes the report of a view.
func New(v *deopt.View, o Options) *Report {
	r := &Report{Schema: Schema, Target: v.About(), Threads: []Thread{}}
	if v.Summary().Unopened {
		r.Summary.Incomplete++
	}
	for k := range v.Threads {
		r.Threads = append(r.Threads, r.thread(&v.Threads[k], &o))
	}
	r.Failure = o.Heap.Objects.failure()
	return r
}

// thread lists the frames of a thread, from the innermost frame with a map to the outermost one.
func (r *Report) thread(t *deopt.Thread, o *Options) Thread {
	out := Thread{TID: t.ID, Name: t.Name}
	if !t.End.Complete {
		out.End = t.End.Reason
		r.Summary.Incomplete++
	}
	var between []Frame
	for _, f := range t.Frames {
		if o.Function != nil && !o.Function.Match(f.Function) {
			continue
		}
		is := Frame{Index: f.Index, Function: f.Function, PC: f.PC, Offset: f.Offset, Module: f.Module, Record: f.Record, Guess: f.Frame.Guess, is: &f.Frame}
		if why := f.WhyUnreadable(); f.Record == nil && why != "" {
			is.Unknown = why
			r.Summary.Unavailable++
		} else if f.Record == nil {
			if len(out.Frames) > 0 && o.Function == nil {
				between = append(between, is)
			}
			continue
		}
		r.Summary.WithoutMaps += len(between)
		out.Frames = append(out.Frames, between...)
		between = nil
		if all := f.Roots(); all != nil {
			r.Summary.Frames++
			r.fill(&is, len(out.Frames), all, &o.Heap)
		} else if f.Record != nil && f.Record.Site == deopt.UnknownSite {
			r.Summary.Unknown++
		}
		out.Frames = append(out.Frames, is)
	}
	return out
}

// fill adds the roots of a frame at a statepoint to the frame and to the summary. at is the index of the frame in its thread.
func (r *Report) fill(f *Frame, at int, all *deopt.Roots, heap *Heap) {
	if all.Lost != nil {
		f.Unknown, f.Code = all.Lost.Reason, all.Lost.Code
		r.Summary.Unavailable++
		return
	}
	by := map[int]*deopt.RootPointer{}
	for k := range all.Pointers {
		by[all.Pointers[k].Index] = &all.Pointers[k]
	}
	for _, s := range all.Pointers {
		root := Root{Slot: s.Slot, BaseOnly: s.BaseOnly}
		root.Found, root.Object = heap.find(by, &s)
		if root.Found != "" && root.Found != Unchecked {
			r.followed++
			if s.GC.Base == nil {
				for _, bits := range words(s.Hex) {
					r.starts = append(r.starts, start{len(r.Threads), at, len(f.Roots), bits})
				}
			}
		}
		if s.GC.Base != nil {
			r.Summary.Derived++
		}
		if s.Status != frame.OK {
			r.Summary.Unavailable++
		}
		switch {
		case root.Found.Wrong():
			r.Summary.Wrong++
		case root.Found == Unchecked:
			r.Summary.Unchecked++
		}
		f.Roots = append(f.Roots, root)
	}
	for _, s := range all.Allocas {
		if s.Status != frame.OK {
			r.Summary.Unavailable++
		}
		f.Roots = append(f.Roots, Root{Slot: s, Alloca: true})
	}
	r.Summary.Roots += len(f.Roots)
}

// Count counts the roots in the frames of one function.
type Count struct {
	Function string
	Frames   int
	Roots    int
}

// Counts returns the counts of all functions with frames at a statepoint, sorted by the number of roots, most first, and then by name.
func (r *Report) Counts() (all []Count) {
	by := map[string]*Count{}
	for _, t := range r.Threads {
		for k := range t.Frames {
			f := &t.Frames[k]
			if f.Record == nil || f.Roots == nil && f.Unknown == "" {
				continue
			}
			if by[f.Function] == nil {
				by[f.Function] = &Count{Function: f.Function}
			}
			by[f.Function].Frames++
			by[f.Function].Roots += len(f.Roots)
		}
	}
	for _, c := range by {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Roots, a.Roots), cmp.Compare(a.Function, b.Function))
	})
	return all
}
