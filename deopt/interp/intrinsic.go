package interp

import (
	"maps"
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// intrinsicDecoder decodes a call of an intrinsic whose arguments all have slots.
type intrinsicDecoder func(d *decoder, i *ir.Instr, args []slot, out slot) (step, error)

// silent lists the intrinsics that do nothing: they only inform an optimizer or a debugger.
var silent = []string{
	"dbg", "donothing", "experimental.stackmap", "webkit.stackmap", "experimental.noalias.scope.decl",
	"sideeffect", "prefetch", "invariant.end", "pseudoprobe", "var.annotation", "fake.use",
}

func isSilent(name string) bool {
	return slices.ContainsFunc(silent, func(s string) bool { return name == s || strings.HasPrefix(name, s+".") })
}

// same lists intrinsics that yield their first argument.
var same = []string{
	"expect", "expect.with.probability", "launder.invariant.group", "strip.invariant.group", "ptr.annotation",
	"annotation", "ssa.copy", "threadlocal.address",
}

var intrinsics = map[string]intrinsicDecoder{
	"memcpy": copies, "memcpy.inline": copies, "memmove": copies,
	"memset": sets, "memset.inline": sets,
	// An atomic copy by element runs as a plain copy, because no other thread observes it.
	"memcpy.element.unordered.atomic": copies, "memmove.element.unordered.atomic": copies, "memset.element.unordered.atomic": sets,
	"stacksave": stackSave, "stackrestore": stackRestore,
	"frameaddress": noValue,
	"is.constant":  yields(0), "objectsize": objectSize,
	"trap": traps, "ubsantrap": traps, "debugtrap": traps,
	"lifetime.start": lifetime, "lifetime.end": lifetime,
	"assume":                  assume,
	"experimental.guard":      guard,
	"experimental.deoptimize": deoptimize,
	// LLVM allows true and false here. Yield true, as LLVM's code generator does, so that guards fail only because of their own conditions.
	"experimental.widenable.condition": yields(1),
	"experimental.gc.result":           gcResult,
	"get.rounding":                     getRounding, "flt.rounds": getRounding,
	"ptrmask":       ptrMask,
	"load.relative": relativeLoad,
}

func init() {
	for _, name := range same {
		intrinsics[name] = firstArgument
	}
	for name, f := range intIntrinsics {
		intrinsics[name] = f.decode
	}
	for name, f := range overflowIntrinsics {
		intrinsics[name+".with.overflow"] = f.decode
	}
	for name, f := range reductions {
		intrinsics["vector.reduce."+name] = f.decode
	}
	maps.Copy(intrinsics, vaIntrinsics)
	maps.Copy(intrinsics, jumpIntrinsics)
	intrinsics["eh.typeid.for"] = typeidFor
	for name, f := range floatIntrinsics {
		if full := "llvm." + name; EffectOf(full) == EffectMath {
			f = noted{f, full}
			floatIntrinsics[name] = f // also used by the constrained intrinsics
		}
		intrinsics[name] = f.decode
	}
	for name, f := range maskeds {
		intrinsics[name] = f.decode
	}
	for name, f := range moves {
		intrinsics[name], intrinsics["experimental."+name] = f, f
	}
	intrinsics["stepvector"], intrinsics["experimental.stepvector"] = stepVector, stepVector
	intrinsics["get.active.lane.mask"] = activeLanes
}

// intrinsic decodes a call of llvm.NAME.TYPES.
func (d *decoder) intrinsic(i *ir.Instr, full string, out slot) (step, error) {
	name := strings.TrimPrefix(full, "llvm.")
	switch {
	case isSilent(name):
		return func(*frame) error { return nil }, nil
	case strings.HasPrefix(full, statepointPrefix):
		return d.statepoint(i, out)
	case strings.HasPrefix(name+".", "experimental.patchpoint."), strings.HasPrefix(name+".", "webkit.patchpoint."):
		return d.patchpoint(i, out)
	case strings.HasPrefix(name, constrainedPrefix):
		return d.constrained(i, strings.TrimPrefix(name, constrainedPrefix), out)
	case strings.HasPrefix(name, "experimental.gc.relocate"):
		from, err := d.relocated(i)
		if err != nil {
			return nil, err
		}
		return copyOf(from, out)
	}
	// Remove the type suffixes of an overloaded name, one by one, until the table has the rest.
	for key := name; ; {
		if f := intrinsics[key]; f != nil {
			args, err := d.operands(i, len(i.Args))
			if err != nil {
				return nil, err
			}
			return f(d, i, args, out)
		}
		dot := strings.LastIndexByte(key, '.')
		if dot < 0 {
			break
		}
		key = key[:dot]
	}
	return nil, unsupported("", "the intrinsic @%s", full)
}

func copyOf(from, out slot) (step, error) {
	if !alike(from.s, out.s) {
		return nil, troublef(KindModule, "a value of type %v; expected %v", from.s.typ, out.s.typ)
	}
	return func(fr *frame) error {
		copy(out.in(fr), from.in(fr))
		return nil
	}, nil
}

func firstArgument(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) == 0 {
		return nil, wrongUse(i)
	}
	return copyOf(args[0], out)
}

func wrongUse(i *ir.Instr) error {
	return troublef(KindModule, "invalid arguments for %s", i.Call.Callee.Ref())
}

// gcResult copies the result of the statepoint's callee. The slot of the statepoint's token holds it.
func gcResult(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) != 1 {
		return nil, wrongUse(i)
	}
	return copyOf(args[0], out)
}

// scalars reports whether the first n arguments are scalars of one word.
func scalars(args []slot, n int) bool {
	if len(args) < n {
		return false
	}
	for _, a := range args[:n] {
		if a.s.bits == 0 || a.s.words != 1 {
			return false
		}
	}
	return true
}

// length reads the length operand of an intrinsic. It returns an error if a bit is undefined.
func length(fr *frame, at slot) (uint64, error) {
	w := fr.w[at.at]
	if w.u != 0 {
		return 0, notKnown([]word{w}, "the length")
	}
	return w.v, nil
}

// atPointer decodes an intrinsic whose first n arguments are scalars, the first one a pointer. Its step calls f with the pointer.
func atPointer(i *ir.Instr, args []slot, n int, f func(fr *frame, a machine.Addr) error) (step, error) {
	if !scalars(args, n) {
		return nil, wrongUse(i)
	}
	return func(fr *frame) error {
		a, err := pointer(fr, args[0])
		if err != nil {
			return err
		}
		return f(fr, a)
	}, nil
}

func copies(_ *decoder, i *ir.Instr, args []slot, _ slot) (step, error) {
	if !scalars(args, 3) {
		return nil, wrongUse(i)
	}
	return func(fr *frame) error {
		n, err := length(fr, args[2])
		if err != nil || n == 0 {
			return err
		}
		to, from, err := pointers(fr, args[0], args[1])
		if err != nil {
			return err
		}
		return fr.in.move(to, from, n)
	}, nil
}

func sets(_ *decoder, i *ir.Instr, args []slot, _ slot) (step, error) {
	if !scalars(args, 3) {
		return nil, wrongUse(i)
	}
	return func(fr *frame) error {
		n, err := length(fr, args[2])
		if err != nil || n == 0 {
			return err
		}
		to, err := pointer(fr, args[0])
		if err != nil {
			return err
		}
		return fr.in.set(to, fr.w[args[1].at], n)
	}, nil
}

// set fills memory with the byte b, whose bits may be undefined.
func (in *Interp) set(to machine.Addr, b word, n uint64) error {
	if err := in.work(n); err != nil {
		return err
	}
	if n > in.view.limit {
		return troublef(KindMemory, "a fill of %d bytes is more than the %d bytes of memory allowed", n, in.view.limit)
	}
	return in.view.fill(to, b, n)
}

func stackSave(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if out.s.words != 1 {
		return nil, wrongUse(i)
	}
	return func(fr *frame) error {
		fr.w[out.at] = word{v: uint64(fr.in.stack.next)}
		return nil
	}, nil
}

// stackRestore releases the allocas that the running function made after the stacksave.
func stackRestore(_ *decoder, i *ir.Instr, args []slot, _ slot) (step, error) {
	return atPointer(i, args, 1, func(fr *frame, a machine.Addr) error {
		live := fr.in.stack.live
		n := len(live)
		for n > fr.mark && live[n-1].addr >= a && !live[n-1].kept {
			n--
		}
		fr.in.stack.unwind(n)
		return nil
	})
}

// lifetime makes the content of an alloca undefined, because it has no value before its lifetime starts and after it ends (LangRef,
// "llvm.lifetime.start"). The pointer is the last argument; since LLVM 22 it is the only one. Other memory keeps its content.
func lifetime(_ *decoder, i *ir.Instr, args []slot, _ slot) (step, error) {
	if len(args) == 0 || args[len(args)-1].s.typ.Kind != ir.PointerKind {
		return nil, wrongUse(i)
	}
	at := args[len(args)-1].at
	return func(fr *frame) error {
		w := fr.w[at]
		object, ok := fr.in.stack.holding(machine.Addr(w.v))
		if w.u != 0 || !ok {
			return nil
		}
		return fr.in.set(object.addr, word{u: 0xff}, object.size)
	}, nil
}

// assume ends the run if the assumed condition is false (LangRef, "llvm.assume"). It ignores the operand bundles.
func assume(_ *decoder, i *ir.Instr, args []slot, _ slot) (step, error) {
	if !scalars(args, 1) || args[0].s.bits != 1 {
		return nil, wrongUse(i)
	}
	return func(fr *frame) error {
		switch w := fr.w[args[0].at]; {
		case w.u != 0:
			return notKnown([]word{w}, "the assumed %s", i.Args[0].Ref())
		case w.v == 0:
			return troublef(KindUnreachable, "the assumed %s is false", i.Args[0].Ref())
		}
		return nil
	}, nil
}

func yields(v uint64) intrinsicDecoder {
	return func(_ *decoder, i *ir.Instr, _ []slot, out slot) (step, error) {
		if out.s.bits == 0 {
			return nil, wrongUse(i)
		}
		return func(fr *frame) error {
			for k := range out.in(fr) {
				fr.w[out.at+k] = word{v: v & maskAt(out.s.bits, k)}
			}
			return nil
		}, nil
	}
}

// noValue decodes an intrinsic that yields an address in the stack of compiled code. The interpreter has no such stack, so the result is undefined.
func noValue(_ *decoder, _ *ir.Instr, _ []slot, out slot) (step, error) {
	return func(fr *frame) error {
		out.s.fillUndefined(out.in(fr))
		return nil
	}, nil
}

// objectSize yields the result for an object of unknown size: 0 if the caller requests the minimum, else -1 (LangRef, "llvm.objectsize").
func objectSize(d *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(i.Args) < 2 {
		return nil, wrongUse(i)
	}
	if minimum, ok := constantIndex(i.Args[1]); ok && minimum == 1 {
		return yields(0)(d, i, args, out)
	}
	return yields(^uint64(0))(d, i, args, out)
}

func traps(*decoder, *ir.Instr, []slot, slot) (step, error) {
	return nil, troublef(KindUnreachable, "a trap was reached")
}

func guard(d *decoder, i *ir.Instr, args []slot, _ slot) (step, error) {
	if !scalars(args, 1) || args[0].s.bits != 1 {
		return nil, wrongUse(i)
	}
	live, err := d.bundle(i, "deopt")
	if err != nil {
		return nil, err
	}
	return func(fr *frame) error {
		switch w := fr.w[args[0].at]; {
		case w.u != 0:
			return notKnown([]word{w}, "the condition %s", i.Args[0].Ref())
		case w.v != 0:
			return nil
		}
		return deoptimizes(fr, calleeName(i), args[1:], live)
	}, nil
}

func deoptimize(d *decoder, i *ir.Instr, args []slot, _ slot) (step, error) {
	live, err := d.bundle(i, "deopt")
	if err != nil {
		return nil, err
	}
	return func(fr *frame) error { return deoptimizes(fr, calleeName(i), args, live) }, nil
}

func ptrMask(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if !scalars(args, 2) || out.s.words != 1 || args[1].s.bits != args[0].s.bits {
		return nil, wrongUse(i)
	}
	and := narrowArith(ir.OpAnd, 64, 0)
	return func(fr *frame) (err error) {
		fr.w[out.at], err = and(fr.w[args[0].at], fr.w[args[1].at])
		return err
	}, nil
}
