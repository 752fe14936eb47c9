package verify

import (
	"encoding/binary"
	"fmt"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// These bound the memory that is compared through a pointer.
const (
	maxPointee = 64 << 10 // bytes of an object
	maxNested  = 8        // pointers that are followed within the interpreter's own memory
)

// argumentComparison compares the arguments of a native call with those that the interpreter passes, and adds the objects that they point to.
type argumentComparison struct {
	machine *interp.Interp
	native  machine.Memory
	pairs   *objectPairs
}

// compare compares the arguments of the interpreter's call with those of native code, which is stopped at the entry of the callee. why is the reason
// why they cannot be compared.
func (a *argumentComparison) compare(c *interp.Invocation, regs *machine.Registers) (d *CallDifference, why error) {
	site := c.Site()
	s := abi.Signature{Layout: site.Block.Func.Module.Layout, CC: site.Call.CC}
	for _, arg := range c.Args {
		s.Types = append(s.Types, arg.Type())
	}
	if len(site.Call.ArgAttrs) == len(c.Args) { // statepoints and patchpoints have more attributes than arguments
		s.Attrs = site.Call.ArgAttrs
	}
	a.pairs.passed = map[machine.Addr]machine.Addr{}
	for n, arg := range abi.Arguments(s, regs.Arch()) {
		value, err := arg.Read(regs, a.native)
		if err != nil {
			return nil, frame.Errorf("argument %d of %v: %w", n+1, calleeOf(c), err)
		}
		attrs := ir.ParamAttrs{}
		if n < len(s.Attrs) {
			attrs = s.Attrs[n]
		}
		at, same, why := a.argument(c.Args[n], value, attrs, s.Layout)
		if why != "" {
			return nil, frame.Errorf("argument %d of %v: %s", n+1, calleeOf(c), why)
		}
		if !same {
			return &CallDifference{Callee: calleeName(c), Argument: n + 1, Type: arg.Type.String(), Register: arg.Where(), At: at,
				Interpreter: c.Args[n].Format(), Native: value.Format(), Line: site.Line}, nil
		}
	}
	return nil, nil
}

// argument compares one argument; at is the offset of a difference in the memory to which the argument points.
func (a *argumentComparison) argument(own, native interp.Value, attrs ir.ParamAttrs, layout *ir.DataLayout) (at string, same bool, why string) {
	same = abi.SameBits(own, native)
	to, isAddr := own.Uint()
	t := own.Type()
	if !isAddr || t.Kind != ir.PointerKind && (t.Kind != ir.IntKind || t.Bits != 64) {
		return "", same, ""
	}
	nativeTo, _ := native.Uint()
	if a.machine.Made(to) {
		if t.Kind == ir.IntKind {
			if !same {
				why = "an integer that may be an address of the interpreter's own memory"
			}
			return "", same, why
		}
		a.pairs.passed[machine.Addr(nativeTo)] = machine.Addr(to)
		return a.object(machine.Addr(to), machine.Addr(nativeTo), 0)
	}
	if !same || t.Kind != ir.PointerKind || to == 0 {
		return "", same, ""
	}
	size := attrs.Dereferenceable
	for _, in := range []*ir.Type{attrs.ByVal, t.Elem} { // in LLVM 14 a pointer type has its pointee type
		if in != nil && (in.First() || in.Kind == ir.ArrayKind || in.Kind == ir.StructKind && !in.Opaque) {
			size = max(size, layout.Size(in))
		}
	}
	return a.memory(machine.Addr(to), machine.Addr(nativeTo), min(size, maxPointee), 0)
}

// object compares an object of the interpreter with the memory to which native code's pointer leads instead. It records both as a pair, even if
// native is the address of an earlier object that was freed. depth is the number of pointers that led to the object.
func (a *argumentComparison) object(own, native machine.Addr, depth int) (at string, same bool, why string) {
	n := a.machine.Extent(own, maxPointee)
	switch {
	case n == 0 && a.machine.Extent(own-1, 1) > 0: // own points right after the end of an object
		if t, ok := a.pairs.toOwn(native); ok && t == own {
			return "", true, ""
		}
		return a.object(own-1, native-1, depth)
	case n == 0:
		return "", false, "it points to an address that only the interpreter has"
	}
	if !a.pairs.add(own, native, n) {
		return "", false, "too many pointers to the interpreter's own memory were passed"
	}
	return a.memory(own, native, n, depth)
}

// memory compares the interpreter's memory at an address with native code's at another. Unknown bits equal any bits, and a pointer to the
// interpreter's own memory equals a pointer to the memory that native code has in its place.
func (a *argumentComparison) memory(own, native machine.Addr, size uint64, depth int) (at string, same bool, why string) {
	data, undefined, have := make([]byte, imagePage), make([]byte, imagePage), make([]byte, imagePage)
	for done := uint64(0); done < size; {
		n := min(size-done, imagePage-uint64(own)%imagePage)
		if a.machine.Peek(data[:n], undefined[:n], own) != nil || a.native.ReadMemory(have[:n], native) != nil {
			return "", true, "" // unreadable memory cannot be compared
		}
		for i := uint64(0); i < n; i++ {
			if (data[i]^have[i])&^undefined[i] == 0 {
				continue
			}
			same, why := a.word(own+machine.Addr(i), native+machine.Addr(i), depth)
			if why != "" {
				return "", false, why
			}
			if same {
				i += 7 - (uint64(own)+i)%8
				continue
			}
			return fmt.Sprintf("+%d", done+i), false, ""
		}
		done, own, native = done+n, own+machine.Addr(n), native+machine.Addr(n)
	}
	return "", true, ""
}

// word compares the words around two bytes that differ, even if only a part of the words is passed. The interpreter's word may be an address in its
// own memory.
func (a *argumentComparison) word(own, native machine.Addr, depth int) (same bool, why string) {
	var data, undefined, have [8]byte
	into := own % 8
	if a.machine.Peek(data[:], undefined[:], own-into) != nil || a.native.ReadMemory(have[:], native-into) != nil {
		return false, ""
	}
	word := binary.LittleEndian.Uint64(data[:])
	if undefined != [8]byte{} || !a.machine.Made(word) {
		return false, ""
	}
	return a.pointer(machine.Addr(word), machine.Addr(binary.LittleEndian.Uint64(have[:])), depth)
}

// pointer compares a pointer of the interpreter to its own memory with native code's pointer.
func (a *argumentComparison) pointer(own, native machine.Addr, depth int) (same bool, why string) {
	if at, ok := a.pairs.toOwn(native); ok && at == own {
		return true, ""
	}
	if depth == maxNested {
		return false, "it leads through too many pointers to the interpreter's own memory"
	}
	_, same, why = a.object(own, native, depth+1)
	return same, why
}
