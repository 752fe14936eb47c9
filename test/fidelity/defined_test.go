package fidelity_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A definer rewrites modules of llvm-stress, to give each instruction exactly one defined result. Otherwise nothing can be compared, because nearly
// all modules of llvm-stress have undefined behavior in their first instructions. Each of the following changes repairs a violation of the LangRef:
//
//   - allocas have 256 cleared bytes, so that each access is in bounds and reads known bytes, and each access has align 1;
//   - the index of extractelement and insertelement and the amount of a shift are reduced to the allowed range;
//   - divisors are made odd, and those of signed divisions also positive;
//   - saturating intrinsics replace fptosi and fptoui;
//   - zero replaces undef, poison, and NaNs, whose bits LLVM does not define ("Behavior of Floating-Point NaN Values");
//   - i1 and vectors of i1 are loaded and stored as whole bytes;
//   - branches back consume fuel; without fuel all branches go forward.
type definer struct {
	room   string // the initial content of allocas, as IR of type <256 x i8>; "" leaves it undefined
	divide bool   // leave divisors unchanged, but hide them from the compiler

	t        *testing.T
	out      strings.Builder
	declared []string // names of declared intrinsics
	stores   int
	opaque   bool // the module has opaque pointers
}

// fuel is the number of backward branches that a run may take.
const fuel = 20

var (
	alignment  = regexp.MustCompile(`, align \d+$`)
	indefinite = regexp.MustCompile(`\b(undef|poison)\b`)
	assignment = regexp.MustCompile(`^  (%\S+) = (\w+) (.*)$`)
	branch     = regexp.MustCompile(`^  br i1 (.*), label (%\S+), label (%\S+)$`)
	conversion = regexp.MustCompile(`^(.*) to (.*)$`)
	shape      = regexp.MustCompile(`^(?:<(\d+) x )?(i|float|double)(\d*)>?$`)
)

// define returns the module with every instruction defined for every argument.
func (d definer) define(t *testing.T, module string) string {
	t.Helper()
	d.t, d.opaque = t, strings.Contains(module, "(ptr ")
	for line := range strings.Lines(module) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "  ") {
			d.instruction(line)
			continue
		}
		d.put("%s", line)
		if line == "BB:" {
			d.put("  %%fuel = alloca i32")
			d.put("  store i32 %d, %s %%fuel", fuel, d.pointer("i32"))
		}
	}
	slices.Sort(d.declared)
	return d.out.String() + strings.Join(slices.Compact(d.declared), "")
}

func (d *definer) put(format string, args ...any) {
	fmt.Fprintf(&d.out, format+"\n", args...)
}

func (d *definer) pointer(to string) string {
	if d.opaque {
		return "ptr"
	}
	return to + "*"
}

func (d *definer) instruction(line string) {
	line = alignment.ReplaceAllString(line, ", align 1")
	line = indefinite.ReplaceAllString(line, "zeroinitializer")
	if m := branch.FindStringSubmatch(line); m != nil {
		d.branch(m[1], m[2], m[3])
		return
	}
	if operands, is := strings.CutPrefix(line, "  store "); is {
		d.store(line, operands)
		return
	}
	m := assignment.FindStringSubmatch(line)
	if m == nil {
		d.put("%s", line)
		return
	}
	name, op, rest := m[1], m[2], m[3]
	switch op {
	case "alloca":
		d.alloca(name, strings.TrimSuffix(rest, ", align 1"))
	case "load":
		d.load(name, rest)
	case "extractelement", "insertelement":
		at := strings.LastIndex(rest, ", i32 ")
		v := shapeOf(d.t, typeAndValue(d.t, rest).kind)
		d.put("  %s.i = and i32 %s, %d", name, rest[at+len(", i32 "):], v.lanes-1)
		d.put("  %s = %s %s, i32 %s.i", name, op, rest[:at], name)
	case "shl", "lshr", "ashr":
		x := typeAndValue(d.t, rest)
		s := shapeOf(d.t, x.kind)
		d.put("  %s.n = and %s %s, %s", name, x.kind, x.values[1], s.splat(s.bits-1))
		d.put("  %s = %s %s %s, %s.n", name, op, x.kind, x.values[0], name)
	case "udiv", "urem", "sdiv", "srem":
		d.division(name, op, typeAndValue(d.t, rest))
	case "fptosi", "fptoui":
		m := conversion.FindStringSubmatch(rest)
		x := typeAndValue(d.t, m[1])
		intrinsic := fmt.Sprintf("@llvm.%s.sat.%s.%s", op, shapeOf(d.t, m[2]).mangled(), shapeOf(d.t, x.kind).mangled())
		d.declared = append(d.declared, fmt.Sprintf("declare %s %s(%s)\n", m[2], intrinsic, x.kind))
		d.put("  %s = call %s %s(%s)", name, m[2], intrinsic, m[1])
	case "fadd", "fsub", "fmul", "fdiv", "frem":
		d.number(name, typeAndValue(d.t, rest).kind, op+" "+rest)
	case "fpext", "fptrunc", "bitcast":
		d.number(name, conversion.FindStringSubmatch(rest)[2], op+" "+rest)
	default:
		d.put("%s", line)
	}
}

// branch writes a branch that goes back to the first label only while fuel is left.
func (d *definer) branch(condition, back, forward string) {
	d.stores++
	pointer := d.pointer("i32")
	d.put("  %%fuel.%d = load i32, %s %%fuel", d.stores, pointer)
	d.put("  %%less.%d = sub i32 %%fuel.%d, 1", d.stores, d.stores)
	d.put("  store i32 %%less.%d, %s %%fuel", d.stores, pointer)
	d.put("  %%go.%d = icmp sgt i32 %%fuel.%d, 0", d.stores, d.stores)
	d.put("  %%back.%d = and i1 %%go.%d, %s", d.stores, d.stores, condition)
	d.put("  br i1 %%back.%d, label %s, label %s", d.stores, back, forward)
}

func (d *definer) alloca(name, kind string) {
	const room = "<256 x i8>"
	d.put("  %s.room = alloca %s", name, room)
	if d.room != "" {
		d.put("  store %s %s, %s %s.room, align 1", room, d.room, d.pointer(room), name)
	}
	d.put("  %s = bitcast %s %s.room to %s", name, d.pointer(room), name, d.pointer(kind))
}

// load writes a load. Vectors of i1 are loaded as an integer of whole bytes.
func (d *definer) load(name, rest string) {
	x := typeAndValue(d.t, rest)
	s := shapeOf(d.t, x.kind)
	if s.bits != 1 {
		d.number(name, x.kind, "load "+rest)
		return
	}
	whole, narrow := s.integers()
	d.put("  %s.p = bitcast %s to %s", name, x.values[1], d.pointer(whole))
	d.put("  %s.w = load %s, %s %s.p, align 1", name, whole, d.pointer(whole), name)
	if whole != narrow {
		d.put("  %s.n = trunc %s %s.w to %s", name, whole, name, narrow)
	} else {
		d.put("  %s.n = or %s %s.w, 0", name, whole, name)
	}
	d.put("  %s = bitcast %s %s.n to %s", name, narrow, name, x.kind)
}

// store writes a store. Vectors of i1 are stored as an integer of whole bytes.
func (d *definer) store(line, operands string) {
	x := typeAndValue(d.t, operands)
	s := shapeOf(d.t, x.kind)
	if s.bits != 1 {
		d.put("%s", line)
		return
	}
	d.stores++
	whole, narrow := s.integers()
	d.put("  %%st%d.n = bitcast %s %s to %s", d.stores, x.kind, x.values[0], narrow)
	if whole != narrow {
		d.put("  %%st%d.w = zext %s %%st%d.n to %s", d.stores, narrow, d.stores, whole)
	} else {
		d.put("  %%st%d.w = or %s %%st%d.n, 0", d.stores, whole, d.stores)
	}
	d.put("  %%st%d.p = bitcast %s to %s", d.stores, x.values[1], d.pointer(whole))
	d.put("  store %s %%st%d.w, %s %%st%d.p, align 1", whole, d.stores, d.pointer(whole), d.stores)
}

// division makes the divisor odd. The divisor of a signed division is also made positive, because -1 can overflow.
func (d *definer) division(name, op string, x operands) {
	s := shapeOf(d.t, x.kind)
	divisor := x.values[1]
	if d.divide && s.bits != 1 {
		d.hidden(name, op, x)
		return
	}
	if op[0] == 's' {
		if s.bits == 1 { // i1 has only the values -1 and 0
			d.put("  %s = xor %s %s, %s", name, x.kind, x.values[0], divisor)
			return
		}
		d.put("  %s.p = and %s %s, %s", name, x.kind, divisor, s.splat(1<<(s.bits-1)-1))
		divisor = name + ".p"
	}
	d.put("  %s.d = or %s %s, %s", name, x.kind, divisor, s.splat(1))
	d.put("  %s = %s %s %s, %s.d", name, op, x.kind, x.values[0], name)
}

// hidden reads both operands of a division by volatile loads and stores the result by a volatile store, so that the compiler cannot optimize any of
// it away.
func (d *definer) hidden(name, op string, x operands) {
	pointer := d.pointer(x.kind)
	d.put("  %s.at = alloca %s", name, x.kind)
	for i, value := range x.values {
		d.put("  store %s %s, %s %s.at", x.kind, value, pointer, name)
		d.put("  %s.%d = load volatile %s, %s %s.at", name, i, x.kind, pointer, name)
	}
	d.put("  %s = %s %s %s.0, %s.1", name, op, x.kind, name, name)
	d.put("  store volatile %s %s, %s %s.at", x.kind, name, pointer, name)
}

// number writes an instruction. If the result is floating-point, a NaN is replaced by zero.
func (d *definer) number(name, kind, instruction string) {
	m := shape.FindStringSubmatch(kind)
	if m == nil || m[2] == "i" { // not floating-point, or a pointer
		d.put("  %s = %s", name, instruction)
		return
	}
	condition := "i1"
	if m[1] != "" {
		condition = fmt.Sprintf("<%s x i1>", m[1])
	}
	d.put("  %s.raw = %s", name, instruction)
	d.put("  %s.nan = fcmp uno %s %s.raw, %s.raw", name, kind, name, name)
	d.put("  %s = select %s %s.nan, %s zeroinitializer, %s %s.raw", name, condition, name, kind, kind, name)
}

// operands holds a type and the values after it, as text: "<2 x i8> %a, %b".
type operands struct {
	kind   string
	values []string
}

func typeAndValue(t *testing.T, text string) operands {
	t.Helper()
	end := strings.IndexByte(text, ' ')
	if text[0] == '<' {
		end = strings.IndexByte(text, '>') + 1
	}
	comma := strings.IndexByte(text, ',')
	if comma >= 0 && comma < end { // a load has no operand after the type
		end = comma
	}
	x := operands{kind: text[:end]}
	rest := strings.TrimPrefix(strings.TrimPrefix(text[end:], ","), " ")
	if text[end] == ',' {
		x.values = []string{""}
	}
	depth, start := 0, 0
	for i, c := range rest {
		switch c {
		case '<':
			depth++
		case '>':
			depth--
		case ',':
			if depth == 0 {
				x.values = append(x.values, strings.TrimSpace(rest[start:i]))
				start = i + 1
			}
		}
	}
	x.values = append(x.values, strings.TrimSpace(rest[start:]))
	return x
}

// lanes is the shape of an integer, a float, or a vector of either.
type lanes struct {
	lanes, bits int
	vector      bool
	kind        string // i, float or double
}

func shapeOf(t *testing.T, kind string) lanes {
	t.Helper()
	m := shape.FindStringSubmatch(kind)
	require.NotNil(t, m, "type %q", kind)
	s := lanes{lanes: 1, vector: m[1] != "", kind: m[2]}
	if s.vector {
		s.lanes, _ = strconv.Atoi(m[1])
	}
	switch s.kind {
	case "i":
		s.bits, _ = strconv.Atoi(m[3])
	case "float":
		s.bits = 32
	case "double":
		s.bits = 64
	}
	return s
}

// splat returns an integer constant v of the shape.
func (s lanes) splat(v int) string {
	if !s.vector {
		return strconv.Itoa(v)
	}
	element := fmt.Sprintf("i%d %d", s.bits, v)
	return "<" + strings.Repeat(element+", ", s.lanes-1) + element + ">"
}

// mangled returns the spelling of the shape in names of intrinsics.
func (s lanes) mangled() string {
	letter := "f"
	if s.kind == "i" {
		letter = "i"
	}
	if !s.vector {
		return fmt.Sprintf("%s%d", letter, s.bits)
	}
	return fmt.Sprintf("v%d%s%d", s.lanes, letter, s.bits)
}

// integers returns two integer types for the bits of the shape: one rounded up to whole bytes, and one of the exact width.
func (s lanes) integers() (whole, narrow string) {
	width := s.lanes * s.bits
	return fmt.Sprintf("i%d", (width+7)/8*8), fmt.Sprintf("i%d", width)
}
