package deopt

import (
	"errors"
	"fmt"
	"io"
	"os"

	"reframe/deopt/frame"
	"reframe/deopt/machine"
	"reframe/deopt/object"
	"reframe/deopt/stackmap"
	"reframe/ptrace"
)

// MapsSchema names the JSON of [Maps].
const MapsSchema = "reframe.maps/v1"

// Maps are the stack map records of a file or a process.
type Maps struct {
	Schema string  `json:"schema"`
	Source string  `json:"source"` // the file, or "process N"
	Images []Image `json:"images"`
}

// Image is one image that holds stack maps.
type Image struct {
	Name      string     `json:"name"`
	Error     string     `json:"error,omitempty"` // why its maps cannot be read
	Maps      []MapInfo  `json:"maps,omitempty"`  // one for each object that was linked into it
	Functions []Function `json:"functions"`
}

// MapInfo is the head of one map.
type MapInfo struct {
	Version   int `json:"version"`
	Functions int `json:"functions"`
	Constants int `json:"constants"`
	Records   int `json:"records"`
}

// Function is one function and its records.
type Function struct {
	Name      string    `json:"name,omitempty"`
	Address   frame.Hex `json:"address,omitempty"`    // empty in an unlinked object
	StackSize *uint64   `json:"stack_size,omitempty"` // bytes; nil when it is dynamic
	Records   []Record  `json:"records"`
}

// Record is one record of a function.
type Record struct {
	ID        uint64           `json:"id"`
	Offset    uint32           `json:"offset"`
	Locations []frame.Location `json:"locations"`
	LiveOuts  []LiveOut        `json:"live_outs,omitempty"`
}

// LiveOut is a register that is live after the site.
type LiveOut struct {
	Register string `json:"register"`
	DWARF    uint16 `json:"dwarf"`
	Size     uint8  `json:"size"` // bytes
}

// Records counts the records of all images.
func (m *Maps) Records() int {
	n := 0
	for _, i := range m.Images {
		for _, f := range i.Functions {
			n += len(f.Records)
		}
	}
	return n
}

// ErrNoMaps says that there is no stack map in a file or process.
var ErrNoMaps = errors.New("no stack map")

// FileMaps reads the stack maps of an ELF file: an executable, a shared object or an
// unlinked object. A file without one is [ErrNoMaps].
func FileMaps(path string) (*Maps, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	return fileMaps(path, f, info.Size())
}

func fileMaps(path string, r io.ReaderAt, size int64) (*Maps, error) {
	img, err := object.New(path, r, size)
	if err != nil {
		return nil, err
	}
	arch, err := img.Arch()
	if err != nil {
		return nil, err
	}
	img.PlaceSections()
	s := img.Section(object.StackMapSection)
	if s == nil {
		return nil, fmt.Errorf("%s: %w: it has no section %s", path, ErrNoMaps, object.StackMapSection)
	}
	c := &code{name: path, image: img}
	data, _, err := s.Relocated()
	if err != nil {
		return nil, err
	}
	c.readMaps(data)
	if c.mapsErr != nil {
		return nil, c.mapsErr
	}
	return &Maps{MapsSchema, path, []Image{c.describe(arch)}}, nil
}

// TargetMaps reads the stack maps of everything that a target has: modules, all
// registered objects, and what a scan found.
func TargetMaps(t *ptrace.Target) (*Maps, error) {
	out := &Maps{Schema: MapsSchema, Source: fmt.Sprintf("process %d", t.PID), Images: []Image{}}
	space := newSpace(t)
	add := func(c *code) {
		if c != nil && (c.mapsErr != nil || c.records != nil && c.records.Len() > 0) {
			out.Images = append(out.Images, c.describe(t.Arch()))
		}
	}
	for _, m := range t.Modules {
		if m.StackMaps != nil {
			add(newImageCode(m.Image, m.StackMaps))
		}
	}
	for _, r := range t.Registries {
		for _, e := range r.Entries {
			if img := e.Image(); img != nil {
				add(newImageCode(img, nil))
			}
		}
	}
	add(space.found)
	if len(out.Images) == 0 {
		return nil, fmt.Errorf("process %d: %w: %s", t.PID, ErrNoMaps, whyNoMaps(t))
	}
	return out, nil
}

// describe makes the printable form of an image's maps.
func (c *code) describe(arch *machine.Arch) Image {
	out := Image{Name: c.name, Functions: []Function{}}
	if c.mapsErr != nil {
		out.Error = c.mapsErr.Error()
	}
	for _, m := range c.maps {
		out.Maps = append(out.Maps, MapInfo{m.Version, len(m.Functions), len(m.Constants), m.Records()})
		for i := range m.Functions {
			out.Functions = append(out.Functions, c.describeFunction(m, &m.Functions[i], arch))
		}
	}
	return out
}

func (c *code) describeFunction(m *stackmap.Map, f *stackmap.Function, arch *machine.Arch) Function {
	out := Function{Records: []Record{}}
	if name, start, ok := c.function(f.Addr); ok && start == f.Addr {
		out.Name = name
	}
	if c.image == nil || !c.image.Placed() {
		out.Address = frame.HexOf(f.Addr)
	}
	if f.StackSize != stackmap.DynamicStack {
		out.StackSize = &f.StackSize
	}
	for j := range f.Records {
		rec := &f.Records[j]
		r := Record{ID: uint64(rec.ID), Offset: rec.Offset, Locations: []frame.Location{}}
		for _, l := range rec.Locations {
			r.Locations = append(r.Locations, *location(m, l, arch))
		}
		for _, l := range rec.LiveOuts {
			r.LiveOuts = append(r.LiveOuts, LiveOut{arch.RegisterName(l.Reg), uint16(l.Reg), l.Size})
		}
		out.Records = append(out.Records, r)
	}
	return out
}
