package sites

import "example.com/reframe/internal/llvm/ir"

// CompiledSites returns the sites of a function in program order, as the code generator sees them. A guard counts as the deoptimize call that
// lower-guard-intrinsic or make-guards-explicit replaces it by. If the module still has guards, the JIT runs one of these passes later.
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

// isGuard reports whether a site is a guard, including one that a pass will lower. The function does not leave at a guard whose condition holds.
func isGuard(s *ir.Site) bool { return CalledName(s.Instr) == "llvm.experimental.guard" }
