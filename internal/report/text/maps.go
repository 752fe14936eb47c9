package text

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/static/maps"
)

// mapsText prints stack maps as text. There may be a million records, so their lines are built by hand in one buffer.
type mapsText struct {
	out     io.Writer // nil to keep all text in b
	style   Style
	want    *maps.Filter
	reading maps.Reading
	b       []byte   // the pending text
	names   []string // cached names of registers of arch and of their parts
	arch    *machine.Arch
	shown   int // number of printed records
	err     error
}

// pile is the number of bytes that are written at once.
const pile = 1 << 16

// flush writes the pending text.
func (p *mapsText) flush() {
	if p.err == nil {
		_, p.err = p.out.Write(p.b)
	}
	p.b = p.b[:0]
}

func (p *mapsText) printf(format string, args ...any) { p.b = fmt.Appendf(p.b, format, args...) }

// PrintMaps prints the wanted records as text, and returns their number.
func PrintMaps(w io.Writer, s Style, m *maps.Maps, want *maps.Filter) (shown int, err error) {
	p := &mapsText{out: w, style: s, want: want}
	p.b = append(p.b, notesOf(s, m)...)
	for n, i := range m.Images {
		if n > 0 {
			p.printf("\n")
		}
		p.image(i)
	}
	p.flush()
	return p.shown, p.err
}

// notesOf returns the notes of maps, one per line.
func notesOf(s Style, m *maps.Maps) (lines string) {
	for _, note := range m.Notes {
		lines += s.Yellow(Printable(note)) + "\n"
	}
	return lines
}

// imageTitle returns a line with the name and the kind of an image, and a line with the reason if its maps cannot be read.
func imageTitle(s Style, i *maps.Image) string {
	what := i.Format
	if i.Arch != nil {
		what += ", " + i.Arch.Title
	}
	title := fmt.Sprintf("%s  %s\n", s.Bold(Printable(i.Name)), s.Dim(strings.TrimPrefix(what, ", ")))
	if i.Err != nil {
		title += fmt.Sprintf("  %s\n", s.Yellow(Printable(i.Err.Error())))
	}
	return title
}

// functionTitle returns the name of a function of a map.
func functionTitle(f *maps.Function) string {
	return cmp.Or(Printable(f.Demangled), "(no symbol)")
}

func (p *mapsText) image(i *maps.Image) {
	p.b = append(p.b, imageTitle(p.style, i)...)
	if i.Section == nil {
		return
	}
	for n, m := range i.Section.Maps {
		p.printf("  map %d: version %d%s at +%#x, %s, %s, %s\n", n, m.Version, mapLayout(m), m.Offset,
			Count(len(m.Functions), "function"), Count(m.NumConstants(), "large constant"), Count(m.Len(), "record"))
	}
	if len(i.Section.Also) > 0 {
		also := make([]string, len(i.Section.Also))
		for n, d := range i.Section.Also {
			also[n] = string(d)
		}
		p.printf("  %s\n", p.style.Yellow("the section also fits layout "+strings.Join(also, " and ")+" to the last byte; choose with --dialect"))
	}
	p.functions(i)
}

// mapLayout returns the name of a map's layout if the version of the map does not determine it.
func mapLayout(m *stackmap.Map) string {
	if string(m.Dialect) == fmt.Sprintf("v%d", m.Version) {
		return ""
	}
	return fmt.Sprintf(" (layout %s)", m.Dialect)
}

func (p *mapsText) function(f *maps.Function) {
	headed := false
	for rec := range f.Records() {
		if !p.want.Record(f, rec) {
			continue
		}
		if !headed {
			p.head(f)
			headed = true
		}
		p.record(f, rec)
		p.shown++
	}
	if !headed && p.want.All() {
		p.head(f)
	}
}

func (p *mapsText) head(f *maps.Function) {
	if f.Loose {
		p.printf("\n  %s\n", p.style.Yellow("records of unknown functions: a map of version 1 with several functions does not assign its records to them"))
		return
	}
	b := append(append(p.b, "\n  "...), p.style.Bold(functionTitle(f))...)
	if len(f.Aliases) > 0 {
		b = append(append(b, " (also "...), Printable(strings.Join(f.Aliases, ", "))...)
		b = append(b, ')')
	}
	if f.Image.Unlinked {
		b = append(b, " unlinked, stack "...)
	} else {
		b = strconv.AppendUint(append(b, " at 0x"...), uint64(f.Addr), 16)
		if f.Code != f.Addr && f.CodeKnown {
			b = strconv.AppendUint(append(b, ", code at 0x"...), uint64(f.Code), 16)
		}
		b = append(b, ", stack "...)
	}
	if f.StackSize == stackmap.DynamicStack {
		b = append(b, "dynamic"...)
	} else {
		b = strconv.AppendUint(b, f.StackSize, 10)
		b = append(b, " bytes"...)
	}
	p.b = append(b, '\n')
	if prologue, ok := f.Prologue(); ok {
		saved := make([]string, len(prologue.Saved))
		for n, s := range prologue.Saved {
			saved[n] = fmt.Sprintf("%s%+d", f.Image.RegisterName(s.Reg, 0), s.Offset)
		}
		fp := "no frame pointer"
		if prologue.HasFramePointer {
			fp = "a frame pointer"
		}
		if len(saved) == 0 {
			saved = []string{"nothing"}
		}
		p.printf("    prologue: %s, saves %s\n", fp, strings.Join(saved, " "))
	}
}

func (p *mapsText) record(f *maps.Function, rec *stackmap.Record) {
	r := &p.reading
	f.Read(rec, r)
	b := append(p.b, "    record "...)
	b = strconv.AppendUint(b, uint64(rec.ID), 10)
	b = append(b, " at +0x"...)
	b = strconv.AppendUint(b, uint64(rec.Offset), 16)
	if addr, ok := f.Site(rec); ok {
		b = append(b, " (0x"...)
		b = strconv.AppendUint(b, uint64(addr), 16)
		b = append(b, ')')
	}
	b = append(b, ", "...)
	b = appendCount(b, len(rec.Locations), "location")
	if rec.Flags != 0 {
		b = append(b, ", flags 0x"...)
		b = strconv.AppendUint(b, uint64(rec.Flags), 16)
	}
	switch {
	case r.Kind != "" && r.Sure:
		b = append(append(b, ", "...), r.Kind...)
		if len(r.Sites) == 1 {
			b = fmt.Appendf(b, " of line %d", r.Sites[0].Instr.Line)
		}
	case r.Kind != "":
		b = append(append(b, ", reads as a "...), r.Kind...)
	}
	b = append(b, '\n')
	if r.Note != "" {
		b = fmt.Appendf(b, "      %s\n", p.style.Yellow(Printable(r.Note)))
	}
	at, variable := 0, 0
	for n, l := range rec.Locations {
		for ; variable < len(rec.Vars) && n == at; variable++ {
			b = appendVariable(b, rec, variable)
			at += rec.Vars[variable]
		}
		b = p.location(b, f, r, n, l)
		if rec.Extra != nil && len(rec.Extra[n]) > 0 {
			b = append(p.appendExtra(append(b[:len(b)-1], "  also"...), f, rec.Extra[n]), '\n')
		}
	}
	for ; variable < len(rec.Vars); variable++ {
		b = appendVariable(b, rec, variable)
	}
	if len(rec.LiveOuts) > 0 {
		b = append(b, "      live-outs"...)
		for _, l := range rec.LiveOuts {
			b = append(append(b, ' '), p.register(f.Image, l.Reg, int(l.Size))...)
			b = strconv.AppendUint(append(b, ':'), uint64(l.Size), 10)
		}
		b = append(b, '\n')
	}
	p.b = b
	if o := f.VM(rec, r); o != nil {
		p.outline(o)
	}
	if p.out != nil && len(p.b) > pile {
		p.flush()
	}
}

func appendVariable(b []byte, rec *stackmap.Record, n int) []byte {
	return fmt.Appendf(b, "      variable %d, %s\n", n, Count(rec.Vars[n], "location"))
}

// appendExtra appends the further locations of a value in the yk layout. Each is a register, or memory below the frame pointer.
func (p *mapsText) appendExtra(b []byte, f *maps.Function, extra []int16) []byte {
	for _, e := range extra {
		if e >= 0 {
			b = append(append(b, ' '), p.register(f.Image, machine.DWARFReg(e), 0)...)
		} else {
			b = fmt.Appendf(b, " [%s%d]", f.Image.FramePointer(), e)
		}
	}
	return b
}

// location appends one line: the number, kind, place, size and role of a location.
func (p *mapsText) location(b []byte, f *maps.Function, r *maps.Reading, n int, l stackmap.Location) []byte {
	start := len(b)
	if n < len(heads) && int(l.Kind) < len(heads[n]) {
		b = append(b, heads[n][l.Kind]...)
	} else {
		b = appendHead(b, n, l.Kind)
	}
	b = p.appendPlace(b, f, l)
	b = fill(b, start, 46)
	if int(l.Size) < len(sizes) {
		b = append(b, sizes[l.Size]...)
	} else {
		b = appendCount(b, int(l.Size), "byte")
	}
	if pointers := f.Pointers(r, n, l); pointers > 0 {
		b = append(append(b, " = "...), Count(pointers, "pointer")...)
	}
	role := r.Role(n)
	if role.What != "" {
		b = fill(b, start, 57)
		b = append(b, role.What...)
		if role.Of > 0 {
			b = strconv.AppendInt(append(b, ' '), int64(role.Of-1), 10)
		}
		for _, more := range [...]string{role.Value, role.Name, role.Type} {
			if more != "" {
				b = append(append(b, "  "...), Printable(more)...)
			}
		}
	}
	return append(b, '\n')
}

// These cache the first columns of most lines, and most sizes: a few values occur in millions of lines.
var (
	heads = commonHeads()
	sizes = commonSizes()
)

func commonHeads() (heads [16][stackmap.ConstantIndex + 1]string) {
	for n := range heads {
		for kind := range heads[n] {
			heads[n][kind] = string(appendHead(nil, n, stackmap.Kind(kind)))
		}
	}
	return heads
}

func commonSizes() (sizes [65]string) {
	for n := range sizes {
		sizes[n] = Count(n, "byte")
	}
	return sizes
}

// appendHead appends the number and kind of a location.
func appendHead(b []byte, n int, kind stackmap.Kind) []byte {
	start := len(b)
	b = append(b, "      #"...)
	b = strconv.AppendInt(b, int64(n), 10)
	b = fill(b, start, 11)
	return fill(append(b, kind.String()...), start, 25)
}

// These bound the registers and sizes whose names are cached.
const (
	keptRegisters = 256
	keptSize      = 64
)

// register returns the name of size bytes of a register, or of the whole register for 0. It caches the names: there are millions of calls for a few
// of them.
func (p *mapsText) register(i *maps.Image, r machine.DWARFReg, size int) string {
	if int(r) >= keptRegisters || size > keptSize {
		return i.RegisterName(r, size)
	}
	if p.names == nil || p.arch != i.Arch {
		p.names, p.arch = make([]string, keptRegisters*(keptSize+1)), i.Arch
	}
	name := &p.names[int(r)*(keptSize+1)+size]
	if *name == "" {
		*name = i.RegisterName(r, size)
	}
	return *name
}

// appendPlace appends the location of the value, as in assembly.
func (p *mapsText) appendPlace(b []byte, f *maps.Function, l stackmap.Location) []byte {
	switch l.Kind {
	case stackmap.Constant, stackmap.ConstantIndex:
		v, err := f.Map.Constant(l)
		if err != nil {
			return append(b, err.Error()...)
		}
		return strconv.AppendInt(b, int64(v), 10)
	case stackmap.Register:
		b = append(b, p.register(f.Image, l.Reg, int(l.Size))...)
		if l.Offset != 0 {
			b = append(b, " from bit "...)
			b = strconv.AppendInt(b, int64(l.Offset), 10)
		}
		return b
	}
	if l.Kind == stackmap.Indirect {
		b = append(b, '[')
	}
	b = append(b, p.register(f.Image, l.Reg, 0)...)
	if l.Offset >= 0 {
		b = append(b, '+')
	}
	b = strconv.AppendInt(b, int64(l.Offset), 10)
	if l.Kind == stackmap.Indirect {
		b = append(b, ']')
	}
	return b
}

// fill appends at least one space, up to a column of the line that begins at start.
func fill(b []byte, start, column int) []byte {
	const spaces = "                                                            "
	return append(b, spaces[:max(1, column-(len(b)-start))]...)
}

func appendCount(b []byte, n int, what string) []byte {
	b = strconv.AppendInt(b, int64(n), 10)
	b = append(append(b, ' '), what...)
	if n != 1 {
		b = append(b, 's')
	}
	return b
}
