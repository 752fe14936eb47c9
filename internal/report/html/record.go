package html

import (
	"fmt"
	"path"
	"slices"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
)

// Record holds the bytes of the frame's record, of its function's row and of the map's header, with their meaning.
type Record struct {
	Title string
	Rows  []RecordRow
	More  int // number of locations and live-outs that are not shown
	at    []int
}

// RecordRow is a row with the fields of one element, such as a location.
type RecordRow struct {
	Pos    string // the offset in the section
	Fields []RecordField
	Says   string
	Key    string
	Via    string
	Anchor string
	Part   string // header, function, record, location, live-out, constant
	Names  bool   // show the names of the row's fields, because the row is the first of its part
}

// RecordField is one field.
type RecordField struct{ Bytes, Name, Value string }

// recorder decodes a record.
type recorder struct {
	at   *Place
	arch *machine.Arch
	m    *stackmap.Map
	rec  *stackmap.Record
	sp   *stackmap.Statepoint
	key  map[int]int // the index of the value that was read from a location
	out  *Record
}

func (at *Place) record(l limits) *Record {
	match := at.frame.Match()
	if match == nil {
		return nil
	}
	r := &recorder{at: at, arch: at.frame.View().Target().Arch(), m: match.Entry.Map, rec: match.Entry.Record, key: map[int]int{}, out: &Record{at: at.at}}
	for k, n := range at.at {
		if n >= 0 {
			r.key[n] = k
		}
	}
	if sp, ok := r.rec.AsStatepoint(); ok && (at.frame.Record.Site == "statepoint" || at.frame.Record.Site == "deoptimize") {
		r.sp = &sp
	}
	r.out.Title = fmt.Sprintf("record %d at %#x of the stack maps of %s, layout %s", uint64(r.rec.ID), r.rec.Pos, path.Base(at.frame.Code().Name), r.m.Dialect)
	for f := range r.m.HeadFields(match.Entry.Function) {
		r.add(f)
	}
	left := l.fields
	for f := range r.m.Fields(r.rec) {
		if (f.Part == stackmap.InLocation || f.Part == stackmap.InLiveOut) && f.Index >= left {
			continue
		}
		r.add(f)
	}
	r.out.More = max(0, len(r.rec.Locations)-left) + max(0, len(r.rec.LiveOuts)-left)
	for n, loc := range r.rec.Locations[:min(len(r.rec.Locations), left)] {
		if loc.Kind == stackmap.ConstantIndex && loc.Offset >= 0 && int(loc.Offset) < r.m.NumConstants() {
			f := r.m.ConstantField(int(loc.Offset))
			row := r.row(f)
			row.Says = fmt.Sprintf("constant %d: %d, of location %d", loc.Offset, int64(r.m.Uint(f)), n)
			if k, ok := r.key[n]; ok {
				row.Key = key(k)
			}
			r.out.Rows = append(r.out.Rows, row)
		}
	}
	for n := range r.out.Rows {
		r.out.Rows[n].Names = n == 0 || r.out.Rows[n].Part != r.out.Rows[n-1].Part
	}
	return r.out
}

// parts holds the names of the rows for the parts of a record.
var parts = map[stackmap.Part]string{
	stackmap.InHeader: "header", stackmap.InFunction: "function", stackmap.InConstants: "constant", stackmap.InRecord: "record",
	stackmap.InLocation: "location", stackmap.InLiveOut: "live-out",
}

// row returns a new row with a field.
func (r *recorder) row(f stackmap.Field) RecordRow {
	return RecordRow{Pos: fmt.Sprintf("%#x", f.Pos), Part: parts[f.Part], Fields: []RecordField{r.field(f)}}
}

func (r *recorder) field(f stackmap.Field) RecordField {
	v := fmt.Sprint(r.m.Uint(f))
	switch {
	case f.Name == "offset":
		v = fmt.Sprint(int32(r.m.Uint(f)))
	case f.Name == "address" || f.Name == "instruction offset":
		v = fmt.Sprintf("%#x", r.m.Uint(f))
	case f.Name == "register":
		v += " " + r.arch.RegisterName(machine.DWARFReg(r.m.Uint(f)))
	case f.Name == "kind":
		v += " " + stackmap.Kind(r.m.Uint(f)).String()
	case f.Name == "stack size" && r.m.Uint(f) == stackmap.DynamicStack:
		v = "not constant"
	case f.Name == "padding" && len(f.Bytes) > 8, f.Name == "extra":
		v = ""
	}
	return RecordField{fmt.Sprintf("% x", f.Bytes[:min(len(f.Bytes), maxRegister)]), f.Name, v}
}

// add adds a field to the last row, or starts a new row for the first field of a part.
func (r *recorder) add(f stackmap.Field) {
	last := len(r.out.Rows) - 1
	first := f.Name == "version" || f.Name == "address" || f.Name == "id" || f.Name == "kind" || f.Part == stackmap.InLiveOut && f.Name == "register"
	if last >= 0 && !first && r.out.Rows[last].Part == parts[f.Part] {
		r.out.Rows[last].Fields = append(r.out.Rows[last].Fields, r.field(f))
		return
	}
	row := r.row(f)
	switch f.Part {
	case stackmap.InHeader:
		row.Says = fmt.Sprintf("stack map, version %d", r.m.Version)
	case stackmap.InFunction:
		row.Says = "the function"
		if name := r.at.frame.Function; name != "" {
			row.Says = names.Short(name)
		}
	case stackmap.InRecord:
		if f.Name == "id" {
			row.Says = fmt.Sprintf("record %d, %#x after the start of its function", uint64(r.rec.ID), r.rec.Offset)
		}
	case stackmap.InLocation:
		r.location(&row, f.Index)
	case stackmap.InLiveOut:
		out := r.rec.LiveOuts[f.Index]
		row.Says = fmt.Sprintf("live-out %d: %s of %s", f.Index, count(int(out.Size), "byte"), r.arch.RegisterName(out.Reg))
	}
	r.out.Rows = append(r.out.Rows, row)
}

// location describes a location and names its value.
func (r *recorder) location(row *RecordRow, n int) {
	l := new(stackmap.LocationOf(r.m, r.rec.Locations[n], r.arch))
	where := l.String()
	switch {
	case l.Kind == stackmap.ConstantIndex.String():
		where = fmt.Sprintf("entry %d of the constants, %s", l.Offset, l.Constant)
	case l.Constant != "":
		where = "the constant " + l.Constant
	case l.Kind == stackmap.Direct.String():
		where += ", the address itself"
	default:
		where = fmt.Sprintf("%s of %s", count(l.Size, "byte"), where)
	}
	row.Says = fmt.Sprintf("location %d: %s", n, where)
	if role := r.role(n); role != "" {
		row.Says += " (" + role + ")"
	}
	if k, ok := r.key[n]; ok {
		row.Key, row.Anchor = key(k), "record-"+key(k)
		row.Says += " → " + r.at.called(k)
		return
	}
	// A pointer that is a deopt value has a second location in its pair.
	if k := slices.IndexFunc(r.at.Values, func(v Value) bool { return r.isPair(n) && v.Location != nil && sameLocation(v.Location, l) }); k >= 0 {
		row.Via = key(k)
		row.Says += " → " + r.at.called(k)
	}
}

func (r *recorder) isPair(n int) bool {
	return r.sp != nil && n >= stackmap.StatepointHead+len(r.sp.Deopt)
}

// role returns the purpose of a location of a statepoint's record ("Garbage Collection Safepoints in LLVM", Stack Map Format).
func (r *recorder) role(n int) string {
	if r.sp == nil {
		return ""
	}
	behind := n - stackmap.StatepointHead - len(r.sp.Deopt)
	switch {
	case n == 0:
		return "calling convention"
	case n == 1:
		return "flags"
	case n == 2:
		return "number of deopt values"
	case behind < 0:
		return fmt.Sprintf("deopt value %d", n-stackmap.StatepointHead)
	case behind < 2*len(r.sp.Pairs):
		return fmt.Sprintf("gc pointer %d, %s", behind/2, [2]string{"base", "derived"}[behind%2])
	}
	return "alloca"
}

// shown returns the values whose location has an anchor.
func (r *Record) shown() map[int]bool {
	out := map[int]bool{}
	if r == nil {
		return out
	}
	for _, row := range r.Rows {
		var k int
		if _, err := fmt.Sscanf(row.Anchor, "record-v%d", &k); err == nil {
			out[k] = true
		}
	}
	return out
}
