package abi

import (
	"fmt"
	"strings"

	"example.com/reframe/internal/llvm/ir"
)

// Decorated returns the symbol of a function whose convention Microsoft's compilers mangle, or "" for other functions. For vectorcall the symbol is
// f@@16 on every platform. With the mangling of 32-bit Windows (m:x) it is @f@8 for fastcall and _f@8 for stdcall. The number is the size of the
// arguments in bytes (Mangler::getNameWithPrefix of LLVM 14 to 22).
func Decorated(f *ir.Func) string {
	layout := f.Module.Layout
	windows32 := layout.Mangling == 'x'
	cpp := strings.HasPrefix(f.Name, "?") && (windows32 || layout.Mangling == 'w')
	if cpp || strings.HasPrefix(f.Name, "\x01") {
		return ""
	}
	name := ""
	switch {
	case f.CC == "x86_vectorcallcc":
		name = f.Name + "@"
	case f.CC == "x86_fastcallcc" && windows32:
		name = "@" + f.Name
	case f.CC == "x86_stdcallcc" && windows32:
		name = "_" + f.Name
	default:
		return ""
	}
	bytes, word, first := uint64(0), uint64(layout.PointerBytes(0)), false
	for n, p := range f.Params {
		if p.Attrs.SRet != nil {
			first = n == 0
			continue
		}
		t := p.Typ
		for _, passed := range []*ir.Type{p.Attrs.ByVal, p.Attrs.InAlloca, p.Attrs.Preallocated} {
			if passed != nil {
				t = passed
			}
		}
		bytes += (layout.Size(t) + word - 1) / word * word
	}
	if f.Sig.Variadic && !(len(f.Params) == 0 || len(f.Params) == 1 && first) {
		return name
	}
	return fmt.Sprintf("%s@%d", name, bytes)
}
