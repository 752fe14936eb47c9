package sites

import (
	"fmt"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
)

// Provenance is the certainty that the code of a function was compiled from a module's function.
type Provenance struct {
	Sure Sureness
	Why  string // the evidence, or for [Contradicted] the difference
}

// Sureness is a grade of certainty.
type Sureness string

// These are the grades.
const (
	Certain      Sureness = "certain"      // the object contains the same IR
	Likely       Sureness = "likely"       // the names or constants in the code agree with the module
	Open         Sureness = "open"         // there is no evidence
	Contradicted Sureness = "contradicted" // the code contradicts the module
)

// provenance is the pair of a module's function and the code that it was compared with.
type provenance struct {
	f     *ir.Func
	image *object.Image
	start machine.Addr
}

// ProvenanceOf compares a module's function with the code at an address of an image. It compares it with the IR that the image contains for the function.
// Otherwise it compares what the code generator preserves: names, the order of calls, and constants that the function passes or returns. The code is that of
// the file or registered object, even if memory was overwritten. Results are cached.
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
		return Provenance{Open, "its code is in no known object"}
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
		return Provenance{Open, "the code contains no names or constants to compare"}
	}
	var parts []string
	if len(t.shared) > 0 {
		parts = append(parts, Plural(len(t.shared), "symbol"))
	}
	if len(t.constants) > 0 {
		parts = append(parts, Plural(len(t.constants), "constant"))
	}
	match := "match"
	if len(t.shared)+len(t.constants) == 1 {
		match = "matches"
	}
	return Provenance{Likely, fmt.Sprintf("%s in the code %s this module", strings.Join(parts, " and "), match)}
}

// maxOwnText limits the size of a module's text in an image. The text only confirms a given module.
const maxOwnText = 8 << 20

// ownIR returns the modules that an image contains, named after their section.
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

// byIR compares a function with the IR that an image contains. ok is false if the image has no IR of the function.
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
			differs = fmt.Sprintf("%s and the section %[3]s define different functions @%[2]s: %[4]s", f.Module.Name, f.Name, m.Name, what)
		}
	}
	return Provenance{Contradicted, differs}, differs != ""
}
