package frametest

import "fmt"

// Vector is the type <n x element>.
type Vector struct {
	N       int
	Element string
}

func (v Vector) String() string { return fmt.Sprintf("<%d x %s>", v.N, v.Element) }

// Bits returns the width of an element in bits.
func (v Vector) Bits() int {
	if w, ok := map[string]int{"half": 16, "bfloat": 16, "float": 32, "double": 64, "x86_fp80": 80, "fp128": 128, "ptr": 64}[v.Element]; ok {
		return w
	}
	var w int
	if n, err := fmt.Sscanf(v.Element, "i%d", &w); n != 1 || err != nil {
		panic(v.Element)
	}
	return w
}

// Number returns code that converts an element to an integer of the same width.
func (v Vector) Number(from string) string {
	switch {
	case v.Element == "ptr":
		return fmt.Sprintf("ptrtoint ptr %s to i64", from)
	case v.Element[0] == 'i':
		return fmt.Sprintf("or i%d %s, 0", v.Bits(), from)
	}
	return fmt.Sprintf("bitcast %s %s to i%d", v.Element, from, v.Bits())
}

// Load returns code that loads a vector from memory. It ignores bits that a store of the vector would not write.
func (v Vector) Load(to, from string) string {
	bits := v.N * v.Bits()
	if bits%8 == 0 {
		return fmt.Sprintf("  %s = load volatile %s, %s, align 1\n", to, v, from)
	}
	return fmt.Sprintf("  %[1]s.m = load volatile i%[2]d, %[3]s, align 1\n  %[1]s.t = trunc i%[2]d %[1]s.m to i%[4]d\n  %[1]s = bitcast i%[4]d %[1]s.t to %[5]s\n",
		to, (bits+7)/8*8, from, bits, v)
}
