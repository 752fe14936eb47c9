package main

import (
	"bufio"
	"encoding/json"

	"reframe/deopt/maps"
)

// mapsJSON writes stack maps as one JSON object, piece by piece: of a million records only
// one is held at a time.
type mapsJSON struct {
	out   *bufio.Writer
	want  *maps.Filter
	shown int
	err   error
}

func (a *app) writeMaps(m *maps.Maps, want *maps.Filter) (shown int, err error) {
	p := &mapsJSON{out: bufio.NewWriterSize(a.stdout, 1<<16), want: want}
	p.out.WriteString("{")
	p.member("  ", "schema", maps.Schema, true)
	p.member("  ", "source", m.Source, false)
	if len(m.Notes) > 0 {
		p.member("  ", "notes", m.Notes, false)
	}
	p.out.WriteString(",\n  \"images\": [")
	for n, i := range m.Images {
		p.open("    ", n > 0, i.JSON(), "functions")
		functions := 0
		for f := range i.Functions() {
			if want.Function(f) && p.function(f, functions > 0) {
				functions++
			}
		}
		p.close("    ", functions > 0)
	}
	p.end("  ", len(m.Images) > 0)
	p.out.WriteString("\n}\n")
	if err := p.out.Flush(); p.err == nil {
		p.err = err
	}
	return p.shown, p.err
}

// function writes a function and its records, and says whether it is wanted.
func (p *mapsJSON) function(f *maps.Function, more bool) bool {
	records := 0
	for rec := range f.Records() {
		if !p.want.Record(f, rec) {
			continue
		}
		if records == 0 {
			p.open("        ", more, f.JSON(), "records")
		}
		p.value("            ", records > 0, f.JSONRecord(rec))
		records++
		p.shown++
	}
	if records == 0 {
		if !p.want.All() {
			return false
		}
		p.open("        ", more, f.JSON(), "records")
	}
	p.close("        ", records > 0)
	return true
}

// open writes the members of an object and leaves it open behind the start of a list.
func (p *mapsJSON) open(indent string, more bool, head any, list string) {
	p.separate(indent, more)
	text := p.marshal(indent, head)
	text = text[:len(text)-len("\n"+indent+"}")]
	p.out.Write(text)
	p.out.WriteString(",\n" + indent + "  \"" + list + "\": [")
}

func (p *mapsJSON) close(indent string, some bool) {
	p.end(indent+"  ", some)
	p.out.WriteString("\n" + indent + "}")
}

// end ends a list that began on a line of that indentation.
func (p *mapsJSON) end(indent string, some bool) {
	if some {
		p.out.WriteString("\n" + indent)
	}
	p.out.WriteString("]")
}

func (p *mapsJSON) value(indent string, more bool, v any) {
	p.separate(indent, more)
	p.out.Write(p.marshal(indent, v))
}

func (p *mapsJSON) separate(indent string, more bool) {
	if more {
		p.out.WriteByte(',')
	}
	p.out.WriteString("\n" + indent)
}

func (p *mapsJSON) member(indent, name string, value any, first bool) {
	p.separate(indent, !first)
	p.out.Write(p.marshal(indent, name))
	p.out.WriteString(": ")
	p.out.Write(p.marshal(indent, value))
}

func (p *mapsJSON) marshal(indent string, v any) []byte {
	text, err := json.MarshalIndent(v, indent, "  ")
	if err != nil && p.err == nil {
		p.err = err
	}
	return safeJSON(text)
}
