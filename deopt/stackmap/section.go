package stackmap

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Options describe how to read bytes.
type Options struct {
	Order   binary.ByteOrder // of the target
	Dialect Dialect          // "": determined from the bytes
}

// Section is the result of [Parse].
type Section struct {
	Maps    []*Map  // in the order of the bytes
	Dialect Dialect // of all Maps; "" if they differ or there are none
	// Also lists the other layouts, in the order of Dialects, in which each byte of the section also has a place, and that read it differently. It
	// is empty for a section of several layouts: its other readings are not searched.
	Also []Dialect
}

// Parse reads a whole section. A linker lays the maps of all its objects one after
// the other, each with its own header; zero bytes may fill the gaps up to the
// alignment of 8 and the end. data must not change while the maps are in use.
//
// A layout fits if each byte has its place in it. Without Options.Dialect Parse takes the first that fits, in the order: the layout that the
// header's version names, V3, Yk, YkOld; but a layout that finds the format's reserved bytes zero, as every compiler writes them, precedes one that
// does not. If none fits the whole section, the layout of each map is determined separately.
//
// An error is an [*Error], except about the options. The maps before it are returned with it.
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

// ParseOne reads the map that data starts with and returns how many bytes it takes; the bytes after it are ignored. Without Options.Dialect it has
// the layout that its version names, because nothing shows where it ends.
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

// skip returns where the next map starts, len(data) after the last.
func (p *parser) skip(at int) (int, *Error) {
	for at < len(p.data) && p.data[at] == 0 {
		at++
	}
	if at < len(p.data) && at%alignment != 0 {
		return at, &Error{int64(at), errors.New("a map that is not aligned to 8 bytes")}
	}
	return at, nil
}

// read reads all maps from at as l, and returns those before the first error.
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

// walk goes through all maps from at and reports whether l fits.
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

// dialectOf returns the layout of all maps, "" where they differ.
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
