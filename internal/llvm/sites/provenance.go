package sites

import (
	"fmt"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
)

// Provenance grades how certain it is that the code of a function was compiled from one of a module.
type Provenance struct {
	Sure Sureness
	Why  string // the evidence; for [Contradicted] the difference
}

// Sureness is one of the constants.
type Sureness string

// How sure it is.
const (
	Certain      Sureness = "certain"      // the author of the code stored the same IR beside it
	Likely       Sureness = "likely"       // the module agrees with the evidence in the code
	Open         Sureness = "open"         // the code has no evidence
	Contradicted Sureness = "contradicted" // it is not so in the module
)

// provenance is a function of a module and the code of one that were compared.
type provenance struct {
	f     *ir.Func
	image *object.Image
	start machine.Addr
}

// ProvenanceOf compares a function of a module with the code that starts at an address of an image: with IR that the image contains for it, else
// with what the code generator preserves: the functions and variables that it names, the order in which it calls functions, and the constants that
// it passes on. The code is that of the file or registered object, even if it was overwritten since. The result is cached.
func (ms *Modules) ProvenanceOf(img *object.Image, start machine.Addr, f *ir.Func) Provenance {
	key := provenance{f, img, start}
	p, known := ms.provenances[key]
	if !known {
		p = ms.provenanceOf(img, start, f)
		ms.provenances[key] = p
	}
	return p
}

func (ms *Modules) provenanceOf(img *object.Image, start machine.Addr, f *ir.Func) Provenance {
	if img == nil {
		return Provenance{Open, "its code is in no object that is known"}
	}
	if p, ok := ms.byIR(img, f); ok {
		return p
	}
	code, why := ms.stretchOf(img, start)
	if why != "" {
		return Provenance{Open, why}
	}
	t, why := code.tells(f)
	if why != "" {
		return Provenance{Open, why}
	}
	if differs := t.differs(); differs != "" {
		return Provenance{Contradicted, fmt.Sprintf("%s defines @%s %s", f.Module.Name, f.Name, differs)}
	}
	if len(t.shared) == 0 && len(t.constants) == 0 {
		return Provenance{Open, "the code names nothing and hands on no constant"}
	}
	says := ""
	if len(t.shared) > 0 {
		says = Plural(len(t.shared), "name")
	}
	if len(t.constants) > 0 {
		if says != "" {
			says += " and "
		}
		says += Plural(len(t.constants), "constant")
	}
	return Provenance{Likely, "the code has " + says + " of it"}
}

// maxOwnText bounds what is read of the text of a module in an image, which only confirms another one.
const maxOwnText = 8 << 20

// ownIR are the modules that an image has in itself, each called by its section.
func (ms *Modules) ownIR(img *object.Image) []*ir.Module {
	own, read := ms.embedded[img]
	if read {
		return own
	}
	e := &embedded{}
	e.image(img.Name, img)
	for _, m := range e.modules {
		m.Name = bitcodeSection
	}
	own = e.modules
	if text, err := OwnText(img, maxOwnText); err == nil && text != nil {
		if m, err := ir.Parse(TextSection, text); err == nil {
			own = append(own, m)
		}
	}
	ms.embedded[img] = own
	return own
}

// byIR compares a function with the IR that an image contains. ok is false if the image has none of the function.
func (ms *Modules) byIR(img *object.Image, f *ir.Func) (p Provenance, ok bool) {
	differs := ""
	for _, m := range ms.ownIR(img) {
		g := Emitted(m, f.Name)
		if g == nil {
			continue
		}
		what, comparable := ir.Difference(f, g)
		switch {
		case !comparable:
		case what == "":
			return Provenance{Certain, "the section " + m.Name + " has the same"}, true
		case differs == "":
			differs = fmt.Sprintf("%s defines another @%s than the section %s: %s", f.Module.Name, f.Name, m.Name, what)
		}
	}
	return Provenance{Contradicted, differs}, differs != ""
}
