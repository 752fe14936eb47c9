package layout

import (
	"fmt"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
)

// Misfit is a part of an exit that does not match the modules.
type Misfit struct {
	Kind MisfitKind
	Path string // in the exit, such as .slots[2].operand; "" for the whole exit
	Err  error
	// Operand is an operand that no site has, and Most the largest number of live values of a site.
	Operand, Most int
}

// MisfitKind is the kind of mismatch.
type MisfitKind int

const (
	NoFunction MisfitKind = iota
	Unreadable            // the body of the function that resumes cannot be read
	NoSite                // no site with that record in the function that is left
	NoOperand
	NoBlock
	NoValue
	Twice // two slots name the same value, in two spellings
)

func misfit(kind MisfitKind, path, format string, args ...any) Misfit {
	return Misfit{Kind: kind, Path: path, Err: fmt.Errorf(format, args...)}
}

// Check compares a layout with the modules: each function, block, value and operand that it names must exist. Without modules it returns nil. The
// error describes one mismatch; for an exit with an unknown function, that function.
func (l *Layout) Check(ms *sites.Modules) error {
	if len(ms.All) == 0 {
		return nil
	}
	for n := range l.Exits {
		x := &l.Exits[n]
		_, left, err := x.Leaves(ms)
		into := x.Enters(ms)
		for _, list := range [][]Misfit{left, into} {
			if len(list) > 0 && list[0].Kind == NoFunction {
				return l.misfit(x, list[0])
			}
		}
		if err != nil {
			return err
		}
		if all := slices.Concat(left, into); len(all) > 0 {
			return l.misfit(x, all[0])
		}
	}
	return nil
}

func (l *Layout) misfit(x *Exit, m Misfit) error { return l.Wrong(x.Path+m.Path, m.Err) }

// Leaves compares the exit with the function that is left. It returns the sites where it may be taken, and the mismatches.
func (x *Exit) Leaves(ms *sites.Modules) (at []*ir.Site, wrong []Misfit, err error) {
	from := ms.Definitions(x.Function)
	if len(from) == 0 {
		return nil, []Misfit{misfit(NoFunction, ".function", "no module defines a function @%s", x.Function)}, nil
	}
	most := 0
	for _, f := range from {
		all, err := sites.CompiledSites(f)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range all {
			if x.MayLeave(s) {
				at, most = append(at, s), max(most, len(s.Live))
			}
		}
	}
	if len(at) == 0 {
		return nil, []Misfit{misfit(NoSite, "", "@%s has no such exit: it has no stackmap, patchpoint, statepoint or deoptimize with that record", x.Function)}, nil
	}
	inside := func(path string, operand int) {
		if operand < 0 || operand >= most {
			m := misfit(NoOperand, path, "%v", NoSuchOperand(operand, fmt.Sprintf("the exits of @%s have", x.Function), most))
			m.Operand, m.Most = operand, most
			wrong = append(wrong, m)
		}
	}
	for k, c := range x.When {
		inside(fmt.Sprintf(".when[%d].operand", k), c.Operand)
	}
	for k, s := range x.Slots {
		inside(fmt.Sprintf(".slots[%d].operand", k), s.Operand)
	}
	return at, wrong, nil
}

// MayLeave reports whether a frame at a site may take the exit for some values.
func (x *Exit) MayLeave(s *ir.Site) bool {
	return sites.Emitted(s.Func.Module, x.Function) == s.Func && (x.Record == nil || slices.Contains(s.IDs(), *x.Record))
}

// Enters compares the exit with the function that resumes. Of several definitions it uses the first.
func (x *Exit) Enters(ms *sites.Modules) []Misfit {
	to := ms.Bodies(x.Resume.Function)
	if len(to) == 0 {
		return []Misfit{misfit(NoFunction, ".resume.function", "no module defines a function @%s", x.Resume.Function)}
	}
	return x.into(to[0])
}

// into compares the exit with one function that may resume.
func (x *Exit) into(to *ir.Func) (wrong []Misfit) {
	if _, err := to.Body(); err != nil {
		return []Misfit{{Kind: Unreadable, Path: ".resume.function", Err: err}}
	}
	if to.Block(x.Resume.Block) == nil {
		wrong = append(wrong, misfit(NoBlock, ".resume.block", "@%s has no block %%%s", to.Name, x.Resume.Block))
	}
	seen := map[ir.Value]bool{}
	for k, s := range x.Slots {
		path := fmt.Sprintf(".slots[%d].name", k)
		switch v := Value(to, s.Name); {
		case v == nil:
			wrong = append(wrong, misfit(NoValue, path, "@%s has no value %s", to.Name, s.Name))
		case seen[v]:
			wrong = append(wrong, misfit(Twice, path, "%s is given twice", s.Name))
		default:
			seen[v] = true
		}
	}
	return wrong
}

// Destination returns the function in which the exit resumes from a site of a module (nil if unknown), and the number of its definitions. If there
// are several definitions, it returns the module's own. It returns nil if there is no definition, or if there are several and the module's own is not
// among them.
func (x *Exit) Destination(ms *sites.Modules, left *ir.Module) (to *ir.Func, defined int) {
	all := ms.Bodies(x.Resume.Function)
	for _, f := range all {
		if len(all) == 1 || f.Module == left {
			to = f
		}
	}
	return to, len(all)
}

// CheckInto compares an exit of the layout with the function in which it resumes.
func (l *Layout) CheckInto(x *Exit, to *ir.Func) error {
	if wrong := x.into(to); len(wrong) > 0 {
		return l.misfit(x, wrong[0])
	}
	return nil
}

// Fits reports whether a value of type got can be resumed as a value of type want.
func Fits(got, want frame.Type) bool { return got.Bits == want.Bits && class(got) == class(want) }

// Widens reports whether the slot widens a value of type got to type want, which has more bits.
func (s *Slot) Widens(got, want frame.Type) bool {
	return s.Extend != "" && got.Kind == frame.Int && want.Kind == frame.Int && got.Bits < want.Bits
}

// class returns the interpretation of the bits of a type. Integers may be resumed as pointers, and pointers as integers; no other conversion is
// allowed.
func class(t frame.Type) string {
	switch t.Kind {
	case frame.Int, frame.Pointer:
		return "integer"
	case frame.Opaque, frame.Vector, frame.Array, frame.Struct:
		return t.Source
	case frame.BFloat:
		return "bfloat"
	}
	return "float"
}

// NoSuchOperand returns the error for an operand that does not exist. have is the beginning of the sentence that gives the number of live values, up
// to its verb.
func NoSuchOperand(operand int, have string, values int) error {
	if values == 0 {
		return fmt.Errorf("%d: %s no live values", operand, have)
	}
	return fmt.Errorf("%d: %s %d live values: expected a number from 0 to %d", operand, have, values, values-1)
}
