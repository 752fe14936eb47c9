package truth_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
)

// A maker generates the body of one function.
type maker struct {
	*rand.Rand
	p     *program
	f     *function
	avail []*value // values that are available here
	names int
	sites int
	loop  *loop
	more  *rand.Rand // random numbers for features that were added later, so that the rest of each program stays the same
}

// A loop is a loop that is being generated.
type loop struct {
	header string
	begin  *step
	phis   []*value
	before int // number of values before the loop
}

// generate returns the program of a seed, for a release of LLVM and a machine.
func generate(seed int64, version int, machine string, tame bool) *program {
	r := rand.New(rand.NewSource(seed*1000003 + int64(version)))
	p := &program{Seed: seed, Version: version, Machine: machine, How: "aot", Threads: 1, Tame: tame}
	p.chooseFlags(r)
	more := rand.New(rand.NewSource(seed*7919 + int64(version)))
	n := 6 + r.Intn(8)
	for k := range n {
		p.Funcs = append(p.Funcs, p.newFunction(r, k))
	}
	for k := n - 1; k >= 0; k-- {
		m := &maker{Rand: r, p: p, f: p.Funcs[k], more: more}
		m.fill()
		m.exits()
	}
	return p
}

// newFunction returns a function without a body.
func (p *program) newFunction(r *rand.Rand, number int) *function {
	f := &function{Number: number, Returns: i64, root: number == 0 || chance(r, 40), GC: chance(r, 50), Pers: chance(r, 30), Width: 128}
	f.Attributes = append(f.Attributes, "noinline", "uwtable")
	x86 := p.Machine == "amd64"
	if x86 && !p.Tame {
		switch r.Intn(5) {
		case 0:
			f.Width = 256
			f.Attributes = append(f.Attributes, `"target-features"="+avx"`)
		case 1:
			f.Width = 256
			f.Attributes = append(f.Attributes, `"target-features"="+avx2,+f16c,+fma"`)
		case 2:
			if avx512 {
				f.Width = 512
				f.Attributes = append(f.Attributes, `"target-features"="+avx512f,+avx512bw,+avx512vl,+avx512dq" "prefer-vector-width"="512" "min-legal-vector-width"="512"`)
			}
		}
	}
	if chance(r, 30) {
		f.Attributes = append(f.Attributes, pick(r, `"frame-pointer"="all"`, `"frame-pointer"="non-leaf"`, `"frame-pointer"="none"`))
	}
	if chance(r, 15) && x86 {
		f.Attributes = append(f.Attributes, pick(r, "noredzone", "optsize", "minsize optsize", "optnone", `"stackrealign"`, "nounwind", `"no-jump-tables"="true"`))
	}
	if f.root {
		return f
	}
	ccs := []string{"", "", "fastcc ", "coldcc "}
	if x86 {
		ccs = append(ccs, "preserve_mostcc ", "preserve_allcc ", "tailcc ", "swiftcc ", "x86_regcallcc ", "win64cc ")
	}
	f.CC = pick(r, ccs...)
	if f.CC == "coldcc " && (p.Machine == "arm64" || p.Machine == "riscv64") {
		f.CC = "" // llc does not support the convention for this machine
	}
	f.Returns = pick(r, i64, i64, i32, double, float, ptr)
	for k := range r.Intn(6) {
		t := pick(r, i64, i32, double, float, ptr, intType(128), intType(16), vectorOf(4, i32))
		if p.Tame {
			t = pick(r, i64, i32, double, ptr)
		}
		f.Params = append(f.Params, &value{Name: fmt.Sprintf("%%a%d", k), Type: t})
	}
	return f
}

func (m *maker) name() string { m.names++; return fmt.Sprintf("%%v%d", m.names) }

func (m *maker) version() int { return m.p.Version }

// add appends a step and makes the values that it computes available.
func (m *maker) add(s *step) {
	for _, v := range s.Gives {
		v.step = s
	}
	m.f.Steps = append(m.f.Steps, s)
	m.avail = append(m.avail, s.Gives...)
}

// load generates a value of random bits.
func (m *maker) load(t *typ) *value {
	s := &step{}
	v := &value{Name: m.name(), Type: t}
	m.loadInto(s, v.Name, t)
	s.Gives = []*value{v}
	m.add(s)
	return v
}

// loadInto appends instructions to a step that assign random bits to a name.
func (m *maker) loadInto(s *step, name string, t *typ) {
	put := func(format string, args ...any) { s.Lines = append(s.Lines, fmt.Sprintf(format, args...)) }
	text := t.in(m.version())
	raw := func(name string, t *typ) {
		at := poolAt + m.Intn(poolSize-600)
		pt, text := ptr.in(m.version()), t.in(m.version())
		put("%s.p = getelementptr i8, %s %%t, i64 %d", name, pt, at)
		if m.version() == 14 {
			put("%s.c = bitcast i8* %s.p to %s*", name, name, text)
			put("%s = load volatile %s, %s* %s.c, align 1", name, text, text, name)
			return
		}
		put("%s = load volatile %s, ptr %s.p, align 1", name, text, name)
	}
	switch t.kind {
	case aggregate:
		at := "undef"
		for k, part := range t.parts {
			inner := fmt.Sprintf("%s.e%d", name, k)
			raw(inner, part)
			to := fmt.Sprintf("%s.i%d", name, k)
			if k == len(t.parts)-1 {
				to = name
			}
			put("%s = insertvalue %s %s, %s, %d", to, text, at, part.in(m.version())+" "+inner, k)
			at = to
		}
	case integer:
		if t.bits%8 == 0 {
			raw(name, t)
			return
		}
		wide := intType((t.bits + 7) &^ 7)
		raw(name+".w", wide)
		put("%s = trunc %s %s.w to %s", name, wide.text, name, text)
	case vector:
		if t.elem.kind != integer || t.elem.bits%8 == 0 && t.elem.bits&(t.elem.bits-1) == 0 {
			raw(name, t)
			return
		}
		wide, all := intType((t.bits+7)&^7), intType(t.bits)
		raw(name+".w", wide)
		if wide.bits != all.bits {
			put("%s.a = trunc %s %s.w to %s", name, wide.text, name, all.text)
		} else {
			put("%s.a = add %s %s.w, 0", name, wide.text, name)
		}
		put("%s = bitcast %s %s.a to %s", name, all.text, name, text)
	default:
		raw(name, t)
	}
}

// constant returns a random constant of a type, or undef or poison.
func (m *maker) constant(t *typ) *value {
	v := &value{Type: t, Const: true}
	switch k := m.Intn(10); {
	case k == 0:
		v.Name, v.Undef = "undef", true
	case k == 1 && m.p.Version > 14:
		v.Name, v.Undef = "poison", true
	case t.kind == integer:
		switch {
		case t.bits == 1:
			v.Name = pick(m.Rand, "true", "false")
		case t.bits > 64:
			v.Name = pick(m.Rand, "0", "-1", "7", "18446744073709551616", "12345678901234567890123")
		default:
			n := m.Int63() >> (63 - m.Intn(t.bits))
			v.Name = fmt.Sprint(pick(m.Rand, n, -n))
		}
	case t == float || t == double:
		v.Name = pick(m.Rand, "0.0", "-0.0", "1.5", "-2.25", "0x7FF0000000000000", "0x7FF8000000000000")
	case t.kind == pointer:
		v.Name = "null"
		if t == ptr && chance(m.Rand, 50) {
			v.Name = "inttoptr (i64 305419896 to ptr)"
			if m.p.Version == 14 {
				v.Name = typed(v.Name)
			}
		}
	default:
		v.Name = "zeroinitializer"
		if t.kind == floating {
			v.Name = map[*typ]string{half: "0xH3C00", bfloat: "0xR3F80", fp80: "0xK3FFF8000000000000000", fp128: "0xL00000000000000003FFF000000000000"}[t]
		}
	}
	return v
}

// some returns a value of a type: an available value, a constant or a new value.
func (m *maker) some(t *typ) *value {
	for range 4 {
		if len(m.avail) > 0 {
			if v := pick(m.Rand, m.avail...); v.Type.text == t.text {
				return v
			}
		}
	}
	if t.kind == integer && t.bits > 1 && chance(m.Rand, 20) {
		return &value{Name: fmt.Sprint(m.Intn(1 << min(t.bits-1, 20))), Type: t, Const: true}
	}
	return m.load(t)
}

// operation generates an operation on an available value.
func (m *maker) operation() {
	if len(m.avail) == 0 {
		m.load(m.p.randomType(m.Rand, m.f))
		return
	}
	a := pick(m.Rand, m.avail...)
	t := a.Type
	text := t.in(m.version())
	v := &value{Name: m.name(), Type: t}
	s := &step{Gives: []*value{v}, Uses: []*value{a}}
	other := func() string {
		b := m.some(t)
		s.Uses = append(s.Uses, b)
		return b.Name
	}
	elem := t
	if t.kind == vector {
		elem = t.elem
	}
	switch {
	case elem.kind == integer:
		op := pick(m.Rand, "add", "sub", "xor", "and", "or")
		s.Lines = append(s.Lines, fmt.Sprintf("%s = %s %s %s, %s", v.Name, op, text, a.Name, other()))
	case elem == double || elem == float:
		// fneg of a NaN has defined bits; other operations depend on the order of the operands.
		s.Lines = append(s.Lines, fmt.Sprintf("%s = fneg %s %s", v.Name, text, a.Name))
	case t == ptr:
		s.Lines = append(s.Lines, fmt.Sprintf("%s = getelementptr i8, %s %s, i64 %d", v.Name, text, a.Name, m.Intn(200)-100))
	default:
		c := m.some(i1)
		s.Uses = append(s.Uses, c)
		s.Lines = append(s.Lines, fmt.Sprintf("%s = select i1 %s, %s %s, %s %s", v.Name, c.Name, text, a.Name, text, other()))
	}
	m.add(s)
}

// convert generates a conversion to another type.
func (m *maker) convert() {
	if len(m.avail) == 0 {
		return
	}
	a := pick(m.Rand, m.avail...)
	var to *typ
	op := ""
	switch {
	case a.Type.kind == integer && a.Type.bits > 8:
		op, to = "trunc", intType(pick(m.Rand, 1, 7, 8, a.Type.bits/2))
		if chance(m.Rand, 50) && a.Type.bits <= 64 {
			op, to = pick(m.Rand, "zext", "sext"), intType(pick(m.Rand, 65, 96, 128))
		}
	case a.Type.kind == integer && a.Type.bits < 32:
		op, to = pick(m.Rand, "zext", "sext"), intType(pick(m.Rand, 32, 64))
	case a.Type == double:
		op, to = "bitcast", i64
	case a.Type == ptr:
		op, to = "ptrtoint", i64
	default:
		return
	}
	v := &value{Name: m.name(), Type: to}
	m.add(&step{Gives: []*value{v}, Uses: []*value{a}, Lines: []string{fmt.Sprintf("%s = %s %s to %s", v.Name, op, a.ref(m.version()), to.in(m.version()))}})
}

// alloca generates an alloca.
func (m *maker) alloca(dynamic bool) {
	v := &value{Name: m.name(), Type: ptr}
	s := &step{Gives: []*value{v}}
	align := pick(m.Rand, 1, 4, 8, 16, 16, 32, 64)
	if m.p.Machine != "amd64" {
		align = pick(m.Rand, 1, 8)
	}
	count := fmt.Sprint(1 + m.Intn(40))
	if dynamic {
		n := m.some(i64)
		s.Uses = append(s.Uses, n)
		count = v.Name + ".n"
		s.Lines = append(s.Lines, fmt.Sprintf("%s = and i64 %s, 127", count, n.Name))
	}
	s.Lines = append(s.Lines, fmt.Sprintf("%s = alloca i8, i64 %s, align %d", v.Name, count, align))
	m.add(s)
}

// beginLoop starts a loop.
func (m *maker) beginLoop() {
	m.names++
	// A gc pointer from before the loop would be used after the statepoints of earlier iterations.
	m.avail = slices.DeleteFunc(m.avail, func(v *value) bool { return v.Type == gcptr })
	l := &loop{header: fmt.Sprintf("loop%d", m.names), before: len(m.avail)}
	s := &step{Loop: 1}
	s.Lines = []string{"br label %" + l.header, l.header + ":"}
	i := &value{Name: "%i" + l.header, Type: i32}
	m.add(s)
	l.begin = s
	s.Gives = append(s.Gives, i)
	m.avail = append(m.avail, i)
	from := "@FROM@"
	phis := []string{fmt.Sprintf("%s = phi i32 [ 0, %%%s ], [ %%j%s, %%@LATCH-%s@ ]", i.Name, from, l.header, l.header)}
	for range m.Intn(3) {
		var list []*value
		for _, v := range m.avail[:l.before] {
			if v.Type.kind != aggregate && !v.Const {
				list = append(list, v)
			}
		}
		if len(list) == 0 {
			break
		}
		a := pick(m.Rand, list...)
		v := &value{Name: m.name(), Type: a.Type}
		s.Gives = append(s.Gives, v)
		s.Uses = append(s.Uses, a)
		l.phis = append(l.phis, v)
		phis = append(phis, fmt.Sprintf("%s = phi %s [ %s, %%%s ], [ @NEXT-%s@, %%@LATCH-%s@ ]", v.Name, v.Type.in(m.version()), a.Name, from, v.Name, l.header))
		m.avail = append(m.avail, v)
	}
	s.Lines = append(s.Lines, phis...)
	m.loop = l
}

// endLoop ends the loop after one to three iterations.
func (m *maker) endLoop() {
	l := m.loop
	m.loop = nil
	s := &step{Loop: -1}
	for _, phi := range l.phis {
		next := phi
		for _, v := range m.avail[l.before:] {
			if v.Type.text == phi.Type.text && !v.Const && chance(m.Rand, 60) {
				next = v
			}
		}
		for n, line := range l.begin.Lines {
			l.begin.Lines[n] = strings.ReplaceAll(line, "@NEXT-"+phi.Name+"@", next.Name)
		}
		s.Uses = append(s.Uses, next)
	}
	h := l.header
	s.Lines = []string{
		fmt.Sprintf("%%j%s = add i32 %%i%s, 1", h, h),
		fmt.Sprintf("%%d%s = icmp eq i32 %%j%s, %d", h, h, 1+m.Intn(3)),
		"@LATCH:" + h + "@",
		fmt.Sprintf("br i1 %%d%s, label %%x%s, label %%%s", h, h, h),
		"x" + h + ":",
	}
	m.add(s)
	m.avail = slices.DeleteFunc(m.avail, func(v *value) bool { return v.Type == gcptr })
}

// exits adds exits to a function that already has one, and in every other program to each function that may have one.
func (m *maker) exits() {
	n := m.more.Intn(4)
	if m.p.Seed%2 == 0 && m.f.root && slices.Contains(m.kinds(), deoptimize) {
		n++
	} else if !m.f.deoptimizes() {
		return
	}
	m.Rand = m.more
	for range n {
		for range m.Intn(3) {
			m.load(m.p.randomType(m.Rand, m.f))
		}
		m.siteOf(deoptimize, false)
	}
}

// With the flag inRegisters all values of deopt bundles are in registers, so their number is limited.
const (
	inRegisters    = "-use-registers-for-deopt-values"
	maxInRegisters = 6
)

// operands chooses the operands of a site.
func (m *maker) operands(kind string) (live []*value, early []bool) {
	n := m.Intn(9)
	if chance(m.Rand, 8) {
		n = 10 + m.Intn(25)
	}
	if n > 6 && (kind == anyReg || kind != stackMap && kind != patchPoint && slices.Contains(m.p.Flags, inRegisters)) {
		n = maxInRegisters
	}
	left := 2 // stackmaps and patchpoints leave such values on the x87 stack until the next call
	for range n {
		var v *value
		for range 5 {
			switch k := m.Intn(10); {
			case k == 0:
				v = m.constant(m.p.randomType(m.Rand, m.f))
			case k < 3 || len(m.avail) == 0:
				v = m.load(m.p.randomType(m.Rand, m.f))
			default:
				v = pick(m.Rand, m.avail...)
			}
			wide := v.Type == fp80 && (kind == stackMap || kind == patchPoint || kind == anyReg)
			if wide {
				left--
			}
			if m.p.compiles(v.Type, kind, m.f) && (!wide || left >= 0) {
				break
			}
			v = nil
		}
		if v != nil {
			live, early = append(live, v), append(early, chance(m.Rand, 40))
		}
	}
	return live, early
}

// fill generates the body of the function.
func (m *maker) fill() {
	m.avail = append(m.avail, m.f.Params...)
	for range m.Intn(3) {
		m.alloca(false)
	}
	deep := false // the next function has been called
	for range 6 + m.Intn(14) {
		switch k := m.Intn(20); {
		case k < 5:
			m.load(m.p.randomType(m.Rand, m.f))
		case k < 8:
			m.operation()
		case k < 9:
			m.convert()
		case k < 10 && chance(m.Rand, 25) && m.loop == nil:
			m.alloca(true)
		case k < 11 && m.loop == nil && chance(m.Rand, 40):
			m.beginLoop()
		case k < 12 && m.loop != nil:
			m.endLoop()
		case k < 13 && len(m.avail) > 0: // the value is still needed here
			if v := pick(m.Rand, m.avail...); !v.Const {
				m.add(&step{Uses: []*value{v}, Late: v})
			}
		default:
			deep = m.site(deep) || deep
		}
	}
	if m.loop != nil {
		m.endLoop()
	}
	if m.sites == 0 {
		m.site(deep)
	}
	m.f.Result = m.some(m.f.Returns)
	for range m.Intn(6) { // values that are used at the end
		if len(m.avail) > 0 {
			if v := pick(m.Rand, m.avail...); !v.Const {
				m.add(&step{Uses: []*value{v}, Late: v})
			}
		}
	}
}
