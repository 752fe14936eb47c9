package deopt

import (
	"fmt"
	"math/big"

	"reframe/deopt/ir"
	"reframe/deopt/stackmap"
)

// MismatchError says that an IR module cannot be what the process runs.
type MismatchError struct {
	Module   string // its file
	Function string
	Record   uint64
	Why      string
}

func (e *MismatchError) Error() string {
	where := ""
	if e.Function != "" {
		where = " of @" + e.Function
	}
	return fmt.Sprintf("%s does not match the process: record %d%s %s", e.Module, e.Record, where, e.Why)
}

// modules are the IR modules that the user gave.
type modules []*ir.Module

// function returns the definition of a function, or nil.
func (ms modules) function(name string) *ir.Func {
	for _, m := range ms {
		if f := m.Func(name); f != nil && !f.Declared() {
			return f
		}
	}
	return nil
}

// sites returns the sites that a record of the named function can belong to. The id
// need not be unique, so what the record holds has to agree too: the number of live
// values, and the constants. name is "" where the function has no symbol: then
// the id alone leads to the site.
//
// The error is a [*MismatchError] where sites have the record's id and none of them fits.
func (ms modules) sites(name string, e stackmap.Entry) ([]*ir.Site, error) {
	var named []*ir.Site
	if f := ms.function(name); f != nil {
		var err error
		if named, err = withID(f, e); err != nil {
			return nil, err
		}
	}
	if len(named) == 0 {
		// The record may have come with a function that was inlined into this one.
		for _, m := range ms {
			for _, f := range m.Funcs {
				if f.Declared() {
					continue
				}
				more, err := withID(f, e)
				if err != nil {
					return nil, err
				}
				named = append(named, more...)
			}
		}
	}
	if len(named) == 0 {
		return nil, nil
	}
	var fitting []*ir.Site
	var why string
	for _, s := range named {
		if w := misfit(s, e); w != "" {
			why = w
			continue
		}
		fitting = append(fitting, s)
	}
	if len(fitting) == 0 {
		return nil, &MismatchError{named[0].Func.Module.Name, named[0].Func.Name, uint64(e.Record.ID), why}
	}
	return fitting, nil
}

func withID(f *ir.Func, e stackmap.Entry) ([]*ir.Site, error) {
	all, err := f.Sites()
	if err != nil {
		return nil, err
	}
	var out []*ir.Site
	for _, s := range all {
		if s.ID == uint64(e.Record.ID) {
			out = append(out, s)
		}
	}
	return out, nil
}

// live returns the locations of the values that a site's Live operands became, and
// for a statepoint the whole reading of the record.
func live(s *ir.Site, e stackmap.Entry) (locations []stackmap.Location, sp *stackmap.Statepoint, why string) {
	switch s.Kind {
	case ir.StatepointSite, ir.DeoptimizeSite:
		view, ok := e.Map.AsStatepoint(e.Record)
		if !ok {
			return nil, nil, "is not shaped like that of a statepoint, which the module has there"
		}
		return view.Deopt, &view, ""
	case ir.PatchPointSite:
		// With anyregcc the result and the arguments of the call are recorded before the
		// live values (LLVM, "Stack maps and patch points", llvm.experimental.patchpoint).
		head := 0
		if s.CC == "anyregcc" {
			head = len(s.Instr.Args) - patchpointHead - len(s.Live)
			if s.Instr.Typ.Kind != ir.VoidKind {
				head++
			}
		}
		if head > len(e.Record.Locations) {
			return nil, nil, fmt.Sprintf("has %d values, and the module's patchpoint records %d before the live ones", len(e.Record.Locations), head)
		}
		return e.Record.Locations[head:], nil, ""
	}
	return e.Record.Locations, nil, ""
}

// patchpointHead counts the operands before a patchpoint's arguments: id, bytes,
// target, number of arguments.
const patchpointHead = 4

// misfit says why the record cannot be that of the site, or "".
func misfit(s *ir.Site, e stackmap.Entry) string {
	locations, _, why := live(s, e)
	if why != "" {
		return why
	}
	if n := expected(s); len(locations) != n {
		return fmt.Sprintf("has %d live values, and line %d of the module %d", len(locations), s.Instr.Line, n)
	}
	at := 0
	for k, v := range s.Live {
		if noLocation(s, v) {
			continue
		}
		at++
		c, ok := v.(*ir.Const)
		if !ok || c.Kind != ir.ConstInt || c.Typ.Bits > 64 {
			continue
		}
		recorded, err := e.Map.Constant(locations[at-1])
		if err != nil {
			continue // the compiler may keep a constant in a register or a slot
		}
		width := uint(c.Typ.Bits)
		mask := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), width), big.NewInt(1))
		if got := new(big.Int).And(new(big.Int).SetUint64(recorded), mask); got.Cmp(new(big.Int).And(c.Int, mask)) != 0 {
			return fmt.Sprintf("holds the constant %v as its live value %d, and line %d of the module %s", got, k, s.Instr.Line, c.Ref())
		}
	}
	return ""
}

// narrow keeps the sites whose callee is the function that the frame really calls, so
// far as the call before pc names one.
func narrow(sites []*ir.Site, callee string) []*ir.Site {
	if callee == "" || len(sites) < 2 {
		return sites
	}
	var out []*ir.Site
	for _, s := range sites {
		if f, ok := s.Callee.(*ir.Func); !ok || f.Name == callee {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return sites
	}
	return out
}
