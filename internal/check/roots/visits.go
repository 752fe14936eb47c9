package roots

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// CollectionSchema names the JSON of a [Collection].
const CollectionSchema = "reframe.trace.collection/v1"

// Collection compares the slots that a collector visited on a thread's stack with those of the stack maps.
type Collection struct {
	Schema      string      `json:"schema"`
	Number      uint64      `json:"n"`
	Time        json.Number `json:"time"` // time of the first visit, in seconds since the trace began
	TID         int         `json:"tid"`
	Thread      string      `json:"thread"`
	Frames      int         `json:"frames"`                 // frames at a statepoint
	Slots       int         `json:"slots"`                  // words that the collector must visit
	Visits      int         `json:"visits"`                 // number of all visits
	Elsewhere   int         `json:"elsewhere"`              // visits of addresses outside of the frames with maps
	Null        int         `json:"null"`                   // slots that held null and were not visited
	Unavailable int         `json:"unavailable"`            // roots whose address is unknown, and frames whose roots are not known
	End         string      `json:"end,omitempty"`          // the reason why the stack is incomplete, so that slots may be missing here
	Cut         bool        `json:"cut,omitempty"`          // the process ended before the collector was seen to return
	NoneVisited bool        `json:"none_visited,omitempty"` // no slot of the stack was visited, so nothing was compared
	Findings    []Finding   `json:"findings,omitempty"`
	More        int         `json:"more_findings,omitempty"` // number of further findings, which are not listed
}

// FindingKind is a kind of difference between the visits of a collector and the stack maps.
type FindingKind string

// These are the kinds of findings.
const (
	MissingSlot  FindingKind = "missing" // a slot of the map was not visited
	ExtraSlot    FindingKind = "extra"   // a visited address in a frame is not a slot of the frame's map
	TwiceVisited FindingKind = "twice"   // a slot was visited more often than the record lists it
	WrongBase    FindingKind = "base"    // a slot was visited with the base of another pair
	SkippedFrame FindingKind = "skipped" // no slot of a frame was visited
)

// FindingKinds lists all kinds.
var FindingKinds = []FindingKind{MissingSlot, ExtraSlot, TwiceVisited, WrongBase, SkippedFrame}

// Finding is one difference. It describes its frame as it was at the first visit of the collection.
type Finding struct {
	Kind      FindingKind   `json:"kind"`
	Index     int           `json:"index"` // index of the frame in the stack at the first visit
	Function  string        `json:"function,omitempty"`
	Offset    *uint64       `json:"offset,omitempty"`
	PC        frame.Hex     `json:"pc"`
	Record    *frame.Record `json:"record,omitempty"`
	Address   frame.Hex     `json:"address,omitempty"`   // address of the slot; empty for a skipped frame
	Slot      *frame.Slot   `json:"slot,omitempty"`      // the slot, with its value at the first visit; nil for an extra slot and for a skipped frame
	Word      int           `json:"word,omitempty"`      // index of the word, if the slot has several pointers
	Register  string        `json:"register,omitempty"`  // for an extra slot: the register of the frame that is saved at the address
	Visits    int           `json:"visits,omitempty"`    // number of visits of the address
	Base      frame.Hex     `json:"base,omitempty"`      // for a wrong base: address of the base's slot that the visitor got
	MapsBase  frame.Hex     `json:"maps_base,omitempty"` // for a wrong base: address of the base's slot according to the map
	Slots     int           `json:"slots,omitempty"`     // for a skipped frame: number of slots that the collector should have visited
	Demangled string        `json:"demangled,omitempty"` // if it differs from Function

	is *frame.Frame
}

// Is returns the frame of the view.
func (f *Finding) Is() *frame.Frame { return f.is }

// Walked holds the slots of a stack while a collector visits them.
type Walked struct {
	// Innermost is the innermost frame at a statepoint.
	Innermost *deopt.Frame

	c      Collection
	frames []*walkedFrame
	places map[uint64]*rootPlace
	saved  map[uint64]savedRegister // saved registers of frames that hold no root, by the address at which they are saved
	extras map[uint64]*extra
	word   uint64
	called bool
}

// walkedFrame is a frame at a statepoint.
type walkedFrame struct {
	*deopt.Frame
	low, high uint64        // the stack memory of the frame
	record    *frame.Record // that lists the slots
	places    []*rootPlace
	objects   []*rootPlace // the stack objects of places, by address
	extra     bool
}

// rootPlace is a word of a slot that the map of a frame lists.
type rootPlace struct {
	at     uint64
	frame  *walkedFrame
	slot   frame.Slot
	word   int
	listed int      // number of times that the record lists the slot
	bases  []uint64 // addresses of the bases; nil if unknown
	null   bool
	object uint64 // end of the stack object; 0 for other slots
	also   bool   // the collector may visit the word, but need not
	visits int
	inside bool   // an address within the stack object was visited
	wrong  uint64 // a visited base that is not in bases; 0: none
}

type savedRegister struct {
	frame *walkedFrame
	name  string
}

// extra is a visited address that is not a slot.
type extra struct {
	frame    *walkedFrame
	register string
	visits   int
}

// These bound the data that is kept for one collection.
const (
	maxExtras   = 1000
	maxFindings = 100
	maxWords    = 1 << 10 // of a slot: LLVM spills a vector of pointers as a whole
	maxPlaces   = 1 << 18
)

var errTooMany = errors.New("the stack has too many slots")

// NewWalked finds the slots in the frames of a thread, which were built from stack. It returns nil if no frame is at a statepoint.
func NewWalked(frames []*deopt.Frame, stack *unwind.Stack, target *ptrace.Target) *Walked {
	arch := target.Arch()
	w := &Walked{places: map[uint64]*rootPlace{}, saved: map[uint64]savedRegister{}, extras: map[uint64]*extra{}, word: uint64(arch.Pointer)}
	for _, f := range frames {
		all := f.Roots()
		if all == nil {
			if f.Record != nil && f.Record.Site == deopt.UnknownSite || f.Record == nil && f.WhyUnreadable() != "" {
				w.c.Unavailable++
			}
			continue
		}
		if f.Frame.Guess != "" {
			w.c.Unavailable++
			continue
		}
		if w.Innermost == nil {
			w.Innermost = f
		}
		w.c.Frames++
		w.add(f, all, stack, target)
	}
	if w.Innermost == nil {
		return nil
	}
	for _, f := range w.frames {
		for reg := range machine.DWARFReg(maxSavedRegister) {
			if info, known := arch.Register(reg); !known || info.Class != machine.General || arch.Kept(reg) == 0 || reg == arch.SP {
				continue
			}
			if at, err := stack.SavedAt(f.Index, reg, arch); err == nil && w.places[uint64(at)] == nil {
				w.saved[uint64(at)] = savedRegister{f, arch.RegisterName(reg)}
			}
		}
	}
	if !stack.End.Complete {
		w.c.End = stack.End.Reason
	}
	return w
}

// maxSavedRegister is above the DWARF numbers of all general registers.
const maxSavedRegister = 32

// add adds the slots of a frame.
func (w *Walked) add(f *deopt.Frame, all *deopt.Roots, stack *unwind.Stack, target *ptrace.Target) {
	p := f.Physical()
	is := &walkedFrame{Frame: f, record: all.Record}
	if sp, err := p.Registers.Addr(target.Arch().SP); err == nil && p.NoCFA == "" && machine.Addr(sp) <= p.CFA {
		is.low, is.high = uint64(sp), uint64(p.CFA)
	}
	w.frames = append(w.frames, is)
	if all.Lost != nil {
		w.c.Unavailable++
		is.low, is.high = 0, 0
		return
	}
	for k := range all.Pointers {
		r := &all.Pointers[k]
		at, err := f.AddressOf(r.Location, stack)
		if err != nil {
			if !r.BaseOnly {
				w.c.Unavailable++
			}
			continue
		}
		words := max(1, r.Location.Size/int(w.word))
		if words > maxWords || len(w.places)+words > maxPlaces {
			w.c.Unavailable++
			is.low, is.high = 0, 0 // visits of its words are not extra
			continue
		}
		for n := range words {
			is.add(w, &rootPlace{at: uint64(at) + uint64(n)*w.word, slot: r.Slot, word: n, listed: len(r.Bases), also: r.BaseOnly,
				null: isNull(&r.Slot, n, int(w.word)), bases: basesOf(f, r, stack, uint64(n)*w.word)})
		}
	}
	first := len(is.places)
	for _, s := range all.Allocas {
		at, err := f.AddressOf(s.Location, stack)
		if err == nil && len(w.places) >= maxPlaces {
			err, is.low, is.high = errTooMany, 0, 0
		}
		if err != nil {
			w.c.Unavailable++
			continue
		}
		is.add(w, &rootPlace{at: uint64(at), slot: s, listed: 1, null: holdsNull(target, at), object: is.high})
	}
	is.objects = slices.Clone(is.places[first:])
	byAddress := func(a, b *rootPlace) int { return cmp.Compare(a.at, b.at) }
	slices.SortFunc(is.objects, byAddress)
	sorted := slices.Clone(is.places)
	slices.SortFunc(sorted, byAddress)
	for k, p := range sorted[:max(0, len(sorted)-1)] { // a stack object ends before the next slot: the map does not hold its size
		if p.object != 0 {
			p.object = min(p.object, sorted[k+1].at)
		}
	}
}

func (f *walkedFrame) add(w *Walked, p *rootPlace) {
	p.frame = f
	if known := w.places[p.at]; known != nil { // the same saved register holds a pointer of two frames
		known.listed += p.listed
		known.bases = nil
		known.also = known.also && p.also
		return
	}
	w.places[p.at] = p
	f.places = append(f.places, p)
	if !p.also {
		w.c.Slots++
	}
}

// isNull reports whether a word of a slot is zero.
func isNull(s *frame.Slot, n, word int) bool {
	if !s.Read() || len(s.Bytes) < (n+1)*word {
		return false
	}
	return !slices.ContainsFunc(s.Bytes[n*word:(n+1)*word], func(b byte) bool { return b != 0 })
}

// holdsNull reports whether the first word of a stack object is zero.
func holdsNull(target *ptrace.Target, at machine.Addr) bool {
	word := make([]byte, target.Arch().Pointer)
	return target.ReadMemory(word, at) == nil && !slices.ContainsFunc(word, func(b byte) bool { return b != 0 })
}

// basesOf returns the addresses of the slots of a pointer's bases; nil if one of them is unknown.
func basesOf(f *deopt.Frame, r *deopt.RootPointer, stack *unwind.Stack, offset uint64) (all []uint64) {
	for k := range r.Bases {
		at, err := f.AddressOf(&r.Bases[k], stack)
		if err != nil {
			return nil
		}
		all = append(all, uint64(at)+offset)
	}
	return all
}

// Called records that the thread has called the collector. A walk without a visit is then an error.
func (w *Walked) Called() { w.called = true }

// Visit records that the collector visits a slot. base is the address of the slot of its base; 0 if the visitor has no such argument.
func (w *Walked) Visit(slot, base uint64) {
	w.c.Visits++
	if p := w.places[slot]; p != nil {
		p.visits++
		if base != 0 && p.bases != nil && !slices.Contains(p.bases, base) {
			p.wrong = base
		}
		return
	}
	f, register := w.frameOf(slot)
	if f == nil {
		w.c.Elsewhere++
		return
	}
	n, _ := slices.BinarySearchFunc(f.objects, slot, func(p *rootPlace, at uint64) int { return cmp.Compare(p.at, at) })
	if register == "" && n > 0 && slot < f.objects[n-1].object {
		f.objects[n-1].inside = true
		return
	}
	f.extra = true
	if e := w.extras[slot]; e != nil {
		e.visits++
	} else if len(w.extras) < maxExtras {
		w.extras[slot] = &extra{f, register, 1}
	} else {
		w.c.More++
	}
}

// frameOf returns the frame at a statepoint to which an address belongs, and the frame's register that is saved at the address.
func (w *Walked) frameOf(at uint64) (f *walkedFrame, register string) {
	if s, ok := w.saved[at]; ok {
		return s.frame, s.name
	}
	for _, f := range w.frames {
		if f.low <= at && at < f.high {
			return f, ""
		}
	}
	return nil, ""
}

// Begin sets the number, the time and the thread of the collection.
func (w *Walked) Begin(number uint64, time string, thread machine.Thread) {
	w.c.Number, w.c.Time, w.c.TID, w.c.Thread = number, json.Number(time), thread.ID, thread.Name
}

// End compares the visits with the slots. cut means that the process ended before the collector was seen to return: slots that were not visited are then
// no findings. If once is false, the visits may belong to several collections, unless the call of the collector was seen.
func (w *Walked) End(cut, once bool) *Collection {
	c := &w.c
	c.Schema, c.Cut = CollectionSchema, cut
	if !w.called && len(w.extras) == 0 && !slices.ContainsFunc(w.frames, (*walkedFrame).visited) {
		c.NoneVisited = true
		return c
	}
	for _, f := range w.frames {
		w.endFrame(f, once)
	}
	for at, e := range w.extras {
		x := e.frame.finding(ExtraSlot)
		x.Address, x.Register, x.Visits = frame.HexOf(at), e.register, e.visits
		c.Findings = append(c.Findings, x)
	}
	slices.SortFunc(c.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(len(a.Address), len(b.Address)), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Kind, b.Kind))
	})
	if more := len(c.Findings) - maxFindings; more > 0 {
		c.Findings, c.More = c.Findings[:maxFindings], c.More+more
	}
	return c
}

// repeated reports whether a slot was visited more often than the record lists it.
func (p *rootPlace) repeated() bool { return p.visits > max(1, p.listed) }

// visited reports whether a slot of the frame was visited.
func (f *walkedFrame) visited() bool {
	return slices.ContainsFunc(f.places, func(p *rootPlace) bool { return p.visits > 0 || p.inside })
}

// endFrame adds the findings of a frame.
func (w *Walked) endFrame(f *walkedFrame, once bool) {
	c := &w.c
	var missing []Finding
	// The visits may be those of two collections in one call, such as a minor and a full one. Then they repeat all slots of a frame.
	passedOnce := slices.ContainsFunc(f.places, func(p *rootPlace) bool { return p.visits > 0 && !p.repeated() })
	for _, p := range f.places {
		x := f.finding(MissingSlot)
		x.Address, x.Slot, x.Word, x.Visits = frame.HexOf(p.at), &p.slot, p.word, p.visits
		switch {
		case p.visits == 0 && c.Cut: // the collector may not have come to the slot
		case p.visits == 0 && p.null && !p.also && !p.inside:
			c.Null++
		case p.visits == 0 && !p.also && !p.inside:
			missing = append(missing, x)
		case p.repeated() && (w.called || once && passedOnce):
			x.Kind = TwiceVisited
			c.Findings = append(c.Findings, x)
		}
		if p.wrong != 0 && p.object == 0 {
			x.Kind, x.Base, x.MapsBase = WrongBase, frame.HexOf(p.wrong), frame.HexOf(p.bases[0])
			c.Findings = append(c.Findings, x)
		}
	}
	if len(missing) > 0 && !f.visited() && !f.extra {
		x := f.finding(SkippedFrame)
		x.Slots = len(missing)
		missing = []Finding{x}
	}
	c.Findings = append(c.Findings, missing...)
}

func (f *walkedFrame) finding(kind FindingKind) Finding {
	return Finding{Kind: kind, Index: f.Index, Function: f.Function, Demangled: f.Demangled, Offset: f.Offset, PC: f.PC, Record: f.record, is: &f.Frame.Frame}
}
