package vmlayout

import (
	"fmt"

	"example.com/reframe/deopt/frame"
)

// Reading is the result of the first layout that accepts a record, or fails on it.
type Reading struct {
	Layout *Layout // nil if no layout accepts the record
	Shape  *Shape  // nil if the layout failed
	Err    error
}

// First runs layouts over a site until one has frames for it, or fails.
func First(layouts []*Layout, site *Site) *Reading {
	for _, l := range layouts {
		shape, err := l.Frames(site)
		if shape != nil || err != nil {
			return &Reading{l, shape, err}
		}
	}
	return &Reading{}
}

// Uncounted returns the reading of a record whose locations cannot be matched with live values without a module.
func Uncounted(layouts []*Layout, record uint64) *Reading {
	return &Reading{Layout: layouts[0], Err: fmt.Errorf("record %d: only the module gives the locations of the live values; give it with --ir", record)}
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
