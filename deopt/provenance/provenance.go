// Package provenance rates the evidence that the code of a frame was compiled from the module that names its values.
//
// Its main function is [OfFrame]; [OfCode] says it of code where no frame stands.
//
// # Security
//
// Code and what an object has of IR in itself are hostile, and read by [sites.Modules.ProvenanceOf], which bounds what it does.
package provenance

import (
	"slices"

	"reframe/deopt"
	"reframe/deopt/frame"
	"reframe/deopt/ir"
	"reframe/deopt/machine"
	"reframe/deopt/names"
	"reframe/deopt/sites"
)

// OfCode says how sure it is that the code which starts at an address was compiled from a function of the view's modules.
func OfCode(v *deopt.View, start machine.Addr, f *ir.Func) *frame.CompiledFrom {
	p := sites.Provenance{Sure: sites.Open, Why: "its code is in no object that is known"}
	if c := v.Space().At(start); c != nil {
		p = v.Modules().ProvenanceOf(c.Image, start, f)
	}
	return &frame.CompiledFrom{Module: f.Module.Name, Function: f.Name, Demangled: names.IfMangled(f.Name), Sure: string(p.Sure), Why: p.Why}
}

// OfFrame says how sure it is that the frame's code is that of the module which names its values, or which was refused: nil where there is
// neither, or the code has none of its symbols.
func OfFrame(f *deopt.Frame) *frame.CompiledFrom {
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
	return OfCode(f.View(), function.Addr, by)
}
