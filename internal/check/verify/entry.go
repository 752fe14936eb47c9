package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/ptrace"
)

// entry is an activation of a function that is followed from its entry on: beside native code its baseline runs in the interpreter, and
// the function's own IR, where that is another one.
type entry struct {
	function string
	fn       *ir.Func // whose native code it is, or nil
	baseline *prediction
	own      *prediction         // nil where it is the baseline, or fn is not known
	exits    int                 // of the activation
	over     bool                // it has returned, or its baseline and native code have parted
	reached  map[ir.Value]uint64 // which arrival an exit had last, by the instruction where it resumes
}

// maxVain is the number of activations of a function without a verified exit up to which ByLayout follows further ones: each is stepped through.
const maxVain = 100

// byLayout reports whether the layouts decide which activations are followed from their entry.
func (v *verifier) byLayout() bool {
	return v.options.ByLayout && !v.options.FromEntry && v.options.With == ""
}

// entriesOf is for which records there are breakpoints at entries.
func (v *verifier) entriesOf() func(string, uint64) bool {
	switch {
	case v.options.FromEntry:
		return func(string, uint64) bool { return true }
	case v.byLayout():
		return v.described
	}
	return nil
}

// described reports whether a layout describes where exits of a record resume.
func (v *verifier) described(function string, record uint64) bool {
	return slices.ContainsFunc(v.options.Layouts, func(l *layout.Layout) bool { return l.Meant(function, record) })
}

// wants leaves out, before it costs anything, the entries of functions that are followed no more.
func (v *verifier) wants(_ machine.Thread, points []*trace.Tracepoint) bool {
	return slices.ContainsFunc(points, func(p *trace.Tracepoint) bool { return !p.Entry || !v.spent(p.Function) })
}

func (v *verifier) spent(function string) bool { return v.byLayout() && v.vain[function] >= maxVain }

// needless returns the reason why an activation need not be followed, or "".
func (v *verifier) needless(x *trace.Exited) string {
	switch {
	case !v.byLayout():
		return ""
	case v.spent(x.Point.Function):
		return v.inVain(x.Point.Function)
	case v.number < v.options.Skip:
		return "the activation began among the exits that are skipped"
	}
	return ""
}

func (v *verifier) inVain(function string) string {
	return fmt.Sprintf("%d activations of @%s were followed from their entry without coming to an exit, or one that took too long; --from-entry follows each", maxVain, function)
}

// maxUnfollowed bounds the activations of which it is kept why they are not followed.
const maxUnfollowed = 1 << 12

// notFollowed keeps why an activation is not followed from its entry.
func (v *verifier) notFollowed(x *trace.Exited, why string) {
	to, _ := x.Returns(0)
	v.unfollow(to, why)
}

// unfollow does so by where the activation returns to.
func (v *verifier) unfollow(to ptrace.Return, why string) {
	if !v.byLayout() {
		return
	}
	if len(v.unfollowed) == maxUnfollowed {
		clear(v.unfollowed)
	}
	v.unfollowed[to] = why
}

// exitOnly returns the reason why an exit for which a layout says where it resumes is compared only with the run from there, or "". e is the
// activation that it belongs to, or nil where that is not followed.
func (v *verifier) exitOnly(e *entry, exit *prediction) string {
	f := exit.frame
	switch {
	case !v.described(f.Function, f.Record.ID):
		return ""
	case e != nil && exit.out.Baseline.State.Why != "":
		return exit.out.Baseline.State.Why
	case e != nil:
		return ""
	case len(v.options.At) > 0:
		return "--at says where it stops, and that is no entry of theirs"
	case v.unfollowed[exit.to] != "":
		return v.unfollowed[exit.to]
	case v.spent(f.Function):
		return v.inVain(f.Function)
	}
	return "the activation had begun before its entry was watched"
}

// isEntry reports whether a hit is the entry of a function that is followed.
func (v *verifier) isEntry(p *trace.Tracepoint) bool {
	return p.Entry || v.options.EntriesOf != nil && p.Symbol != ""
}

// enter begins to follow an activation. It returns the reason where it cannot, else "".
func (v *verifier) enter(x *trace.Exited) (why string, err error) {
	if why := unsure(x, 0); why != "" {
		return why, nil
	}
	name, f := x.Point.Function, x.Frames[0]
	e := &entry{function: name, reached: map[ir.Value]uint64{}}
	var baseline *ir.Func
	if e.fn, baseline, why = v.functions(name, x.Point.Addr); why != "" {
		return why, nil
	}
	if e.fn != nil {
		v.from(x.Point.Addr, func() *frame.CompiledFrom { return deopt.ProvenanceOfCode(v.watcher.View(), x.Point.Addr, e.fn) })
	}
	args, why, err := v.arguments(x, e, baseline)
	if err != nil || why != "" {
		return why, err
	}
	t := v.watcher.View().Target()
	maps, err := t.Mappings()
	if err != nil {
		return "", err
	}
	if v.memory, err = copyImage(t, maps, v.options.Memory, v.memory); err != nil {
		return err.Error(), nil
	}
	to, _ := x.Returns(0)
	delete(v.unfollowed, to) // of one that is gone
	run := []*ir.Func{baseline}
	if e.fn != nil && e.fn != baseline {
		run = append(run, e.fn)
	}
	for n, fn := range run {
		p := &prediction{entry: e, fn: fn, frame: f, cc: fn.CC, args: args, calls: map[machine.Addr]bool{}, first: v.memory}
		if e.fn != nil {
			p.cc = e.fn.CC
		}
		p.out = &Verified{Exit: x, Entry: name, Number: v.entries, Hit: v.entries, Before: &imageMemory{image: v.memory, now: t}}
		p.prepare = func(o interp.Options) (*interp.Interp, func(context.Context) (*interp.Result, error), error) {
			in, err := f.Machine(fn, o)
			if err != nil {
				return nil, nil, err
			}
			return in, func(ctx context.Context) (*interp.Result, error) { return in.Call(ctx, fn, args) }, nil
		}
		if why, err := v.place(p, x, 0, maps); err != nil || why != "" {
			return why, err
		}
		if _, err := p.begin(v); err != nil {
			p.runner.finish()
			return "", err
		}
		if n == 0 {
			e.baseline = p
		} else {
			e.own = p
		}
		v.follow(p)
	}
	return "", nil
}

// functions are the function of the modules whose native code starts at an address, nil where several may be it, and the one that it is held against: the
// one that was asked for, that of the layouts, or itself.
func (v *verifier) functions(name string, start machine.Addr) (own, baseline *ir.Func, why string) {
	modules := v.watcher.View().Modules()
	switch all := alone(modules.Definitions(name)); len(all) {
	case 0:
	case 1:
		own = all[0]
	default:
		own = v.compiledAt(start, name, all)
	}
	as := v.options.Baseline
	if as == "" {
		for _, l := range v.options.Layouts {
			for _, x := range l.Exits {
				if x.Function != name || x.Resume.Function == as {
					continue
				}
				if as != "" {
					return own, nil, fmt.Sprintf("its exits resume in @%s and in @%s; --baseline says which it is held against", as, x.Resume.Function)
				}
				as = x.Resume.Function
			}
		}
	}
	switch all := alone(modules.Definitions(as)); {
	case as == "" && own == nil:
		return nil, nil, fmt.Sprintf("no module defines @%s alone; --ir gives it, and --baseline another function to be held against", name)
	case as == "":
		return own, own, ""
	case len(all) != 1:
		return own, nil, fmt.Sprintf("%d functions of the modules are called @%s, which it is to be held against", len(all), as)
	default:
		return own, all[0], ""
	}
}

// alone leaves out what others replace: of definitions all of which do the same, one is enough (LangRef, "Linkage Types").
func alone(all []*ir.Func) []*ir.Func {
	same := func(f *ir.Func) bool {
		return strings.HasSuffix(f.Linkage, "_odr") || f.Linkage == "available_externally"
	}
	rest := slices.DeleteFunc(slices.Clone(all), same)
	if len(rest) == 0 && len(all) > 0 {
		rest = all[:1]
	}
	return rest
}

// arguments reads the arguments of a function.
func (v *verifier) arguments(x *trace.Exited, e *entry, baseline *ir.Func) (args []interp.Value, why string, err error) {
	native := baseline
	if e.fn != nil {
		native = e.fn
	}
	same := slices.EqualFunc(native.Params, baseline.Params, func(a, b *ir.Param) bool { return deopt.SameType(a.Typ, b.Typ) })
	switch {
	case !same || !deopt.SameType(native.Sig.Elem, baseline.Sig.Elem):
		return nil, fmt.Sprintf("@%s takes or returns other types than @%s", native.Name, baseline.Name), nil
	case native.Sig.Variadic:
		return nil, fmt.Sprintf("@%s takes a variable number of arguments", native.Name), nil
	}
	t := v.watcher.View().Target()
	for n, a := range abi.Arguments(abi.SignatureOf(native), t.Arch()) {
		value, err := a.Read(x.Thread.Registers, t)
		if err != nil {
			return nil, fmt.Sprintf("argument %d: %v", n+1, err), nil
		}
		args = append(args, value)
	}
	return args, "", nil
}

// native is the function whose native code runs, nil where it is not known.
func (p *prediction) native() *ir.Func {
	if p.entry != nil {
		return p.entry.fn
	}
	return p.frame.NativeFunction()
}

// entryOf is the activation that is followed from its entry on and that an exit is of, or nil.
func (v *verifier) entryOf(p *prediction) *entry {
	for _, q := range slices.Backward(v.pending) {
		if q.entry != nil && q == q.entry.baseline && q.call == p.call {
			return q.entry
		}
	}
	return nil
}
