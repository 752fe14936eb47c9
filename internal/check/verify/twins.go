package verify

import (
	"encoding/binary"
	"slices"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// maxNested bounds how many pointers are followed from the interpreter's own memory to more of it.
const maxNested = 8

// toOwn returns the interpreter's address for native code's address in a passed object, or right after its end.
func (p *prediction) toOwn(native machine.Addr) (machine.Addr, bool) {
	for _, t := range slices.Backward(p.twins) {
		if t.native.Contains(native) {
			return t.own.Start + native - t.native.Start, true
		}
	}
	for _, t := range slices.Backward(p.twins) {
		if t.native.End == native {
			return t.own.End, true
		}
	}
	return 0, false
}

// ownResult converts a result of native code for the interpreter: a pointer to a passed object becomes one to the interpreter's own object.
func (p *prediction) ownResult(v interp.Value) interp.Value {
	if at, ok := v.Uint(); ok && v.Type().Kind == ir.PointerKind {
		own, ok := p.passed[machine.Addr(at)] // an address right after an object may be another object
		if !ok {
			own, ok = p.toOwn(machine.Addr(at))
		}
		if ok {
			return interp.FromUint(v.Type(), uint64(own))
		}
	}
	return v
}

// sameNested compares a pointer of the interpreter to its own memory with native code's pointer.
func (p *prediction) sameNested(own, native machine.Addr, mem machine.Memory, depth int) (same bool, why string) {
	if at, ok := p.toOwn(native); ok && at == own {
		return true, ""
	}
	if depth == maxNested {
		return false, "it leads through too many pointers to what the interpreter has elsewhere"
	}
	_, same, why = p.sameObject(own, native, mem, depth+1)
	return same, why
}

// ownWords returns the words that native code changed in passed objects, for the interpreter: a pointer to such an object becomes the interpreter's
// pointer, other words are passed whole. If the word was such a pointer before, the bytes that native code left unchanged differ from the
// interpreter's.
func (p *prediction) ownWords(objects []changed, after *memoryImage) (words []changed) {
	for _, c := range objects {
		for at := c.addr &^ 7; at < c.addr+machine.Addr(len(c.data)); at += 8 {
			i := slices.IndexFunc(p.twins, func(t twin) bool { return t.own.Contains(at) && t.own.Contains(at+7) })
			if i < 0 || len(words) > 0 && words[len(words)-1].addr == at {
				continue
			}
			var b [8]byte
			native := p.twins[i].native.Start + at - p.twins[i].own.Start
			if n := after.read(b[:], native); n < len(b) && after.read(b[n:], native+machine.Addr(n)) < len(b)-n {
				continue
			}
			if own, ok := p.toOwn(machine.Addr(binary.LittleEndian.Uint64(b[:]))); ok {
				binary.LittleEndian.PutUint64(b[:], uint64(own))
			}
			words = append(words, changed{addr: at, data: b[:]})
		}
	}
	return words
}

// keeps reports whether native code has stored a pointer to a passed object in memory that the interpreter has too, except for the stack below the
// frame.
func (p *prediction) keeps(list []changed, after *memoryImage) bool {
	if len(p.twins) == 0 {
		return false
	}
	for _, c := range list {
		for at := c.addr &^ 7; at < c.addr+machine.Addr(len(c.data)); at += 8 {
			if p.below.Contains(at) || slices.ContainsFunc(p.dead, func(r machine.Range) bool { return r.Contains(at) }) {
				continue
			}
			if _, ok := p.toOwn(wordOf(after, at)); ok {
				return true
			}
		}
	}
	return false
}

// wordOf returns a word of an image, 0 if it has none. Pointers of 64 bits are little-endian on all architectures where verify runs.
func wordOf(img *memoryImage, at machine.Addr) machine.Addr {
	var b [8]byte
	if img.read(b[:], at) < len(b) {
		return 0
	}
	return machine.Addr(binary.LittleEndian.Uint64(b[:]))
}

// kept is the reason why a difference may not be an error.
const kept = "a callee has kept a pointer to what the interpreter has elsewhere"

// undecided withdraws a difference that a pointer kept by native code, or a store of another process, may have caused.
func (p *prediction) undecided(v *verifier) {
	why := ""
	switch {
	case p.out.Status != Different:
		return
	case p.retained || p.astray():
		why = kept
	case p.readsShared(v):
		why = sharedMemory
	default:
		if why = p.several(v); why == "" {
			return
		}
	}
	p.out.Call, p.out.Result, p.out.Memory, p.out.Words = nil, nil, nil, 0
	p.out.Native.Failed, p.out.Interpreter.Failed = "", ""
	p.out.notComparable(why)
}

// astray reports whether the interpreter stored to native code's copy of a passed object: it has loaded a pointer to that.
func (p *prediction) astray() bool {
	for t := range p.interp.machine.Touched() {
		for _, w := range p.twins {
			for at := max(t.Addr, w.native.Start); at < min(t.Addr+interp.PageSize, w.native.End); at++ {
				if n := at - t.Addr; t.Stored[n/8]>>(n%8)&1 != 0 {
					return true
				}
			}
		}
	}
	return false
}
