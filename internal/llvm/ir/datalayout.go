package ir

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// NoSize is the size of a type that has no known size: void, label, token, metadata, functions, opaque structs, target types and scalable vectors. It is
// also the size of a type larger than an address space, so that no sum of sizes overflows to a small number.
const NoSize uint64 = math.MaxUint64

// defaultLayout is x86-64's layout in LLVM 18 and later (i128 aligned to 16 bytes, as the ABI supplement requires). It is used for a module without a
// layout, because x86-64 is the only default target here.
const defaultLayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

// These are the layouts of 32-bit x86, which LLVM uses for modules with such a triple and without a layout.
const (
	i386Layout        = "e-m:e-p:32:32-p270:32:32-p271:32:32-p272:64:64-i128:128-f64:32:64-f80:32-n8:16:32-S128"
	i386DarwinLayout  = "e-m:o-p:32:32-p270:32:32-p271:32:32-p272:64:64-i128:128-f64:32:64-f80:128-n8:16:32-S128"
	i386WindowsLayout = "e-m:x-p:32:32-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32-a:0:32-S32"
	i386MinGWLayout   = "e-m:x-p:32:32-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:32-n8:16:32-a:0:32-S32"
)

// I386 reports whether a triple is for 32-bit x86: i386 to i686.
func I386(triple string) bool {
	arch, _, _ := strings.Cut(triple, "-")
	return len(arch) == 4 && arch[0] == 'i' && arch[1] >= '3' && arch[1] <= '9' && arch[2:] == "86"
}

// layoutOf returns the default layout of a module without one.
func layoutOf(triple string) *DataLayout {
	text := defaultLayout
	if I386(triple) {
		has := func(part string) bool { return strings.Contains(triple, part) }
		switch {
		case has("-windows-msvc"), strings.HasSuffix(triple, "-windows"):
			text = i386WindowsLayout
		case has("-windows-"), has("-mingw"), has("-cygwin"):
			text = i386MinGWLayout
		case has("-macosx"), has("-darwin"):
			text = i386DarwinLayout
		default:
			text = i386Layout
		}
	}
	d, err := ParseDataLayout(text)
	if err != nil {
		panic(err) // a constant above is malformed
	}
	d.Text = ""
	return d
}

// DataLayout describes the layout of types in memory (LLVM LangRef, "Data Layout"). It may be used by several goroutines at once.
type DataLayout struct {
	Text      string // as written in the module; "" if absent
	BigEndian bool

	// These are the default address spaces of functions, globals and allocas: the P, G and A specifications.
	ProgramSpace, GlobalSpace, AllocaSpace int

	// Mangling is the letter of the m specification, which selects the mangling of symbols: e, l, m, o, w, x, a; 0 if absent.
	Mangling byte

	nonIntegral []int // ascending address spaces of non-integral pointers: the ni specification

	ints, floats, vectors []alignSpec // each ascending by the width of its types
	aggregate             int         // bytes
	pointers              map[int]pointerSpec
	structs               sync.Map // *Type to *structLayout
}

// alignSpec is the alignment in bytes of a type with this many bits.
type alignSpec struct{ bits, align int }

type pointerSpec struct {
	size, align int // bytes
	index       int // bits
}

// structLayout holds the offsets of the fields of one struct.
type structLayout struct {
	offsets []uint64
	size    uint64
	align   int
}

// Equal reports whether two layouts are the same. It ignores cached struct layouts.
func (l *DataLayout) Equal(other *DataLayout) bool {
	return l.BigEndian == other.BigEndian && l.ProgramSpace == other.ProgramSpace && l.GlobalSpace == other.GlobalSpace && l.AllocaSpace == other.AllocaSpace &&
		l.Mangling == other.Mangling && l.Text == other.Text && l.aggregate == other.aggregate && maps.Equal(l.pointers, other.pointers) &&
		slices.Equal(l.nonIntegral, other.nonIntegral) && slices.Equal(l.ints, other.ints) && slices.Equal(l.floats, other.floats) && slices.Equal(l.vectors, other.vectors)
}

// ParseDataLayout parses the string of a target datalayout line. An empty string is the layout of x86-64. The error names the invalid specification.
//
// The string is used unchanged. LLVM 18 and later add i128:128 when they read an x86-64 layout of an older release, so the code that they compile aligns
// i128 to 16 bytes instead of 8. For such code use the module as that release prints it.
func ParseDataLayout(text string) (*DataLayout, error) {
	d := &DataLayout{
		Text: text,
		// These are the defaults of LangRef.
		ints:      []alignSpec{{1, 1}, {8, 1}, {16, 2}, {32, 4}, {64, 4}},
		floats:    []alignSpec{{16, 2}, {32, 4}, {64, 8}, {128, 16}},
		vectors:   []alignSpec{{64, 8}, {128, 16}},
		aggregate: 1,
		pointers:  map[int]pointerSpec{0: {8, 8, 64}},
	}
	if text == "" {
		text = defaultLayout
	}
	for spec := range strings.SplitSeq(text, "-") {
		if err := d.apply(spec); err != nil {
			return nil, fmt.Errorf("data layout specification %q: %w", spec, err)
		}
	}
	return d, nil
}

func (d *DataLayout) apply(spec string) error {
	if spec == "" {
		return fmt.Errorf("is empty")
	}
	head, rest, more := strings.Cut(spec[1:], ":")
	var fields []string
	if more {
		fields = strings.Split(rest, ":")
	}
	switch spec[0] {
	case 'e', 'E':
		if len(spec) != 1 {
			return fmt.Errorf("is not known")
		}
		d.BigEndian = spec[0] == 'E'
	case 'p':
		return d.applyPointer(head, fields)
	case 'i', 'f', 'v', 'a':
		return d.applyAlign(spec[0], head, fields)
	case 'P', 'G', 'A':
		space, err := layoutNumber(head, 1<<24)
		if err != nil {
			return err
		}
		*map[byte]*int{'P': &d.ProgramSpace, 'G': &d.GlobalSpace, 'A': &d.AllocaSpace}[spec[0]] = space
	case 'm':
		if len(fields) == 1 && len(fields[0]) == 1 {
			d.Mangling = fields[0][0]
		}
	case 'n', 'S', 'F', 's':
		if kind := spec[:len(spec)-len(rest)]; kind == "ni:" {
			return d.applyNonIntegral(fields)
		}
		// Native widths, stack alignment and function-pointer alignment do not affect offsets.
	default:
		return fmt.Errorf("is not known")
	}
	return nil
}

// applyNonIntegral parses ni:space:space….
func (d *DataLayout) applyNonIntegral(fields []string) error {
	for _, field := range fields {
		space, err := layoutNumber(field, 1<<24)
		if err != nil {
			return err
		}
		if space == 0 {
			return fmt.Errorf("address space 0 cannot be non-integral")
		}
		d.nonIntegral = append(d.nonIntegral, space)
	}
	slices.Sort(d.nonIntegral)
	d.nonIntegral = slices.Compact(d.nonIntegral)
	return nil
}

// NonIntegral reports whether the pointers of an address space have no fixed integer value, because a collector may move their targets (LangRef,
// "Non-Integral Pointer Type").
func (d *DataLayout) NonIntegral(space int) bool { return slices.Contains(d.nonIntegral, space) }

// applyPointer parses p[address space]:size:abi[:preferred[:index]]. LLVM 22 writes letters for properties of the address space before its number.
func (d *DataLayout) applyPointer(head string, fields []string) error {
	space := 0
	if digits := strings.TrimLeft(head, "eu"); digits != "" {
		var err error
		if space, err = layoutNumber(digits, 1<<24); err != nil {
			return err
		}
	}
	if len(fields) < 2 {
		return fmt.Errorf("needs a size and an alignment")
	}
	size, err := layoutNumber(fields[0], 1<<16)
	if err != nil {
		return err
	}
	align, err := layoutAlign(fields[1])
	if err != nil {
		return err
	}
	if size == 0 || align == 0 {
		return fmt.Errorf("a pointer needs a size and an alignment")
	}
	index := size
	if len(fields) > 3 {
		if index, err = layoutNumber(fields[3], 1<<16); err != nil {
			return err
		}
		if index == 0 || index > size {
			return fmt.Errorf("an index must not be wider than its pointer")
		}
	}
	d.pointers[space] = pointerSpec{(size + 7) / 8, align, index}
	return nil
}

func (d *DataLayout) applyAlign(kind byte, head string, fields []string) error {
	width := 0
	if head != "" {
		var err error
		if width, err = layoutNumber(head, 1<<24); err != nil {
			return err
		}
	}
	if len(fields) < 1 {
		return fmt.Errorf("needs an alignment")
	}
	align, err := layoutAlign(fields[0])
	if err != nil {
		return err
	}
	if kind == 'a' {
		d.aggregate = max(align, 1) // a:0 means the alignment of the fields
		return nil
	}
	if width == 0 || align == 0 {
		return fmt.Errorf("needs a width and an alignment")
	}
	table := map[byte]*[]alignSpec{'i': &d.ints, 'f': &d.floats, 'v': &d.vectors}[kind]
	at := 0
	for at < len(*table) && (*table)[at].bits < width {
		at++
	}
	if at < len(*table) && (*table)[at].bits == width {
		(*table)[at].align = align
		return nil
	}
	*table = append(*table, alignSpec{})
	copy((*table)[at+1:], (*table)[at:])
	(*table)[at] = alignSpec{width, align}
	return nil
}

func layoutNumber(s string, below int) (int, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n >= uint64(below) {
		return 0, fmt.Errorf("%q is not a number below %d", s, below)
	}
	return int(n), nil
}

// layoutAlign parses an alignment in bits and returns it in bytes.
func layoutAlign(s string) (int, error) {
	n, err := layoutNumber(s, 1<<20)
	if err != nil {
		return 0, err
	}
	if n != 0 && (n%8 != 0 || n&(n-1) != 0) {
		return 0, fmt.Errorf("%d bits is not an alignment", n)
	}
	return n / 8, nil
}

// PointerBytes returns the size of a pointer in an address space. A space without a specification equals space 0.
func (d *DataLayout) PointerBytes(addrspace int) int { return d.pointer(addrspace).size }

// IndexBits returns the width of address arithmetic in an address space (LangRef, "Data Layout"): that of its pointers or less.
func (d *DataLayout) IndexBits(addrspace int) int { return d.pointer(addrspace).index }

func (d *DataLayout) pointer(addrspace int) pointerSpec {
	if p, ok := d.pointers[addrspace]; ok {
		return p
	}
	return d.pointers[0]
}

// Size returns the distance in bytes between two elements of an array of t (LLVM's getTypeAllocSize), or [NoSize].
func (d *DataLayout) Size(t *Type) uint64 {
	return roundUp(d.StoreSize(t), uint64(d.Align(t)))
}

// StoreSize returns the number of bytes that a store of t writes (LLVM's getTypeStoreSize), or [NoSize].
func (d *DataLayout) StoreSize(t *Type) uint64 {
	switch t.Kind {
	case ArrayKind:
		return times(t.Len, d.Size(t.Elem))
	case StructKind:
		return d.layout(t).size
	}
	n := d.bits(t)
	if n == NoSize {
		return NoSize
	}
	return n/8 + (n%8+7)/8
}

// bits returns the width of a type that is not an aggregate.
func (d *DataLayout) bits(t *Type) uint64 {
	switch t.Kind {
	case IntKind:
		return uint64(t.Bits)
	case HalfKind, BFloatKind:
		return 16
	case FloatKind:
		return 32
	case DoubleKind, X86MMXKind:
		return 64
	case X86FP80Kind:
		return 80
	case FP128Kind, PPCFP128Kind:
		return 128
	case X86AMXKind:
		return 8192
	case PointerKind:
		return uint64(d.PointerBytes(t.AddrSpace)) * 8
	case VectorKind:
		if !t.Scalable {
			return times(t.Len, d.bits(t.Elem)) // elements are not padded: <8 x i1> is one byte
		}
	}
	return NoSize
}

// Align returns the ABI alignment of t in bytes; 1 for a type without a size.
func (d *DataLayout) Align(t *Type) int {
	switch t.Kind {
	case IntKind:
		// Use the alignment of the next wider integer, or of the widest one.
		for _, s := range d.ints {
			if s.bits >= t.Bits {
				return s.align
			}
		}
		return d.ints[len(d.ints)-1].align
	case HalfKind, BFloatKind, FloatKind, DoubleKind, X86FP80Kind, FP128Kind, PPCFP128Kind:
		return d.exactAlign(d.floats, t)
	case VectorKind, X86MMXKind:
		return d.exactAlign(d.vectors, t)
	case X86AMXKind:
		return 64 // fixed in LLVM, not in the layout string
	case PointerKind:
		return d.pointer(t.AddrSpace).align
	case ArrayKind:
		return d.Align(t.Elem)
	case StructKind:
		if t.Packed {
			return 1
		}
		return max(d.aggregate, d.layout(t).align)
	}
	return 1
}

// exactAlign returns the alignment that a table has for exactly this width, or else the store size rounded up to a power of two.
func (d *DataLayout) exactAlign(table []alignSpec, t *Type) int {
	n := d.bits(t)
	for _, s := range table {
		if uint64(s.bits) == n {
			return s.align
		}
	}
	size := d.StoreSize(t)
	if size <= 1 || size >= 1<<32 { // LLVM has no larger alignment
		return 1
	}
	return 1 << bits.Len64(size-1)
}

// FieldOffset returns the offset in bytes of field i in a struct type. It returns [NoSize] if the field does not exist or an earlier field has no size.
func (d *DataLayout) FieldOffset(t *Type, i int) uint64 {
	offsets := d.layout(t).offsets
	if i < 0 || i >= len(offsets) {
		return NoSize
	}
	return offsets[i]
}

// layout caches the layout of each struct. Without the cache, a chain of structs that each contain the previous one twice would take exponential time.
func (d *DataLayout) layout(t *Type) *structLayout {
	if l, ok := d.structs.Load(t); ok {
		return l.(*structLayout)
	}
	l := &structLayout{offsets: make([]uint64, len(t.Fields)), align: 1}
	if t.Opaque {
		l.size = NoSize
	}
	for i, f := range t.Fields {
		align := 1
		if !t.Packed {
			align = d.Align(f)
		}
		l.align = max(l.align, align)
		l.offsets[i] = roundUp(l.size, uint64(align))
		l.size = plus(l.offsets[i], d.Size(f))
	}
	l.size = roundUp(l.size, uint64(l.align))
	d.structs.Store(t, l)
	return l
}

// plus, times and roundUp return NoSize if the result overflows or an operand is NoSize.

func plus(a, b uint64) uint64 {
	if s, carry := bits.Add64(a, b, 0); carry == 0 {
		return s
	}
	return NoSize
}

func times(a, b uint64) uint64 {
	if a == 0 || b == 0 {
		return 0
	}
	if hi, lo := bits.Mul64(a, b); hi == 0 && b != NoSize {
		return lo
	}
	return NoSize
}

func roundUp(n, to uint64) uint64 {
	up := plus(n, to-1)
	if up == NoSize {
		return NoSize
	}
	return up - up%to
}
