package deopt

import (
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
)

// symbols binds the names of modules to addresses of the target: of those that the frames
// are in by the images of the frames.
func (s *Stack) symbols() func(*ir.Module, string) (machine.Addr, bool) {
	v := s.Frames[0].view
	found := map[*ir.Module]func(string) (machine.Addr, bool){}
	for _, f := range s.Frames {
		found[f.to.Module] = f.Symbols(f.to)
	}
	return v.symbolsOf(found)
}

// symbolsOf binds the names of any module: of those that were found by a frame as that has them.
func (v *View) symbolsOf(found map[*ir.Module]func(string) (machine.Addr, bool)) func(*ir.Module, string) (machine.Addr, bool) {
	return func(m *ir.Module, name string) (machine.Addr, bool) {
		if found[m] == nil {
			found[m] = v.symbols(m, v.imageOf(m))
		}
		return found[m](name)
	}
}

// Symbols binds the names of fn's module to addresses of the target, as the code of the frame does: if several images have a name, its own takes
// precedence. The function returns false for a name that none has.
func (f *Frame) Symbols(fn *ir.Func) func(string) (machine.Addr, bool) {
	return f.view.symbols(fn.Module, f.imageOf(fn))
}

// symbols binds the names of a module that was compiled into an image to addresses of the
// target. A name that the module keeps to itself is looked for in the image that was made of
// it alone: another one may use the same name for something else.
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
		// A private symbol is not written into the object.
		if linkage == "private" {
			return 0, false
		}
		if weak(linkage) { // a JIT may have taken another image's
			if at, ok := v.linked(m, img, name); ok {
				return at, true
			}
		}
		if img != nil && linkage != "internal" {
			if sym, ok := img.Exported(name); ok {
				return sym.Addr, true
			}
		}
		// Symbols that a linker hid are local too.
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

// weak reports whether one of several definitions is chosen for a linkage (LangRef, "Linkage Types").
func weak(linkage string) bool {
	switch linkage {
	case "weak", "weak_odr", "linkonce", "linkonce_odr", "common", "extern_weak":
		return true
	}
	return false
}

// linked returns the address that a JIT has given to a symbol without an address in an image, read from the image's code in memory.
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

// imageOf returns the image that a function's module was compiled into, or nil where it
// is not known: the frame's own, where its site is in that module or the image has the
// function, else the one that exports the function.
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

// imageOf returns the image that a module without a frame was compiled into: the one that
// exports the first of its functions that any does.
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

// NativeFunction is the function of the modules whose native code the frame runs, nil where that is not known.
func (f *Frame) NativeFunction() *ir.Func {
	if f.match.Site != nil {
		return f.match.Site.Func
	}
	if all := f.view.modules.Bodies(f.Function); len(all) == 1 {
		return all[0]
	}
	return nil
}
