package gclint

import (
	"math/big"

	"example.com/reframe/internal/llvm/ir"
)

// kind is the kind of a carrier.
type kind uint8

const (
	pointer   kind = iota // a managed pointer, which a statepoint can relocate
	aggregate             // a structure or array with managed pointers, which no statepoint relocates
	address               // a copy of an address: an integer, a floating-point number, or a pointer that the collector does not manage
	token                 // the token of a statepoint, from which gc.relocate and gc.result read
	slot                  // the content of an alloca
	holding               // a fact instead of a value: the slot that precedes it in the list holds an address
)

// alloca is an alloca whose address does not escape, so that only this function and the statepoints that list it change its content.
type alloca struct {
	in       *ir.Instr
	weak     bool // a store may change only a part of the content
	volatile bool // an access is volatile, so mem2reg keeps the alloca
}

// sources returns the operands whose address the result of an instruction carries. The operand of a load is a slot.
func (w *flow) sources(in *ir.Instr) []ir.Value {
	switch in.Op {
	case ir.OpGEP, ir.OpBitCast, ir.OpAddrSpaceCast, ir.OpPtrToInt, ir.OpPtrToAddr, ir.OpIntToPtr, ir.OpFreeze, ir.OpZExt, ir.OpSExt, ir.OpExtractElement:
		return in.Args[:1]
	case ir.OpTrunc:
		if in.Typ.Kind == ir.IntKind && in.Typ.Bits < 32 { // too narrow for an address
			return nil
		}
		return in.Args[:1]
	case ir.OpPhi:
		return in.Args
	case ir.OpSelect:
		return in.Args[1:3]
	case ir.OpExtractValue:
		if w.p.holds(in.Args[0].Type()) && !w.p.holds(in.Typ) { // the extracted field has no managed pointers
			return nil
		}
		return in.Args[:1]
	case ir.OpInsertValue, ir.OpInsertElement, ir.OpShuffleVector, ir.OpAdd, ir.OpOr:
		return in.Args[:2]
	case ir.OpSub, ir.OpXor: // the difference of two addresses is not an address
		if w.wide[in.Args[0]] && w.wide[in.Args[1]] {
			return nil
		}
		return in.Args[:2]
	case ir.OpAnd: // a mask of less than 32 bits leaves too few bits for an address, as a trunc does
		for _, a := range in.Args {
			if n, ok := constant(a); ok && n.BitLen() < 32 {
				return nil
			}
		}
		return in.Args[:2]
	case ir.OpShl, ir.OpLShr, ir.OpAShr:
		if n, ok := constant(in.Args[1]); ok && n.Cmp(big.NewInt(48)) >= 0 { // a shift by 48 or more bits leaves only tag bits
			return nil
		}
		return in.Args[:1]
	case ir.OpLoad:
		if a := w.slots[in.Args[0]]; a != nil {
			return []ir.Value{a.in}
		}
	case ir.OpCall:
		switch {
		case isRelocate(in), isIntrinsic(in, "llvm.experimental.gc.result") && w.p.holds(in.Typ):
			return in.Args[:1]
		case propagates(in):
			return in.Args[:min(len(in.Args), 2)]
		}
	}
	return nil
}

func propagates(in *ir.Instr) bool {
	return isIntrinsic(in, "llvm.ptrmask", "llvm.launder.invariant.group", "llvm.strip.invariant.group", "llvm.experimental.gc.get.pointer.base",
		"llvm.fshl", "llvm.fshr")
}

func constant(v ir.Value) (*big.Int, bool) {
	c, ok := v.(*ir.Const)
	if !ok || c.Kind != ir.ConstInt {
		return nil, false
	}
	return c.Int, true
}

// root reports whether an instruction returns a managed pointer that it does not compute from another one in this function. A gc.relocate is not a
// root, because a relocated null is null.
func (w *flow) root(in *ir.Instr) bool {
	if in.Typ.Kind == ir.TokenKind {
		return isStatepoint(in) || in.Op == ir.OpLandingPad
	}
	if !w.p.holds(in.Typ) {
		return false
	}
	switch in.Op {
	case ir.OpLoad, ir.OpCall, ir.OpInvoke, ir.OpCmpXchg, ir.OpAtomicRMW, ir.OpVAArg, ir.OpCallBr:
		return len(w.sources(in)) == 0 || isIntrinsic(in, "llvm.experimental.gc.result")
	case ir.OpIntToPtr, ir.OpAddrSpaceCast:
		v := in.Args[0]
		for {
			from, ok := v.(*ir.Instr)
			if !ok {
				_, param := v.(*ir.Param)
				return param
			}
			if from.Op != ir.OpBitCast && from.Op != ir.OpGEP && from.Op != ir.OpAddrSpaceCast {
				return from.Op != ir.OpAlloca
			}
			v = from.Args[0]
		}
	}
	return false
}

func (w *flow) kindOf(v ir.Value) kind {
	t := v.Type()
	switch {
	case t.Kind == ir.TokenKind:
		return token
	case w.p.managed(t):
		return pointer
	case w.p.holds(t):
		return aggregate
	}
	return address
}

// number finds the carriers: the roots, and the values that carry the address of a carrier.
func (w *flow) number() {
	w.carriers, w.index = nil, map[ir.Value]int32{}
	var work []ir.Value
	add := func(v ir.Value, k kind) {
		if _, ok := w.index[v]; ok {
			return
		}
		w.index[v] = int32(len(w.carriers))
		w.carriers = append(w.carriers, carrier{v, k})
		work = append(work, v)
	}
	for _, p := range w.f.Params {
		if w.p.holds(p.Typ) {
			add(p, w.kindOf(p))
		}
	}
	for _, b := range w.blocks {
		for _, in := range b.Instrs {
			if w.root(in) {
				add(in, w.kindOf(in))
			}
		}
	}
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		for _, u := range w.relocates[v] {
			add(u, w.kindOf(u))
		}
		for _, u := range w.users[v] {
			if u.Op == ir.OpStore && u.Args[0] == v {
				if a := w.slots[u.Args[1]]; a != nil {
					if _, ok := w.index[a.in]; !ok {
						add(a.in, slot)
						w.carriers = append(w.carriers, carrier{a.in, holding})
						for address, of := range w.slots {
							if of == a {
								work = append(work, address)
							}
						}
					}
				}
				continue
			}
			if w.slots[v] != nil && u.Op != ir.OpLoad { // computes an address of the alloca, not its content
				continue
			}
			if v.Type().Kind == ir.TokenKind {
				continue
			}
			for _, s := range w.sources(u) {
				if s == v || w.slots[v] != nil && w.slots[v].in == s {
					add(u, w.kindOf(u))
				}
			}
		}
	}
}

// allocas finds the allocas whose address does not escape.
func (w *flow) allocas() {
	w.slots = map[ir.Value]*alloca{}
	for _, b := range w.blocks {
		for _, in := range b.Instrs {
			if in.Op == ir.OpAlloca {
				if a, addresses, ok := w.private(in); ok {
					for _, v := range addresses {
						w.slots[v] = a
					}
				}
			}
		}
	}
}

// private follows the address of an alloca. It returns false if the address escapes.
func (w *flow) private(in *ir.Instr) (a *alloca, addresses []ir.Value, ok bool) {
	a, addresses = &alloca{in: in, weak: len(in.Args) > 0}, []ir.Value{in}
	layout := w.f.Module.Layout
	whole := func(t *ir.Type) bool { return layout.StoreSize(t) == layout.StoreSize(in.Elem) }
	for k := 0; k < len(addresses); k++ {
		v := addresses[k]
		for _, u := range w.users[v] {
			a.volatile = a.volatile || u.Flags&ir.Volatile != 0
			switch {
			case u.Op == ir.OpGEP && u.Args[0] == v:
				a.weak = a.weak || !zeroOffset(u)
				addresses = append(addresses, u)
			case u.Op == ir.OpBitCast:
				addresses = append(addresses, u)
			case u.Op == ir.OpLoad:
				a.weak = a.weak || !whole(u.Elem)
			case u.Op == ir.OpStore && u.Args[0] != v:
				a.weak = a.weak || !whole(u.Elem)
			case u.Op == ir.OpICmp, isIntrinsic(u, "llvm.lifetime.start", "llvm.lifetime.end"):
			case u.Call != nil && !inArgs(u, v):
			default:
				return nil, nil, false
			}
		}
	}
	return a, addresses, true
}

// inArgs reports whether a call has a value as argument or callee, not only in bundles.
func inArgs(in *ir.Instr, v ir.Value) bool {
	if in.Call.Callee == v {
		return true
	}
	for _, a := range in.Args {
		if a == v {
			return true
		}
	}
	return false
}

// zeroOffset reports whether a getelementptr always adds zero bytes.
func zeroOffset(in *ir.Instr) bool {
	n, ok := offset(in)
	return ok && n == 0
}

// offset returns the number of bytes that a getelementptr adds, modulo the width of an index. It returns false if the number is not constant.
func offset(in *ir.Instr) (n uint64, ok bool) {
	layout, t := in.Block.Func.Module.Layout, in.Elem
	for k, a := range in.Args[1:] {
		index, isConst := constantIndex(a)
		if k > 0 && t.Kind == ir.StructKind {
			if !isConst || index >= uint64(len(t.Fields)) {
				return 0, false
			}
			at := layout.FieldOffset(t, int(index))
			if at == ir.NoSize && index > 0 {
				return 0, false
			}
			if index > 0 {
				n += at
			}
			t = t.Fields[index]
			continue
		}
		if k > 0 {
			if t = t.Elem; t == nil {
				return 0, false
			}
		}
		if isConst && index == 0 {
			continue
		}
		size := layout.Size(t)
		if size == 0 { // an element without bytes, such as {}: each index is the same address
			continue
		}
		if !isConst || size == ir.NoSize {
			return 0, false
		}
		n += index * size
	}
	if width := layout.IndexBits(in.Args[0].Type().AddrSpace); width < 64 {
		n &= 1<<width - 1
	}
	return n, true
}

// constantIndex returns an index of a getelementptr as a sign-extended number. It returns false for a variable and for a vector that is not zero.
func constantIndex(v ir.Value) (uint64, bool) {
	c, ok := v.(*ir.Const)
	switch {
	case !ok:
		return 0, false
	case c.Kind == ir.ConstZero:
		return 0, true
	case c.Kind != ir.ConstInt:
		return 0, false
	}
	n := c.Int
	if bits := c.Typ.Bits; n.Bit(bits-1) != 0 {
		n = new(big.Int).Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
	}
	if !n.IsInt64() { // LLVM truncates the index to 64 bits or fewer
		return 0, false
	}
	return uint64(n.Int64()), true
}
