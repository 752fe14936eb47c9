package deopt

import (
	"encoding/hex"
	"fmt"
	"strings"

	"reframe/deopt/ir"
	"reframe/deopt/machine"
	"reframe/deopt/names"
	"reframe/deopt/progspace"
)

// named spells an address of code by the function that it lies in, "" where there is none.
func (v *View) named(addr machine.Addr) string {
	v.target.ReadObject(addr)
	c := v.space.At(addr)
	if c == nil {
		return ""
	}
	name, start, ok := c.NameAt(addr)
	if !ok {
		return ""
	}
	return within(name, start, addr)
}

// within spells an address by the symbol that it lies in, "" where that has no name.
func within(name string, start, addr machine.Addr) string {
	switch {
	case name == "":
		return ""
	case start == addr:
		return names.Short(name)
	}
	return fmt.Sprintf("%s+%#x", names.Short(name), uint64(addr-start))
}

// everyCode lists all code of the target that has records: registered objects, files, and what a
// search of memory found.
func (v *View) everyCode() []*progspace.Objfile {
	var out []*progspace.Objfile
	seen := map[*progspace.Objfile]bool{}
	add := func(addr machine.Addr) {
		if c := v.space.At(addr); c != nil && c.Records != nil && !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	for _, img := range v.target.Given() {
		for _, s := range img.Code() {
			add(s.Loaded())
		}
	}
	for _, r := range v.target.Registries {
		for _, e := range r.Entries {
			if img := e.Image(); img != nil && len(img.StackMaps()) > 0 {
				for _, s := range img.Code() {
					add(s.Loaded())
				}
			}
		}
	}
	for _, m := range v.target.Modules {
		if m.Image != nil && m.StackMaps != nil {
			for _, s := range m.Image.Code() {
				add(s.Loaded())
			}
		}
	}
	if v.space.Found != nil {
		out = append(out, v.space.Found)
	}
	return out
}

// spaced spells bytes in hexadecimal, the first one first.
func spaced(b []byte) string {
	var out strings.Builder
	for n := range b {
		if n > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(hex.EncodeToString(b[n : n+1]))
	}
	return out.String()
}

// nativeFunction is the function of the modules whose native code the frame runs, nil where that is not known.
func (f *Frame) nativeFunction() *ir.Func {
	if f.match.site != nil {
		return f.match.site.Func
	}
	if all := f.view.modules.Bodies(f.Function); len(all) == 1 {
		return all[0]
	}
	return nil
}
