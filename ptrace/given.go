package ptrace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
)

// Object is an object file whose code a runtime has copied to memory without registering it. Its symbols, unwind information and stack maps are used
// in the same way as those of a registered object.
type Object struct {
	Path string
	// Places are the addresses of its code. If there are none, memory is searched for the code.
	Places []Placement
}

// Placement is the address of a section of code, or of a symbol in one.
type Placement struct {
	Of   string // "" for .text, or for the only section of code
	Addr machine.Addr
}

// Bounds of given objects.
const (
	maxGiven       = 256 << 20 // bytes of one object
	maxSearched    = 4 << 30   // bytes of memory, for each section
	searchChunk    = 4 << 20
	leastSearched  = 16 // bytes of code that no relocation changes: shorter code is not distinctive
	maxResemblance = 1 << 16
)

// ObjectError is an error about a given object.
type ObjectError struct {
	Path string
	Err  error
}

func (e *ObjectError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ObjectError) Unwrap() error { return e.Err }

// ParseObject parses FILE, FILE@ADDR, or FILE@NAME=ADDR,NAME=ADDR with names of sections or symbols. If the whole text is the name of an existing
// file, it is not split at an @.
func ParseObject(text string) (Object, error) {
	at := strings.LastIndexByte(text, '@')
	if _, err := os.Stat(text); err == nil || at < 0 {
		return Object{Path: text}, nil
	}
	o := Object{Path: text[:at]}
	for part := range strings.SplitSeq(text[at+1:], ",") {
		var p Placement
		if name, addr, ok := cutLast(part, '='); ok {
			p.Of, part = name, addr
			if name == "" {
				return o, &ObjectError{text, errors.New("the name before = is empty")}
			}
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(part, "0x"), 16, 64)
		if err != nil || n == 0 {
			return o, &ObjectError{text, fmt.Errorf("expected an address in hexadecimal, got %q: FILE@ADDR or FILE@SECTION=ADDR", part)}
		}
		p.Addr = machine.Addr(n)
		o.Places = append(o.Places, p)
	}
	return o, nil
}

func cutLast(s string, by byte) (before, after string, ok bool) {
	if n := strings.LastIndexByte(s, by); n >= 0 {
		return s[:n], s[n+1:], true
	}
	return "", s, false
}

// given is a given object whose code was found in the target.
type given struct {
	image  *object.Image
	places []givenCode
}

// givenCode is a section of code in the object, and its address in the target.
type givenCode struct {
	section *object.Section
	start   machine.Addr
	code    []byte
	fixed   []bool // true for each byte of code that no relocation changes
}

func (g *given) at(addr machine.Addr) bool {
	for _, p := range g.places {
		if addr >= p.start && uint64(addr-p.start) < uint64(len(p.code)) {
			return true
		}
	}
	return false
}

// place finds the code of the given objects in the target. The code in memory must equal the object's, except for relocated bytes.
func (t reading) place(objects []Object) error {
	t.given = nil
	for _, o := range objects {
		g, err := t.placeOne(o)
		if err != nil {
			return &ObjectError{o.Path, err}
		}
		for _, other := range t.given {
			for _, p := range g.places {
				if other.at(p.start) {
					return &ObjectError{o.Path, fmt.Errorf("%v is in the code of %s, which was given too", p.start, other.image.Name)}
				}
			}
		}
		t.given = append(t.given, g)
	}
	return nil
}

func (t reading) placeOne(o Object) (*given, error) {
	data, err := readGiven(o.Path)
	if err != nil {
		return nil, err
	}
	img, err := object.New(o.Path, bytes.NewReader(data), int64(len(data)))
	if err == nil {
		err = madeFor(img, t.arch)
	}
	switch {
	case err != nil:
		return nil, err
	case !img.Relocatable():
		return nil, errors.New("it is linked; expected an unlinked object")
	}
	g := &given{image: img}
	if len(o.Places) == 0 {
		err = g.search(t.Target)
	} else {
		err = g.asTold(o.Places)
	}
	if err != nil {
		return nil, err
	}
	at := map[*object.Section]machine.Addr{}
	for _, p := range g.places {
		at[p.section] = p.start
	}
	if err := img.LoadAt(at); err != nil {
		return nil, err
	}
	img.Registered = true
	return g, g.compare(t.Target)
}

func readGiven(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, errors.Unwrap(err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("it is %s", kindOf(info.Mode()))
	case info.Size() > maxGiven:
		return nil, fmt.Errorf("it has %d bytes; %d can be read", info.Size(), maxGiven)
	}
	return os.ReadFile(path)
}

// asTold sets the addresses of the code to those that the user gave.
func (g *given) asTold(places []Placement) error {
	for _, p := range places {
		s, offset, err := g.section(p.Of)
		if err != nil {
			return err
		}
		if machine.Addr(offset) > p.Addr {
			return fmt.Errorf("%s is at offset %#x of %s, but the address %v is smaller than that", p.Of, offset, s.Name, p.Addr)
		}
		code, fixed, err := s.Fixed()
		if err != nil {
			return err
		}
		for _, other := range g.places {
			if other.section == s {
				return fmt.Errorf("%s has two addresses on the command line", s.Name)
			}
		}
		g.places = append(g.places, givenCode{s, p.Addr - machine.Addr(offset), code, fixed})
	}
	return nil
}

// section finds a section of code by its name or by the name of a symbol in it.
func (g *given) section(of string) (s *object.Section, offset uint64, err error) {
	code := g.image.AllCode()
	var names []string
	for _, s := range code {
		if s.Name == of || of == "" && (len(code) == 1 || s.Name == ".text") {
			return s, 0, nil
		}
		names = append(names, s.Name)
	}
	switch {
	case len(code) == 0:
		return nil, 0, errors.New("it has no code")
	case of == "":
		return nil, 0, fmt.Errorf("it has code in %s; give the section: FILE@SECTION=ADDR", strings.Join(names, ", "))
	}
	s, offset, ok := g.image.InSection(of)
	if !ok || !s.Exec || !s.Alloc {
		return nil, 0, fmt.Errorf("it has no section or symbol of code %s", of)
	}
	return s, offset, nil
}

// compare compares the code with memory.
func (g *given) compare(t *Target) error {
	for _, p := range g.places {
		if m, ok := findMapping(t.maps, p.start); !ok || !m.Exec {
			return fmt.Errorf("no code at %v, the given address of %s", p.start, p.section.Name)
		}
		there, err := readAll(t.source, p.start, uint64(len(p.code)))
		if err != nil {
			return fmt.Errorf("%s at %v: %w", p.section.Name, p.start, err)
		}
		if n := p.differs(there); n >= 0 {
			return fmt.Errorf("%s is not at %v: at offset %#x memory contains %02x, and the object %02x", p.section.Name, p.start, n, there[n], p.code[n])
		}
	}
	return nil
}

// differs returns the index of the first byte that differs and is not relocated, or -1.
func (p *givenCode) differs(there []byte) int {
	for n, b := range p.code {
		if p.fixed[n] && there[n] != b {
			return n
		}
	}
	return -1
}

// search searches executable memory for the sections of code.
func (g *given) search(t *Target) error {
	for _, s := range g.image.AllCode() {
		code, fixed, err := s.Fixed()
		if err != nil {
			return err
		}
		p := givenCode{section: s, code: code, fixed: fixed}
		if p.telling() < leastSearched {
			continue // too short for a search; its symbols then have no address
		}
		found, searched, err := p.find(t)
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return fmt.Errorf("%s was not found in %d KiB of code in memory; give its address to see the differences: FILE@ADDR", s.Name, searched>>10)
		case len(found) > 1:
			return fmt.Errorf("%s is in memory at %v, at %v and perhaps elsewhere; give its address: FILE@ADDR", s.Name, found[0], found[1])
		}
		p.start = found[0]
		g.places = append(g.places, p)
	}
	if len(g.places) == 0 {
		return fmt.Errorf("it has too little code to search for (%d bytes without relocations are required); give its address: FILE@ADDR", leastSearched)
	}
	return nil
}

// telling returns the number of bytes of a section's code that no relocation changes.
func (p *givenCode) telling() (n int) {
	for _, f := range p.fixed {
		if f {
			n++
		}
	}
	return n
}

// find returns the first two addresses at which memory has the code, or fewer, and the number of bytes that it searched.
func (p *givenCode) find(t *Target) (found []machine.Addr, searched uint64, err error) {
	from, to := p.anchor()
	like := 0
	for _, m := range t.maps {
		if !m.Exec || !m.Read || len(found) > 1 {
			continue
		}
		for at := m.Start; at < m.End && len(found) < 2; {
			buf := make([]byte, min(uint64(m.End-at), uint64(searchChunk+len(p.code))))
			n, err := t.source.readUpTo(buf, at)
			if err != nil || n == 0 {
				break // code in a mapping that cannot be read cannot run
			}
			buf = buf[:n]
			if searched += uint64(n); searched > maxSearched {
				return nil, searched, fmt.Errorf("memory has over %d MiB of code; give its address: FILE@ADDR", maxSearched>>20)
			}
			for off := 0; len(found) < 2; off++ {
				hit := bytes.Index(buf[min(off+from, len(buf)):], p.code[from:to])
				if off += max(hit, 0); hit < 0 || off+len(p.code) > len(buf) || off >= searchChunk {
					break
				}
				if p.differs(buf[off:]) < 0 {
					found = append(found, at+machine.Addr(off))
				} else if like++; like > maxResemblance {
					return nil, searched, errors.New("too much code in memory is similar; give its address: FILE@ADDR")
				}
			}
			at += machine.Addr(min(n, searchChunk))
		}
	}
	return found, searched, nil
}

// anchor returns the bounds of the longest run of bytes that no relocation changes.
func (p *givenCode) anchor() (from, to int) {
	start := 0
	for n := 0; n <= len(p.fixed); n++ {
		if n < len(p.fixed) && p.fixed[n] {
			continue
		}
		if n-start > to-from {
			from, to = start, n
		}
		start = n + 1
	}
	return from, to
}

// givenAt returns the given object whose code contains an address, or nil.
func (t *Target) givenAt(addr machine.Addr) *object.Image {
	for _, g := range t.given {
		if g.at(addr) {
			return g.image
		}
	}
	return nil
}

// Given returns the images of the given objects.
func (t *Target) Given() []*object.Image {
	var list []*object.Image
	for _, g := range t.given {
		list = append(list, g.image)
	}
	return list
}

// givenHold reports whether the code of the given objects is still in memory.
func (t reading) givenHold() bool {
	for _, g := range t.given {
		if g.compare(t.Target) != nil {
			return false
		}
	}
	return true
}
