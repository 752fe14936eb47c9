package truth_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"

	"example.com/reframe/internal/vm/layout"
)

// An inlined is a function that the optimizer inlines into the previous one of its site. LLVM's InlineFunction puts the deopt bundle of a call before
// those in the inlined function, so one record has several frames, outermost first.
type inlined struct {
	Name    string
	Returns *typ
	Params  []*value
	Args    []*value // the caller's values for the parameters
	Steps   []*step  // each step computes a value
}

// The ways in which a function exits to another tier. All but the first are intrinsics that the optimizer lowers.
const (
	byCall      = "" // a branch to a deoptimize call
	byGuard     = "guard"
	byWidenable = "widenable" // a branch on a widenable condition
)

// An exit is a layout's description of a site: it gives the function that resumes, and the operands that hold its values.
type exit struct {
	Level    int // the frame's number in the record, 0 for the outermost; allLevels: the operands of all frames are used
	Function string
	Block    string
	Names    []*named // for each operand of the site; nil if no value of the function has it
	Record   bool     // the layout selects the record by its id
	Key      bool     // the layout also requires operand 0, a constant that is unique among the sites of the function
	Unsigned bool     // the layout gives that constant as an unsigned number
}

const allLevels = -1

// A named value is a value of the function that resumes.
type named struct {
	Name  string
	Type  *typ
	Param bool // a parameter, otherwise a phi of the block
}

// deoptID is the id that LLVM gives to a deoptimize call that has none (StatepointDirectives, DeoptBundleStatepointID).
const deoptID = 0xABCDEF0F

// place returns a text for the table: which frames of the record the layout describes.
func (x *exit) place(s *site) string {
	switch {
	case x == nil:
		return "none"
	case len(s.Inner) == 0:
		return "the only frame of a record"
	case x.Level == allLevels:
		return fmt.Sprintf("all %d frames of a record", len(s.Inner)+1)
	}
	return fmt.Sprintf("frame %d of the %d of a record, 0 being the outermost", x.Level, len(s.Inner)+1)
}

// kind returns the kind of site for the table.
func (s *site) kind() string {
	name := s.Kind
	switch s.Leaves {
	case byGuard:
		name = "guard, lowered to a deoptimize"
	case byWidenable:
		name = "widenable condition, with a deoptimize"
	}
	if n := len(s.Inner); n > 0 {
		name += fmt.Sprintf(", behind %d inlined calls", n)
	}
	return name
}

// deepen changes a deoptimize call into a guard, or moves it into one or two functions that are inlined, and describes the result by a layout. The
// site has its operands already. deepen has a random source of its own, so that the other sites stay the same.
func (m *maker) deepen(st *step) {
	before := m.Rand
	m.Rand = m.more
	defer func() { m.Rand = before }()
	r, s := m.more, st.Site
	optional := !strings.Contains(strings.Join(m.f.Attributes, " "), "optnone") // the optimizer does not change functions with optnone
	if optional && chance(r, 50) {
		s.Leaves = pick(r, byGuard, byWidenable)
	}
	if s.Leaves != byGuard && chance(r, 40) {
		s.Known, s.Tagged = true, true
		if m.version() < 19 {
			s.ID &= 0xffffffff
		}
	}
	described := chance(r, 75)
	x := &exit{Key: chance(r, 70), Record: chance(r, 60), Unsigned: chance(r, 30)}
	if !s.Tagged {
		x.Key = true // all exits have the same id, so the layout requires the key
	}
	if s.Tagged && !x.Key {
		x.Record = true
	}
	if described && x.Key {
		t := intType(pick(r, 24, 32, 32, 64))
		key := int64(m.sites)<<16 | int64(r.Intn(1<<16)) // unique among the sites of the function
		if t.bits < 64 {
			key &= 1<<(t.bits-1) - 1
		}
		if chance(r, 50) {
			key = -key - 1
		}
		v := &value{Name: fmt.Sprint(key), Type: t, Const: true}
		s.Live, s.Early = append([]*value{v}, s.Live...), append([]bool{false}, s.Early...)
	}
	s.Level = make([]int, len(s.Live))
	if chance(r, 60) {
		for n := range 1 + r.Intn(2) {
			m.inline(st, n+1)
		}
	}
	if !described {
		return
	}
	s.Exit = x
	x.Level = r.Intn(len(s.Inner)+2) - 1
	name := fmt.Sprintf("vm%d_%d", m.f.Number, m.sites)
	x.Function, x.Block = name, "b"+fmt.Sprint(r.Intn(1000))
	if chance(r, 10) {
		x.Function, x.Block = "vm "+name[2:], "b loc/k"
	}
	for k, v := range s.Live {
		if k == 0 && x.Key || x.Level != allLevels && s.Level[k] != x.Level || chance(r, 10) {
			x.Names = append(x.Names, nil)
			continue
		}
		n := &named{Name: fmt.Sprintf("%%%s%d", pick(r, "x", "local.", "_", "s-"), k), Type: v.Type}
		if chance(r, 5) {
			n.Name = fmt.Sprintf(`%%"of frame %d: %d"`, s.Level[k], k)
		}
		switch { // an integer may represent a pointer, and a pointer an integer
		case v.Type.text == i64.text && chance(r, 15):
			n.Type = ptr
		case v.Type == ptr && chance(r, 15):
			n.Type = i64
		}
		n.Param = chance(r, 50) && (n.Type == ptr || n.Type == double || n.Type == float || n.Type.kind == integer && n.Type.bits <= 128)
		x.Names = append(x.Names, n)
	}
}

// inline moves the exit into a function that is called in its place and then inlined. The function has operands of its own.
func (m *maker) inline(st *step, level int) {
	r, s := m.more, st.Site
	in := &inlined{Name: fmt.Sprintf("@in%d_%d_%d", m.f.Number, m.sites, level), Returns: pick(r, i64, i32, double)}
	visible, prefix := m.avail, fmt.Sprintf("%%n%d.", level)
	if level > 1 {
		visible = nil
		outer := s.Inner[level-2]
		for _, o := range outer.Steps {
			visible = append(visible, o.Gives...)
		}
		visible = append(visible, outer.Params...)
	}
	var known []*value
	for k := range r.Intn(4) {
		if len(visible) == 0 {
			break
		}
		arg := pick(r, visible...)
		if arg.Type.kind == aggregate || arg.Type == gcptr {
			continue
		}
		if chance(r, 15) {
			arg = m.constant(arg.Type)
		}
		p := &value{Name: fmt.Sprintf("%sp%d", prefix, k), Type: arg.Type, Undef: arg.Undef}
		in.Params, in.Args = append(in.Params, p), append(in.Args, arg)
		if level == 1 && !arg.Const {
			st.Uses = append(st.Uses, arg)
		}
		known = append(known, p)
	}
	for k := range r.Intn(5) {
		v := &value{Name: fmt.Sprintf("%sv%d", prefix, k), Type: m.p.randomType(r, m.f)}
		load := &step{Gives: []*value{v}}
		if v.Type == gcptr || m.version() == 14 && v.Type.kind == aggregate {
			continue
		}
		m.loadInto(load, v.Name, v.Type)
		in.Steps = append(in.Steps, load)
		known = append(known, v)
	}
	most := 30
	if slices.Contains(m.p.Flags, inRegisters) {
		most = maxInRegisters + 1 // no register is needed for the key
	}
	for range r.Intn(6) {
		v := m.constant(m.p.randomType(r, m.f))
		if len(known) > 0 && chance(r, 80) {
			v = pick(r, known...)
		}
		if m.p.compiles(v.Type, deoptimize, m.f) && len(s.Live) < most {
			s.Live, s.Early, s.Level = append(s.Live, v), append(s.Early, false), append(s.Level, level)
		}
	}
	s.Inner = append(s.Inner, in)
}

// operandsOf returns the operands of one frame of the site.
func (s *site) operandsOf(level int) (list []*value) {
	for k, v := range s.Live {
		if s.levelOf(k) == level {
			list = append(list, v)
		}
	}
	return list
}

func (s *site) levelOf(operand int) int {
	if s.Level == nil {
		return 0
	}
	return s.Level[operand]
}

// leaving returns the text of an exit from a function with a return type. bits is the name of a random i64, and label a prefix for names.
func (s *site) leaving(p *program, returns *typ, bits, label, bundle string) (before []string, line string, after []string) {
	pt, suffix := ptr.in(p.Version), p.suffix(returns)
	id := ""
	if s.Tagged {
		id = fmt.Sprintf(` "statepoint-id"="%d"`, s.ID)
	}
	before = []string{fmt.Sprintf("%%m%s = and i64 %s, 3", label, bits)}
	if s.Leaves == byGuard {
		before = append(before, fmt.Sprintf("%%c%s = icmp ne i64 %%m%s, 0", label, label))
		return before, fmt.Sprintf(`call void (i1, ...) @llvm.experimental.guard(i1 %%c%s, %s %%t) [ "deopt"(%s) ]`, label, pt, bundle), nil
	}
	cond := "c"
	if s.Leaves == byWidenable {
		before = append(before, fmt.Sprintf("%%g%s = icmp ne i64 %%m%s, 0", label, label),
			fmt.Sprintf("%%w%s = call i1 @llvm.experimental.widenable.condition()", label),
			fmt.Sprintf("%%c%s = and i1 %%g%s, %%w%s", label, label, label))
		before = append(before, fmt.Sprintf("br i1 %%%s%s, label %%on%s, label %%out%s", cond, label, label, label), "out"+label+":")
	} else {
		before = append(before, fmt.Sprintf("%%c%s = icmp eq i64 %%m%s, 0", label, label),
			fmt.Sprintf("br i1 %%%s%s, label %%out%s, label %%on%s", cond, label, label, label), "out"+label+":")
	}
	line = fmt.Sprintf(`%%r%s = call %s (...) @llvm.experimental.deoptimize.%s(%s %%t)%s [ "deopt"(%s) ]`, label, returns.text, suffix, pt, id, bundle)
	return before, line, []string{fmt.Sprintf("ret %s %%r%s", returns.text, label), "on" + label + ":"}
}

// inner returns the text of the functions that are inlined at a site.
func (p *program) inner(f *function, s *site) string {
	var out strings.Builder
	for n, in := range s.Inner {
		level, last := n+1, n == len(s.Inner)-1
		w := &writer{program: p}
		pt := ptr.in(p.Version)
		fmt.Fprintf(&w.text, "define internal %s %s(%s %%t, %s %%base", in.Returns.text, in.Name, pt, pt)
		for _, v := range in.Params {
			w.text.WriteString(", " + v.ref(p.Version))
		}
		fmt.Fprintf(&w.text, ") alwaysinline uwtable %s {\nentry:\n", strings.Join(f.features(), " "))
		for _, st := range in.Steps {
			for _, l := range st.Lines {
				w.put("%s", l)
			}
		}
		for k, v := range s.Live {
			if s.levelOf(k) == level {
				w.log(v, s.at[k])
			}
		}
		label := fmt.Sprintf(".%d", level)
		if last {
			w.load64("%bits", poolAt+8*(int(s.Number)&63))
			before, line, after := s.leaving(p, in.Returns, "%bits", label, refs(s.operandsOf(level), p.Version))
			for _, l := range append(append(before, line), after...) {
				w.line(l)
			}
		} else {
			w.line(s.callInner(p, level, "%r"+label))
		}
		result := "7"
		if in.Returns == double {
			result = "7.0"
		}
		w.put("ret %s %s", in.Returns.text, result)
		w.text.WriteString("}\n")
		out.WriteString(w.text.String())
	}
	return out.String()
}

// callInner returns the text of the call that level makes to the function inlined into it.
func (s *site) callInner(p *program, level int, result string) string {
	in, pt := s.Inner[level], ptr.in(p.Version)
	args := fmt.Sprintf("%s %%t, %s %%base", pt, pt)
	for _, v := range in.Args {
		args += ", " + v.ref(p.Version)
	}
	return fmt.Sprintf(`%s = call %s %s(%s) [ "deopt"(%s) ]`, result, in.Returns.text, in.Name, args, refs(s.operandsOf(level), p.Version))
}

// features returns the attributes that a function must share with functions that are inlined into it.
func (f *function) features() (list []string) {
	for _, a := range f.Attributes {
		if strings.HasPrefix(a, `"target-features"`) {
			list = append(list, a)
		}
	}
	return list
}

func refs(values []*value, version int) string {
	var all []string
	for _, v := range values {
		all = append(all, v.ref(version))
	}
	return strings.Join(all, ", ")
}

// resumes returns the text of the function that resumes. Only its names matter, because it never runs.
func (p *program) resumes(f *function, s *site) string {
	x := s.Exit
	var params, phis []string
	for _, n := range x.Names {
		switch {
		case n == nil:
		case n.Param:
			params = append(params, n.Type.in(p.Version)+" "+n.Name)
		default:
			phis = append(phis, fmt.Sprintf("  %s = phi %s [ undef, %%entry ]\n", n.Name, n.Type.in(p.Version)))
		}
	}
	return fmt.Sprintf("define i64 @%q(%s) uwtable %s {\nentry:\n  br label %%%q\n%q:\n%s  ret i64 0\n}\n",
		x.Function, strings.Join(params, ", "), strings.Join(f.features(), " "), x.Block, x.Block, strings.Join(phis, ""))
}

// optimized reports whether the program needs opt before llc, to inline functions or to lower guards.
func (p *program) optimized() (inlines, lowers bool) {
	for s := range p.sites() {
		inlines, lowers = inlines || len(s.Inner) > 0, lowers || s.Leaves != byCall
	}
	return inlines, lowers
}

// passes returns opt's passes for the program, or "" if none are needed.
func (p *program) passes() string {
	inlines, lowers := p.optimized()
	lowering := [][2]string{
		{"function(lower-guard-intrinsic,lower-widenable-condition)", ""},
		{"", "function(lower-guard-intrinsic,lower-widenable-condition)"},
		{"function(make-guards-explicit)", "function(lower-widenable-condition)"},
		{"", "function(make-guards-explicit,lower-widenable-condition)"},
	}[uint64(p.Seed)%4]
	var list []string
	if lowers && lowering[0] != "" {
		list = append(list, lowering[0])
	}
	if inlines {
		list = append(list, "always-inline")
	}
	if lowers && lowering[1] != "" {
		list = append(list, lowering[1])
	}
	return strings.Join(list, ",")
}

// exitLayout returns the layout of the program's exits, or nil if no site has one. An exit may be preceded by one whose condition is false, and
// followed by one that is never used, because the first match counts.
func (p *program) exitLayout() (*layout.Layout, error) {
	r := rand.New(rand.NewSource(p.Seed))
	type condition struct {
		Operand int         `json:"operand"`
		Equals  json.Number `json:"equals"`
	}
	type slot struct {
		Operand int    `json:"operand"`
		Name    string `json:"name"`
	}
	type one struct {
		Function string            `json:"function"`
		Record   *uint64           `json:"record,omitempty"`
		When     []condition       `json:"when,omitempty"`
		Resume   map[string]string `json:"resume"`
		Slots    []slot            `json:"slots"`
	}
	var exits []one
	for _, f := range p.Funcs {
		for _, st := range f.Steps {
			s := st.Site
			if s == nil || s.Exit == nil {
				continue
			}
			x := s.Exit
			o := one{Function: fmt.Sprintf("f%d", f.Number), Resume: map[string]string{"function": x.Function, "block": x.Block}, Slots: []slot{}}
			if x.Record {
				id := uint64(deoptID)
				if s.Tagged {
					id = s.ID
				}
				o.Record = &id
			}
			for k, n := range x.Names {
				if n != nil {
					o.Slots = append(o.Slots, slot{k, n.Name})
				}
			}
			r.Shuffle(len(o.Slots), func(a, b int) { o.Slots[a], o.Slots[b] = o.Slots[b], o.Slots[a] })
			if x.Key {
				v := s.Live[0]
				key, err := strconv.ParseInt(v.Name, 10, 64)
				if err != nil {
					return nil, err
				}
				if x.Unsigned && key < 0 && v.Type.bits < 64 {
					key += 1 << v.Type.bits
				}
				o.When = []condition{{0, json.Number(fmt.Sprint(key))}}
				if chance(r, 30) { // whose condition is false
					other := o
					other.When = []condition{{0, json.Number(fmt.Sprint(key ^ 1<<20))}}
					other.Slots = nil
					exits = append(exits, other)
				}
			}
			exits = append(exits, o)
			if chance(r, 30) {
				other := o
				other.Slots = []slot{}
				exits = append(exits, other)
			}
		}
	}
	if exits == nil {
		return nil, nil
	}
	text, err := json.Marshal(map[string]any{"schema": layout.Schema, "exits": exits})
	if err != nil {
		return nil, err
	}
	return layout.Parse("layout.json", text)
}
