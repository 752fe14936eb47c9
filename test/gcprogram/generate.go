package gcprogram

import (
	"fmt"
	"math/rand"
	"strings"
)

// Offsets of the words and of the references in an object (testdata/collector.c), and the minimum number of each in an object.
const (
	firstWord = 8
	firstRef  = 40
	words     = 4
	refs      = 4
)

// value is a pointer into an object, or to memory before or after it.
type value struct {
	name   string
	offset int    // constant part of the distance from the start of the object
	plus   string // name of the i64 with the computed part of the distance; "" for none
}

// scope holds the values that may be used at a point of a function.
type scope struct {
	bases   []string // pointers to starts of objects
	derived []value
	acc     string // the function's own checksum, an i64
}

func (s *scope) inner() *scope {
	return &scope{append([]string{}, s.bases...), append([]value{}, s.derived...), s.acc}
}

// generator writes a module.
type generator struct {
	*rand.Rand
	strings.Builder
	typed     bool // pointers have the types of LLVM 14
	functions int
	site      int // statepoint-id of the last call
	features  map[string]int

	// Of the function:
	number int    // number of the last value or block
	block  string // label of the current block
	cells  []string
}

func (g *generator) ref() string {
	if g.typed {
		return "i8 addrspace(1)*"
	}
	return "ptr addrspace(1)"
}

// function is the type of a pointer to a compiled function.
func (g *generator) function() string {
	if g.typed {
		return "i8 addrspace(1)* (i8 addrspace(1)*, i8 addrspace(1)*, i64)*"
	}
	return "ptr"
}

// pointer is a pointer outside of the heap to a value of a type.
func (g *generator) pointer(to string) string {
	if g.typed {
		return to + "*"
	}
	return "ptr"
}

func (g *generator) line(format string, args ...any) { fmt.Fprintf(g, "  "+format+"\n", args...) }

func (g *generator) fresh(kind string) string {
	g.number++
	return fmt.Sprintf("%%%s%d", kind, g.number)
}

func (g *generator) label(kind string) string { return strings.TrimPrefix(g.fresh(kind), "%") }

func (g *generator) begin(label string) {
	fmt.Fprintf(g, "%s:\n", label)
	g.block = label
}

func (g *generator) base(s *scope) string { return s.bases[g.Intn(len(s.bases))] }

// module writes the whole module.
func (g *generator) module() {
	ref := g.ref()
	fmt.Fprintf(g, `target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128%s"
target triple = "x86_64-pc-linux-gnu"
@__LLVM_StackMaps = external global i8
@gc_maps = constant %s @__LLVM_StackMaps
declare %s @gc_alloc(i64, i64)
declare void @gc_poll()
declare i64 @gc_maythrow(i64)
declare %[3]s @gc_through(%[3]s, %[3]s, i64, %[4]s)
declare i64 @gc_fuel() "gc-leaf-function"
declare i32 @__gxx_personality_v0(...)
`, [...]string{"", "-ni:1"}[g.Intn(2)], g.pointer("i8"), ref, g.function())
	for n := range g.functions {
		g.define(n)
	}
}

// define writes function n; function 0 is the program's entry.
func (g *generator) define(n int) {
	g.number, g.cells = 0, nil
	name := "program"
	if n > 0 {
		name = fmt.Sprintf("f%d", n)
	}
	fmt.Fprintf(g, "\ndefine %s @%s(%[1]s %%a, %[1]s %%b, i64 %%depth) noinline gc \"statepoint-example\" personality %[3]s {\n", g.ref(), name, g.personality())
	g.begin("entry")
	for range g.Intn(3) / 2 * (1 + g.Intn(2)) {
		cell := g.fresh("cell")
		g.line("%s = alloca %s", cell, g.ref())
		g.line("store volatile %s %%a, %s %s", g.ref(), g.pointer(g.ref()), cell)
		g.cells = append(g.cells, cell)
		g.features["alloca"]++
	}
	if n%2 == 0 {
		cell := g.fresh("cell")
		g.line("%s = alloca %s", cell, g.ref())
		g.line("store volatile %s null, %s %s", g.ref(), g.pointer(g.ref()), cell)
		g.features["alloca of null"]++
	}
	s := &scope{bases: []string{"%a", "%b"}, acc: "%depth"}
	g.statements(s, 6+g.Intn(8), 2)
	if n == 0 {
		g.call(s, 1+g.Intn(g.functions-1), 1)
	}
	at := g.word(value{name: "%a"}, 1+g.Intn(words-1))
	old := g.load("i64", at)
	sum := g.fresh("n")
	g.line("%s = add i64 %s, %s", sum, old, s.acc)
	g.store("i64", sum, at)
	g.line("ret %s %s", g.ref(), g.base(s))
	g.WriteString("}\n")
}

func (g *generator) personality() string {
	if g.typed {
		return "i8* bitcast (i32 (...)* @__gxx_personality_v0 to i8*)"
	}
	return "ptr @__gxx_personality_v0"
}

// cast returns a pointer to a value of a type; with opaque pointers the pointer itself.
func (g *generator) cast(to, at string) (typ, name string) {
	if !g.typed {
		return g.ref(), at
	}
	typ = to + " addrspace(1)*"
	name = g.fresh("cast")
	g.line("%s = bitcast %s %s to %s", name, g.ref(), at, typ)
	return typ, name
}

func (g *generator) load(typ, at string) string {
	pointer, name := g.cast(typ, at)
	v := g.fresh("v")
	g.line("%s = load %s, %s %s", v, typ, pointer, name)
	return v
}

func (g *generator) store(typ, v, at string) {
	pointer, name := g.cast(typ, at)
	g.line("store %s %s, %s %s", typ, v, pointer, name)
}

func (g *generator) gep(at, offset string) string {
	p := g.fresh("p")
	g.line("%s = getelementptr i8, %s %s, i64 %s", p, g.ref(), at, offset)
	return p
}

// at returns the address at an offset from the start of the object.
func (g *generator) at(v value, offset int) string {
	at := v.name
	if v.plus != "" {
		back := g.fresh("n")
		g.line("%s = sub i64 0, %s", back, v.plus)
		at = g.gep(at, back)
	}
	if offset == v.offset {
		return at
	}
	return g.gep(at, fmt.Sprint(offset-v.offset))
}

func (g *generator) word(v value, n int) string { return g.at(v, firstWord+8*n) }

// mix writes code that adds a value to the function's checksum.
func (g *generator) mix(s *scope, v string) {
	product, sum := g.fresh("n"), g.fresh("n")
	g.line("%s = mul i64 %s, 31", product, s.acc)
	g.line("%s = add i64 %s, %s", sum, product, v)
	s.acc = sum
}

// condition writes code that computes an i1 from the checksum.
func (g *generator) condition(s *scope) string {
	bit, c := g.fresh("n"), g.fresh("c")
	g.line("%s = and i64 %s, %d", bit, s.acc, 1<<g.Intn(4))
	g.line("%s = icmp eq i64 %s, 0", c, bit)
	return c
}

// offset returns an offset of a derived pointer: within the object or outside of it.
func (g *generator) offset() int {
	switch g.Intn(4) {
	case 0:
		g.features["exterior"]++
		return 8 * (g.Intn(4000) + 50)
	case 1:
		g.features["exterior"]++
		return -8 * (g.Intn(4000) + 1)
	}
	g.features["interior"]++
	return firstWord + 8*g.Intn(words)
}

// derive writes code that computes a derived pointer.
func (g *generator) derive(s *scope) value {
	v := value{name: g.base(s), offset: g.offset()}
	v.name = g.gep(v.name, fmt.Sprint(v.offset))
	if g.Intn(3) == 0 {
		masked := g.fresh("n")
		g.line("%s = and i64 %s, 248", masked, s.acc)
		v.name, v.plus = g.gep(v.name, masked), masked
	}
	s.derived = append(s.derived, v)
	return v
}

// pointer to use: a base, or a derived pointer if there is one.
func (g *generator) any(s *scope) value {
	if len(s.derived) > 0 && g.Intn(2) == 0 {
		return s.derived[g.Intn(len(s.derived))]
	}
	return value{name: g.base(s)}
}

// statements writes n statements; nested ones have at most depth levels.
func (g *generator) statements(s *scope, n, depth int) {
	for range n {
		g.statement(s, depth)
	}
}

func (g *generator) statement(s *scope, depth int) {
	switch k := g.Intn(24); {
	case k < 3:
		g.alloc(s)
	case k < 5:
		g.poll(s)
	case k < 8:
		v := g.derive(s)
		if g.Intn(3) == 0 { // the derived pointer is live across a safepoint that follows immediately
			g.poll(s)
			g.mix(s, g.load("i64", g.word(v, g.Intn(words))))
		}
	case k < 10:
		s.bases = append(s.bases, g.load(g.ref(), g.at(g.any(s), firstRef+8*g.Intn(refs))))
	case k < 12:
		g.store(g.ref(), g.base(s), g.at(g.any(s), firstRef+8*g.Intn(refs)))
	case k < 15:
		g.mix(s, g.load("i64", g.word(g.any(s), g.Intn(words))))
	case k < 16:
		g.store("i64", s.acc, g.word(g.any(s), 1+g.Intn(words-1)))
	case k < 17:
		g.selects(s)
	case k < 18:
		g.indexed(s)
	case k < 19 && len(g.cells) > 0:
		g.cell(s)
	case depth == 0:
		g.poll(s)
	case k < 20:
		g.branch(s, depth)
	case k < 22:
		g.loop(s, depth)
	default:
		g.call(s, 1+g.Intn(g.functions-1), depth)
	}
}

// safepoint returns the attribute with a new id, and at some calls a deopt bundle.
func (g *generator) safepoint(s *scope) string {
	g.site++
	text := fmt.Sprintf(`"statepoint-id"="%d"`, g.site)
	if g.Intn(3) == 0 {
		g.features["deopt"]++
		text += fmt.Sprintf(` [ "deopt"(i32 %d, i64 %s, %s %s) ]`, g.site, s.acc, g.ref(), g.base(s))
	}
	return text
}

func (g *generator) poll(s *scope) {
	g.features["poll"]++
	g.line("call void @gc_poll() %s", g.safepoint(s))
}

func (g *generator) alloc(s *scope) {
	g.features["alloc"]++
	o := g.fresh("o")
	g.line("%s = call %s @gc_alloc(i64 %d, i64 %s) %s", o, g.ref(), refs<<g.Intn(3), s.acc, g.safepoint(s))
	s.bases = append(s.bases, o)
}

// selects writes a select between two bases, or between two pointers that are derived from different objects.
func (g *generator) selects(s *scope) {
	g.features["select"]++
	c, v := g.condition(s), g.fresh("s")
	x, y := g.base(s), g.base(s)
	if g.Intn(2) == 0 {
		g.line("%s = select i1 %s, %s %s, %s %s", v, c, g.ref(), x, g.ref(), y)
		s.bases = append(s.bases, v)
		return
	}
	offset := g.offset()
	x, y = g.gep(x, fmt.Sprint(offset)), g.gep(y, fmt.Sprint(offset))
	g.line("%s = select i1 %s, %s %s, %s %s", v, c, g.ref(), x, g.ref(), y)
	s.derived = append(s.derived, value{name: v, offset: offset})
}

// indexed writes code that accesses an array of references by a computed index.
func (g *generator) indexed(s *scope) {
	g.features["array"]++
	array, masked, scaled := g.base(s), g.fresh("n"), g.fresh("n")
	g.line("%s = and i64 %s, %d", masked, s.acc, refs-1)
	g.line("%s = shl i64 %s, 3", scaled, masked)
	first := g.gep(array, fmt.Sprint(firstRef))
	if g.Intn(2) == 0 {
		g.poll(s)
	}
	at := g.gep(first, scaled)
	if g.Intn(2) == 0 {
		g.store(g.ref(), g.base(s), at)
	} else {
		s.bases = append(s.bases, g.load(g.ref(), at))
	}
}

// cell writes code that stores a reference in a stack object, or loads one from it.
func (g *generator) cell(s *scope) {
	cell := g.cells[g.Intn(len(g.cells))]
	if g.Intn(2) == 0 {
		g.line("store volatile %s %s, %s %s", g.ref(), g.base(s), g.pointer(g.ref()), cell)
		return
	}
	v := g.fresh("v")
	g.line("%s = load volatile %s, %s %s", v, g.ref(), g.pointer(g.ref()), cell)
	s.bases = append(s.bases, v)
}

// branch writes two blocks that meet, with phis of bases and of derived pointers.
func (g *generator) branch(s *scope, depth int) {
	g.features["branch"]++
	c, offset := g.condition(s), g.offset()
	labels := [2]string{g.label("then"), g.label("else")}
	end := g.label("join")
	g.line("br i1 %s, label %%%s, label %%%s", c, labels[0], labels[1])
	var base, derived, acc, from [2]string
	for k, l := range labels {
		g.begin(l)
		in := s.inner()
		g.statements(in, 1+g.Intn(3), depth-1)
		base[k], derived[k], acc[k] = g.base(in), g.gep(g.base(in), fmt.Sprint(offset)), in.acc
		from[k] = g.block
		g.line("br label %%%s", end)
	}
	g.begin(end)
	b := g.phi(g.ref(), base, from)
	d := g.phi(g.ref(), derived, from)
	s.acc = g.phi("i64", acc, from)
	s.bases, s.derived = append(s.bases, b), append(s.derived, value{name: d, offset: offset})
}

func (g *generator) phi(typ string, values, from [2]string) string {
	v := g.fresh("phi")
	g.line("%s = phi %s [ %s, %%%s ], [ %s, %%%s ]", v, typ, values[0], from[0], values[1], from[1])
	return v
}

// loop writes a loop that carries a base and a derived pointer.
func (g *generator) loop(s *scope, depth int) {
	g.features["loop"]++
	offset := g.offset()
	first, derived, before := g.base(s), g.gep(g.base(s), fmt.Sprint(offset)), g.block
	head, out := g.label("loop"), g.label("done")
	g.line("br label %%%s", head)
	g.begin(head)
	i, b, d, acc := g.fresh("i"), g.fresh("phi"), g.fresh("phi"), g.fresh("phi")
	placeholder := fmt.Sprintf("<phis of %s>", head)
	g.WriteString(placeholder)
	in := s.inner()
	in.acc = acc
	in.bases, in.derived = append(in.bases, b, b), append(in.derived, value{name: d, offset: offset})
	g.statements(in, 1+g.Intn(4), depth-1)
	g.poll(in)
	g.mix(in, g.load("i64", g.word(value{name: d, offset: offset}, g.Intn(words))))
	next, nextBase, nextDerived := g.fresh("i"), g.base(in), g.gep(g.base(in), fmt.Sprint(offset))
	c := g.fresh("c")
	g.line("%s = add i64 %s, 1", next, i)
	g.line("%s = icmp ult i64 %s, %d", c, next, 2+g.Intn(2))
	latch := g.block
	g.line("br i1 %s, label %%%s, label %%%s", c, head, out)
	var phis strings.Builder
	for _, p := range []struct{ name, typ, first, next string }{{i, "i64", "0", next}, {b, g.ref(), first, nextBase},
		{d, g.ref(), derived, nextDerived}, {acc, "i64", s.acc, in.acc}} {
		fmt.Fprintf(&phis, "  %s = phi %s [ %s, %%%s ], [ %s, %%%s ]\n", p.name, p.typ, p.first, before, p.next, latch)
	}
	text := strings.Replace(g.String(), placeholder, phis.String(), 1)
	g.Reset()
	g.WriteString(text)
	g.begin(out)
	s.acc = in.acc
	s.bases, s.derived = append(s.bases, nextBase), append(s.derived, value{name: nextDerived, offset: offset})
}

// call writes a call of a compiled function, directly or through C, or of one that may throw, if there is fuel and depth left.
func (g *generator) call(s *scope, callee, depth int) {
	fuel, some, deep, c := g.fresh("n"), g.fresh("c"), g.fresh("c"), g.fresh("c")
	g.line("%s = call i64 @gc_fuel()", fuel)
	g.line("%s = icmp ne i64 %s, 0", some, fuel)
	g.line("%s = icmp sgt i64 %%depth, 0", deep)
	g.line("%s = and i1 %s, %s", c, some, deep)
	before, then, end := g.block, g.label("call"), g.label("join")
	g.line("br i1 %s, label %%%s, label %%%s", c, then, end)
	g.begin(then)
	less := g.fresh("n")
	g.line("%s = sub i64 %%depth, 1", less)
	in := s.inner()
	if g.Intn(2) == 0 {
		g.derive(in)
	}
	args := fmt.Sprintf("%[1]s %[2]s, %[1]s %[3]s, i64 %[4]s", g.ref(), g.base(in), g.base(in), less)
	target := fmt.Sprintf("%s @f%d(%s)", g.ref(), callee, args)
	if g.Intn(4) == 0 {
		g.features["through C"]++
		target = fmt.Sprintf("%s @gc_through(%s, %s @f%d)", g.ref(), args, g.function(), callee)
	}
	o := g.fresh("o")
	switch kind := g.Intn(3); kind {
	case 0: // an invoke
		g.features["invoke"]++
		typ := "ref"
		if g.Intn(2) == 0 {
			typ, target = "i64", fmt.Sprintf("i64 @gc_maythrow(i64 %s)", in.acc)
		}
		ok, pad, join := g.label("ok"), g.label("pad"), g.label("join")
		g.line("%s = invoke %s %s to label %%%s unwind label %%%s", o, target, g.safepoint(in), ok, pad)
		var base, acc, from [2]string
		for k, l := range []string{ok, pad} {
			g.begin(l)
			side := in.inner()
			if k == 1 {
				g.line("%s = landingpad token catch %s null", g.fresh("t"), g.pointer("i8"))
			} else if typ == "ref" {
				side.bases = append(side.bases, o, o)
			} else {
				g.mix(side, o)
			}
			g.mix(side, g.load("i64", g.word(g.any(side), g.Intn(words))))
			g.statements(side, g.Intn(3), depth-1)
			g.mix(side, g.load("i64", g.word(g.any(side), g.Intn(words))))
			base[k], acc[k], from[k] = g.base(side), side.acc, g.block
			g.line("br label %%%s", join)
		}
		g.begin(join)
		in.bases = append(in.bases, g.phi(g.ref(), base, from))
		in.acc = g.phi("i64", acc, from)
	default:
		g.features["call"]++
		g.line("%s = call %s %s", o, target, g.safepoint(in))
		in.bases = append(in.bases, o, o)
	}
	g.mix(in, g.load("i64", g.word(g.any(in), g.Intn(words))))
	result := g.base(in)
	from := [2]string{before, g.block}
	g.line("br label %%%s", end)
	g.begin(end)
	s.bases = append(s.bases, g.phi(g.ref(), [2]string{g.base(s), result}, from))
	s.acc = g.phi("i64", [2]string{s.acc, in.acc}, from)
}
