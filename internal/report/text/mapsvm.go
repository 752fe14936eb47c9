package text

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/reframe/internal/vm/vmlayout"
)

// outline prints the VM frames of a record, innermost first, with the source of each value.
func (p *mapsText) outline(o *vmlayout.Outline) {
	switch {
	case o.Error != "":
		p.printf("      %s\n", p.style.Yellow("no VM frames: "+Printable(o.Error)))
		return
	case o.Layout == "":
		p.printf("      %s\n", p.style.Yellow("no VM frames: no layout returned any"))
		return
	}
	for n := range o.Frames {
		f := &o.Frames[n]
		lead := "vm "
		if n > 0 {
			lead = "   inlined into "
		}
		p.printf("      %s%s\n", lead, p.outlineTitle(f))
		for _, note := range f.Notes {
			p.printf("           %s\n", p.style.Yellow(Printable(note)))
		}
		for _, v := range f.Locals {
			p.outlineValue(fmt.Sprintf("local[%d]", *v.Index), &v)
		}
		for _, v := range f.Stack {
			p.outlineValue(fmt.Sprintf("stack[%d]", *v.Index), &v)
		}
		for _, v := range f.Monitors {
			name := "lock"
			if v.Eliminated {
				name = "lock, eliminated"
			}
			p.outlineValue(name, &v)
		}
		for _, v := range f.Extra {
			p.outlineValue("", &v)
		}
	}
	for n := range o.Objects {
		of := &o.Objects[n]
		p.printf("         object %d, not allocated: %s\n", of.ID, outlined(of.Class, of.ClassFrom))
		for _, note := range of.Notes {
			p.printf("           %s\n", p.style.Yellow(Printable(note)))
		}
		for _, v := range of.Fields {
			name := fmt.Sprintf("+%d", *v.Index)
			if v.Element {
				name = fmt.Sprintf("[%d]", *v.Index)
			}
			p.outlineValue(name, &v)
		}
	}
}

// outlined returns the name of a method or class, or its source.
func outlined(name, from string) string {
	if name == "" && from != "" {
		return "(" + Printable(from) + ")"
	}
	return Printable(name)
}

// outlineTitle returns the line of a VM frame, in the form of [vmTitle].
func (p *mapsText) outlineTitle(f *vmlayout.OutlineFrame) string {
	name, at := outlined(f.Method, f.MethodFrom), "?"
	if name == "" {
		name = "?"
	}
	switch {
	case f.Position != nil:
		at = fmt.Sprint(*f.Position)
	case f.PositionFrom != "":
		at = "(" + Printable(f.PositionFrom) + ")"
	}
	line := p.style.Bold(name+" @ "+at) + ", " + strings.ReplaceAll(f.Resume, "-", " ")
	for _, key := range slices.Sorted(maps.Keys(f.Info)) {
		line += fmt.Sprintf(", %s %s", Printable(key), Printable(f.Info[key]))
	}
	return line
}

func (p *mapsText) outlineValue(place string, v *vmlayout.OutlineValue) {
	if v.Name != "" {
		place = strings.TrimPrefix(place+" "+Printable(v.Name), " ")
	}
	from := Printable(v.From)
	if v.Value != "" {
		from += ": " + Printable(v.Value)
	}
	p.printf("           %-*s %-*s %s\n", 2*nameWidth, place, typeWidth, Printable(v.Type), from)
}
