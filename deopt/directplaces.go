package deopt

import (
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/progspace"
)

// directPlace is one stack address that the records of a function have as a Direct location.
type directPlace struct {
	value  ir.Value // an alloca or an argument in memory; nil if no module names it
	site   *ir.Site // the first site that names it
	number int      // index of the live value in that site

	location stackmap.Location // from the first record
	entry    sites.RecordEntry // that record
	records  int

	place  unwind.StackPlace
	err    error  // why the place is unknown
	shared string // why the content may be another variable's
	dead   error  // why the variable may have no content at some pc
}

// directTable holds the Direct places of each function, by the function's start address.
type directTable map[machine.Addr][]directPlace

const (
	maxDirectRecords = 1024 // per function; if a function has more, no variable is shown
	maxDirectPlaces  = 128  // per function
)

// directPlaces returns the Direct locations of all records of the function that starts at owner. The result is cached.
func (v *View) directPlaces(c *progspace.Objfile, name string, owner machine.Addr) []directPlace {
	if v.directs[c] == nil {
		if v.directs == nil {
			v.directs = map[*progspace.Objfile]directTable{}
		}
		v.directs[c] = directTable{}
	}
	places, known := v.directs[c][owner]
	if !known {
		places = v.findDirect(c, name, owner)
		v.directs[c][owner] = places
	}
	return places
}

// findDirect reads the records of a function. It returns nil if the function has more than maxDirectRecords: an unread record may have another
// variable at the same place.
func (v *View) findDirect(c *progspace.Objfile, name string, owner machine.Addr) []directPlace {
	end := owner + sites.MaxFunction
	if s := c.SymbolAt(owner); s.Known && s.Start == owner && s.Size != 0 {
		end = owner + machine.Addr(s.Size) + 1 // include a record at the end of the function, after its last call
	}
	span := c.Records.Range(owner, end)
	d := directFinder{view: v, code: c, name: name}
	_, d.folded = c.Folded(owner)
	for n, read := 0, 0; n < span.Len(); n++ {
		entry := span.Entry(n)
		if entry.Function.Addr != owner {
			continue
		}
		if read++; read > maxDirectRecords || len(d.places) > maxDirectPlaces || n > sites.MaxFunction {
			return nil
		}
		d.add(sites.RecordEntry{Entry: entry, Record: entry.Record()})
	}
	return d.checked()
}

// directFinder collects the Direct locations of the records of one function.
type directFinder struct {
	view   *View
	code   *progspace.Objfile
	name   string
	folded bool // the linker folded several functions: it is unknown which of them names the values
	places []directPlace
}

// add collects the Direct locations of one record.
func (d *directFinder) add(e sites.RecordEntry) {
	var named map[int]directPlace
	for k, l := range e.Record.Locations {
		if l.Kind != stackmap.Direct {
			continue
		}
		if named == nil {
			named = d.named(e)
		}
		p := named[k]
		p.location, p.entry, p.records = l, e, 1
		p.place, p.err = d.placeOf(e, l)
		d.merge(p)
	}
}

// placeOf returns the place of a location. A statepoint's record is at a return address, and a stackmap's record can look like a statepoint's. If the
// two readings differ, the place is unknown.
func (d *directFinder) placeOf(e sites.RecordEntry, l stackmap.Location) (unwind.StackPlace, error) {
	of := func(returned bool) (unwind.StackPlace, error) {
		return d.view.unwinder.StackPlaceOf(d.code.Unwind, e.Addr, returned, l.Reg, int64(l.Offset))
	}
	if _, shaped := e.Record.AsStatepoint(); !shaped {
		return of(false)
	}
	place, err := of(true)
	if other, no := of(false); err == nil && no == nil && other != place {
		return place, frame.Because(frame.DirectUnknown, "its place before the call of the record differs from that after it, and which of them applies is unknown")
	}
	return place, err
}

// named returns the variables of the module at the locations of a record, by location number. If several sites fit the record, they must have the
// same variable at the location.
func (d *directFinder) named(e sites.RecordEntry) map[int]directPlace {
	named := map[int]directPlace{}
	if d.folded {
		return named
	}
	candidates, err := d.view.modules.OfRecord(d.code, e, d.name)
	if err != nil {
		return named
	}
	for n, s := range candidates.Sites {
		here := map[int]directPlace{}
		a, _ := sites.Align(s, e)
		for k, live := range s.Live {
			if v := inFrame(live); v != nil && a.Place(k) >= 0 {
				here[a.First+a.Place(k)] = directPlace{value: v, site: s, number: k}
			}
		}
		for at, p := range named {
			if here[at].value != p.value {
				delete(named, at)
			}
		}
		if n == 0 {
			named = here
		}
	}
	return named
}

// inFrame returns the alloca or the byval argument whose address v is, or nil.
func inFrame(v ir.Value) ir.Value {
	switch v := v.(type) {
	case *ir.Param:
		if v.Attrs.ByVal != nil {
			return v
		}
	case *ir.Instr:
		if v.Op == ir.OpBitCast && len(v.Args) == 1 {
			return inFrame(v.Args[0])
		}
		if sites.OnFrame(v) && v.Flags&ir.SwiftError == 0 {
			return v
		}
	}
	return nil
}

// merge adds a place. If an earlier record has the same place, merge counts the record instead. If one has the variable at another place, the place
// becomes unknown.
func (d *directFinder) merge(p directPlace) {
	for k := range d.places {
		q := &d.places[k]
		same := q.err == nil && p.err == nil && q.place == p.place || q.err != nil && p.err != nil && q.location == p.location
		switch {
		case p.value != nil && q.value == p.value && same, same && (p.value == nil || q.value == nil):
			if q.value == nil {
				q.value, q.site, q.number = p.value, p.site, p.number
			}
			if q.entry.Entry != p.entry.Entry {
				q.records++
			}
			return
		case p.value != nil && q.value == p.value:
			q.err, q.records = errDisagree, q.records+1
			return
		}
	}
	d.places = append(d.places, p)
}

// checked returns the places sorted by address, with the reasons why their content may be wrong. It removes all names if they come from several
// functions.
func (d *directFinder) checked() []directPlace {
	var of *ir.Func
	for k := range d.places {
		if s := d.places[k].site; s != nil && of == nil {
			of = s.Func
		} else if s != nil && s.Func != of {
			d.unname()
			break
		}
	}
	for k := range d.places {
		d.places[k].shared, d.places[k].dead = d.sharing(k), d.places[k].mayBeDead()
	}
	slices.SortStableFunc(d.places, func(a, b directPlace) int {
		bytes, _ := a.place.Near(b.place)
		return int(max(-1, min(1, bytes)))
	})
	return d.places
}

func (d *directFinder) unname() {
	for k := range d.places {
		d.places[k].value, d.places[k].site = nil, nil
	}
}
