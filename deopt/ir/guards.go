package ir

import "fmt"

// GuardSite is a call of llvm.experimental.guard. It has no record of its own: the pass
// lower-guard-intrinsic makes it a branch to a deoptimize call that takes over its deopt
// bundle (LangRef, "llvm.experimental.guard").
const GuardSite SiteKind = "guard"

// Guards returns the guards of a function in program order, as the deoptimize sites that
// they will be; none for a declaration. The error is that of its body.
func (f *Func) Guards() ([]*Site, error) {
	if f.Declared() {
		return nil, nil
	}
	blocks, err := f.Body()
	if err != nil {
		return nil, err
	}
	var guards []*Site
	for _, b := range blocks {
		for _, in := range b.Instrs {
			if !isIntrinsic(in, "experimental.guard") {
				continue
			}
			s := &Site{Kind: GuardSite, Func: f, Instr: in, CC: in.Call.CC}
			if err := s.bundled(); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", f.Module.Name, in.Line, err)
			}
			guards = append(guards, s)
		}
	}
	return guards, nil
}
