package instrument

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/static/lint"
)

// loss returns the reason why a site cannot record a value, or nil. Most reasons are those that lint reports.
func (w *writer) loss(i *ir.Instr, bundle bool, v ir.Value) error {
	t := v.Type()
	switch {
	case swiftError(v):
		return errors.New("a swifterror value can only be used by calls, loads and stores")
	case scalable(t):
		return fmt.Errorf("the size of %v is not known at compile time", t)
	}
	switch t.Kind {
	case ir.X86MMXKind, ir.X86AMXKind, ir.TargetKind, ir.TokenKind, ir.LabelKind, ir.MetadataKind:
		return fmt.Errorf("%v has no location", t)
	}
	s := &ir.Site{Kind: ir.StackMapSite, Func: i.Block.Func, Instr: i}
	if bundle {
		s.Kind = ir.StatepointSite
	}
	rule, why, _ := lint.Loss(s, v)
	switch {
	case rule != "" && (!bundle || rule != lint.X87Operand):
		return fmt.Errorf("%v %s", t, why)
	case !bundle && w.Release < 16 && !registerType(w.m, sites.FirstLeaf(t)):
		return fmt.Errorf("%v crashes the code generator of LLVM 14", t)
	}
	return nil
}

// operands returns the operands that record a value, or the reason why it cannot be recorded.
func (w *writer) operands(i *ir.Instr, bundle bool, v ir.Value) (list []string, why error) {
	if why = w.loss(i, bundle, v); why == nil {
		return []string{v.Type().String() + " " + v.Ref()}, nil
	}
	if bundle {
		return nil, why
	}
	list, done := w.told[v]
	if !done {
		if at := behind(i.Block.Func, v); at != nil {
			var instructions []string
			if list, instructions = w.telling(at, v); list != nil {
				for _, text := range instructions {
					w.before(at, text)
				}
			}
		}
		w.told[v] = list
	}
	if list == nil {
		return nil, why
	}
	return list, nil
}

// telling returns operands from which the interpreter can restore a value ([ir.Told]), and the instructions that compute these operands after the
// value. The operands are the extension of an integer that does not fill a register, or the elements of a struct or array. It returns none if that is
// impossible.
func (w *writer) telling(at *ir.Instr, v ir.Value) (operands, instructions []string) {
	t := v.Type()
	if t.Kind == ir.IntKind && t.Bits < 64 {
		wide := &ir.Instr{Name: w.free(at.Block.Func, v, "wide"), Typ: ir.I32}
		if t.Bits > 32 {
			wide.Typ = ir.I64
		}
		return []string{wide.Typ.String() + " " + wide.Ref()}, []string{fmt.Sprintf("%s = zext %v %s to %v", wide.Ref(), t, v.Ref(), wide.Typ)}
	}
	if leaves(t) > maxLeaves {
		return nil, nil
	}
	for n := range ir.Elements(t) {
		part := &ir.Instr{Op: ir.OpExtractValue, Typ: t.Elem, Args: []ir.Value{v}, Path: []int{n}, Block: at.Block}
		if t.Kind == ir.StructKind {
			part.Typ = t.Fields[n]
		}
		part.Name = w.free(at.Block.Func, v, strconv.Itoa(n))
		instructions = append(instructions, fmt.Sprintf("%s = extractvalue %v %s, %d", part.Ref(), t, v.Ref(), n))
		list, more := []string{part.Typ.String() + " " + part.Ref()}, []string(nil)
		if w.loss(at, false, part) != nil {
			if list, more = w.telling(at, part); list == nil {
				return nil, nil
			}
		}
		operands, instructions = append(operands, list...), append(instructions, more...)
	}
	return operands, instructions
}

// maxLeaves bounds the operands for one value.
const maxLeaves = 16

// leaves returns the number of scalars in a type; above maxLeaves the number may be too low.
func leaves(t *ir.Type) int {
	n := 0
	switch t.Kind {
	case ir.ArrayKind:
		if n = leaves(t.Elem); n > 0 && t.Len > maxLeaves {
			return maxLeaves + 1
		}
		return min(n*int(min(t.Len, maxLeaves)), maxLeaves+1)
	case ir.StructKind:
		for _, f := range t.Fields {
			if n += leaves(f); n > maxLeaves {
				break
			}
		}
		return n
	}
	return 1
}

// free returns a name that is unused in the function, for a value derived from another.
func (w *writer) free(f *ir.Func, v ir.Value, what string) string {
	name := strings.Trim(sites.NameOf(v)[1:], `"`) + "." + what
	for w.named(f)[name] {
		name += "."
	}
	w.names[name] = true
	return name
}

// behind returns the first instruction at which a value is available for every use; nil if there is none.
func behind(f *ir.Func, v ir.Value) *ir.Instr {
	i, ok := v.(*ir.Instr)
	switch {
	case !ok:
		body, _ := f.Body() // no error: the body was parsed before
		return body[0].Instrs[first(body[0])]
	case i.Op == ir.OpPhi || i.Op == ir.OpLandingPad:
		return i.Block.Instrs[first(i.Block)]
	case i.Index+1 < len(i.Block.Instrs):
		return i.Block.Instrs[i.Index+1]
	}
	return nil // other blocks may lead to an invoke's destination
}

// named returns the names of a function's values and blocks.
func (w *writer) named(f *ir.Func) map[string]bool {
	if w.namesOf == f {
		return w.names
	}
	w.namesOf, w.names = f, map[string]bool{}
	for _, p := range f.Params {
		w.names[p.Name] = true
	}
	body, _ := f.Body() // no error: the body was parsed before
	for _, b := range body {
		w.names[b.Name] = true
		for _, i := range b.Instrs {
			w.names[i.Name] = true
		}
	}
	return w.names
}

// registerType reports whether a value of a type fills a register: LLVM 14 does not promote operands of a stackmap (seen: llc 14, not 16).
func registerType(m *ir.Module, t *ir.Type) bool {
	switch t.Kind {
	case ir.IntKind:
		return t.Bits == 32 || t.Bits == 64 || sites.X86Triple(m.Triple) && (t.Bits == 8 || t.Bits == 16)
	case ir.HalfKind, ir.BFloatKind:
		return false
	case ir.VectorKind:
		bits := 64
		switch t.Elem.Kind {
		case ir.IntKind:
			bits = t.Elem.Bits
		case ir.FloatKind:
			bits = 32
		case ir.DoubleKind, ir.PointerKind:
		default:
			return false
		}
		return bits >= 8 && bits <= 64 && bits&(bits-1) == 0 && uint64(bits)*t.Len >= 128
	}
	return true
}

// swiftError reports whether a value is the address of a Swift error, which lies in a register (LangRef, "Parameter Attributes").
func swiftError(v ir.Value) bool {
	switch v := v.(type) {
	case *ir.Param:
		return v.Attrs.SwiftError
	case *ir.Instr:
		return v.Op == ir.OpAlloca && v.Flags&ir.SwiftError != 0
	}
	return false
}

// scalable reports whether a type contains a vector without a fixed size.
func scalable(t *ir.Type) bool {
	switch t.Kind {
	case ir.VectorKind:
		return t.Scalable
	case ir.ArrayKind:
		return scalable(t.Elem)
	case ir.StructKind:
		for _, f := range t.Fields {
			if scalable(f) {
				return true
			}
		}
	}
	return false
}
