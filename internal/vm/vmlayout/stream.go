package vmlayout

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
)

// addStreams adds the functions that decode bytes in memory.
func addStreams(add adder) {
	add("stream", func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		s := &streamValue{base: base{"stream"}, size: maxPart}
		if err := starlark.UnpackArgs("stream", args, kwargs, "address", &s.start, "size?", &s.size); err != nil {
			return nil, err
		}
		if s.size < 0 || s.size > maxPart {
			return nil, fmt.Errorf("a stream of %d bytes; the limit is %d", s.size, maxPart)
		}
		var err error
		s.from, err = memoryOf(t)
		return s, err
	})
	add("struct", func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var text string
		packed := false
		if err := starlark.UnpackArgs("struct", args, kwargs, "members", &text, "packed?", &packed); err != nil {
			return nil, err
		}
		return structOf(text, packed)
	})
}

// streamValue reads a stream of bytes in memory.
type streamValue struct {
	base
	from  *Source
	start uint64
	size  int
	n     int // number of bytes before the next one to read

	block []byte // memory that was read ahead
	at    int    // offset of the block in the stream
}

func (s *streamValue) AttrNames() []string {
	return names("at", "left", "more", "next", "skip", "sleb", "string", "uleb")
}

// take returns the next bytes.
func (s *streamValue) take(n int) ([]byte, error) {
	if n < 0 || n > s.size-s.n {
		return nil, fmt.Errorf("the stream at %#x ends after %d bytes; expected %d more after byte %d", s.start, s.size, n, s.n)
	}
	if s.n < s.at || s.n+n > s.at+len(s.block) {
		// Read up to the end of a block of 64 bytes, which is in the same page.
		const ahead = 64
		end := s.start + uint64(s.n+n)
		end += -end % ahead
		block, err := s.from.bytesAt(s.start+uint64(s.n), min(int(end-s.start), s.size)-s.n)
		if err != nil {
			return nil, err
		}
		s.block, s.at = block, s.n
	}
	out := s.block[s.n-s.at:][:n]
	s.n += n
	return out, nil
}

// leb reads a number in LEB128 of at most 64 bits.
func (s *streamValue) leb(signed bool) (starlark.Value, error) {
	var bits uint64
	for shift := uint(0); ; shift += 7 {
		b, err := s.take(1)
		if err != nil {
			return nil, err
		}
		part := uint64(b[0] & 0x7f)
		last := uint64(1) // the last part may only have the bit that becomes bit 63
		if signed {
			last = 0 // a signed last part must repeat the sign in its 7 bits
		}
		if shift > 63 || shift == 63 && part > last && (!signed || part != 0x7f) {
			return nil, fmt.Errorf("the number that ends at byte %d of the stream has over 64 bits", s.n)
		}
		bits |= part << shift
		if b[0]&0x80 != 0 {
			continue
		}
		if !signed {
			return starlark.MakeUint64(bits), nil
		}
		if b[0]&0x40 != 0 && shift+7 < 64 {
			bits |= ^uint64(0) << (shift + 7)
		}
		return starlark.MakeInt64(int64(bits)), nil
	}
}

func (s *streamValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "at":
		return starlark.MakeInt(s.n), nil
	case "left":
		return starlark.MakeInt(s.size - s.n), nil
	case "more":
		return starlark.Bool(s.n < s.size), nil
	case "uleb", "sleb":
		return method(name, func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if err := starlark.UnpackArgs(name, args, kwargs); err != nil {
				return nil, err
			}
			return s.leb(name == "sleb")
		}), nil
	case "next":
		return method(name, func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			kind := "u8"
			if err := starlark.UnpackArgs(name, args, kwargs, "type?", &kind); err != nil {
				return nil, err
			}
			if err := known(kind); err != nil {
				return nil, err
			}
			b, err := s.take((widths[kind] + 7) / 8)
			if err != nil {
				return nil, err
			}
			return numberOf(kind, cut(wordOf(b, s.from.Order), kind)), nil
		}), nil
	case "skip", "string":
		return method(name, func(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			n := 1
			if err := starlark.UnpackArgs(name, args, kwargs, "n", &n); err != nil {
				return nil, err
			}
			if name == "skip" {
				if n < 0 || n > s.size-s.n {
					return nil, fmt.Errorf("%d bytes of %d", n, s.size-s.n)
				}
				s.n += n
				return nil, nil
			}
			if n > maxString {
				return nil, fmt.Errorf("a string of %d bytes; the limit is %d", n, maxString)
			}
			text, err := s.take(n)
			return starlark.String(text), err
		}), nil
	}
	return nil, nil
}

// member is a member of a C struct.
type member struct {
	name, kind string
	at, count  int // count is 0 unless it is an array
}

// structType is a C struct.
type structType struct {
	base
	size, align int
	members     []member
}

// maxMembers bounds a struct, and each array in it.
const maxMembers = 1 << 10

// structOf parses members such as "u32 id, u16 n, ref next, u8 tags[4]", and places them as C does.
func structOf(text string, packed bool) (*structType, error) {
	s := &structType{base: base{"struct"}, align: 1}
	list := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' })
	if len(list) > maxMembers {
		return nil, fmt.Errorf("%d members; the limit is %d", len(list), maxMembers)
	}
	for _, one := range list {
		words := strings.Fields(one)
		if len(words) == 0 {
			continue
		}
		if len(words) != 2 {
			return nil, fmt.Errorf("%q: expected a type and a name, such as u32 count", strings.TrimSpace(one))
		}
		m := member{kind: words[0], name: words[1]}
		if err := known(m.kind); err != nil {
			return nil, err
		}
		count := 1
		if name, rest, array := strings.Cut(m.name, "["); array {
			if n, err := fmt.Sscanf(rest, "%d]", &m.count); n != 1 || err != nil || m.count < 1 || m.count > maxMembers {
				return nil, fmt.Errorf("%s: expected an array of 1 to %d elements", m.name, maxMembers)
			}
			m.name, count = name, m.count
		}
		for _, other := range s.members {
			if other.name == m.name {
				return nil, fmt.Errorf("two members %s", m.name)
			}
		}
		width := (widths[m.kind] + 7) / 8
		if !packed {
			s.align = max(s.align, width)
			s.size += -s.size & (width - 1)
		}
		m.at = s.size
		s.size += width * count
		s.members = append(s.members, m)
	}
	if s.size += -s.size & (s.align - 1); s.size == 0 || s.size > maxPart {
		return nil, fmt.Errorf("a struct of %d bytes", s.size)
	}
	return s, nil
}

func (*structType) AttrNames() []string { return names("at", "size") }

func (s *structType) Attr(name string) (starlark.Value, error) {
	switch name {
	case "size":
		return starlark.MakeInt(s.size), nil
	case "at":
		return method(name, func(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var at uint64
			var index int64
			if err := starlark.UnpackArgs(name, args, kwargs, "address", &at, "index?", &index); err != nil {
				return nil, err
			}
			from, err := memoryOf(t)
			if err != nil {
				return nil, err
			}
			at += uint64(index * int64(s.size))
			data, err := from.bytesAt(at, s.size)
			return &structValue{base{"struct"}, s, at, data, from}, err
		}), nil
	}
	return nil, nil
}

// structValue is the content of a C struct.
type structValue struct {
	base
	is      *structType
	address uint64
	data    []byte
	from    *Source
}

func (v *structValue) AttrNames() []string {
	list := []string{"address"}
	for _, m := range v.is.members {
		list = append(list, m.name)
	}
	return names(list...)
}

func (v *structValue) Attr(name string) (starlark.Value, error) {
	for _, m := range v.is.members {
		if m.name != name {
			continue
		}
		width := (widths[m.kind] + 7) / 8
		one := func(n int) starlark.Value {
			return numberOf(m.kind, cut(wordOf(v.data[m.at+n*width:][:width], v.from.Order), m.kind))
		}
		if m.count == 0 {
			return one(0), nil
		}
		var all []starlark.Value
		for n := range m.count {
			all = append(all, one(n))
		}
		return starlark.NewList(all), nil
	}
	if name == "address" {
		return starlark.MakeUint64(v.address), nil
	}
	return nil, nil
}
