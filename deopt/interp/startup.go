package interp

import (
	"cmp"
	"slices"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// StartProgram is [Interp.StartCall] for a program that has not started. Before f it runs the functions of @llvm.global_ctors, such as the
// constructors of C++ globals. After f it runs the handlers of atexit and then the functions of @llvm.global_dtors. The execution stops before the
// first instruction of the first of these functions.
func (in *Interp) StartProgram(f *ir.Func, args []Value) (*Execution, error) {
	if err := in.takes(f, args); err != nil {
		return nil, located(err)
	}
	begin, err := in.structors("llvm.global_ctors")
	if err != nil {
		return nil, located(err)
	}
	end, err := in.structors("llvm.global_dtors")
	if err != nil {
		return nil, located(err)
	}
	// Run these after all handlers, the last one first, as the dynamic loader does.
	for _, d := range end {
		if err := in.view.charge(handlerCost); err != nil {
			return nil, located(err)
		}
		in.clib.handler = append(in.clib.handler, handler{f: d})
	}
	x, err := in.start(f, func(ret *shape, out []word) error {
		for _, c := range begin {
			in.run.stages = append(in.run.stages, func() error { return in.prepareHandler(c) })
		}
		in.run.stages = append(in.run.stages, func() error { return in.prepare(f, args, ret, out) })
		return in.nextStage()
	})
	if err == nil {
		x.after, x.fresh = in.runHandlers, true
	}
	return x, err
}

// nextStage pushes the first frame of the next part of a program.
func (in *Interp) nextStage() error {
	stage := in.run.stages[0]
	in.run.stages = in.run.stages[1:]
	return stage()
}

// prepareHandler pushes a frame of a function without arguments. Its result is ignored.
func (in *Interp) prepareHandler(a machine.Addr) error {
	f, name := in.names.funcAt(a)
	f, err := in.body(f)
	switch {
	case err != nil:
		return err
	case f == nil && name != "":
		return unsupported(in.nativeHint(), "the constructor @%s", name)
	case f == nil:
		return troublef(KindFault, "the constructor %v is not a function of the module", a)
	}
	ret, err := in.shapes.of(f.Sig.Elem)
	if err != nil {
		return err
	}
	return in.prepare(f, nil, ret, ret.undefined())
}

// structors returns the functions that all modules list in @llvm.global_ctors or @llvm.global_dtors, by ascending priority and then by position
// (LangRef, "The 'llvm.global_ctors' Global Variable"). A null function ends a list. An entry is skipped if its associated data is not defined in its
// module.
func (in *Interp) structors(list string) ([]machine.Addr, error) {
	type entry struct {
		priority uint64
		f        machine.Addr
	}
	var all []entry
	for _, m := range in.mods {
		g, _ := m.Lookup(list).(*ir.Global)
		if g == nil || g.Init == nil {
			continue
		}
		for _, e := range g.Init.Elems {
			w, err := in.evaluate(e)
			if err != nil {
				return nil, err
			}
			if len(w) < 2 || w[0].u|w[1].u != 0 || e.Typ.Kind != ir.StructKind || len(e.Elems) > 3 {
				return nil, troublef(KindModule, "@%s has an element of type %v", list, e.Typ)
			}
			if w[1].v == 0 {
				break
			}
			if len(e.Elems) == 3 && e.Elems[2].Kind == ir.ConstRef {
				if _, defines := definition(e.Elems[2].Target); !defines {
					continue
				}
			}
			all = append(all, entry{w[0].v, machine.Addr(w[1].v)})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.priority, b.priority) })
	fs := make([]machine.Addr, len(all))
	for k, e := range all {
		fs[k] = e.f
	}
	return fs, nil
}
