package deopt

import (
	"fmt"
	"slices"
	"strings"

	"reframe/deopt/ir"
	"reframe/deopt/object"
	"reframe/deopt/stackmap"
)

// namer is what an image says of its maps and their functions.
type namer interface {
	blobs() []*stackmap.Map
	// symbols returns the names of function n of a map, as the image spells them; none
	// where it has no symbol.
	symbols(m *stackmap.Map, n int) []string
	// file is the image, or nil.
	file() *object.Image
}

// compiled is one map with the functions that it is about. The code generator writes one
// map for each module that it compiles, so that a map is of one module.
type compiled struct {
	*stackmap.Map
	namer
	peers *peers

	spelled map[int][]string // by the function's row, as a module may spell them; nil until it is asked for
	pool    []*ir.Module     // those that define all of its functions that have a name
	certain bool             // a name that only one module can have given to the program says so
	known   bool             // whether from and why are known
	from    []*ir.Module     // those that it may be of
	why     string           // why there are none
}

// peers are the maps of one program: those that were linked into an image, or that are
// the members of an archive.
type peers struct {
	maps     []*compiled
	surveyed bool
}

// know takes down the maps of one program.
func (ms *modules) know(p *peers, image namer, maps []*stackmap.Map) {
	for _, m := range maps {
		c := &compiled{Map: m, namer: image, peers: p}
		p.maps = append(p.maps, c)
		ms.maps[m] = c
	}
}

// names returns the names that a module may know a function by.
func (c *compiled) names(f *stackmap.Function) []string {
	if c.spelled == nil {
		c.spelled = map[int][]string{}
		for n := range c.Functions {
			for _, symbol := range c.symbols(c.Map, n) {
				row := c.Functions[n].Row()
				c.spelled[row] = append(c.spelled[row], spellings(c.file(), symbol)...)
			}
		}
	}
	return c.spelled[f.Row()]
}

// spellings returns how a module may spell the name of a symbol; nothing for what is
// none of its names.
func spellings(image *object.Image, symbol string) []string {
	const weak, standIn = ".weak.", ".default."
	switch {
	case strings.HasPrefix(symbol, ".L"), strings.HasPrefix(symbol, "$"), strings.HasPrefix(symbol, "__unnamed_"):
		return nil // labels of the assembler, and what LLVM calls a function without a name
	case strings.HasPrefix(symbol, weak):
		// What COFF has a weak symbol stand for where nobody else defines it.
		if name, _, ok := strings.Cut(symbol[len(weak):], standIn); ok {
			return []string{name}
		}
	}
	source := symbol
	if image != nil {
		source = image.SourceName(symbol)
	}
	// A name that begins with the byte 1 is written as it is (LangRef, "Identifiers").
	return []string{source, "\x01" + symbol}
}

// ofRecord finds the sites that a record may belong to, in the modules that its map may be of.
func (ms *modules) ofRecord(of namer, e recordEntry, name string) (candidates, error) {
	if len(ms.all) == 0 {
		return candidates{}, nil
	}
	c, err := ms.mapOf(of, e.Map)
	if err != nil {
		return candidates{}, err
	}
	names := c.names(e.Function)
	if name != "" && !slices.Contains(names, name) {
		names = slices.Concat([]string{name}, names)
	}
	if len(c.from) == 0 && c.why != "" {
		if len(names) > 0 && len(ms.definitions(names...)) == 0 {
			return candidates{why: fmt.Sprintf("no names: no given module defines @%s", names[0])}, nil
		}
		return candidates{why: "no names: " + c.why}, nil
	}
	own := ms.only(c.from)
	found, err := own.sites(e, names...)
	if err != nil {
		return found, err
	}
	return own.inOrder(of, e, found), nil
}

// mapOf says of which modules a map may be.
func (ms *modules) mapOf(of namer, m *stackmap.Map) (*compiled, error) {
	if ms.maps[m] == nil {
		ms.know(&peers{}, of, of.blobs())
	}
	c := ms.maps[m]
	if c == nil { // it is none of the image's
		ms.know(&peers{}, of, []*stackmap.Map{m})
		c = ms.maps[m]
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

// survey finds the modules that define all functions of a map. One of them is certain to be
// the right one where it gives a function a name that nobody else in the program can have.
func (ms *modules) survey(c *compiled) {
	for _, m := range ms.all {
		if c.definedIn(ms.only([]*ir.Module{m})) {
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

// definedIn says whether modules define all functions of the map that have a name.
func (c *compiled) definedIn(ms *modules) bool {
	for n := range c.Functions {
		if names := c.names(&c.Functions[n]); len(names) > 0 && len(ms.definitions(names...)) == 0 {
			return false
		}
	}
	return true
}

// certainlyOf says whether the map has a function that only the module that defines it for
// all others can have compiled.
func (c *compiled) certainlyOf(m *ir.Module) bool {
	for n := range c.Functions {
		for _, symbol := range c.symbols(c.Map, n) {
			for _, name := range spellings(c.file(), symbol) {
				if f := emitted(m, name); f != nil && external(f) {
					if _, alone := c.file().Only(symbol); alone {
						return true
					}
				}
			}
		}
	}
	return false
}

// named says whether any function of the map has a name.
func (c *compiled) named() (name string, ok bool) {
	for n := range c.Functions {
		if names := c.names(&c.Functions[n]); len(names) > 0 {
			return names[0], true
		}
	}
	return "", false
}

// notGiven is why nothing is known of a map that no module compiled to.
const notGiven = "no given module is what this map was compiled from"

// assign decides for each map of a program which modules it may be of. A module compiles to
// one map: where it might be that of several, nothing is known of any of them.
func (ms *modules) assign(maps []*compiled) error {
	taken := map[*ir.Module]bool{}
	for _, c := range maps {
		c.known = true
		if _, ok := c.named(); !ok {
			c.from = ms.all // the records alone have to tell
			c.pool = nil
			continue
		}
		if !c.certain {
			continue
		}
		c.from = c.pool
		if len(c.pool) > 1 {
			fitting, err := ms.fitting(c, c.pool)
			if err != nil {
				return err
			}
			if len(fitting) > 0 {
				c.from = fitting
			}
		}
		if len(c.from) == 1 {
			taken[c.from[0]] = true
		}
	}
	claims := map[*ir.Module]int{} // how many maps a module has all functions of
	rivals := map[*ir.Module]int{} // of those, whose records it has too
	fits := map[*compiled][]*ir.Module{}
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
			fits[c] = c.pool // whether the records agree is asked of each
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
		if c.from == nil {
			c.decide(fits[c], claims, rivals)
		}
	}
	return nil
}

// decide says of which of the fitting modules a map is that no name is certain of.
func (c *compiled) decide(fitting []*ir.Module, claims, rivals map[*ir.Module]int) {
	shared := func(m *ir.Module) bool { return rivals[m] > 1 }
	switch {
	case slices.ContainsFunc(fitting, shared):
		name, _ := c.named()
		c.why = fmt.Sprintf("several functions are called @%s; which of them this is is not known", name)
	case len(fitting) > 0:
		c.from = fitting
	case len(c.pool) > 0 && !slices.ContainsFunc(c.pool, func(m *ir.Module) bool { return claims[m] > 1 }):
		c.from = c.pool // they are this map's or nobody's
	default:
		c.why = notGiven
	}
}

// fitting keeps the modules that have a site for each record of the map.
func (ms *modules) fitting(c *compiled, among []*ir.Module) ([]*ir.Module, error) {
	var out []*ir.Module
	for _, m := range among {
		ok, err := ms.only([]*ir.Module{m}).fits(c)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, m)
		}
	}
	return out, nil
}

// fits says whether there may be a site for each record of the map's functions that have a name.
func (ms *modules) fits(c *compiled) (bool, error) {
	for n := range c.Functions {
		f := &c.Functions[n]
		names := c.names(f)
		if len(names) == 0 {
			continue
		}
		defined := ms.definitions(names...)
		for rec := range c.Records(f) {
			e := recordEntry{stackmap.Entry{Map: c.Map, Function: f}, rec}
			sites, err := ms.withIDIn(defined, rec.ID)
			if err != nil {
				return false, err
			}
			if len(sites) == 0 { // it may have been inlined
				all, err := ms.with(rec.ID)
				if err != nil {
					return false, err
				}
				if sites, err = ms.withIDIn(all, rec.ID); err != nil {
					return false, err
				}
			}
			if !slices.ContainsFunc(sites, func(s *ir.Site) bool { return misfit(s, e) == "" }) {
				return false, nil
			}
		}
	}
	return true, nil
}

// withIDIn returns the sites of functions that have an id.
func (ms *modules) withIDIn(functions []*ir.Func, id stackmap.RecordID) ([]*ir.Site, error) {
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

// blobs implements [namer].
func (c *code) blobs() []*stackmap.Map { return c.maps }

// file implements [namer].
func (c *code) file() *object.Image { return c.image }

// symbols implements [namer].
func (c *code) symbols(m *stackmap.Map, n int) []string {
	if c.image == nil {
		return nil
	}
	return symbolsAt(c.image, m.Functions[n].Addr)
}
