package stackmap

import "slices"

// candidates returns the layouts that permit the version at offset at, in the order in which to try them.
func (p *parser) candidates(at int) []*layout {
	own := named(p.data[at])
	if own == nil {
		return nil
	}
	list := []*layout{own}
	for i := range layouts {
		if l := &layouts[i]; l != own && l.has(int(p.data[at])) {
			list = append(list, l)
		}
	}
	return list
}

// fitting scans with every candidate layout other than except, and returns the scans that fit all maps from offset at on. It makes one pass per
// layout; most passes end at the first location.
func (p *parser) fitting(at int, except *layout) []*scan {
	if at == len(p.data) {
		return nil
	}
	var list []*scan
	for _, l := range p.candidates(at) {
		if l == except {
			continue
		}
		if s, ok := p.walk(at, l); ok {
			list = append(list, s)
		}
	}
	return list
}

// also returns the layouts other than l that fit all maps from at on and read them differently. l itself must fit.
func (p *parser) also(at int, l *layout) []Dialect {
	fits := p.fitting(at, l)
	if len(fits) == 0 {
		return nil
	}
	chosen, _ := p.walk(at, l)
	var list []Dialect
	for _, s := range fits {
		if s.differs(chosen) {
			list = append(list, s.layout.dialect)
		}
	}
	return list
}

// differs reports whether two scans of the same bytes in different layouts find different contents. Layouts differ only in their functions and
// locations, so two scans without these are equal.
func (s *scan) differs(o *scan) bool {
	functions := s.layout.functionSize != o.layout.functionSize || s.layout.extended != o.layout.extended
	return s.located || o.located || functions && (s.functions || o.functions)
}

// detect reads all maps from offset at on, in the layout that fits best.
func (p *parser) detect(at int) (*Section, error) {
	if at == len(p.data) {
		return &Section{}, nil
	}
	own := named(p.data[at])
	if own == nil {
		return p.partial(at)
	}
	// The layout of the version is nearly always right, so this pass also reads the maps.
	maps, chosen, bad := p.read(at, own)
	fits := p.fitting(at, own)
	if bad == nil {
		fits = append([]*scan{chosen}, fits...)
	}
	if len(fits) == 0 {
		return p.mixed(at)
	}
	if best := fits[max(0, slices.IndexFunc(fits, func(s *scan) bool { return !s.dirty }))]; best != chosen {
		chosen = best
		if maps, _, bad = p.read(at, best.layout); bad != nil {
			return &Section{}, bad
		}
	}
	s := &Section{Maps: maps, Dialect: dialectOf(maps)}
	for _, other := range fits {
		if other != chosen && other.differs(chosen) {
			s.Also = append(s.Also, other.layout.dialect)
		}
	}
	return s, nil
}

// looks bounds how often the search for the layout of each map reads a byte of the section, on average. Only input that was crafted to be ambiguous
// exceeds it.
const looks = 8

// choice is a layout that fits the map at an offset.
type choice struct {
	layout *layout
	end    int // start of the next map
}

// options returns the layouts that fit the map at offset at, if another map or the end of the section follows. Layouts in which all reserved bytes
// are zero come first. looked is the number of bytes read.
func (p *parser) options(at int) (list []choice, looked int) {
	var dirty []choice
	for _, l := range p.candidates(at) {
		s := &scan{layout: l, data: p.data, big: p.big}
		end, ok := s.blob(at, nil)
		if !ok {
			looked += max(int(s.err.Offset), s.far) - at + headerSize
			continue
		}
		looked += end - at
		next, bad := p.skip(end)
		switch {
		case bad != nil:
		case s.dirty:
			dirty = append(dirty, choice{l, next})
		default:
			list = append(list, choice{l, next})
		}
	}
	return append(list, dirty...), looked
}

// mixed reads maps of different layouts by a depth-first search. It visits each offset at most once, because the maps from an offset on do not depend
// on those before it.
func (p *parser) mixed(start int) (*Section, error) {
	type step struct {
		at    int
		left  []choice // choices not tried yet
		taken *layout
	}
	seen := make([]bool, len(p.data)/alignment+1)
	budget := looks * len(p.data)
	var path []step
	at := start
	for at < len(p.data) {
		if !seen[at/alignment] && budget > 0 {
			seen[at/alignment] = true
			list, looked := p.options(at)
			budget -= looked
			path = append(path, step{at: at, left: list})
		}
		for len(path) > 0 && len(path[len(path)-1].left) == 0 {
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return p.partial(start)
		}
		top := &path[len(path)-1]
		top.taken, at = top.left[0].layout, top.left[0].end
		top.left = top.left[1:]
	}
	s := &Section{}
	for _, step := range path {
		m := new(Map)
		r := &scan{layout: step.taken, data: p.data, big: p.big}
		if _, ok := r.blob(step.at, m); !ok {
			return s, r.err
		}
		s.Maps = append(s.Maps, m)
	}
	s.Dialect = dialectOf(s.Maps)
	return s, nil
}

// partial reads maps up to the first one that fits no layout, and returns the error of the layout that this map's version names. It determines the
// layout of each map without regard to the following maps.
func (p *parser) partial(at int) (*Section, error) {
	s := &Section{}
	budget := looks * len(p.data)
	for at < len(p.data) {
		r := &scan{layout: named(p.data[at]), data: p.data, big: p.big}
		if r.layout == nil {
			r.layout = &layouts[lastVersion-1] // for an unknown version, every layout returns the same error, which lists the known versions
		}
		if budget > 0 {
			list, looked := p.options(at)
			budget -= looked
			if len(list) > 0 {
				r.layout = list[0].layout
			}
		}
		m := new(Map)
		end, ok := r.blob(at, m)
		if !ok {
			s.Dialect = dialectOf(s.Maps)
			return s, r.err
		}
		s.Maps = append(s.Maps, m)
		var bad *Error
		if at, bad = p.skip(end); bad != nil {
			s.Dialect = dialectOf(s.Maps)
			return s, bad
		}
	}
	s.Dialect = dialectOf(s.Maps)
	return s, nil
}
