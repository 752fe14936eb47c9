package interp

import "example.com/reframe/internal/llvm/ir"

// presence tells whether the program defines a declared name.
type presence int

const (
	present presence = iota
	absent           // nothing defines the name, so the address of an extern_weak declaration is null
	unsure           // no module defines the name, but the target may
)

// weak reports whether the name of an extern_weak declaration is defined (LangRef, "Linkage Types"). It reports any other name as present, because
// using such a name without a definition is an error.
func (b *binding) weak(v ir.Value) (presence, error) {
	var name string
	var m *ir.Module
	switch v := v.(type) {
	case *ir.Func:
		if v.Linkage != "extern_weak" || !v.Declared() {
			return present, nil
		}
		if name, m = v.Name, v.Module; b.in.knows(name) {
			return present, nil
		}
	case *ir.Global:
		if v.Linkage != "extern_weak" || libcGlobals[v.Name] != nil && b.in.opt.Memory == nil {
			return present, nil
		}
		name, m = v.Name, v.Module
	default:
		return present, nil
	}
	if _, ok := b.symbol(m, name); ok {
		return present, nil
	}
	d, err := b.defined(v)
	switch {
	case err != nil:
		return present, err
	case d != v:
		return present, nil
	case b.in.opt.Memory != nil || b.in.opt.Symbol != nil:
		return unsure, nil
	}
	return absent, nil
}

// knows reports whether a function without a body is built in, or in [Options].Funcs.
func (in *Interp) knows(name string) bool { return in.opt.Funcs[name] != nil || libc[name] != nil }
