package vmlayout

import (
	"fmt"
	"slices"

	"example.com/reframe/deopt/frame"
)

// Reading is the result of the first layout that accepts a record, or fails on it.
type Reading struct {
	Layout *Layout // nil if no layout accepts the record
	Shape  *Shape  // nil if the layout failed
	Err    error

	seen *footprint // the memory that the layout read to make the frames; nil without a target
}

// First runs layouts over a site until one has frames for it, or fails.
func First(layouts []*Layout, site *Site) *Reading {
	r := &Reading{}
	if site.Target != nil {
		with := *site
		with.Target, r.seen = site.Target.watched()
		site = &with
	}
	for _, l := range layouts {
		shape, err := l.Frames(site)
		if shape != nil || err != nil {
			r.Layout, r.Shape, r.Err = l, shape, err
			break
		}
	}
	r.seen.end()
	return r
}

// Holds reports whether the memory from which the layout made the frames still has the same content. It returns false if the memory was unmapped or
// reused, or was written after the layout ran.
func (r *Reading) Holds(t *Target) bool { return r.seen.holds(t) }

// Unread reports whether the layout failed after it had read memory. The memory may be written later.
func (r *Reading) Unread() bool { return r.Err != nil && !r.seen.empty() }

// Uncounted returns the failed reading of a record whose locations cannot be matched with live values without a module.
func Uncounted(layouts []*Layout, record uint64) *Reading {
	at := slices.IndexFunc(layouts, func(l *Layout) bool { return l.has("frames") })
	if at < 0 {
		return &Reading{}
	}
	return &Reading{Layout: layouts[at], Err: fmt.Errorf("record %d: only the module gives the locations of the live values; give it with --ir", record)}
}

// Read reads the values at an exit; nil if no layout accepts the record.
func (r *Reading) Read(from *Source) *frame.VM {
	switch {
	case r.Shape != nil:
		return r.Shape.Read(from)
	case r.Err != nil:
		return &frame.VM{Layout: r.Layout.Name, Error: r.Err.Error()}
	}
	return nil
}
