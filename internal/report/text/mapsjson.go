package text

import (
	"cmp"
	"encoding/json"
	"io"

	"example.com/reframe/internal/static/maps"
)

// mapsJSON writes stack maps as one JSON object, piece by piece: it holds only some batches of a million records at a time.
type mapsJSON struct {
	jsonLines           // the pending text
	out       io.Writer // nil to keep all text
	want      *maps.Filter
	doc       maps.RecordJSON
	shown     int // number of written records
	err       error
}

// WriteMaps writes the wanted records as JSON, and returns their number.
func WriteMaps(w io.Writer, m *maps.Maps, want *maps.Filter) (shown int, err error) {
	p := &mapsJSON{out: w, want: want}
	p.begin(maps.Schema, m)
	for n, i := range m.Images {
		p.openWith("    ", n > 0, i.JSON(), "functions")
		p.closeAt("    ", p.functions(i))
	}
	p.end("  ", len(m.Images) > 0)
	p.say("\n}\n")
	p.flush()
	return p.shown, p.err
}

// begin writes the members before the images.
func (p *mapsJSON) begin(schema string, m *maps.Maps) {
	p.say("{")
	p.member("  ", "schema", schema, true)
	p.member("  ", "source", m.Source, false)
	if len(m.Notes) > 0 {
		p.member("  ", "notes", m.Notes, false)
	}
	p.say(",\n  \"images\": [")
}

// flush writes the pending text.
func (p *mapsJSON) flush() {
	if p.err == nil {
		_, p.err = p.out.Write(p.b)
	}
	p.b = p.b[:0]
}

// functions writes the wanted functions of an image in their order, and reports whether there are any.
func (p *mapsJSON) functions(i *maps.Image) (some bool) {
	if !shared(i) {
		for f := range i.Functions() {
			if p.want.Function(f) && p.function(f, some) {
				some = true
			}
		}
		return some
	}
	p.flush()
	var workers []*mapsJSON
	inWords(i, p.want, batch/8, 4*usual, func() wording {
		own := &mapsJSON{want: p.want}
		workers = append(workers, own)
		return func(b []byte, f *maps.Function) ([]byte, int) {
			own.b, own.shown = b, 0
			own.function(f, true)
			return own.b, own.shown
		}
	}, func(t partText) {
		if !some && len(t.b) > 0 {
			some, t.b = true, t.b[len(","):]
		}
		p.b = t.b
		p.flush()
		p.shown += t.shown
	})
	p.b = nil // a worker now owns the buffer
	for _, w := range workers {
		p.err = cmp.Or(p.err, w.err)
	}
	return some
}

// function writes a function and its records, and reports whether it is wanted.
func (p *mapsJSON) function(f *maps.Function, more bool) bool {
	records := 0
	for rec := range f.Records() {
		if !p.want.Record(f, rec) {
			continue
		}
		if records == 0 {
			p.head(f, more)
		}
		p.separate("            ", records > 0)
		f.JSONRecord(rec, &p.doc)
		p.depth = 6
		p.record(&p.doc)
		if p.out != nil && len(p.b) > pile {
			p.flush()
		}
		records++
		p.shown++
	}
	if records == 0 {
		if !p.want.All() {
			return false
		}
		p.head(f, more)
	}
	p.closeAt("        ", records > 0)
	return true
}

// head writes the start of a function.
func (p *mapsJSON) head(f *maps.Function, more bool) {
	p.separate("        ", more)
	head := f.JSON()
	p.depth = 4
	p.jsonLines.function(&head)
}

func (p *mapsJSON) say(text string) { p.b = append(p.b, text...) }

// openWith writes the members of an object and leaves it open after the start of a list.
func (p *mapsJSON) openWith(indent string, more bool, head any, list string) {
	p.separate(indent, more)
	text := p.marshal(indent, head)
	text = text[:len(text)-len("\n"+indent+"}")]
	p.b = append(p.b, text...)
	p.say(",\n" + indent + "  \"" + list + "\": [")
}

func (p *mapsJSON) closeAt(indent string, some bool) {
	p.end(indent+"  ", some)
	p.say("\n" + indent + "}")
}

// end ends a list. indent is the indentation of the line on which the list began.
func (p *mapsJSON) end(indent string, some bool) {
	if some {
		p.say("\n" + indent)
	}
	p.say("]")
}

func (p *mapsJSON) separate(indent string, more bool) {
	if more {
		p.say(",")
	}
	p.say("\n" + indent)
}

func (p *mapsJSON) member(indent, name string, value any, first bool) {
	p.separate(indent, !first)
	p.b = append(p.b, p.marshal(indent, name)...)
	p.say(": ")
	p.b = append(p.b, p.marshal(indent, value)...)
}

func (p *mapsJSON) marshal(indent string, v any) []byte {
	text, err := json.MarshalIndent(v, indent, "  ")
	if err != nil && p.err == nil {
		p.err = err
	}
	return SafeJSON(text)
}
