package ir

import (
	"fmt"
	"slices"
	"strings"
)

// Difference describes the first difference between the bodies of two functions, or returns "". It ignores the names of values and blocks, and debug
// information. comparable is false if one function is a declaration or does not parse. It is also false if only one has typed pointers, because
// LLVM's releases generate different instructions for them.
func Difference(f, g *Func) (what string, comparable bool) {
	if f.Module.typed != g.Module.typed {
		return "", false
	}
	blocks, err := f.Body()
	others, otherErr := g.Body()
	if err != nil || otherErr != nil || len(blocks) == 0 || len(others) == 0 {
		return "", false
	}
	c := &comparison{number: map[*Instr]int{}}
	for _, b := range slices.Concat(blocks, others) {
		for n, i := range told(b) {
			c.number[i] = n
		}
	}
	switch {
	case len(f.Params) != len(g.Params) || !alikeTypes(f.Sig, g.Sig):
		return fmt.Sprintf("@%s has type %v there, but %v here", f.Name, g.Sig, f.Sig), true
	case len(blocks) != len(others):
		return fmt.Sprintf("@%s has %d blocks there, but %d here", f.Name, len(others), len(blocks)), true
	}
	for n, b := range blocks {
		if what := c.block(b, others[n]); what != "" {
			return what, true
		}
	}
	return "", true
}

// comparison compares two functions. Values are equal if they have the same position in their functions.
type comparison struct{ number map[*Instr]int }

func (c *comparison) block(b, o *Block) string {
	here, there := told(b), told(o)
	for n := range min(len(here), len(there)) {
		if !c.instr(here[n], there[n]) {
			return fmt.Sprintf("line %d has %s, which is %s there", here[n].Line, here[n].line(), there[n].line())
		}
	}
	if len(here) != len(there) {
		return fmt.Sprintf("block %s has %d instructions here, but %d there", b.Ref(), len(here), len(there))
	}
	return ""
}

// told returns the instructions of a block without calls of debug intrinsics.
func told(b *Block) []*Instr {
	return slices.DeleteFunc(slices.Clone(b.Instrs), func(i *Instr) bool {
		if i.Call == nil {
			return false
		}
		f, ok := i.Call.Callee.(*Func)
		return ok && strings.HasPrefix(f.Name, "llvm.dbg.")
	})
}

// line returns the source line of the instruction with white space normalized.
func (i *Instr) line() string {
	text := i.Block.Func.Module.src
	line := text[strings.LastIndexByte(text[:i.Pos], '\n')+1:]
	line, _, _ = strings.Cut(line, "\n")
	return strings.Join(strings.Fields(line), " ")
}

func (c *comparison) instr(a, b *Instr) bool {
	same := a.Op == b.Op && a.Pred == b.Pred && a.Flags == b.Flags && (a.Align == b.Align || a.Align == 0 || b.Align == 0) &&
		alikeTypes(a.Typ, b.Typ) && alikeTypes(a.Elem, b.Elem) && slices.Equal(a.Path, b.Path) && c.values(a.Args, b.Args) &&
		slices.EqualFunc(a.Blocks, b.Blocks, func(a, b *Block) bool { return a.Index == b.Index }) && len(a.Cases) == len(b.Cases) && (a.Call == nil) == (b.Call == nil)
	if !same {
		return false
	}
	for n, v := range a.Cases {
		if v.Cmp(b.Cases[n]) != 0 {
			return false
		}
	}
	return a.Call == nil || c.value(a.Call.Callee, b.Call.Callee) && a.Call.CC == b.Call.CC && alikeTypes(a.Call.Sig, b.Call.Sig) &&
		slices.EqualFunc(a.Call.Bundles, b.Call.Bundles, func(a, b Bundle) bool { return a.Tag == b.Tag && c.values(a.Args, b.Args) })
}

func (c *comparison) values(a, b []Value) bool { return slices.EqualFunc(a, b, c.value) }

// value reports whether two operands are equal. The parser limits the nesting of constants.
func (c *comparison) value(a, b Value) bool {
	switch a := a.(type) {
	case *Const:
		b, ok := b.(*Const)
		return ok && c.constant(a, b)
	case *Instr:
		b, ok := b.(*Instr)
		return ok && a.Block.Index == b.Block.Index && c.number[a] == c.number[b]
	case *Param:
		b, ok := b.(*Param)
		return ok && a.Index == b.Index
	case *Block:
		b, ok := b.(*Block)
		return ok && a.Index == b.Index
	case *Func, *Global, *Alias:
		return a.Ref() == b.Ref()
	case *InlineAsm:
		b, ok := b.(*InlineAsm)
		return ok && *a == *b
	case *Metadata: // each printer numbers the nodes anew
		_, ok := b.(*Metadata)
		return ok
	}
	return false
}

func (c *comparison) constant(a, b *Const) bool {
	if a.Kind != b.Kind || !alikeTypes(a.Typ, b.Typ) || a.Op != b.Op || a.Pred != b.Pred || a.Block != b.Block ||
		string(a.Bytes) != string(b.Bytes) || !slices.Equal(a.Path, b.Path) || !alikeTypes(a.Source, b.Source) || (a.Int == nil) != (b.Int == nil) {
		return false
	}
	if a.Int != nil && a.Int.Cmp(b.Int) != 0 {
		return false
	}
	if (a.Target == nil) != (b.Target == nil) || a.Target != nil && a.Target.Ref() != b.Target.Ref() {
		return false
	}
	return slices.EqualFunc(a.Elems, b.Elems, c.constant)
}

// alikeTypes reports whether two types are equal apart from the names of structs, which a linker may change.
func alikeTypes(a, b *Type) bool {
	switch {
	case a == nil || b == nil:
		return a == b
	case a.Kind == PointerKind && b.Kind == PointerKind:
		return a.AddrSpace == b.AddrSpace // pointees are not compared: the pointee may be the enclosing struct
	}
	return a.Kind == b.Kind && a.Bits == b.Bits && a.Len == b.Len && a.Packed == b.Packed && a.Variadic == b.Variadic && a.Scalable == b.Scalable &&
		alikeTypes(a.Elem, b.Elem) && slices.EqualFunc(a.Fields, b.Fields, alikeTypes)
}
