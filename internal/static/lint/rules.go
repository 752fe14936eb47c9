package lint

import (
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
)

// siteRule is a rule of LLVM's verifier for sites (llvm/lib/IR/Verifier.cpp, LangRef, "Garbage Collection Safepoints in LLVM"). breaks describes the
// violation by a call, or returns "".
type siteRule struct {
	of     string // the intrinsic, without "llvm." and types; "" for every call
	breaks func(v *verifier, in *ir.Instr) string
}

// siteRules are checked in this order. All exist in LLVM 14 to 22.
var siteRules = []siteRule{
	{"", repeatedBundle},
	{"experimental.stackmap", variadic},
	{"experimental.patchpoint", variadic},
	{"experimental.gc.statepoint", variadic},
	{"experimental.guard", variadic},
	{"experimental.deoptimize", variadic},
	{"experimental.stackmap", stackMapTypes},
	{"experimental.stackmap", neverInvoked},
	{"experimental.patchpoint", patchPointTypes},
	{"experimental.guard", neverInvoked},
	{"experimental.guard", oneDeoptBundle},
	{"experimental.deoptimize", neverInvoked},
	{"experimental.deoptimize", oneDeoptBundle},
	{"experimental.deoptimize", returnsAtOnce},
	{"experimental.deoptimize", oneConvention},
	{"experimental.gc.statepoint", inCollectedFunction},
	{"experimental.gc.statepoint", statepointHead},
	{"experimental.gc.statepoint", accessesMemory},
	{"experimental.gc.statepoint", statepointCall},
	{"experimental.gc.statepoint", statepointTail},
	{"experimental.gc.statepoint", tokenUses},
	{"experimental.gc.result", inCollectedFunction},
	{"experimental.gc.result", resultOfStatepoint},
	{"experimental.gc.relocate", relocateOfStatepoint},
}

// verifier checks the sites of one function.
type verifier struct {
	f     *ir.Func
	users map[*ir.Instr][]*ir.Instr // users of tokens
	preds map[*ir.Block][]*ir.Block
}

// verifySites returns an error for the first call of a function that violates a rule for sites, with its line and the rule.
func verifySites(f *ir.Func) error {
	if f.Declared() {
		return nil
	}
	blocks, err := f.Body()
	if err != nil {
		return err
	}
	v := &verifier{f: f}
	for _, b := range blocks {
		for _, in := range b.Instrs {
			if in.Call == nil {
				continue
			}
			name := intrinsicName(in)
			if name == "" && len(in.Call.Bundles) < 2 {
				continue
			}
			for _, r := range siteRules {
				if r.of != "" && r.of != name && !strings.HasPrefix(name, r.of+".") {
					continue
				}
				if what := r.breaks(v, in); what != "" {
					return fmt.Errorf("%s:%d: LLVM rejects this site: %s", f.Module.Name, in.Line, what)
				}
			}
		}
	}
	return nil
}

// intrinsicName returns the name of the intrinsic that a call calls, without "llvm.", or "".
func intrinsicName(in *ir.Instr) string {
	if in == nil || in.Call == nil {
		return ""
	}
	name, ok := strings.CutPrefix(sites.CalledName(in), "llvm.")
	if !ok {
		return ""
	}
	return name
}

func isStatepoint(in *ir.Instr) bool {
	return strings.HasPrefix(intrinsicName(in)+".", "experimental.gc.statepoint.")
}

// index builds the users of tokens and the predecessors of blocks.
func (v *verifier) index() {
	if v.users != nil {
		return
	}
	v.users, v.preds = map[*ir.Instr][]*ir.Instr{}, map[*ir.Block][]*ir.Block{}
	blocks, _ := v.f.Body() // verifySites has read it
	for _, b := range blocks {
		for _, in := range b.Instrs {
			note := func(a ir.Value) {
				if made, ok := a.(*ir.Instr); ok && made.Typ.Kind == ir.TokenKind {
					v.users[made] = append(v.users[made], in)
				}
			}
			for _, a := range in.Args {
				note(a)
			}
			if in.Call != nil {
				for _, bundle := range in.Call.Bundles {
					for _, a := range bundle.Args {
						note(a)
					}
				}
			}
			if in.Op.Terminator() {
				for _, to := range in.Blocks {
					if !slices.Contains(v.preds[to], b) {
						v.preds[to] = append(v.preds[to], b)
					}
				}
			}
		}
	}
}

// number returns the value of a constant integer of at most 64 bits.
func number(v ir.Value) (uint64, bool) {
	c, ok := v.(*ir.Const)
	switch {
	case !ok || c.Typ.Kind != ir.IntKind:
	case c.Kind == ir.ConstZero:
		return 0, true
	case c.Kind == ir.ConstInt && c.Int.IsUint64():
		return c.Int.Uint64(), true
	}
	return 0, false
}

// repeatedBundle reports a bundle that LLVM allows once in a call.
func repeatedBundle(_ *verifier, in *ir.Instr) string {
	seen := map[string]bool{}
	for _, b := range in.Call.Bundles {
		switch b.Tag {
		case "deopt", "gc-transition", "gc-live", "funclet", "cfguardtarget", "preallocated", "ptrauth", "kcfi", "clang.arc.attachedcall", "convergencectrl":
			if seen[b.Tag] {
				return fmt.Sprintf("a call has at most one bundle %q", b.Tag)
			}
			seen[b.Tag] = true
		}
	}
	return ""
}

func variadic(_ *verifier, in *ir.Instr) string {
	if !in.Call.Sig.Variadic {
		return fmt.Sprintf("%s takes variable arguments: it must be called by a type that ends in ..., not %v", in.Call.Callee.Ref(), in.Call.Sig)
	}
	return ""
}

func stackMapTypes(_ *verifier, in *ir.Instr) string { return headTypes(in, ir.I64, ir.I32) }

func patchPointTypes(_ *verifier, in *ir.Instr) string {
	if what := headTypes(in, ir.I64, ir.I32, nil, ir.I32); what != "" {
		return what
	}
	if in.Call.CC == "anyregcc" && in.Typ.Kind != ir.VoidKind && !in.Typ.First() && !in.Typ.Float() {
		return fmt.Sprintf("a patchpoint with anyregcc must return one value that fits a register, not %v", in.Typ)
	}
	return ""
}

// headTypes compares the types of the first arguments; nil allows any type.
func headTypes(in *ir.Instr, want ...*ir.Type) string {
	for k, t := range want {
		if k >= len(in.Args) {
			return fmt.Sprintf("%s takes at least %d arguments, not %d", in.Call.Callee.Ref(), len(want), len(in.Args))
		}
		if got := in.Args[k].Type(); t != nil && !got.Equal(t) {
			return fmt.Sprintf("argument %d of %s must have type %v, not %v", k+1, in.Call.Callee.Ref(), t, got)
		}
	}
	return ""
}

func neverInvoked(_ *verifier, in *ir.Instr) string {
	if in.Op != ir.OpCall {
		return in.Call.Callee.Ref() + " cannot be invoked"
	}
	return ""
}

func oneDeoptBundle(_ *verifier, in *ir.Instr) string {
	for _, b := range in.Call.Bundles {
		if b.Tag == "deopt" {
			return "" // repeatedBundle rejects a second one
		}
	}
	return in.Call.Callee.Ref() + ` must have exactly one bundle "deopt"`
}

func returnsAtOnce(v *verifier, in *ir.Instr) string {
	if want := v.f.Sig.Elem; !in.Typ.Equal(want) {
		return fmt.Sprintf("%s must return what its function returns, %v", in.Call.Callee.Ref(), want)
	}
	var after *ir.Instr
	if in.Index+1 < len(in.Block.Instrs) {
		after = in.Block.Instrs[in.Index+1]
	}
	switch {
	case after == nil || after.Op != ir.OpRet:
		return in.Call.Callee.Ref() + " must be followed by a return"
	case in.Typ.Kind != ir.VoidKind && (len(after.Args) != 1 || after.Args[0] != ir.Value(in)):
		return in.Call.Callee.Ref() + " must be followed by a return of its result"
	}
	return ""
}

// oneConvention requires that all declarations of llvm.experimental.deoptimize have one calling convention.
func oneConvention(v *verifier, in *ir.Instr) string {
	for _, f := range v.f.Module.Funcs {
		if callee, ok := in.Call.Callee.(*ir.Func); ok && strings.HasPrefix(f.Name, "llvm.experimental.deoptimize.") && f.CC != callee.CC {
			return fmt.Sprintf("%s and %s must have the same calling convention", callee.Ref(), f.Ref())
		}
	}
	return ""
}

func inCollectedFunction(v *verifier, in *ir.Instr) string {
	if v.f.GC == "" {
		return fmt.Sprintf("%s requires a function with a collector, and %s has no gc \"…\"", in.Call.Callee.Ref(), v.f.Ref())
	}
	return ""
}

// statepointHead checks the first arguments: id, bytes, callee, number of arguments, flags.
func statepointHead(_ *verifier, in *ir.Instr) string {
	if what := headTypes(in, ir.I64, ir.I32, nil, ir.I32, ir.I32); what != "" {
		return what
	}
	for _, k := range []int{0, 1, 3, 4} {
		if _, ok := number(in.Args[k]); !ok {
			return fmt.Sprintf("argument %d of gc.statepoint must be a constant, not %s", k+1, in.Args[k].Ref())
		}
	}
	const known = 3 // GCTransition, DeoptLiveIn (StatepointFlags)
	flags, _ := number(in.Args[4])
	bytes, _ := number(in.Args[1])
	switch {
	case bytes > 1<<31-1:
		return fmt.Sprintf("the number of bytes to patch of gc.statepoint must not be negative: %d", int32(bytes))
	case flags&^known != 0:
		return fmt.Sprintf("unknown flag of gc.statepoint: %d (1 and 2 are known)", flags)
	}
	return ""
}

func accessesMemory(_ *verifier, in *ir.Instr) string {
	if f, direct := in.Call.Callee.(*ir.Func); in.Call.Pure || in.Call.ArgsMemory || direct && f.StoresNothing() {
		return "gc.statepoint must read and write all memory: no attribute may say otherwise (readnone, readonly, memory)"
	}
	return ""
}

// wrapped returns the type of the function that a statepoint calls, or nil if the IR does not give it.
func wrapped(in *ir.Instr) *ir.Type {
	t := in.Args[2].Type().Elem
	if len(in.Call.ElemTypes) > 2 && in.Call.ElemTypes[2] != nil {
		t = in.Call.ElemTypes[2]
	}
	return t
}

// statepointCall compares the passed arguments with the parameters of the callee.
func statepointCall(_ *verifier, in *ir.Instr) string {
	t := wrapped(in)
	switch {
	case t == nil:
		return "the callee of gc.statepoint must have the attribute elementtype"
	case t.Kind != ir.FuncKind:
		return fmt.Sprintf("elementtype of the callee of gc.statepoint must be a function type, not %v", t)
	}
	n, _ := number(in.Args[3])
	params := uint64(len(t.Fields))
	switch {
	case t.Variadic && n < params:
		return fmt.Sprintf("gc.statepoint passes %d arguments, and its callee, %v, takes at least %d", n, t, params)
	case t.Variadic && t.Elem.Kind != ir.VoidKind:
		return fmt.Sprintf("gc.statepoint cannot call a variadic function with a result: %v", t)
	case !t.Variadic && n != params:
		return fmt.Sprintf("gc.statepoint passes %d arguments, and its callee, %v, takes %d", n, t, params)
	case uint64(len(in.Args)) < 5+n+2:
		return fmt.Sprintf("gc.statepoint has %d arguments, too few for the %d that it passes on and two zeros after them", len(in.Args), n)
	}
	for k, want := range t.Fields {
		if got := in.Args[5+k].Type(); !got.Equal(want) {
			return fmt.Sprintf("argument %d that gc.statepoint passes on must have type %v, as the parameter of its callee, not %v", k+1, want, got)
		}
	}
	return ""
}

// statepointTail requires that the numbers of transition and deopt arguments are 0, because bundles hold these arguments today, and that no argument
// follows.
func statepointTail(_ *verifier, in *ir.Instr) string {
	n, _ := number(in.Args[3])
	for _, a := range in.Args[5+n : 5+n+2] {
		if count, ok := number(a); !ok || count != 0 {
			return fmt.Sprintf("i32 0, i32 0 must follow the arguments that gc.statepoint passes on, not %s: transition and deopt values belong into bundles", a.Ref())
		}
	}
	if more := uint64(len(in.Args)) - (5 + n + 2); more > 0 {
		return fmt.Sprintf("gc.statepoint has %d arguments too many", more)
	}
	return ""
}

// tokenUses requires that only gc.result and gc.relocate use the token of a statepoint.
func tokenUses(v *verifier, in *ir.Instr) string {
	v.index()
	for _, user := range v.users[in] {
		name := intrinsicName(user) + "."
		if user.Op != ir.OpCall || !strings.HasPrefix(name, "experimental.gc.result.") && !strings.HasPrefix(name, "experimental.gc.relocate.") {
			return fmt.Sprintf("only gc.result and gc.relocate may use the token of gc.statepoint, and line %d uses it", user.Line)
		}
	}
	return ""
}

// undefined reports whether a value is undef or poison.
func undefined(v ir.Value) bool {
	c, ok := v.(*ir.Const)
	return ok && (c.Kind == ir.ConstUndef || c.Kind == ir.ConstPoison)
}

func resultOfStatepoint(_ *verifier, in *ir.Instr) string {
	if len(in.Args) != 1 || undefined(in.Args[0]) {
		return ""
	}
	statepoint, ok := in.Args[0].(*ir.Instr)
	if !ok || !isStatepoint(statepoint) {
		return fmt.Sprintf("the operand of gc.result must be a gc.statepoint, not %s", in.Args[0].Ref())
	}
	if len(statepoint.Args) < 3 {
		return ""
	}
	if t := wrapped(statepoint); t != nil && t.Kind == ir.FuncKind && !t.Elem.Equal(in.Typ) {
		return fmt.Sprintf("gc.result must have the type that the callee of its gc.statepoint returns, %v, not %v", t.Elem, in.Typ)
	}
	return ""
}

func relocateOfStatepoint(v *verifier, in *ir.Instr) string {
	v.index()
	if len(in.Args) != 3 {
		return fmt.Sprintf("gc.relocate takes 3 arguments, not %d", len(in.Args))
	}
	if scalarOf(in.Typ).Kind != ir.PointerKind {
		return fmt.Sprintf("gc.relocate must return a pointer or a vector of pointers, not %v", in.Typ)
	}
	statepoint, ok := in.Args[0].(*ir.Instr)
	switch {
	case undefined(in.Args[0]):
		return ""
	case ok && statepoint.Op == ir.OpLandingPad:
		from := v.preds[statepoint.Block]
		if len(from) != 1 {
			return fmt.Sprintf("the landing pad of a gc.relocate must belong to one invoke, and this one belongs to %d", len(from))
		}
		statepoint = from[0].Instrs[len(from[0].Instrs)-1]
		if !isStatepoint(statepoint) {
			return fmt.Sprintf("the landing pad of a gc.relocate must belong to a gc.statepoint, and line %d is not one", statepoint.Line)
		}
	case !ok || !isStatepoint(statepoint):
		return fmt.Sprintf("the token of gc.relocate must be a gc.statepoint or its landing pad, not %s", in.Args[0].Ref())
	}
	from, where := statepoint.Args, "arguments" // the operands of the gc.statepoint that the numbers count
	for _, b := range statepoint.Call.Bundles {
		if b.Tag == "gc-live" {
			from, where = b.Args, `bundle "gc-live"`
		}
	}
	for k, what := range []string{"base", "derived pointer"} {
		n, ok := number(in.Args[1+k])
		switch {
		case !ok:
			return fmt.Sprintf("the number of the %s of gc.relocate must be a constant, not %s", what, in.Args[1+k].Ref())
		case n >= uint64(len(from)):
			return fmt.Sprintf("the %s of gc.relocate is out of bounds: number %d of the %d values in the %s", what, n, len(from), where)
		}
		t := from[n].Type()
		switch {
		case scalarOf(t).Kind != ir.PointerKind:
			return fmt.Sprintf("the %s of gc.relocate must be a pointer, and %s has type %v", what, from[n].Ref(), t)
		case k == 1 && (t.Kind == ir.VectorKind) != (in.Typ.Kind == ir.VectorKind):
			return fmt.Sprintf("gc.relocate cannot make %v of %v: one is a vector", in.Typ, t)
		case k == 1 && scalarOf(t).AddrSpace != scalarOf(in.Typ).AddrSpace:
			return fmt.Sprintf("gc.relocate must keep the address space of its pointer: %v of %v", in.Typ, t)
		}
	}
	return ""
}

// scalarOf returns the element type of a vector, and any other type itself.
func scalarOf(t *ir.Type) *ir.Type {
	if t.Kind == ir.VectorKind {
		return t.Elem
	}
	return t
}
