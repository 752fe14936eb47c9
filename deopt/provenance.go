package deopt

import (
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
)

// ProvenanceOfCode rates the evidence that the code which starts at an address was compiled from a function of the view's modules. The code and the
// IR that an object contains are hostile; [sites.Modules.ProvenanceOf] reads them within bounds.
func ProvenanceOfCode(v *View, start machine.Addr, f *ir.Func) *frame.CompiledFrom {
	p := sites.Provenance{Sure: sites.Open, Why: "its code is in no known object"}
	if c := v.Space().At(start); c != nil {
		p = v.Modules().ProvenanceOf(c.Image, start, f)
	}
	return &frame.CompiledFrom{Module: f.Module.Name, Function: f.Name, Demangled: names.IfMangled(f.Name), Sure: string(p.Sure), Why: p.Why}
}

// ProvenanceOfFrame rates the evidence that the frame's code was compiled from the module that names its values, or from the module that was
// rejected. It returns nil without such a module, or if the module has no symbol of the code.
func ProvenanceOfFrame(f *Frame) *frame.CompiledFrom {
	m := f.Match()
	if m != nil && m.Refused != nil {
		by := m.Refused.Func
		return &frame.CompiledFrom{Module: by.Module.Name, Function: by.Name, Demangled: names.IfMangled(by.Name), Sure: string(sites.Contradicted), Why: m.Refused.Why}
	}
	if m == nil || m.Site == nil {
		return nil
	}
	function, by := m.Entry.Function, m.Site.Func
	of, known := f.View().Modules().Maps[m.Entry.Map]
	if !known || !slices.ContainsFunc(of.Names(function), func(name string) bool { return sites.Emitted(by.Module, name) == by }) {
		return nil
	}
	return ProvenanceOfCode(f.View(), function.Addr, by)
}

// CompiledFrom rates the evidence for the modules of the view's frames, with one entry for each function.
func (v *View) CompiledFrom() (all []frame.CompiledFrom) {
	for _, t := range v.Threads {
		for _, f := range t.Frames {
			if from := f.CompiledFrom; from != nil && !slices.Contains(all, *from) {
				all = append(all, *from)
			}
		}
	}
	return all
}
