package sites

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
)

// evidence is the result of comparing the code of a function with a module's function.
type evidence struct {
	f      *ir.Func
	shared map[string]bool // names of the module's function that the code refers to
	others []string        // names that the code refers to and the module's function does not
	called bool            // the code calls all of others; if false, it calls none of them
	absent []string        // functions that the module's function always calls and the code does not refer to
	order  string          // the reason why the code's calls cannot be those of the module, or ""

	constants map[string]bool // constants that the module's function passes or returns and the code contains
	missing   *passedConstant // such a constant that the code does not contain, or nil
}

// maxNamed limits the names and constants of a function that are examined, and maxNested the nesting of constants.
const (
	maxNamed  = 1 << 12
	maxNested = 16
)

// differs returns the reason why the code cannot be that of the function, or "".
func (t *evidence) differs() string {
	verb := "names"
	if t.called {
		verb = "calls"
	}
	switch {
	case len(t.others) > 0 && len(t.absent) > 0:
		return fmt.Sprintf("with a call of @%s where the code %s @%s", t.absent[0], verb, t.others[0])
	case len(t.others) > 0:
		return fmt.Sprintf("without @%s, which the code %s", t.others[0], verb)
	case len(t.absent) > 0:
		return fmt.Sprintf("with a call of @%s, which the code does not name", t.absent[0])
	case t.order != "":
		return t.order
	case t.missing != nil:
		return t.missing.String()
	}
	return ""
}

// byItself matches names that the code generator adds: of compiler runtimes, of parts of functions, and of C functions. It calls a C function for an
// instruction, replaces its call by instructions, or calls another C function instead (TargetLowering::InitLibcalls, SelectionDAGBuilder::visitCall).
var byItself = regexp.MustCompile(`^(_|\.|llvm\.|OUTLINED_FUNCTION|mem(cpy|move|set|cmp|chr|rchr|pcpy|ccpy|set_pattern.*)$|(str|stp)(n?cpy|n?cat|n?len|n?cmp|chr|rchr|str|spn|cspn|pbrk)$|wmem|wcslen$|bcmp$|bcopy$|bzero$|abs$|labs$|llabs$|` +
	`(fabs|fmin|fmax|fminimum|fmaximum|fminimum_num|fmaximum_num|fmod|sqrt|cbrt|sin|cos|sincos|sincospi|tan|asin|acos|atan|atan2|sinh|cosh|tanh|` +
	`log|log2|log10|exp|exp2|exp10|pow|ceil|floor|trunc|rint|nearbyint|round|roundeven|lround|llround|lrint|llrint|ldexp|frexp|modf|copysign|fma|fdim|hypot)(f|l|f128|f16)?$)`)

// base returns a name without the suffix that LLVM adds when it splits, copies or exports a function.
func base(name string) string {
	name = strings.TrimPrefix(name, "\x01")
	for k := 1; k < len(name); k++ {
		if name[k] == '.' || name[k] == '$' {
			return name[:k]
		}
	}
	return name
}

// tells compares the code with a function. why is set if one of them cannot be read.
func (c *ordersCode) tells(f *ir.Func) (t *evidence, why string) {
	named, why := namedBy(f)
	if why != "" {
		return nil, why
	}
	t = &evidence{f: f, shared: map[string]bool{}, constants: map[string]bool{}}
	seen, all, whole, why := c.names()
	if why != "" {
		return nil, why
	}
	own := map[string]bool{base(f.Name): true}
	for _, s := range c.image.SymbolsStarting(c.start) {
		for _, name := range spellings(c.image, s.Name) {
			own[base(name)] = true
		}
	}
	present := map[string]bool{}
	for _, n := range seen {
		spelled := false
		for _, name := range n.names {
			present[base(name)] = true
			spelled = spelled || named[base(name)]
			if named[base(name)] {
				t.shared[base(name)] = true
			}
		}
		if spelled || slices.ContainsFunc(n.names, func(name string) bool { return own[base(name)] || byItself.MatchString(base(name)) }) {
			continue
		}
		if n.called && !t.called { // a call is stronger evidence than another reference
			t.others, t.called = nil, true
		}
		if n.called == t.called && !slices.Contains(t.others, n.names[0]) {
			t.others = append(t.others, n.names[0])
		}
	}
	calls := callsOf(f)
	for _, i := range calls.always {
		local := i.Call.Callee.(*ir.Func).Linkage == "internal" || i.Call.Callee.(*ir.Func).Linkage == "private"
		if all || whole && !local { // code may refer to a local function by the symbol of its section
			if g := CalledName(i); !present[base(g)] && !slices.Contains(t.absent, g) {
				t.absent = append(t.absent, g)
			}
		}
	}
	if all && len(t.others)+len(t.absent) == 0 {
		t.order = c.ordered(f, calls, seen)
	}
	if c.arch == machine.AMD64 && !calls.folds {
		t.holdConstants(c.code)
	}
	return t, ""
}

// naming is an instruction that refers to a symbol.
type naming struct {
	names  []string // the possible names in a module: several symbols may have one address
	called bool
	tail   bool // the instruction is a jump to the symbol
	behind int  // offset of the next instruction
}

// names returns the references to symbols in the code, in the order of its instructions. all is false if the target of a call, or of a jump out of
// the function, is unknown. whole is false if the code may refer to a function that is not in the list. It is true for unlinked code, which has a
// relocation for each reference.
func (c *ordersCode) names() (list []naming, all, whole bool, why string) {
	c.steps, all, whole = map[int]isa.Step{}, true, true
	for at := 0; at < len(c.code); {
		s := c.step(c.code[at:], c.start+machine.Addr(at))
		if s.Size == 0 || at+s.Size > len(c.code) {
			return nil, false, false, "an instruction of its code is not known"
		}
		if len(list) > maxNamed {
			return nil, false, false, tooMuch
		}
		c.steps[at] = s
		n := naming{behind: at + s.Size}
		outside := s.How == isa.StepCall || (s.How == isa.StepJump || s.How == isa.StepBranch) && (c.moved(at, s.Size) || s.Target < c.start || s.Target >= c.start+machine.Addr(len(c.code)))
		if r, ok := c.relocation(at, s.Size); outside {
			n.called, n.tail, n.names = true, s.How != isa.StepCall, c.callee(at)
			all = all && len(n.names) > 0
			whole = whole && (len(n.names) > 0 || s.Target == 0)
		} else if ok && r.Symbol() != "" {
			n.names = spellings(c.image, r.Symbol())
		}
		all = all && s.How != isa.StepComputed
		if len(n.names) > 0 {
			list = append(list, n)
		}
		at += s.Size
	}
	return list, all, all || whole && c.image.Relocatable(), ""
}

// namedBy returns the names that the code of a function may refer to: all that its operands lead to, through constants, aliases and initializers.
func namedBy(f *ir.Func) (named map[string]bool, why string) {
	blocks, err := f.Body()
	if err != nil {
		return nil, "its IR cannot be read"
	}
	w := &nameWalk{named: map[string]bool{}, seen: map[ir.Value]bool{}}
	for _, b := range blocks {
		for _, i := range b.Instrs {
			for _, v := range i.Args {
				w.value(v, 0)
			}
			if i.Call == nil {
				continue
			}
			w.value(i.Call.Callee, 0)
			for _, bundle := range i.Call.Bundles {
				for _, v := range bundle.Args {
					w.value(v, 0)
				}
			}
		}
	}
	if w.asm {
		return nil, "it has inline assembly, which may use any name"
	}
	if len(w.seen) > maxNamed {
		return nil, tooMuch
	}
	return w.named, ""
}

type nameWalk struct {
	named map[string]bool
	seen  map[ir.Value]bool
	asm   bool
}

func (w *nameWalk) value(v ir.Value, depth int) {
	if depth > maxNested || len(w.seen) > maxNamed {
		return
	}
	switch v := v.(type) {
	case *ir.InlineAsm:
		w.asm = w.asm || !v.Empty()
	case *ir.Const:
		w.value(v.Target, depth+1)
		for _, e := range v.Elems {
			w.value(e, depth+1)
		}
	case *ir.Func:
		w.named[base(v.Name)] = true
		if name, ok := strings.CutPrefix(v.Name, "llvm."); ok { // llvm.objc.retain becomes a call of objc_retain
			w.named[strings.ReplaceAll(name, ".", "_")] = true
		}
	case *ir.Global:
		if w.named[base(v.Name)] = true; !w.seen[v] && v.Init != nil {
			w.seen[v] = true
			w.value(v.Init, depth+1)
		}
	case *ir.Alias:
		if w.named[base(v.Name)] = true; !w.seen[v] {
			w.seen[v] = true
			w.value(v.Target, depth+1)
		}
	}
}

// moduleCalls holds the direct calls of a function that its code must contain.
type moduleCalls struct {
	all    []*ir.Instr // in program order, in reachable blocks
	always []*ir.Instr // the calls in the entry block, which always run
	folds  bool        // a branch depends on a constant, so some blocks may have no code
	odd    bool        // some calls are indirect, or have nops in their place
}

func callsOf(f *ir.Func) *moduleCalls {
	c := &moduleCalls{}
	blocks, _ := f.Body()
	reached := Reachable(f)
	for _, b := range blocks {
		last := b.Instrs[len(b.Instrs)-1]
		if (last.Op == ir.OpBr && len(last.Args) > 0 || last.Op == ir.OpSwitch) && IsConst(last.Args[0]) {
			c.folds = true
		}
		if !reached[b] {
			continue
		}
		for _, i := range b.Instrs {
			if i.Call == nil {
				continue
			}
			g, ok := i.Call.Callee.(*ir.Func)
			switch {
			case !ok, i.Sled(): // LLVM writes nops in place of a call that is patched later
				c.odd = true
			case strings.HasPrefix(g.Name, "llvm."):
				c.odd = c.odd || strings.HasPrefix(g.Name, "llvm.experimental.") && g.Name != "llvm.experimental.stackmap" && g.Name != "llvm.webkit.stackmap"
			case !keepsCall(i, g):
			default:
				if c.all = append(c.all, i); b.Index == 0 {
					c.always = append(c.always, i)
				}
			}
		}
	}
	return c
}

// keepsCall reports whether a call stays in the code: LLVM neither removes it as useless nor replaces it.
func keepsCall(i *ir.Instr, g *ir.Func) bool {
	return !g.StoresNothing() && !i.Call.Pure && !byItself.MatchString(base(g.Name))
}

// ordered returns the reason why the order of the code's calls contradicts the module, or "" if it does not or that is unknown.
func (c *ordersCode) ordered(f *ir.Func, calls *moduleCalls, list []naming) string {
	if len(calls.all) == 0 || calls.odd || returnsTwice(f) != "" || c.parts {
		return ""
	}
	var places []*ir.Site
	for _, i := range calls.all {
		places = append(places, &ir.Site{Instr: i, Func: f, Kind: ir.PatchPointSite})
	}
	may := [][]bool{make([]bool, len(places)+1)}
	may[0][0] = true
	var points []point
	var at []naming
	for _, n := range list {
		if !n.called {
			continue
		}
		row, any := make([]bool, len(places)+1), false
		for k, i := range calls.all {
			row[k+1] = slices.ContainsFunc(n.names, func(name string) bool { return base(name) == base(CalledName(i)) })
			any = any || row[k+1]
		}
		if any && n.tail {
			return "" // a tail call: the code leaves the function where the module has a call
		}
		if any {
			may, points, at = append(may, row), append(points, point{offset: n.behind, called: true}), append(at, n)
		}
	}
	if len(may)*(len(places)+1) > MaxPairs {
		return ""
	}
	budget := MaxSteps >> 5
	c.pads = invokes(f)
	ofCode, _, why := c.course(points, &budget)
	ofModule := CourseOfModule(f, places)
	if why != "" || ofModule == nil || !Together(ofCode, ofModule, may, &budget) {
		return ""
	}
	for k := range points {
		if !slices.Contains(may[k+1], true) {
			return fmt.Sprintf("with calls in another order: only the code calls @%s at this position", at[k].names[0])
		}
	}
	return ""
}

// passedConstant is a constant that the module's function passes to a callee or returns.
type passedConstant struct {
	value *ir.Const
	to    string // "to @g", "as its result"
	line  int
	has   []string // constants of the code that the module's function does not have
}

func (h *passedConstant) String() string {
	where := ", which the code does not have"
	if len(h.has) > 0 {
		where = " where the code has " + strings.Join(h.has, ", ")
	}
	return fmt.Sprintf("with %s %s, in line %d,%s", h.value.Ref(), h.to, h.line, strings.TrimPrefix(where, ","))
}

// integerRegisters is the least number of integer arguments that C conventions of x86-64 pass in registers: Windows has four.
const integerRegisters = 4

// holdConstants searches the code for the constants that the function returns or passes in registers. The code generator loads each constant with one
// instruction that contains it, at any level of optimization. Exceptions are 0, 1 and -1, which it loads in other ways, and constants wider than 32
// bits, which it may compute from others. The bytes may be anywhere in the code.
func (t *evidence) holdConstants(code []byte) {
	blocks, _ := t.f.Body()
	reached := Reachable(t.f)
	budget := maxNamed
	hold := func(v ir.Value, to string, i *ir.Instr) {
		c, ok := v.(*ir.Const)
		if !ok || c.Kind != ir.ConstInt || c.Typ.Kind != ir.IntKind || c.Typ.Bits < 16 || c.Typ.Bits > 64 || budget == 0 {
			return
		}
		budget--
		n := signedOf(c)
		switch {
		case !n.IsInt64() || n.Int64() != int64(int32(n.Int64())) || n.Int64() >= -1 && n.Int64() <= 1:
			return
		case inCode(code, n.Int64(), c.Typ.Bits):
			t.constants[c.Ref()] = true
		case t.missing == nil:
			t.missing = &passedConstant{value: c, to: to, line: i.Line}
		}
	}
	for _, b := range blocks {
		if !reached[b] {
			continue
		}
		for _, i := range b.Instrs {
			switch {
			case i.Op == ir.OpRet && len(i.Args) == 1 && t.f.CC == "":
				hold(i.Args[0], "as its result", i)
			case i.Call != nil && CalledName(i) != "" && !strings.HasPrefix(CalledName(i), "llvm.") && keepsCall(i, i.Call.Callee.(*ir.Func)) && i.Call.CC == "":
				for k, v := range i.Args[:min(len(i.Args), integerRegisters)] {
					if k >= len(i.Call.ArgAttrs) || !i.Call.ArgAttrs[k].Apart && !i.Call.ArgAttrs[k].InMemory() {
						hold(v, "for @"+CalledName(i), i)
					}
				}
			}
		}
	}
	if t.missing != nil {
		t.missing.has = t.unknownConstants(code)
	}
}

// signedOf returns a constant as a signed number.
func signedOf(c *ir.Const) *big.Int {
	if c.Int.Bit(c.Typ.Bits-1) == 0 {
		return c.Int
	}
	return new(big.Int).Sub(c.Int, new(big.Int).Lsh(big.NewInt(1), uint(c.Typ.Bits)))
}

// inCode searches code for a number. An instruction that sets a register contains it as 32 bits, or as 16 if the type has no more; a push may contain
// it as 8 bits.
func inCode(code []byte, n int64, bits int) bool {
	number := binary.LittleEndian.AppendUint32(nil, uint32(n))
	if bits == 16 {
		number = number[:2]
	}
	if strings.Contains(string(code), string(number)) {
		return true
	}
	return n == int64(int8(n)) && strings.Contains(string(code), string([]byte{0x6a, byte(n)}))
}

// maxUnknown limits the numbers that a message names.
const maxUnknown = 3

// unknownConstants returns numbers that the code loads into 32-bit registers (B8+r id) and that the function does not contain.
func (t *evidence) unknownConstants(code []byte) (list []string) {
	has := map[uint32]bool{}
	blocks, _ := t.f.Body()
	for _, b := range blocks {
		for _, i := range b.Instrs {
			for _, v := range i.Args {
				if c, ok := v.(*ir.Const); ok && c.Kind == ir.ConstInt {
					has[uint32(new(big.Int).And(c.Int, big.NewInt(0xffffffff)).Uint64())] = true
				}
			}
		}
	}
	found := map[uint32]bool{}
	for at, step := 0, isa.Of(machine.AMD64).Step; at < len(code); {
		s := step(code[at:], 0)
		if s.Size == 0 {
			break
		}
		if s.Size == 5 && code[at]&0xf8 == 0xb8 && at+5 <= len(code) {
			if n := binary.LittleEndian.Uint32(code[at+1:]); n > 1 && !has[n] {
				found[n] = true
			}
		}
		at += s.Size
	}
	if len(found) <= maxUnknown {
		for _, n := range slices.Sorted(maps.Keys(found)) {
			list = append(list, fmt.Sprint(int32(n)))
		}
	}
	return list
}
