package verify

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/ptrace"
)

// activation is a call of a function that is followed from the function's entry. In step with native code, the interpreter runs the baseline. If the
// baseline is another function, the interpreter also runs the function's own IR.
type activation struct {
	function string
	fn       *ir.Func // the function that runs as native code, or nil
	baseline *prediction
	own      *prediction         // nil if fn is the baseline, or if fn is unknown
	exits    int                 // number of exits of the activation
	ended    bool                // the activation has returned, or its baseline and native code differ
	reached  map[ir.Value]uint64 // the arrival of the last exit, by the instruction at which the exit resumes
}

// maxExitless bounds the followed activations of a function without a verified exit. After that ByLayout follows no further activation of the
// function, because each one is single-stepped.
const maxExitless = 100

// byLayout reports whether the layouts decide which activations are followed from their entry.
func (v *verifier) byLayout() bool {
	return v.options.ByLayout && !v.options.FromEntry && v.options.With == ""
}

// entriesOf returns a function that reports whether a record needs a breakpoint at the entry of its function; nil if no record does.
func (v *verifier) entriesOf() func(string, uint64) bool {
	switch {
	case v.options.FromEntry && v.options.With == "":
		return func(string, uint64) bool { return true }
	case v.byLayout():
		return v.described
	}
	return nil
}

// described reports whether a layout describes the place at which exits of a record resume.
func (v *verifier) described(function string, record uint64) bool {
	return slices.ContainsFunc(v.options.Layouts, func(l *layout.Layout) bool { return l.Meant(function, record) })
}

// wants returns false for hits at entries of functions that are no longer followed, so that no frames are built for them.
func (v *verifier) wants(_ machine.Thread, points []*trace.Tracepoint) bool {
	return slices.ContainsFunc(points, func(p *trace.Tracepoint) bool { return !p.Entry || !v.isExitless(p.Function) })
}

func (v *verifier) isExitless(function string) bool {
	return v.byLayout() && v.exitless[function] >= maxExitless
}

// reasonNotToFollow returns the reason why an activation need not be followed, or "".
func (v *verifier) reasonNotToFollow(x *trace.Exited) string {
	switch {
	case !v.byLayout():
		return ""
	case v.isExitless(x.Point.Function):
		return v.exitlessReason(x.Point.Function)
	case v.number < v.options.Skip:
		return "the activation began among the skipped exits"
	}
	return ""
}

func (v *verifier) exitlessReason(function string) string {
	return fmt.Sprintf("no more activations of @%s are followed: %d reached no exit, or one was abandoned before its first; use --from-entry to follow each", function, maxExitless)
}

// maxUnfollowed bounds the activations for which verify keeps the reason why they are not followed.
const maxUnfollowed = 1 << 12

// notFollowed records the reason why an activation is not followed from its entry.
func (v *verifier) notFollowed(x *trace.Exited, why error) {
	to, _ := x.Returns(0)
	v.unfollow(to, why)
}

// unfollow records the reason why the activation with a return address is not followed from its entry.
func (v *verifier) unfollow(to ptrace.Return, why error) {
	if !v.byLayout() {
		return
	}
	if len(v.unfollowed) == maxUnfollowed {
		clear(v.unfollowed)
	}
	v.unfollowed[to] = why
}

// exitOnlyReason returns the reason why an exit with a layout is compared only with the run from the exit on, or nil. e is the activation of the
// exit, or nil if the activation is not followed.
func (v *verifier) exitOnlyReason(e *activation, exit *prediction) error {
	f := exit.origin.frame
	switch {
	case !v.described(f.Function, f.Record.ID):
		return nil
	case e != nil && exit.out.Baseline.State.Why != "":
		return exit.out.Baseline.State.reason
	case e != nil:
		return nil
	case len(v.options.At) > 0:
		return errors.New("--at says where it stops, and that is no entry of theirs")
	case v.unfollowed[exit.origin.to] != nil:
		return v.unfollowed[exit.origin.to]
	case v.isExitless(f.Function):
		return errors.New(v.exitlessReason(f.Function))
	}
	return errors.New("the function was already running when reframe began to watch its entry")
}

// isEntry reports whether a hit is the entry of a function that is followed.
func (v *verifier) isEntry(p *trace.Tracepoint) bool {
	return p.Entry || v.options.EntriesOf != nil && p.Symbol != ""
}

// followFromEntry starts to follow the activation at whose entry a thread is stopped.
func (v *verifier) followFromEntry(x *trace.Exited) (err error) {
	if err := requireCertain(x, 0); err != nil {
		return err
	}
	name, f := x.Point.Function, x.Frames[0]
	e := &activation{function: name, reached: map[ir.Value]uint64{}}
	var baseline *ir.Func
	if e.fn, baseline, err = v.functions(name, x.Point.Addr); err != nil {
		return err
	}
	if e.fn != nil {
		v.recordProvenance(x.Point.Addr, func() *frame.CompiledFrom { return deopt.ProvenanceOfCode(v.watcher.View(), x.Point.Addr, e.fn) })
	}
	args, err := v.arguments(x, e, baseline)
	if err != nil {
		return err
	}
	t := v.watcher.View().Target()
	maps, err := t.Mappings()
	if err != nil {
		return err
	}
	if v.memory, err = copyImage(t, maps, v.options.Memory, v.memory); err != nil {
		return &incomparable{err}
	}
	to, _ := x.Returns(0)
	delete(v.unfollowed, to) // remove the reason of an earlier activation
	run := []*ir.Func{baseline}
	if e.fn != nil && e.fn != baseline {
		run = append(run, e.fn)
	}
	for n, fn := range run {
		p := v.newPrediction(entryOrigin(f, e.fn, fn, args))
		p.entry = e
		p.effects.start(v.memory)
		p.out = &Verified{Exit: x, Entry: name, Number: v.entries, Hit: v.entries, Before: &imageMemory{image: v.memory, now: t}}
		if err := v.place(p, x, 0, maps); err != nil {
			return err
		}
		if err := p.begin(v); err != nil {
			p.interp.runner.finish()
			return err
		}
		if n == 0 {
			e.baseline = p
		} else {
			e.own = p
		}
		v.addPending(p)
	}
	return nil
}

// functions returns the function whose native code starts at an address, or nil if several modules define it. It also returns the baseline of that
// function: the requested one, that of the layouts, or the function itself.
func (v *verifier) functions(name string, start machine.Addr) (own, baseline *ir.Func, err error) {
	modules := v.watcher.View().Modules()
	switch all := withoutEquivalents(modules.Definitions(name)); len(all) {
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
					return own, nil, incomparablef("its exits resume in @%s and in @%s; choose one with --baseline", as, x.Resume.Function)
				}
				as = x.Resume.Function
			}
		}
	}
	switch all := withoutEquivalents(modules.Definitions(as)); {
	case as == "" && own == nil:
		return nil, nil, incomparablef("no module defines @%s, or several do; give its module with --ir, or another function with --baseline", name)
	case as == "":
		return own, own, nil
	case len(all) != 1:
		return own, nil, incomparablef("the modules define the baseline @%s %d times, expected once", as, len(all))
	default:
		return own, all[0], nil
	}
}

// withoutEquivalents removes definitions that another equivalent definition may replace (LangRef, "Linkage Types").
func withoutEquivalents(all []*ir.Func) []*ir.Func {
	same := func(f *ir.Func) bool {
		return strings.HasSuffix(f.Linkage, "_odr") || f.Linkage == "available_externally"
	}
	rest := slices.DeleteFunc(slices.Clone(all), same)
	if len(rest) == 0 && len(all) > 0 {
		rest = all[:1]
	}
	return rest
}

// arguments reads the arguments with which an activation was entered, as values for the parameters of its baseline.
func (v *verifier) arguments(x *trace.Exited, e *activation, baseline *ir.Func) (args []interp.Value, err error) {
	native := baseline
	if e.fn != nil {
		native = e.fn
	}
	same := slices.EqualFunc(native.Params, baseline.Params, func(a, b *ir.Param) bool { return deopt.SameType(a.Typ, b.Typ) })
	switch {
	case !same || !deopt.SameType(native.Sig.Elem, baseline.Sig.Elem):
		return nil, incomparablef("@%s and @%s have different types; use --baseline NAME", native.Name, baseline.Name)
	case native.Sig.Variadic:
		return nil, incomparablef("@%s takes a variable number of arguments", native.Name)
	}
	t := v.watcher.View().Target()
	for n, a := range abi.Arguments(abi.SignatureOf(native), t.Arch()) {
		value, err := a.Read(x.Thread.Registers, t)
		if err != nil {
			return nil, incomparablef("argument %d: %w", n+1, err)
		}
		args = append(args, value)
	}
	return args, nil
}

// maxEntryRecords bounds the records of a function that are used to find its module.
const maxEntryRecords = 64

// compiledAt selects the definition from which the code at a function's start was compiled, if there are several definitions. It returns nil unless
// all records with names choose the same definition.
func (v *verifier) compiledAt(start machine.Addr, name string, all []*ir.Func) (own *ir.Func) {
	view := v.watcher.View()
	c := view.Space().At(start)
	if c == nil || c.Records == nil {
		return nil
	}
	span := c.Records.Range(start, start+sites.MaxFunction)
	for n := range min(span.Len(), maxEntryRecords) {
		entry := span.Entry(n)
		if entry.Function.Addr != start {
			continue
		}
		found, err := view.Modules().OfRecord(c, sites.RecordEntry{Entry: entry, Record: entry.Record()}, name)
		if err != nil {
			return nil
		}
		for _, s := range found.Sites {
			if own != nil && s.Func != own || !slices.Contains(all, s.Func) {
				return nil
			}
			own = s.Func
		}
	}
	return own
}
