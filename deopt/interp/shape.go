package interp

import (
	"example.com/reframe/internal/llvm/ir"
)

// Bounds on the size of one value.
const (
	maxWords = 1 << 16 // number of 64-bit words, and number of elements of an array or vector
	maxNest  = 64      // depth of nesting of types
)

// word is 64 bits of a value; the last word of a scalar may have fewer. A bit whose u is clear is known, and v holds it. A bit whose u is set is
// undefined if v is clear, and poison if v is set. A scalar is poison as a whole, so each word of a poison scalar has all its bits set in v and u.
// Bits above the width are clear in both. So a word with u == 0 is completely known.
type word struct{ v, u uint64 }

// shape is the layout of the values of a type, in words and in memory. A scalar takes ceil(bits/64) words, least significant first. A value of any
// other type consists of the words of its elements, in order.
type shape struct {
	typ   *ir.Type
	bits  int // width of a scalar, else 0
	words int
	elem  *shape   // element of a vector or array
	n     int      // number of elements of a vector or array, or of fields of a struct
	field []*shape // fields of a struct
	at    []int    // index of the first word of each field
	leaf  []leaf   // the scalars of the type, with their offsets in memory

	memory *passedMemory // for a byval argument of a call, else nil
}

// leaf is the position of a scalar of a type, in memory and in words. If packed > 1, the leaf is a vector of that many elements whose bits are not
// whole bytes.
type leaf struct {
	off    uint64 // offset in memory in bytes
	at     int    // index of the first word
	bits   int
	packed int
}

func (l leaf) bytes() int { return (l.bits*l.packed + 7) / 8 }

// buffers returns buffers for the bytes of the leaf and for their shadow. It uses small if the bytes fit.
func (l leaf) buffers(small *[2][16]byte) (data, shadow []byte) {
	n := l.bytes()
	if n > len(small[0]) {
		return make([]byte, n), make([]byte, n)
	}
	return small[0][:n], small[1][:n]
}

// shapes makes and caches the shapes of types for one data layout.
type shapes struct {
	layout *ir.DataLayout // nil means pointers of 8 bytes, little-endian
	known  map[*ir.Type]*shape
}

func newShapes(dl *ir.DataLayout) *shapes {
	return &shapes{layout: dl, known: map[*ir.Type]*shape{}}
}

func (c *shapes) of(t *ir.Type) (*shape, error) { return c.make(t, 0) }

func (c *shapes) make(t *ir.Type, depth int) (*shape, error) {
	if s := c.known[t]; s != nil {
		return s, nil
	}
	if t == nil {
		t = ir.Void
	}
	if depth > maxNest {
		return nil, unsupported("", "a type nested deeper than %d", maxNest)
	}
	s := &shape{typ: t}
	var err error
	switch t.Kind {
	case ir.VoidKind, ir.TokenKind, ir.MetadataKind, ir.LabelKind:
	case ir.IntKind, ir.HalfKind, ir.BFloatKind, ir.FloatKind, ir.DoubleKind, ir.X86FP80Kind, ir.FP128Kind, ir.PointerKind:
		s.bits = c.scalarBits(t)
		s.words = (s.bits + 63) / 64
		s.leaf = []leaf{{bits: s.bits, packed: 1}}
	case ir.VectorKind, ir.ArrayKind:
		err = c.sequence(s, depth)
	case ir.StructKind:
		err = c.record(s, depth)
	default:
		err = unsupported("", "a value of type %v", t)
	}
	if err != nil {
		return nil, err
	}
	if s.words > maxWords || len(s.leaf) > maxWords {
		return nil, unsupported("", "a value of type %v", t)
	}
	c.known[t] = s
	return s, nil
}

func (c *shapes) scalarBits(t *ir.Type) int {
	switch t.Kind {
	case ir.HalfKind, ir.BFloatKind:
		return 16
	case ir.FloatKind:
		return 32
	case ir.DoubleKind:
		return 64
	case ir.X86FP80Kind:
		return 80
	case ir.FP128Kind:
		return 128
	case ir.PointerKind:
		if c.layout == nil {
			return 64
		}
		return 8 * c.layout.PointerBytes(t.AddrSpace)
	}
	return t.Bits
}

func (c *shapes) sequence(s *shape, depth int) error {
	elem, err := c.make(s.typ.Elem, depth+1)
	if err != nil {
		return err
	}
	if s.typ.Len > maxWords || int(s.typ.Len)*max(elem.words, len(elem.leaf)) > maxWords {
		return unsupported("use it through memory", "a value of type %v", s.typ)
	}
	s.elem, s.n = elem, int(s.typ.Len)
	s.words = s.n * elem.words
	// A vector holds its elements' bits without padding (LangRef, "Vector Type").
	if s.typ.Kind == ir.VectorKind && elem.bits%8 != 0 {
		s.leaf = []leaf{{bits: elem.bits, packed: s.n}}
		return nil
	}
	stride := uint64(elem.bits / 8)
	if s.typ.Kind == ir.ArrayKind {
		stride = c.layoutOrDefault().Size(s.typ.Elem)
	}
	for i := range s.n {
		s.addLeaves(elem, uint64(i)*stride, i*elem.words)
	}
	return nil
}

func (c *shapes) record(s *shape, depth int) error {
	if s.typ.Opaque {
		return troublef(KindModule, "a value of the opaque type %v", s.typ)
	}
	for i, f := range s.typ.Fields {
		elem, err := c.make(f, depth+1)
		if err != nil {
			return err
		}
		s.field = append(s.field, elem)
		s.at = append(s.at, s.words)
		s.addLeaves(elem, c.layoutOrDefault().FieldOffset(s.typ, i), s.words)
		if s.words += elem.words; s.words > maxWords || len(s.leaf) > maxWords {
			return unsupported("use it through memory", "a value of type %v", s.typ)
		}
	}
	s.n = len(s.field)
	return nil
}

func (s *shape) addLeaves(elem *shape, off uint64, at int) {
	for _, l := range elem.leaf {
		s.leaf = append(s.leaf, leaf{off: off + l.off, at: at + l.at, bits: l.bits, packed: l.packed})
	}
}

func (c *shapes) layoutOrDefault() *ir.DataLayout {
	if c.layout == nil {
		c.layout, _ = ir.ParseDataLayout("")
	}
	return c.layout
}

// lane returns the shape of one lane and the number of lanes: the element and the number of elements for a vector, or s itself and 1 for any other
// type.
func (s *shape) lane() (*shape, int) {
	if s.typ.Kind == ir.VectorKind {
		return s.elem, s.n
	}
	return s, 1
}

// part returns the shape of element or field i, and the index of its first word. It returns false if there is none.
func (s *shape) part(i int) (*shape, int, bool) {
	switch {
	case i < 0 || i >= s.n:
		return nil, 0, false
	case s.field != nil:
		return s.field[i], s.at[i], true
	}
	return s.elem, i * s.elem.words, true
}

// undefined returns a value of this shape with all bits undefined.
func (s *shape) undefined() []word {
	w := make([]word, s.words)
	s.fillUndefined(w)
	return w
}

func (s *shape) fillUndefined(w []word) {
	for _, l := range s.leaf {
		n := (l.bits + 63) / 64
		for i := range l.packed * n {
			w[l.at+i] = word{u: maskAt(l.bits, i%n)}
		}
	}
}

// maskAt returns the mask of the used bits in word i of a scalar of that many bits.
func maskAt(bits, i int) uint64 {
	if left := bits - 64*i; left < 64 {
		return 1<<uint(left) - 1
	}
	return ^uint64(0)
}
