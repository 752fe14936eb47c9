package verify

import (
	"encoding/binary"
	"slices"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// objectPair is an object of the interpreter, and the memory that native code uses for the same object.
type objectPair struct{ own, native machine.Range }

// objectPairs holds the objects to which pointers were passed in native calls.
type objectPairs struct {
	list   []objectPair
	passed map[machine.Addr]machine.Addr // pointer arguments of the last call: maps native code's address to the interpreter's
	// stored reports whether native code has stored a pointer to a passed object in memory from which the interpreter may load it.
	stored bool
}

// maxObjectPairs bounds the pairs of one prediction.
const maxObjectPairs = 1024

// add adds the pair of n bytes at two addresses, unless a pair already contains both. It removes earlier pairs with the same memory of the
// interpreter. It returns false if there are too many pairs.
func (o *objectPairs) add(own, native machine.Addr, n uint64) bool {
	if slices.ContainsFunc(o.list, func(t objectPair) bool { return t.own.Contains(own) && native-t.native.Start == own-t.own.Start }) {
		return true
	}
	o.list = slices.DeleteFunc(o.list, func(t objectPair) bool {
		return t.own.Contains(own) || t.own.Start >= own && t.own.Start < own+machine.Addr(n)
	})
	if len(o.list) == maxObjectPairs {
		return false
	}
	o.list = append(o.list, objectPair{machine.Range{Start: own, End: own + machine.Addr(n)}, machine.Range{Start: native, End: native + machine.Addr(n)}})
	return true
}

// toOwn returns the interpreter's address for native code's address in a passed object, or right after its end.
func (o *objectPairs) toOwn(native machine.Addr) (machine.Addr, bool) {
	for _, t := range slices.Backward(o.list) {
		if t.native.Contains(native) {
			return t.own.Start + native - t.native.Start, true
		}
	}
	for _, t := range slices.Backward(o.list) {
		if t.native.End == native {
			return t.own.End, true
		}
	}
	return 0, false
}

// ownResult converts a result of native code for the interpreter: a pointer to a passed object becomes one to the interpreter's own object.
func (o *objectPairs) ownResult(v interp.Value) interp.Value {
	if at, ok := v.Uint(); ok && v.Type().Kind == ir.PointerKind {
		own, ok := o.passed[machine.Addr(at)] // only arguments are converted, because an address right after an object may belong to another object
		if !ok {
			own, ok = o.toOwn(machine.Addr(at))
		}
		if ok {
			return interp.FromUint(v.Type(), uint64(own))
		}
	}
	return v
}

// changes returns the changes by native code in passed objects, for the interpreter's memory: the bytes that changed, and all bytes whose value was
// unknown before, because native code may have stored equal bytes. It removes the pairs whose memory the interpreter has released.
func (o *objectPairs) changes(in *interp.Interp, list []changed, after *memoryImage) (objects []changed) {
	o.list = slices.DeleteFunc(o.list, func(t objectPair) bool { return in.Extent(t.own.Start, 1) == 0 })
	for _, t := range o.list {
		for _, ch := range list {
			start, end := max(ch.addr, t.native.Start), min(ch.addr+machine.Addr(len(ch.data)), t.native.End)
			if start < end {
				objects = append(objects, changed{addr: t.own.Start + start - t.native.Start, data: ch.data[start-ch.addr : end-ch.addr]})
			}
		}
		for done := machine.Addr(0); done < t.own.End-t.own.Start; {
			own := t.own.Start + done
			n := min(t.own.End-own, imagePage-own%imagePage)
			data, undefined, now := make([]byte, n), make([]byte, n), make([]byte, n)
			if in.Peek(data, undefined, own) != nil {
				break
			}
			if now = now[:after.read(now, t.native.Start+done)]; len(now) == 0 {
				break
			}
			for i, u := range undefined[:len(now)] {
				if u != 0 {
					objects = append(objects, changed{addr: own + machine.Addr(i), data: now[i : i+1]})
				}
			}
			done += machine.Addr(len(now))
		}
	}
	return append(objects, o.ownWords(objects, after)...)
}

// ownWords returns the words that native code changed in passed objects, for the interpreter: a pointer to such an object becomes the interpreter's
// pointer. Other words are passed whole: if the word was such a pointer before, its unchanged bytes differ from the interpreter's bytes.
func (o *objectPairs) ownWords(objects []changed, after *memoryImage) (words []changed) {
	for _, c := range objects {
		for at := c.addr &^ 7; at < c.addr+machine.Addr(len(c.data)); at += 8 {
			i := slices.IndexFunc(o.list, func(t objectPair) bool { return t.own.Contains(at) && t.own.Contains(at+7) })
			if i < 0 || len(words) > 0 && words[len(words)-1].addr == at {
				continue
			}
			var b [8]byte
			native := o.list[i].native.Start + at - o.list[i].own.Start
			if n := after.read(b[:], native); n < len(b) && after.read(b[n:], native+machine.Addr(n)) < len(b)-n {
				continue
			}
			if own, ok := o.toOwn(machine.Addr(binary.LittleEndian.Uint64(b[:]))); ok {
				binary.LittleEndian.PutUint64(b[:], uint64(own))
			}
			words = append(words, changed{addr: at, data: b[:]})
		}
	}
	return words
}

// addStores records whether native code has stored a pointer to a passed object in memory that the interpreter also uses. ignored reports whether the
// interpreter does not use the memory at an address, such as the stack below the frame.
func (o *objectPairs) addStores(list []changed, after *memoryImage, ignored func(machine.Addr) bool) {
	if len(o.list) == 0 || o.stored {
		return
	}
	for _, c := range list {
		for at := c.addr &^ 7; at < c.addr+machine.Addr(len(c.data)); at += 8 {
			if ignored(at) {
				continue
			}
			if _, ok := o.toOwn(wordOf(after, at)); ok {
				o.stored = true
				return
			}
		}
	}
}

// wordOf returns a word of an image, 0 if it has none. Pointers have 64 bits and are little-endian on all architectures that verify supports.
func wordOf(img *memoryImage, at machine.Addr) machine.Addr {
	var b [8]byte
	if img.read(b[:], at) < len(b) {
		return 0
	}
	return machine.Addr(binary.LittleEndian.Uint64(b[:]))
}

// mixed reports whether the interpreter may use a pointer to native code's object of a pair. Native code has stored such a pointer in memory from
// which the interpreter may load it, or the interpreter has stored to native code's object.
func (o *objectPairs) mixed(in *interp.Interp) bool {
	if o.stored {
		return true
	}
	for t := range in.Touched() {
		for _, w := range o.list {
			for at := max(t.Addr, w.native.Start); at < min(t.Addr+interp.PageSize, w.native.End); at++ {
				if n := at - t.Addr; t.Stored[n/8]>>(n%8)&1 != 0 {
					return true
				}
			}
		}
	}
	return false
}
