package truth_test

import (
	"fmt"
	"slices"
	"strings"
)

// kinds lists the kinds of sites that the function may have. Likelier ones occur more often.
func (m *maker) kinds() []string {
	kinds := []string{stackMap, stackMap, patchPoint, patchPoint, bundle, bundle}
	if m.p.Machine == "amd64" {
		kinds = append(kinds, anyReg)
	}
	if m.f.GC {
		kinds = append(kinds, statepoint, statepoint, statepoint)
		if m.f.Pers {
			kinds = append(kinds, invoke)
		}
	}
	if m.f.Returns == i64 && m.f.CC == "" {
		kinds = append(kinds, deoptimize)
	}
	if m.p.Machine == "ppc64le" || m.p.Machine == "s390x" { // llc crashes on statepoints for these machines
		kinds = []string{stackMap, patchPoint}
	}
	if m.p.Version == 14 && m.f.GC { // LLVM 14 accepts only typed statepoints in functions with gc pointers
		kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == bundle || k == deoptimize })
	}
	return kinds
}

// site generates a site of a random kind, and reports whether it calls the next function. deep means that the next function is called already.
func (m *maker) site(deep bool) (descends bool) {
	return m.siteOf(pick(m.Rand, m.kinds()...), deep)
}

// siteOf generates a site of a kind.
func (m *maker) siteOf(kind string, deep bool) (descends bool) {
	m.sites++
	s := &site{Kind: kind, Number: int64(m.f.Number)<<16 | int64(m.sites)}
	s.ID = uint64(s.Number) + 0x1000000
	if chance(m.Rand, 10) && (kind == stackMap || kind == patchPoint || m.p.Version > 16) {
		s.ID |= 0x1234567800000000
	}
	s.Known = kind != bundle && kind != deoptimize
	// The operands come first, because the steps that compute them must precede the site.
	s.Live, s.Early = m.operands(kind)
	st := &step{Site: s}
	st.Uses = append(st.Uses, s.Live...)
	switch kind {
	case stackMap:
		if chance(m.Rand, 50) { // the stackmap follows a call
			descends = m.call(st, deep, true)
		}
		s.Line = fmt.Sprintf("call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %d, i32 %d, LIVE)", int64(s.ID), 4*m.Intn(5))
	case patchPoint, anyReg:
		descends = m.patchpoint(st, deep)
	case bundle:
		descends = m.call(st, deep, false)
	case deoptimize:
		m.deoptimize(st)
	default:
		descends = m.statepoint(st, deep)
	}
	m.add(st)
	if kind == bundle || kind == statepoint || kind == invoke {
		// LLVM requires that each statepoint relocates every gc pointer that is used after it.
		m.avail = slices.DeleteFunc(m.avail, func(v *value) bool { return v.Type == gcptr && !slices.Contains(st.Gives, v) })
	}
	return descends
}

// callee is the callee of a site: its name, type and arguments.
type callee struct {
	name, signature, args, cc string
	count                     int // number of arguments
	returns                   *typ
	f                         *function // nil: a function of the runtime
}

// choose chooses the callee. deep means that the next function is called already.
func (m *maker) choose(st *step, deep bool) (c callee, descends bool) {
	pt := ptr.in(m.version())
	c = callee{name: pick(m.Rand, "@truth_step", "@truth_leaf"), signature: "i64 (" + pt + ")", args: pt + " %t", count: 1, returns: i64}
	next := m.f.Number + 1
	if next >= len(m.p.Funcs) || m.loop != nil || deep && chance(m.Rand, 90) || chance(m.Rand, 30) {
		return c, false
	}
	f := m.p.Funcs[next]
	if f.deoptimizes() { // a function with an exit would return to the runtime
		return c, false
	}
	if st.Site.Kind == patchPoint && f.Returns != i64 && strings.HasPrefix(f.CC, "preserve_") {
		return c, false // the type of the call would be void, which preserves the result register
	}
	if f.CC == "preserve_allcc " && f.Width < m.f.Width { // the callee preserves only the lower part of wider registers
		return c, false
	}
	c = callee{name: fmt.Sprintf("@f%d", next), signature: m.p.signature(f), args: pt + " %t", cc: f.CC, count: 1 + len(f.Params), returns: f.Returns, f: f}
	st.Calls = next + 1
	for _, want := range f.Params {
		v := m.some(want.Type)
		st.Uses = append(st.Uses, v)
		c.args += ", " + v.ref(m.version())
	}
	return c, true
}

// result generates the value that the call returns.
func (m *maker) result(st *step, c callee) *value {
	v := &value{Name: m.name(), Type: c.returns}
	st.Gives = append(st.Gives, v)
	return v
}

// call generates a call: one with a deopt bundle, or with before one without a bundle before a stackmap.
func (m *maker) call(st *step, deep, before bool) (descends bool) {
	c, descends := m.choose(st, deep)
	s := st.Site
	v := m.result(st, c)
	if before {
		// The call precedes the stackmap, which can then record the result.
		line := fmt.Sprintf("%s = call %s%s %s(%s)", v.Name, c.cc, c.returns.in(m.version()), c.name, c.args)
		s.Before = append(s.Before, line)
		return descends
	}
	attribute := ""
	if chance(m.Rand, 40) {
		s.Known = true
		if m.p.Version < 19 {
			s.ID &= 0xffffffff
		}
		attribute = fmt.Sprintf(` "statepoint-id"="%d"`, s.ID)
	}
	s.Line = fmt.Sprintf(`%s = call %s%s %s(%s)%s [ "deopt"(LIVE) ]`, v.Name, c.cc, c.returns.in(m.version()), c.name, c.args, attribute)
	return descends
}

// address returns a function as a pointer to bytes.
func (m *maker) address(c callee) string {
	if m.version() == 14 {
		return fmt.Sprintf("i8* bitcast (%s* %s to i8*)", c.signature, c.name)
	}
	return "ptr " + c.name
}

// patchpoint generates a patchpoint.
func (m *maker) patchpoint(st *step, deep bool) (descends bool) {
	s := st.Site
	// LLVM cannot compile a patchpoint that calls a symbol on these machines (doc/dev/facts.md).
	noSymbol := m.p.Machine == "arm64" || m.p.Machine == "riscv64"
	if s.Kind == anyReg || noSymbol || chance(m.Rand, 25) { // the patchpoint calls no function, or one of no interest
		cc, args, n := "", "", 0
		if s.Kind == anyReg {
			cc = "anyregcc "
			for range m.Intn(4) {
				v := m.some(pick(m.Rand, i64, i32, ptr))
				st.Uses = append(st.Uses, v)
				args += v.ref(m.version()) + ", "
				n++
			}
		}
		if s.Kind == anyReg && chance(m.Rand, 50) {
			v := &value{Name: m.name(), Type: i64}
			// The result of a patchpoint without a call is the previous content of the register.
			s.Line = fmt.Sprintf("%s = call %si64 (i64, i32, %s, i32, ...) @llvm.experimental.patchpoint.i64(i64 %d, i32 %d, %s null, i32 %d, %sLIVE)",
				v.Name, cc, ptr.in(m.version()), int64(s.ID), 16+4*m.Intn(4), ptr.in(m.version()), n, args)
			st.Gives = append(st.Gives, v)
			return false
		}
		s.Line = fmt.Sprintf("call %svoid (i64, i32, %s, i32, ...) @llvm.experimental.patchpoint.void(i64 %d, i32 %d, %s null, i32 %d, %sLIVE)",
			cc, ptr.in(m.version()), int64(s.ID), 16+4*m.Intn(4), ptr.in(m.version()), n, args)
		return false
	}
	c, descends := m.choose(st, deep)
	if c.returns != i64 {
		s.Line = fmt.Sprintf("call %svoid (i64, i32, %s, i32, ...) @llvm.experimental.patchpoint.void(i64 %d, i32 %d, %s, i32 %d, %s, LIVE)",
			c.cc, ptr.in(m.version()), int64(s.ID), m.patchBytes(), m.address(c), c.count, c.args)
		return descends
	}
	v := m.result(st, c)
	s.Line = fmt.Sprintf("%s = call %si64 (i64, i32, %s, i32, ...) @llvm.experimental.patchpoint.i64(i64 %d, i32 %d, %s, i32 %d, %s, LIVE)",
		v.Name, c.cc, ptr.in(m.version()), int64(s.ID), m.patchBytes(), m.address(c), c.count, c.args)
	return descends
}

// patchBytes returns a number of bytes in which a call fits on every machine.
func (m *maker) patchBytes() int {
	if m.p.Machine == "amd64" {
		return 13 + m.Intn(20)
	}
	return 48 + 4*m.Intn(3)
}

// statepoint generates a statepoint, which may be invoked.
func (m *maker) statepoint(st *step, deep bool) (descends bool) {
	s := st.Site
	c, descends := m.choose(st, deep)
	var gc []*value
	for _, v := range m.avail {
		if v.Type == gcptr && !v.Const && !slices.Contains(gc, v) && len(gc) < 6 {
			gc = append(gc, v)
		}
	}
	if chance(m.Rand, 50) && len(gc) < 6 {
		gc = append(gc, m.load(gcptr))
	}
	s.GC = gc
	st.Uses = append(st.Uses, gc...)
	if m.p.Version < 19 {
		s.ID &= 0xffffffff
	}
	token := m.name()
	called := c.f
	if called == nil {
		called = &function{Returns: i64}
	}
	name := m.p.statepointSuffix(called)
	target := fmt.Sprintf("ptr elementtype(%s) %s", c.signature, c.name)
	if m.version() == 14 {
		target = fmt.Sprintf("%s* elementtype(%[1]s) %s", c.signature, c.name)
	}
	intrinsic := fmt.Sprintf("%stoken (i64, i32, %s, i32, i32, ...) @llvm.experimental.gc.statepoint.%s", c.cc, strings.Fields(target)[0], name)
	if m.version() == 14 {
		intrinsic = fmt.Sprintf("%stoken (i64, i32, %s*, i32, i32, ...) @llvm.experimental.gc.statepoint.%s", c.cc, c.signature, name)
	}
	bundles := `"deopt"(LIVE)`
	if len(gc) > 0 {
		bundles += `, "gc-live"(GC)`
	}
	operands := fmt.Sprintf("(i64 %d, i32 0, %s, i32 %d, i32 0, %s, i32 0, i32 0) [ %s ]", int64(s.ID), target, c.count, c.args, bundles)
	if s.Kind == invoke {
		done, away := "ok"+token[1:], "lp"+token[1:]
		s.Line = fmt.Sprintf("%s = invoke %s%s to label %%%s unwind label %%%s", token, intrinsic, operands, done, away)
		pad := "{ ptr, i32 }"
		if m.version() == 14 {
			pad = typed(pad)
		}
		s.After = append(s.After, away+":", fmt.Sprintf("%%p%s = landingpad %s cleanup", away, pad), "unreachable", done+":")
	} else {
		s.Line = fmt.Sprintf("%s = call %s%s", token, intrinsic, operands)
	}
	v := m.result(st, c)
	s.After = append(s.After, fmt.Sprintf("%s = call %s @llvm.experimental.gc.result.%s(token %s)", v.Name, c.returns.in(m.version()), m.p.suffix(c.returns), token))
	for n := range gc {
		r := &value{Name: m.name(), Type: gcptr}
		s.After = append(s.After, fmt.Sprintf("%s = call %s @llvm.experimental.gc.relocate.%s(token %s, i32 %d, i32 %d)", r.Name, gcptr.in(m.version()), m.p.suffix(gcptr), token, n, n))
		st.Gives = append(st.Gives, r)
	}
	return descends
}

// deoptimize generates an exit from the function. One of four runs takes it.
func (m *maker) deoptimize(st *step) {
	s := st.Site
	s.Bits = m.load(i64)
	m.name()
	st.Uses = append(st.Uses, s.Bits)
	m.deepen(st)
}

// deoptimizes reports whether the function has such an exit.
func (f *function) deoptimizes() bool {
	return slices.ContainsFunc(f.Steps, func(s *step) bool { return s.Site != nil && s.Site.Kind == deoptimize })
}
