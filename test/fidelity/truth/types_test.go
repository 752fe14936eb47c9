package truth_test

import (
	"fmt"
	"math/rand"
	"regexp"
	"strings"
)

// A kind is a class of types.
type kind int

const (
	integer kind = iota
	floating
	pointer
	vector
	aggregate
)

// A typ is a type of the IR.
type typ struct {
	text  string // the spelling in LLVM with opaque pointers
	kind  kind
	bits  int // bits of a value
	elem  *typ
	n     int    // number of elements of a vector or array
	parts []*typ // types of the members of an aggregate
}

// size returns the number of bytes that a store of the type writes.
func (t *typ) size() int {
	if t.kind == aggregate {
		return t.bits / 8
	}
	return (t.bits + 7) / 8
}

// in returns the spelling of the type in a release of LLVM.
func (t *typ) in(version int) string {
	if version > 14 {
		return t.text
	}
	return typed(t.text)
}

var pointerWord = regexp.MustCompile(`\bptr\b`)

// typed spells pointers for LLVM 14, in which all become pointers to bytes.
func typed(text string) string {
	var out strings.Builder
	for {
		found := pointerWord.FindStringIndex(text)
		if found == nil {
			out.WriteString(text)
			return out.String()
		}
		at := found[0]
		out.WriteString(text[:at] + "i8")
		text = text[at+3:]
		if strings.HasPrefix(text, " addrspace(") {
			end := strings.IndexByte(text, ')') + 1
			out.WriteString(text[:end])
			text = text[end:]
		}
		out.WriteByte('*')
	}
}

func intType(bits int) *typ { return &typ{text: fmt.Sprintf("i%d", bits), kind: integer, bits: bits} }

func vectorOf(n int, e *typ) *typ {
	return &typ{text: fmt.Sprintf("<%d x %s>", n, e.text), kind: vector, bits: n * e.bits, elem: e, n: n}
}

var (
	i1     = intType(1)
	i32    = intType(32)
	i64    = intType(64)
	half   = &typ{text: "half", kind: floating, bits: 16}
	bfloat = &typ{text: "bfloat", kind: floating, bits: 16}
	float  = &typ{text: "float", kind: floating, bits: 32}
	double = &typ{text: "double", kind: floating, bits: 64}
	fp80   = &typ{text: "x86_fp80", kind: floating, bits: 80}
	fp128  = &typ{text: "fp128", kind: floating, bits: 128}
	ptr    = &typ{text: "ptr", kind: pointer, bits: 64}
	gcptr  = &typ{text: "ptr addrspace(1)", kind: pointer, bits: 64}
	short  = &typ{text: "ptr addrspace(270)", kind: pointer, bits: 32} // on x86-64, these pointers have 32 bits
)

// pick returns a random element of a list.
func pick[T any](r *rand.Rand, list ...T) T { return list[r.Intn(len(list))] }

// chance returns true with a probability of n percent.
func chance(r *rand.Rand, n int) bool { return r.Intn(100) < n }

// randomType returns a type that the function may compute.
func (p *program) randomType(r *rand.Rand, f *function) *typ {
	x86 := p.Machine == "amd64"
	switch k := r.Intn(100); {
	case p.Tame || k < 30:
		return pick(r, i64, i64, i32, i32, double, float, ptr)
	case k < 50:
		return intType(pick(r, 1, 1, 2, 5, 7, 8, 8, 13, 16, 16, 17, 24, 31, 33, 48, 63, 65, 96, 127, 128, 128))
	case k < 62:
		list := []*typ{float, double, double, fp128}
		if p.Version > 14 && x86 {
			list = append(list, half, bfloat)
		}
		if x86 {
			list = append(list, fp80, fp80)
		}
		return pick(r, list...)
	case k < 70:
		if x86 && chance(r, 30) {
			return short
		}
		if f.GC {
			return gcptr
		}
		return ptr
	case k < 73:
		return p.aggregateType(r)
	}
	elem := pick(r, i1, i1, intType(7), intType(8), intType(16), intType(24), i32, i32, intType(48), i64, i64, float, double, ptr)
	if p.Version > 14 && x86 && chance(r, 5) {
		elem = half
	}
	if chance(r, 40) { // choose a type that fits in one register
		elem = pick(r, intType(8), intType(16), i32, i64, float, double)
		return vectorOf(pick(r, 128, 128, f.Width)/elem.bits, elem)
	}
	return vectorOf(pick(r, 1, 2, 2, 3, 4, 4, 4, 5, 8, 8, 8, 16, 16, 32), elem)
}

func (p *program) aggregateType(r *rand.Rand) *typ {
	switch r.Intn(4) {
	case 0:
		return &typ{text: "{i64, i64}", kind: aggregate, bits: 128, parts: []*typ{i64, i64}}
	case 1:
		return &typ{text: "[2 x i32]", kind: aggregate, bits: 64, parts: []*typ{i32, i32}}
	case 2:
		return &typ{text: "{double}", kind: aggregate, bits: 64, parts: []*typ{double}}
	}
	return &typ{text: "[1 x i32]", kind: aggregate, bits: 32, parts: []*typ{i32}}
}

// compiles reports whether llc accepts a value of the type as an operand of a kind of site. For other types llc crashes (doc/dev/facts.md).
func (p *program) compiles(t *typ, site string, f *function) bool {
	if site != stackMap && site != patchPoint && site != anyReg {
		return true
	}
	if p.Machine != "amd64" && (t == fp128 || t.kind == vector && (p.Machine == "riscv64" || p.Machine == "s390x")) {
		return false // they are in parts
	}
	switch t.kind {
	case integer:
		if p.Version == 14 {
			return t.bits == 8 || t.bits == 16 || t.bits == 32 || t.bits == 64
		}
		return t.bits <= 64
	case pointer:
		return t != short || p.Version > 14
	case aggregate:
		return p.Version > 14
	case vector:
		if t.n < 2 || t.n&(t.n-1) != 0 {
			return false
		}
		whole := func(bits int) bool {
			return bits == 128 || bits == 256 && f.Width >= 256 || bits == 512 && f.Width >= 512
		}
		if t.elem.kind != integer || t.elem.bits >= 8 && t.elem.bits&(t.elem.bits-1) == 0 {
			return whole(t.bits) && t.elem != half
		}
		if p.Version == 14 || p.Machine != "amd64" {
			return false
		}
		for e := 8; e <= 64; e *= 2 {
			if e >= t.elem.bits && whole(e*t.n) {
				return true
			}
		}
		return false
	}
	return true
}
