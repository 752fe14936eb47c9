package roots

import (
	"iter"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/static/maps"
)

// FileSchema names the JSON of the roots of a file: {"schema", "source", "notes", "images": [{"name", "format", "arch", "error", "functions":
// [{"name", "demangled", "address", "safepoints": [Safepoint]}]}], "summary": FileSummary}.
const FileSchema = "reframe.rootmaps/v1"

// Safepoint holds the locations that the record of a statepoint lists for a collector, without values.
type Safepoint struct {
	ID      uint64           `json:"id"`
	Offset  uint32           `json:"offset"`            // offset of the return address in the function
	Address frame.Hex        `json:"address,omitempty"` // the return address; empty in an unlinked object
	Sure    bool             `json:"sure,omitempty"`    // a module confirms that the record is a statepoint's; false: only its form shows it
	Line    int              `json:"line,omitempty"`    // line of the call in the module
	Note    string           `json:"note,omitempty"`    // the reason why the given modules do not name the site or its pointers
	Pairs   []Pair           `json:"pairs,omitempty"`
	Allocas []frame.Location `json:"allocas,omitempty"` // stack objects whose content the collector reads
}

// Pair is a pointer that the collector must update, and its base.
type Pair struct {
	Pointer
	Base *Pointer `json:"base,omitempty"` // nil if the pointer is its own base
}

// Pointer is the location of a pointer, with the names that the module gives it.
type Pointer struct {
	Name      string         `json:"name,omitempty"`
	OneOf     []string       `json:"one_of,omitempty"` // the possible names, if the record does not distinguish them
	OneOfMore int            `json:"one_of_more,omitempty"`
	Type      string         `json:"type,omitempty"`
	Location  frame.Location `json:"location"`
	Pointers  int            `json:"pointers,omitempty"` // number of pointers in the location, if it holds several
}

// FileSummary counts the contents of a file.
type FileSummary struct {
	Functions  int `json:"functions"`  // functions with a safepoint
	Safepoints int `json:"safepoints"` // records of statepoints
	Pairs      int `json:"pairs"`
	Derived    int `json:"derived"`    // pairs whose base is in another location
	Allocas    int `json:"allocas"`    // addresses of stack objects
	Unsure     int `json:"unsure"`     // safepoints that only have the form of a statepoint's record
	Unreadable int `json:"unreadable"` // images whose maps cannot be read completely
}

// add adds a safepoint.
func (s *FileSummary) add(p *Safepoint) {
	s.Safepoints++
	s.Pairs += len(p.Pairs)
	s.Allocas += len(p.Allocas)
	if !p.Certain() {
		s.Unsure++
	}
	for k := range p.Pairs {
		if p.Pairs[k].Base != nil {
			s.Derived++
		}
	}
}

// Certain reports whether the record is certainly that of a statepoint: a module confirms it, or the id is one that LLVM chooses. The record of a
// stackmap that has such constants as live values has the same form.
func (p *Safepoint) Certain() bool { return p.Sure || sites.ByDefault(stackmap.RecordID(p.ID)) }

// FileFunctions yields the selected functions of an image that have safepoints, and their safepoints. function may be nil. The number of functions
// and safepoints that were yielded is added to the summary.
func FileFunctions(i *maps.Image, function *names.Pattern, sum *FileSummary) iter.Seq2[*maps.Function, []Safepoint] {
	return func(yield func(*maps.Function, []Safepoint) bool) {
		if i.Err != nil {
			sum.Unreadable++
		}
		if i.Section == nil {
			return
		}
		for f := range i.Functions() {
			if function != nil && !function.MatchAny(append([]string{f.Name}, f.Aliases...)...) {
				continue
			}
			list := safepoints(f)
			if len(list) == 0 {
				continue
			}
			sum.Functions++
			for k := range list {
				sum.add(&list[k])
			}
			if !yield(f, list) {
				return
			}
		}
	}
}

// safepoints returns the safepoints of a function in the order of its map.
func safepoints(f *maps.Function) (list []Safepoint) {
	var r maps.Reading
	for rec := range f.Records() {
		f.Read(rec, &r)
		sp, ok := r.Statepoint()
		if !ok {
			continue
		}
		p := Safepoint{ID: uint64(rec.ID), Offset: rec.Offset, Sure: r.Sure, Note: r.Note}
		if at, ok := f.Site(rec); ok {
			p.Address = frame.HexOf(at)
		}
		var held map[stackmap.Location][]ir.Value
		if len(r.Sites) == 1 {
			p.Line = r.Sites[0].Instr.Line
			held = sites.GCPointers(r.Sites[0], &sp)
		}
		first := stackmap.StatepointHead + len(sp.Deopt)
		pointer := func(l stackmap.Location, n int) Pointer {
			out := Pointer{Location: f.Image.Location(f.Map, l), Pointers: f.Pointers(&r, n, l)}
			out.named(held[l])
			return out
		}
		seen := map[stackmap.Pair]bool{}
		for k, pair := range sp.Pairs {
			if seen[pair] || isConstant(pair.Derived) {
				continue
			}
			seen[pair] = true
			is := Pair{Pointer: pointer(pair.Derived, first+2*k+1)}
			if pair.Base != pair.Derived {
				base := pointer(pair.Base, first+2*k)
				is.Base = &base
			}
			p.Pairs = append(p.Pairs, is)
		}
		listed := map[stackmap.Location]bool{}
		for _, l := range sp.Allocas {
			if !listed[l] {
				listed[l] = true
				p.Allocas = append(p.Allocas, f.Image.Location(f.Map, l))
			}
		}
		list = append(list, p)
	}
	return list
}

// isConstant reports whether a location is a constant: null, which is not a root.
func isConstant(l stackmap.Location) bool {
	return l.Kind == stackmap.Constant || l.Kind == stackmap.ConstantIndex
}

// named sets the name and the type from the pointers of the module that the location may hold.
func (p *Pointer) named(values []ir.Value) {
	if t := sites.CommonType(values); t != nil {
		p.Type = t.String()
	}
	if len(values) == 1 {
		p.Name = sites.NameOf(values[0])
		return
	}
	p.OneOf, p.OneOfMore = sites.PossibleNames(values)
}
