// Package described reads the descriptions that a target contains: the IR that its code was compiled from, and the layout of its virtual machine.
//
// Its main type is [Description]; [Of] makes one. A file or a registered object describes itself by
//
//   - a section .reframe.layout, or a NUL-terminated string at the symbol __reframe_layout: the text of a layout, or the name of one that comes
//     with reframe;
//   - a section .reframe.ir: the text of a module of LLVM IR, plain or compressed by zstd.
//
// # Security
//
// The descriptions are as untrusted as the target. Sizes are bounded. Modules are marked as found, so that they are compared with the code before
// they name anything. Layouts are not run here.
package described

import (
	"bytes"
	"fmt"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
)

const (
	layoutSection = ".reframe.layout"
	layoutSymbol  = "__reframe_layout"
)

// These bound the data that is read from a target's descriptions of itself.
const (
	maxLayout  = 1 << 20
	allLayouts = 16 << 20 // bytes of all layouts together; there may be one layout per method
	maxModules = 4096
	maxIR      = 64 << 20 // bytes of all modules together
)

// Ask returns an image's description of itself: modules, and layouts of virtual machines. The image may be nil. Ask is called once for each file and
// each registered object, when it is first seen. For a layout that several images contain, also in successive programs, Ask returns the same value.
type Ask func(where string, img *object.Image) ([]*ir.Module, []*vmlayout.Layout)

// Description is a target's description of itself.
type Description struct {
	Layouts []Layout
	Modules []*ir.Module
	Notes   []string // the descriptions that could not be read

	taken   int // bytes of IR added so far
	layouts int // bytes of layouts added so far
	known   map[string]int
	cut     bool // more notes were made than are kept
}

// Layout is the text of a layout, or the name of one.
type Layout struct {
	Where  string // the source, such as "JIT object 1"
	Text   []byte
	Images []*object.Image // the images that contain it
}

// Of reads the descriptions in a target's files and in its registered objects.
func Of(t *ptrace.Target, layouts, modules bool) *Description {
	d := &Description{}
	sites.EachImage(t, func(name string, img *object.Image) { d.Add(name, img, layouts, modules) })
	return d
}

// Add adds the description in one image, as far as requested and within the bounds. The image may be nil. Add returns the image's layout, or nil if
// it has none. It adds a layout that several images contain only once.
func (d *Description) Add(name string, img *object.Image, layouts, modules bool) (is *Layout) {
	if img == nil {
		return nil
	}
	if layouts {
		is = d.layout(name, img)
	}
	if modules {
		d.module(name, img)
	}
	return is
}

// note records a description that could not be read. It keeps only the first few notes.
func (d *Description) note(format string, args ...any) {
	const enough = 8
	switch {
	case len(d.Notes) < enough:
		d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
	case !d.cut:
		d.cut = true
		d.Notes = append(d.Notes, "further notes of this kind are omitted")
	}
}

func (d *Description) layout(name string, img *object.Image) *Layout {
	s, from := img.Section(layoutSection), uint64(0)
	if s == nil {
		var found bool
		if s, from, found = img.InSection(layoutSymbol); !found {
			return nil
		}
	}
	var text []byte
	err := fmt.Errorf("%d bytes; the limit is %d", s.Size, maxLayout)
	if s.Size <= maxLayout {
		text, err = s.Data()
	}
	if err != nil {
		d.note("%s, %s: %v", name, layoutSection, err)
		return nil
	}
	text = text[min(from, uint64(len(text))):]
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil
	}
	if n, known := d.known[string(text)]; known {
		l := &d.Layouts[n]
		l.Images = append(l.Images, img)
		return l
	}
	if d.layouts += len(text); d.layouts > allLayouts {
		d.layouts -= len(text)
		d.note("%s: its layout is left out: all layouts of the target would have over %d MiB", name, allLayouts>>20)
		return nil
	}
	if d.known == nil {
		d.known = map[string]int{}
	}
	d.known[string(text)] = len(d.Layouts)
	d.Layouts = append(d.Layouts, Layout{name, text, []*object.Image{img}})
	return &d.Layouts[len(d.Layouts)-1]
}

func (d *Description) module(name string, img *object.Image) {
	if img.Section(sites.TextSection) == nil {
		return
	}
	name += ", " + sites.TextSection
	if len(d.Modules) == maxModules {
		d.note("%s: over %d modules", name, maxModules)
		return
	}
	text, err := sites.OwnText(img, maxIR-d.taken)
	if err != nil {
		d.note("%s: %v", name, err)
		return
	}
	d.taken += len(text)
	m, err := ir.ParseOwned(name, text)
	if err != nil {
		d.note("%v", err)
		return
	}
	m.Found, m.Image = true, img
	d.Modules = append(d.Modules, m)
}
