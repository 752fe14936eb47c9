package stackmap

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Options holds the byte order and the layout of the bytes to parse.
type Options struct {
	Order   binary.ByteOrder // byte order of the target
	Dialect Dialect          // "" detects it from the bytes
}

// Section is the result of [Parse].
type Section struct {
	Maps    []*Map  // in the order of the bytes
	Dialect Dialect // layout of all Maps; "" if they differ or there are none
	// Also lists the other layouts that fit all bytes of the section and read them differently, in the order of Dialects. It is empty if the maps have
	// several layouts, because Parse does not search for other combinations.
	Also []Dialect
}

// Parse reads a whole section, into which a linker has concatenated the maps of all objects, each with its own header. Zero bytes may fill the gaps
// up to the alignment of 8, and the end. data must not change while the maps are in use.
//
// Without Options.Dialect, Parse determines the layout. A layout fits if every byte belongs to a map in it. Parse prefers a layout in which all
// reserved bytes are zero, because every compiler writes zeros there. Among equals, it takes the layout that the header's version names, then V3, Yk,
// YkOld. If no layout fits the whole section, Parse determines the layout of each map separately.
//
// An error is an [*Error], unless it is about the options. With an error, Parse also returns the maps before it.
func Parse(data []byte, o Options) (*Section, error) {
	big, err := o.order()
	if err != nil {
		return nil, err
	}
	p := &parser{data: data, big: big}
	at, bad := p.skip(0)
	if bad != nil {
		return &Section{}, bad
	}
	if o.Dialect == "" {
		return p.detect(at)
	}
	l, err := o.Dialect.find()
	if err != nil {
		return nil, err
	}
	maps, _, bad := p.read(at, l)
	s := &Section{Maps: maps, Dialect: dialectOf(maps)}
	if bad == nil {
		s.Also = p.also(at, l)
		return s, nil
	}
	bad.Err = fmt.Errorf("as layout %s: %w", l.dialect, bad.Err)
	if fits := p.fitting(at, nil); len(fits) > 0 {
		bad.Err = fmt.Errorf("%w; layout %s fits", bad.Err, fits[0].layout.dialect)
	}
	return s, bad
}

// ParseOne reads the map at the start of data, and returns its size. It ignores the bytes after the map. Without Options.Dialect it uses the layout
// that the version names: it cannot test whether another layout fits better, because it does not know the end of the map.
func ParseOne(data []byte, o Options) (m *Map, n int, err error) {
	big, err := o.order()
	if err != nil {
		return nil, 0, err
	}
	l := &layouts[lastVersion-1]
	if o.Dialect != "" {
		if l, err = o.Dialect.find(); err != nil {
			return nil, 0, err
		}
	} else if len(data) > 0 && named(data[0]) != nil {
		l = named(data[0])
	}
	s := &scan{layout: l, data: data, big: big}
	m = new(Map)
	n, ok := s.blob(0, m)
	if !ok {
		return nil, 0, s.err
	}
	return m, n, nil
}

func (o Options) order() (big bool, err error) {
	if o.Order == nil {
		return false, errors.New("stackmap: no byte order was given")
	}
	return bigEndian(o.Order), nil
}

// parser reads one section.
type parser struct {
	data []byte
	big  bool
}

// skip returns the start of the next map, or len(data) after the last.
func (p *parser) skip(at int) (int, *Error) {
	for at < len(p.data) && p.data[at] == 0 {
		at++
	}
	if at < len(p.data) && at%alignment != 0 {
		return at, &Error{int64(at), errors.New("the map is not aligned to 8 bytes")}
	}
	return at, nil
}

// read reads all maps from offset at on in layout l, and returns the maps before the first error.
func (p *parser) read(at int, l *layout) (maps []*Map, s *scan, bad *Error) {
	s = &scan{layout: l, data: p.data, big: p.big}
	for at < len(p.data) {
		m := new(Map)
		end, ok := s.blob(at, m)
		if !ok {
			return maps, s, s.err
		}
		maps = append(maps, m)
		if at, bad = p.skip(end); bad != nil {
			return maps, s, bad
		}
	}
	return maps, s, nil
}

// walk scans all maps from offset at on, and reports whether layout l fits.
func (p *parser) walk(at int, l *layout) (s *scan, ok bool) {
	s = &scan{layout: l, data: p.data, big: p.big}
	for at < len(p.data) {
		end, ok := s.blob(at, nil)
		if !ok {
			return s, false
		}
		next, bad := p.skip(end)
		if bad != nil {
			return s, false
		}
		at = next
	}
	return s, true
}

// dialectOf returns the layout of all maps, or "" if they differ.
func dialectOf(maps []*Map) Dialect {
	if len(maps) == 0 {
		return ""
	}
	for _, m := range maps {
		if m.Dialect != maps[0].Dialect {
			return ""
		}
	}
	return maps[0].Dialect
}
