package sites

import "example.com/reframe/internal/llvm/ir"

// CompiledSites returns the sites of a function in program order, as the code generator may see them: a guard is the
// deoptimize call that lower-guard-intrinsic or make-guards-explicit puts in its place. They are left to the JIT where the module still has guards: none is compiled.
func CompiledSites(f *ir.Func) ([]*ir.Site, error) {
	all, err := AllSites(f)
	for k, s := range all {
		if s.Kind == ir.GuardSite {
			lowered := *s
			lowered.Kind = ir.DeoptimizeSite
			all[k] = &lowered
		}
	}
	return all, err
}

// isGuard reports whether a site is a guard, or what that is lowered to: the function goes by where the condition holds.
func isGuard(s *ir.Site) bool { return CalledName(s.Instr) == "llvm.experimental.guard" }
