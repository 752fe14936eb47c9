package deopt

import (
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
)

// symbols returns a function that resolves the names of modules to addresses of the target. For a module of one of the frames it uses the frame's
// image.
func (s *Stack) symbols() func(*ir.Module, string) (machine.Addr, bool) {
	v := s.Frames[0].view
	found := map[*ir.Module]func(string) (machine.Addr, bool){}
	for _, f := range s.Frames {
		found[f.to.Module] = f.Symbols(f.to)
	}
	return v.symbolsOf(found)
}

// symbolsOf returns a function that resolves the names of any module. found caches the function for each module; it already has those for the modules
// of frames.
func (v *View) symbolsOf(found map[*ir.Module]func(string) (machine.Addr, bool)) func(*ir.Module, string) (machine.Addr, bool) {
	return func(m *ir.Module, name string) (machine.Addr, bool) {
		if found[m] == nil {
			found[m] = v.symbols(m, v.imageOf(m))
		}
		return found[m](name)
	}
}

// Symbols returns a function that resolves the names of fn's module to addresses of the target, as the code of the frame does: if several images have
// a name, the frame's own takes precedence. The function returns false for an unknown name.
func (f *Frame) Symbols(fn *ir.Func) func(string) (machine.Addr, bool) {
	return f.view.symbols(fn.Module, f.imageOf(fn))
}

// symbols returns a function that resolves the names of a module that was compiled into an image. A name with internal linkage is looked up only in
// that image: another image may use the same name for something else.
func (v *View) symbols(m *ir.Module, img *object.Image) func(string) (machine.Addr, bool) {
	return func(name string) (machine.Addr, bool) {
		linkage := ""
		switch g := m.Lookup(name).(type) {
		case *ir.Global:
			linkage = g.Linkage
		case *ir.Func:
			linkage = g.Linkage
			if symbol := abi.Decorated(g); symbol != "" {
				name = symbol
			}
		}
		// A private symbol is not in the object file.
		if linkage == "private" {
			return 0, false
		}
		if weak(linkage) { // a JIT may have linked another image's definition
			if at, ok := v.linked(m, img, name); ok {
				return at, true
			}
		}
		if img != nil && linkage != "internal" {
			if sym, ok := img.Exported(name); ok {
				return sym.Addr, true
			}
		}
		// A linker may also have hidden the symbol, which makes it local.
		if img != nil {
			if sym, ok := img.Only(name); ok {
				return sym.Addr, true
			}
		}
		if linkage != "internal" {
			if sym, ok := v.target.FindSymbol(name); ok {
				return sym.Addr, true
			}
		}
		return v.linked(m, img, name)
	}
}

// weak reports whether a linkage lets the linker choose one of several definitions (LangRef, "Linkage Types").
func weak(linkage string) bool {
	switch linkage {
	case "weak", "weak_odr", "linkonce", "linkonce_odr", "common", "extern_weak":
		return true
	}
	return false
}

// linked returns the address that a JIT gave to an undefined symbol of an image, read from the image's code in memory.
func (v *View) linked(m *ir.Module, img *object.Image, name string) (machine.Addr, bool) {
	if img == nil {
		return 0, false
	}
	at, ok := img.Linked(name, v.target)
	if _, function := m.Lookup(name).(*ir.Func); ok && function {
		for to := range v.Unwinder().Stubs(at) {
			at = to
		}
	}
	return at, ok
}

// imageOf returns the image that a function's module was compiled into, or nil if unknown. It is the frame's own image if the frame's site is in that
// module or the image has the function. Otherwise it is the image that exports the function.
func (f *Frame) imageOf(fn *ir.Func) *object.Image {
	own := f.code.Image
	if own != nil {
		if f.match != nil && f.match.Site != nil && f.match.Site.Func.Module == fn.Module {
			return own
		}
		if _, ok := own.Lookup(fn.Name); ok {
			return own
		}
	}
	return f.view.space.Exporter(fn.Name)
}

// imageOf returns the image that a module without a frame was compiled into: the one that exports the first of its functions that any image exports.
func (v *View) imageOf(m *ir.Module) *object.Image {
	for _, fn := range m.Funcs {
		if sites.Emits(fn) && sites.External(fn) {
			if img := v.space.Exporter(fn.Name); img != nil {
				return img
			}
		}
	}
	return nil
}

// NativeFunction returns the IR function whose native code the frame runs, or nil if unknown.
func (f *Frame) NativeFunction() *ir.Func {
	if f.match.Site != nil {
		return f.match.Site.Func
	}
	if all := f.view.modules.Bodies(f.Function); len(all) == 1 {
		return all[0]
	}
	return nil
}
