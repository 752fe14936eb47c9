package maps

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/base/filekind"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/internal/progspace"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
)

// Maps holds the stack maps of a file, a process or a core.
type Maps struct {
	Source string   // the file, "process N" or "core FILE"
	Notes  []string // missing or uncertain parts of a target
	Images []*Image
	// Unopened means that some files of a process could not be opened: there may be more maps. A note reports it.
	Unopened bool

	file *os.File
}

// Image is an image with stack maps: a file, a member of an archive, an object that a JIT registered, or memory in which maps were found.
type Image struct {
	Name     string
	Format   string            // such as "ELF object"; "" for maps found in memory
	Arch     *machine.Arch     // nil if not known, as for a bare section
	Unlinked bool              // its functions have no addresses yet
	Section  *stackmap.Section // the part that could be read, even if Err is set; may be nil
	Err      error             // the reason why not all of it could be read

	order   binary.ByteOrder
	section *object.Section // the section of image that holds the maps
	image   *object.Image
	named   []object.Relocation // relocations of the section, in the order of their offsets
	modules *sites.Modules
	target  *ptrace.Target // the target whose memory has the code, if there is no image
	vms     []*vmlayout.Layout
}

// Options select how stack maps are read.
type Options struct {
	Dialect stackmap.Dialect   // "": determined from the bytes
	Arch    *machine.Arch      // the architecture of a bare section; nil: unknown
	Modules []*ir.Module       // the modules that describe the sites
	VMs     []*vmlayout.Layout // layouts whose frames are shown for each record
}

// OfFile reads the stack maps of a file: an executable, a shared object, an unlinked object, an archive of these, or the bytes of a bare section. It
// returns [progspace.ErrNoMaps] and maps without images for such a file without stack maps, and [object.ErrNotObject] for any other file. The caller
// must close the maps.
func OfFile(path string, o Options) (*Maps, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a blocking open of a pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	m := &Maps{Source: path, file: f}
	if err := m.read(f, info.Size(), o); err != nil {
		m.Close()
		if errors.Is(err, progspace.ErrNoMaps) {
			return m, err
		}
		return nil, err
	}
	m.NoteModules()
	return m, nil
}

// Close closes the file.
func (m *Maps) Close() {
	if m.file != nil {
		m.file.Close()
	}
}

func (m *Maps) read(r io.ReaderAt, size int64, o Options) error {
	ms := sites.NewModules(o.Modules)
	images, section := 0, ""
	for img, err := range object.Images(m.Source, r, size) {
		switch {
		case errors.Is(err, object.ErrNotObject):
			return m.readBare(r, size, o, ms)
		case err != nil:
			name := m.Source
			var e *object.Error
			if errors.As(err, &e) {
				name = e.Image
			}
			m.Images = append(m.Images, &Image{Name: name, Err: err})
			continue
		}
		images++
		section = img.StackMapSection()
		img.PlaceSections()
		all := img.StackMaps()
		for n, s := range all {
			out := fileImage(img, s, o, ms)
			if len(all) > 1 {
				out.Name = fmt.Sprintf("%s (section %d of %d)", img.Name, n+1, len(all))
			}
			m.Images = append(m.Images, out)
		}
	}
	if o.Arch != nil && images > 0 {
		return fmt.Errorf("%s: an object file states its architecture; --arch requires a file with the raw bytes of a section", m.Source)
	}
	switch {
	case len(m.Images) == 0 && images == 0:
		return fmt.Errorf("%s: %w: it contains no object", m.Source, progspace.ErrNoMaps)
	case len(m.Images) == 0 && images == 1:
		return fmt.Errorf("%s: %w: it has no section %s", m.Source, progspace.ErrNoMaps, section)
	case len(m.Images) == 0:
		return fmt.Errorf("%s: %w: none of its %d members has a section %s", m.Source, progspace.ErrNoMaps, images, section)
	case images == 0 && len(m.Images) == 1:
		return m.Images[0].Err
	}
	return nil
}

// Unreadable returns the first error if no map could be read at all, or nil.
func (m *Maps) Unreadable() error {
	for _, i := range m.Images {
		if i.Err == nil || i.Section != nil && len(i.Section.Maps) > 0 {
			return nil
		}
	}
	return m.Images[0].Err
}

// fileImage reads one section of stack maps of an image. An image has several if the linker did not merge those of its objects (ld -r --unique).
func fileImage(img *object.Image, s *object.Section, o Options, ms *sites.Modules) *Image {
	out := &Image{Name: img.Name, Format: img.Format(), Unlinked: img.Relocatable(), image: img, section: s, modules: ms, vms: o.VMs}
	if out.Arch, out.Err = img.Arch(); out.Err != nil {
		return out
	}
	data, done, err := s.Relocated()
	if out.Err = err; err != nil {
		return out
	}
	slices.SortStableFunc(done, func(a, b object.Relocation) int { return cmp.Compare(a.Offset, b.Offset) })
	out.named = done
	out.parse(data, out.Arch.Order, o.Dialect)
	return out
}

// parse reads the section of an image.
func (i *Image) parse(data []byte, order binary.ByteOrder, d stackmap.Dialect) {
	i.order = order
	i.Section, i.Err = stackmap.Parse(data, stackmap.Options{Order: order, Dialect: d})
	if i.Err != nil {
		i.Err = fmt.Errorf("%s: %w", i.Name, i.Err)
	}
}

// maxBare bounds the size of a file that is read as a bare section.
const maxBare = 1 << 30

// readBare reads a file that consists of the bytes of a section.
func (m *Maps) readBare(r io.ReaderAt, size int64, o Options, ms *sites.Modules) error {
	var head [4]byte
	n, _ := r.ReadAt(head[:], 0)
	if asked := o.Dialect != "" || o.Arch != nil; n < len(head) || !asked && (head[0] == 0 || head[0] > 3 || head[1]|head[2]|head[3] != 0) {
		var begin [filekind.Head]byte
		got, _ := r.ReadAt(begin[:], 0)
		if kind, ok := filekind.Of(begin[:got]); ok && bytes.IndexByte(begin[:got], 0) < 0 || ok && kind.What == "LLVM bitcode" {
			return fmt.Errorf("%s: %w: it is %s; %s", m.Source, object.ErrNotObject, kind.What, kind.Use)
		}
		why := ""
		if n == len(head) && head[0] > 3 && head[1]|head[2]|head[3] == 0 {
			why = fmt.Sprintf(" (version %d is not supported; expected 1, 2 or 3)", head[0])
		}
		return fmt.Errorf("%s: %w, and it does not begin like a stack map section%s", m.Source, object.ErrNotObject, why)
	}
	if size > maxBare {
		return fmt.Errorf("%s: a section of %d bytes; the limit is %d", m.Source, size, maxBare)
	}
	data := make([]byte, size)
	if _, err := r.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	out := &Image{Name: m.Source, Format: "section", Arch: o.Arch, modules: ms, vms: o.VMs}
	orders := []binary.ByteOrder{binary.LittleEndian, binary.BigEndian}
	if o.Arch != nil {
		orders = []binary.ByteOrder{o.Arch.Order}
	}
	// Try both byte orders: the counts in the header are small numbers only in the right one.
	var first *Image // the image in the usual byte order; its error is reported if no byte order fits
	for _, order := range orders {
		try := *out
		if try.parse(data, order, o.Dialect); first == nil || try.Err == nil {
			first = &try
		}
		if try.Err == nil {
			break
		}
	}
	if first.Err != nil && (first.Section == nil || len(first.Section.Maps) == 0) {
		return first.Err
	}
	m.Images = append(m.Images, first)
	return nil
}

// OfTarget reads all stack maps of a target: those of its modules, of all registered objects, and those that a scan found. If there are none, it
// returns [progspace.ErrNoMaps] and maps without images.
func OfTarget(t *ptrace.Target, o Options) (*Maps, error) {
	out := &Maps{Source: t.String(), Notes: slices.Concat(t.Notes, progspace.RegistryTrouble(t), progspace.ModuleTrouble(t))}
	if why := progspace.Unopened(t); why != "" {
		out.Notes, out.Unopened = append(out.Notes, why), true
	}
	ms := sites.NewModules(o.Modules)
	space := progspace.New(t)
	add := func(c *progspace.Objfile, data []byte) {
		if c.MapsErr == nil && (c.Section == nil || empty(c.Section)) {
			return
		}
		i := &Image{Name: c.Name, Arch: t.Arch(), Section: c.Section, Err: c.MapsErr, image: c.Image, modules: ms, target: t, vms: o.VMs}
		if c.Image != nil {
			i.Format = c.Image.Format()
		}
		if o.Dialect != "" && data != nil {
			if i.parse(data, t.Arch().Order, o.Dialect); i.Section != nil {
				c.Rebase(i.Section)
			}
		}
		out.Images = append(out.Images, i)
	}
	for _, m := range t.Modules {
		if m.StackMaps != nil {
			add(progspace.NewObjfile(m.Image, m.StackMaps), m.StackMaps)
		}
	}
	for _, img := range t.Given() {
		c := progspace.NewObjfile(img, nil)
		add(c, c.Data)
	}
	for _, r := range t.Registries {
		for _, e := range r.Entries {
			if img := e.Image(); img != nil {
				c := progspace.NewObjfile(img, nil)
				add(c, c.Data)
			}
		}
	}
	if space.Found != nil {
		add(space.Found, nil)
	}
	switch {
	case len(out.Images) > 0:
	case len(out.Notes) > 0: // the notes show that some maps may not have been read, so the error does not wrap ErrNoMaps
		return nil, fmt.Errorf("%s: %v: %s", out.Source, progspace.ErrNoMaps, progspace.WhyNoMaps(t))
	default:
		return out, fmt.Errorf("%s: %w: %s", out.Source, progspace.ErrNoMaps, progspace.WhyNoMaps(t))
	}
	out.NoteModules()
	return out, nil
}

// empty reports whether a section holds no record.
func empty(s *stackmap.Section) bool {
	return !slices.ContainsFunc(s.Maps, func(m *stackmap.Map) bool { return m.Len() > 0 })
}

// Records counts the records of all images.
func (m *Maps) Records() int {
	n := 0
	for _, i := range m.Images {
		n += i.Records()
	}
	return n
}

// Records counts the records of the image.
func (i *Image) Records() int {
	n := 0
	if i.Section != nil {
		for _, m := range i.Section.Maps {
			n += m.Len()
		}
	}
	return n
}

// Unrelocated returns the maps as they are in the image, without relocated addresses. With an error it returns the maps before the error, or nil.
func (i *Image) Unrelocated() (*stackmap.Section, error) {
	if i.Section == nil || i.section == nil {
		return i.Section, i.Err
	}
	data, err := i.section.Data()
	if err != nil {
		return nil, err
	}
	section, err := stackmap.Parse(data, stackmap.Options{Order: i.order, Dialect: i.Section.Dialect})
	if i.Err != nil {
		err = i.Err // the same error, with the image's name
	}
	return section, err
}
