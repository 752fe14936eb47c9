package interp

// Called describes a function that a run called and that no module of the program defines. It is a function of the C library, a function of
// [Options].Funcs, or an intrinsic that computes a function of <math.h>.
type Called struct {
	Name   string // for an intrinsic, "llvm.pow" without its types
	Effect Effect
	Count  uint64
}

// called holds the external functions that one run called.
type called struct {
	byName map[string]*external
	order  []*external
}

type external struct {
	Called
	run Builtin // nil for an intrinsic
}

// external returns the function with this name, or nil if there is none.
func (in *Interp) external(name string) *external {
	if f := in.run.called.byName[name]; f != nil && f.run != nil {
		return f
	}
	effect, b := EffectOutside, in.opt.Funcs[name]
	if b == nil {
		b, effect = libc[name], EffectOf(name)
		if in.opt.Native != nil && leftToNative(name, b, effect) {
			b, effect = in.opt.Native, EffectNative
		}
	}
	if b == nil {
		return nil
	}
	return in.run.called.add(name, effect, b)
}

func (l *called) add(name string, effect Effect, run Builtin) *external {
	if l.byName == nil {
		l.byName = map[string]*external{}
	}
	f := &external{Called{Name: name, Effect: effect}, run}
	l.byName[name] = f
	l.order = append(l.order, f)
	return f
}

func (l *called) list() []Called {
	var list []Called
	for _, f := range l.order {
		if f.Count > 0 {
			list = append(list, f.Called)
		}
	}
	return list
}

// Called returns the functions that the current run has called so far, as in [Result.Called]. Do not call it while the run executes instructions; it
// may be called from [Options.Native].
func (in *Interp) Called() []Called { return in.run.called.list() }

// Frozen reports whether a freeze has chosen a value for undefined bits so far.
func (in *Interp) Frozen() bool { return in.frozen }

// keepsState records that this call of the function used or changed state of the C library. It raises the function's effect to at least
// [EffectState].
func (c *ccall) keepsState() {
	if f := c.in.run.called.byName[c.Name]; f != nil {
		f.Effect = max(f.Effect, EffectState)
	}
}
