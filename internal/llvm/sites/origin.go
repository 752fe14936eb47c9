package sites

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
)

// Namer provides the maps of an image and the names of their functions.
type Namer interface {
	Blobs() []*stackmap.Map
	// Symbols returns the names of function n of a map, as in the image; none if it has no symbol.
	Symbols(m *stackmap.Map, n int) []string
	// File returns the image, or nil.
	File() *object.Image
}

// Compiled is a map and the modules that it may have been compiled from. The code generator writes one map per module, so a map belongs to one module.
type Compiled struct {
	*stackmap.Map
	Namer
	peers *Peers

	spelled map[int][]string // possible names in a module, by the function's row; nil until needed
	pool    []*ir.Module     // modules that define all of its named functions
	certain bool             // a name that is unique in the program proves that the map belongs to pool
	known   bool             // From and Why are set
	From    []*ir.Module     // modules that it may have been compiled from
	Why     error            // the reason if From is empty
}

// Peers holds the maps of one program: those linked into an image, or those in the members of an archive.
type Peers struct {
	maps     []*Compiled
	surveyed bool
}

// Know records the maps of one program.
func (ms *Modules) Know(p *Peers, image Namer, maps []*stackmap.Map) {
	for _, m := range maps {
		c := &Compiled{Map: m, Namer: image, peers: p}
		p.maps = append(p.maps, c)
		ms.Maps[m] = c
	}
}

// Names returns the names that a module may use for a function.
func (c *Compiled) Names(f *stackmap.Function) []string {
	if c.spelled == nil {
		c.spelled = map[int][]string{}
		for n := range c.Functions {
			for _, symbol := range c.Symbols(c.Map, n) {
				row := c.Functions[n].Row()
				c.spelled[row] = append(c.spelled[row], spellings(c.File(), symbol)...)
			}
		}
	}
	return c.spelled[f.Row()]
}

// spellings returns the names that a module may use for a symbol, or nil if the symbol is not from a module.
func spellings(image *object.Image, symbol string) []string {
	const weak, standIn = ".weak.", ".default."
	switch {
	case strings.HasPrefix(symbol, ".L"), strings.HasPrefix(symbol, "$"), strings.HasPrefix(symbol, "__unnamed_"):
		return nil // labels of the assembler, and LLVM's names for unnamed functions
	case strings.HasPrefix(symbol, weak):
		// COFF uses this name for the default definition of a weak symbol.
		if name, _, ok := strings.Cut(symbol[len(weak):], standIn); ok {
			return []string{name}
		}
	}
	source := symbol
	if image != nil {
		source = image.SourceName(symbol)
	}
	// LLVM writes a name that begins with the byte 1 unchanged (LangRef, "Identifiers").
	return []string{source, "\x01" + symbol}
}

// OfRecord finds the candidate sites of a record, in the modules that its map may have been compiled from.
func (ms *Modules) OfRecord(of Namer, e RecordEntry, name string) (Candidates, error) {
	if len(ms.All) == 0 {
		return Candidates{}, nil
	}
	c, err := ms.MapOf(of, e.Map)
	if err != nil {
		return Candidates{}, err
	}
	names := c.Names(e.Function)
	if name != "" && !slices.Contains(names, name) {
		names = slices.Concat([]string{name}, names)
	}
	if len(c.From) == 0 && c.Why != nil {
		if len(names) > 0 && len(ms.Definitions(names...)) == 0 {
			return Candidates{Why: fmt.Sprintf("no names: no given module defines @%s", names[0])}, nil
		}
		return Candidates{Why: "no names: " + c.Why.Error()}, nil
	}
	from, refused := ms.notContradicted(c, e.Function)
	if refused != nil {
		return refused.candidates(), nil
	}
	own := ms.Only(from)
	found, err := own.Sites(e, names...)
	if mismatch := (*MismatchError)(nil); errors.As(err, &mismatch) {
		return (&Refusal{mismatch.defined, mismatch.Error()}).candidates(), nil
	}
	if err != nil {
		return found, err
	}
	if found, refused = own.computing(of, e, found); refused != nil {
		return refused.candidates(), nil
	}
	return own.inOrder(of, e, own.admitted(of.File(), e, found)), nil
}

// admitted drops the sites of refused modules.
func (ms *Modules) admitted(img *object.Image, e RecordEntry, found Candidates) Candidates {
	why := map[*ir.Func]string{}
	var refused *Refusal
	kept := slices.DeleteFunc(slices.Clone(found.Sites), func(s *ir.Site) bool {
		text, asked := why[s.Func]
		if !asked {
			text = ms.refuses(img, e.Function.Addr, s.Func)
			why[s.Func] = text
		}
		if refused == nil && text != "" {
			refused = &Refusal{s.Func, text}
		}
		return text != ""
	})
	if len(kept) == 0 && refused != nil {
		return refused.candidates()
	}
	found.Sites = kept
	return found
}

// refuses returns the reason why a function must not name the values of the code at an address of an image, or "".
func (ms *Modules) refuses(img *object.Image, start machine.Addr, f *ir.Func) string {
	own, is := f.Module.Image.(*object.Image)
	switch {
	case is && img != nil && own != img && ms.ProvenanceOf(img, start, f).Sure != Certain:
		return f.Module.Name + " belongs to another object"
	case ms.Refuses != nil:
		return ms.Refuses(ms, img, start, f)
	}
	return ""
}

// candidates returns an empty Candidates with the reason for the refusal.
func (r *Refusal) candidates() Candidates { return Candidates{Why: "no names: " + r.Why, Refused: r} }

// MapOf returns the modules that a map may have been compiled from.
func (ms *Modules) MapOf(of Namer, m *stackmap.Map) (*Compiled, error) {
	if ms.Maps[m] == nil {
		ms.Know(&Peers{}, of, of.Blobs())
	}
	c := ms.Maps[m]
	if c == nil { // the map does not belong to the image
		ms.Know(&Peers{}, of, []*stackmap.Map{m})
		c = ms.Maps[m]
	}
	if c.known {
		return c, nil
	}
	if !c.peers.surveyed {
		c.peers.surveyed = true
		for _, p := range c.peers.maps {
			ms.survey(p)
		}
		if err := ms.assign(c.peers.maps); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// survey finds the modules that define all named functions of a map. A module is certain if it defines a function whose name is unique in the program.
func (ms *Modules) survey(c *Compiled) {
	for _, m := range ms.All {
		if c.definedIn(ms.Only([]*ir.Module{m})) {
			c.pool = append(c.pool, m)
		}
	}
	var certain []*ir.Module
	for _, m := range c.pool {
		if c.certainlyOf(m) {
			certain = append(certain, m)
		}
	}
	if len(certain) > 0 {
		c.pool, c.certain = certain, true
	}
}

// definedIn reports whether modules define all named functions of the map.
func (c *Compiled) definedIn(ms *Modules) bool {
	for n := range c.Functions {
		if names := c.Names(&c.Functions[n]); len(names) > 0 && len(ms.Definitions(names...)) == 0 {
			return false
		}
	}
	return true
}

// certainlyOf reports whether the map has a function with an external name that the module defines. Such a name is unique in the program.
func (c *Compiled) certainlyOf(m *ir.Module) bool {
	for n := range c.Functions {
		for _, symbol := range c.Symbols(c.Map, n) {
			for _, name := range spellings(c.File(), symbol) {
				if f := Emitted(m, name); f != nil && External(f) {
					if _, alone := c.File().Only(symbol); alone {
						return true
					}
				}
			}
		}
	}
	return false
}

// Named returns the name of a function of the map; ok is false if none has a name.
func (c *Compiled) Named() (name string, ok bool) {
	for n := range c.Functions {
		if names := c.Names(&c.Functions[n]); len(names) > 0 {
			return names[0], true
		}
	}
	return "", false
}

// ErrNotGiven is the reason for a map that was not compiled from a given module.
var ErrNotGiven = errors.New("this map was compiled from none of the given modules")

// assign determines the modules from which the maps of a program may have been compiled. A module compiles to one map, so a module that fits several
// maps is assigned to none.
func (ms *Modules) assign(maps []*Compiled) error {
	taken := map[*ir.Module]bool{}
	for _, c := range maps {
		c.known = true
		if _, ok := c.Named(); !ok {
			c.From = ms.All // a map without names of functions: only its records can decide
			c.pool = nil
			continue
		}
		if !c.certain {
			continue
		}
		c.From = c.pool
		if len(c.pool) > 1 {
			fitting, err := ms.fitting(c, c.pool)
			if err != nil {
				return err
			}
			if len(fitting) > 0 {
				c.From = fitting
			}
		}
		if len(c.From) == 1 {
			taken[c.From[0]] = true
		}
	}
	claims := map[*ir.Module]int{} // number of maps whose named functions the module defines
	rivals := map[*ir.Module]int{} // number of maps whose records also fit the module
	fits := map[*Compiled][]*ir.Module{}
	for _, c := range maps {
		if c.certain || len(c.pool) == 0 {
			continue
		}
		c.pool = slices.DeleteFunc(slices.Clone(c.pool), func(m *ir.Module) bool { return taken[m] })
		for _, m := range c.pool {
			claims[m]++
		}
	}
	for _, c := range maps {
		if c.certain || len(c.pool) == 0 {
			continue
		}
		if len(c.pool) == 1 && claims[c.pool[0]] == 1 {
			fits[c] = c.pool // its records are checked one by one later
			rivals[c.pool[0]]++
			continue
		}
		fitting, err := ms.fitting(c, c.pool)
		if err != nil {
			return err
		}
		fits[c] = fitting
		for _, m := range fitting {
			rivals[m]++
		}
	}
	for _, c := range maps {
		if c.From == nil {
			c.decide(fits[c], claims, rivals)
		}
	}
	return nil
}

// decide chooses the modules for a map that has no unique name.
func (c *Compiled) decide(fitting []*ir.Module, claims, rivals map[*ir.Module]int) {
	shared := func(m *ir.Module) bool { return rivals[m] > 1 }
	switch {
	case slices.ContainsFunc(fitting, shared):
		name, _ := c.Named()
		c.Why = fmt.Errorf("several functions are called @%s, and it is unknown which of them this is", name)
	case len(fitting) > 0:
		c.From = fitting
	case len(c.pool) > 0 && !slices.ContainsFunc(c.pool, func(m *ir.Module) bool { return claims[m] > 1 }):
		c.From = c.pool // a module in pool belongs to this map or to none
	default:
		c.Why = ErrNotGiven
	}
}

// fitting returns the modules that have a site for each record of the map.
func (ms *Modules) fitting(c *Compiled, among []*ir.Module) ([]*ir.Module, error) {
	var out []*ir.Module
	for _, m := range among {
		ok, err := ms.Only([]*ir.Module{m}).fits(c)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, m)
		}
	}
	return out, nil
}

// fits reports whether each record of the map's named functions may have a site.
func (ms *Modules) fits(c *Compiled) (bool, error) {
	for n := range c.Functions {
		f := &c.Functions[n]
		names := c.Names(f)
		if len(names) == 0 {
			continue
		}
		defined := ms.Definitions(names...)
		for rec := range c.Records(f) {
			e := RecordEntry{stackmap.Entry{Map: c.Map, Function: f}, rec}
			sites, err := ms.WithIDIn(defined, rec.ID)
			if err != nil {
				return false, err
			}
			if len(sites) == 0 { // the site may have come from an inlined function
				all, err := ms.with(rec.ID)
				if err != nil {
					return false, err
				}
				if sites, err = ms.WithIDIn(all, rec.ID); err != nil {
					return false, err
				}
			}
			if !slices.ContainsFunc(sites, func(s *ir.Site) bool { return Misfit(s, e) == "" }) {
				return false, nil
			}
		}
	}
	return true, nil
}

// WithIDIn returns the sites of functions with an id.
func (ms *Modules) WithIDIn(functions []*ir.Func, id stackmap.RecordID) ([]*ir.Site, error) {
	var sites []*ir.Site
	for _, f := range functions {
		own, err := ms.withID(f, id)
		if err != nil {
			return nil, err
		}
		if sites == nil {
			sites = own
		} else {
			sites = slices.Concat(sites, own)
		}
	}
	return sites, nil
}
