package lint

import (
	"fmt"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
)

// compiles reports sites that the code generator does not compile, or compiles wrongly. All cases were seen with llc 14 to 22.
func (l *linter) compiles(s *ir.Site) {
	switch {
	case narrow(s.Func.Module):
		l.site(s, Finding{Rule: NotCompiled, Severity: CannotResume,
			What: fmt.Sprintf("pointers have 32 bits on %s: llc fails, or writes a stack map that is not supported", s.Func.Module.Triple),
			Do:   "compile for a 64-bit target; run runs modules for 32-bit x86"})
	case s.Kind == ir.GuardSite:
		l.site(s, Finding{Rule: NotCompiled, Severity: LintWarning, What: "a guard crashes the code generator",
			Do: "lower it first: opt -passes=lower-guard-intrinsic"})
	case sites.StatepointLike(s) && s.Instr.Call.Tail == "musttail":
		l.site(s, Finding{Rule: NotCompiled, Severity: LintWarning, What: "LLVM 22 does not compile a musttail call with a deopt bundle, and earlier releases make it an ordinary call",
			Do: "drop musttail: its frame must stay to be resumed"})
	case s.Kind == ir.StatepointSite && notFirst(s):
		l.site(s, Finding{Rule: WrongCallee, Severity: CannotResume, Names: []string{s.Callee.Ref()},
			What: fmt.Sprintf("it calls the first element of the aggregate that its callee, %s, is extracted from (llvm-project issue 207508)", s.Callee.Ref()),
			Do:   "freeze the callee, and call what freeze returns"})
	case s.Kind == ir.PatchPointSite:
		l.liveOuts(s)
		if _, symbol := s.Callee.(*ir.Func); symbol && arch(s) == "aarch64" {
			l.site(s, Finding{Rule: NotCompiled, Severity: CannotResume, What: "its target is a symbol: LLVM for aarch64 writes an address of the compiler's process instead",
				Do: "use inttoptr of the address"})
		}
	}
}

// notFirst reports whether the callee of a statepoint is extracted from an aggregate in the statepoint's block and is not in the aggregate's first
// register. The lowering of statepoints keeps the SelectionDAG node of such a callee, which is that of the aggregate, but drops the number of its
// result (SDValue, StatepointLowering.cpp; seen: LLVM 16 to 22). A bitcast of a pointer has no node of its own.
func notFirst(s *ir.Site) bool {
	i, ok := s.Callee.(*ir.Instr)
	for ok && i.Op == ir.OpBitCast {
		i, ok = i.Args[0].(*ir.Instr)
	}
	if !ok || i.Op != ir.OpExtractValue || i.Block != s.Instr.Block {
		return false
	}
	t := i.Args[0].Type()
	for _, k := range i.Path {
		if t.Kind == ir.ArrayKind {
			if t = t.Elem; k > 0 && sites.Leaves(t) > 0 {
				return true
			}
			continue
		}
		for _, field := range t.Fields[:k] {
			if sites.Leaves(field) > 0 {
				return true
			}
		}
		t = t.Fields[k]
	}
	return false
}

// narrow reports whether a module is for a target with 32-bit pointers. x32 and arm64_32 are ABIs of 64-bit targets, which have stack maps.
func narrow(m *ir.Module) bool {
	arch, _, _ := strings.Cut(m.Triple, "-")
	return arch != "" && !sites.X86Triple(m.Triple) && arch != "arm64_32" && arch != "aarch64_32" && m.Layout.PointerBytes(0) == 4
}

// liveOuts reports a patchpoint before an instruction of its block that reads a register without a DWARF number, such as mxcsr: the code generator
// crashes on the live-outs.
func (l *linter) liveOuts(s *ir.Site) {
	for in := next(s.Instr); in != nil; in = next(in) {
		if !readsControl(in, arch(s)) {
			continue
		}
		l.site(s, Finding{Rule: NotCompiled, Severity: LintWarning,
			What: fmt.Sprintf("line %d, right after it, reads a control register, and the code generator crashes on the patchpoint's live-outs", in.Line),
			Do:   "compile with -enable-patchpoint-liveness=false"})
		return
	}
}

// next returns the instruction that always runs after another; nil after a conditional branch. The code generator joins a block to its only
// predecessor. next follows only branches to blocks further down in the text, so that a walk ends even in a loop.
func next(in *ir.Instr) *ir.Instr {
	if in.Index+1 < len(in.Block.Instrs) {
		return in.Block.Instrs[in.Index+1]
	}
	if in.Op == ir.OpBr && len(in.Blocks) == 1 && in.Blocks[0].Index > in.Block.Index {
		return in.Blocks[0].Instrs[0]
	}
	return nil
}

// readsControl reports whether the code of an instruction reads the control registers of x86-64 (mxcsr, ssp, the x87 control word) or aarch64 (fpcr):
// floating-point arithmetic, and on x86-64 calls other than statepoints.
func readsControl(in *ir.Instr, arch string) bool {
	x86 := sites.X86Triple(arch)
	if !x86 && arch != "aarch64" {
		return false
	}
	switch in.Op {
	case ir.OpFAdd, ir.OpFSub, ir.OpFMul, ir.OpFDiv, ir.OpFCmp, ir.OpFPToUI, ir.OpFPToSI, ir.OpUIToFP, ir.OpSIToFP, ir.OpFPTrunc, ir.OpFPExt:
		return true
	case ir.OpFRem: // frem calls fmod
		return x86
	case ir.OpLoad, ir.OpStore:
		return x86 && in.Elem.Kind == ir.X86FP80Kind
	}
	if in.Call == nil || !x86 {
		return false
	}
	for _, b := range in.Call.Bundles {
		if b.Tag == "deopt" {
			return false
		}
	}
	if _, assembly := in.Call.Callee.(*ir.InlineAsm); assembly {
		return false
	}
	f, direct := in.Call.Callee.(*ir.Func)
	return !direct || !strings.HasPrefix(f.Name, "llvm.")
}

// patchable reports a patchable region that is too small for the code in it, now or later, or that does not contain the module's call.
func (l *linter) patchable(s *ir.Site) {
	n := s.PatchBytes
	found := func(severity Severity, what, do string, args ...any) {
		l.site(s, Finding{Rule: PatchBytes, Severity: severity, What: fmt.Sprintf("%d bytes: ", n) + what, Do: fmt.Sprintf(do, args...)})
	}
	arm := arch(s) == "aarch64"
	if s.Instr.Sled() && !nullTarget(s) {
		found(LintWarning, "it has nops instead of its call, so nothing is called until a runtime patches them", "give it 0 if the code itself must call")
	}
	if !forX86(s) && !arm {
		return
	}
	code := isa.Of(machine.AMD64)
	if arm {
		code = isa.Of(machine.ARM64)
	}
	switch {
	case s.Kind == ir.PatchPointSite && !nullTarget(s):
		if n >= uint64(code.PatchpointSize) {
			return
		}
		what := "the code generator never ends: its call is longer"
		if arm {
			what = "its call is longer, so the return address is after the region, where no record is found"
		}
		found(CannotResume, what, "give it at least %d", code.PatchpointSize)
	case s.Kind == ir.StackMapSite && arm && n%uint64(code.Longest) != 0:
		found(CannotResume, "the code generator never ends if the shadow is not a whole number of instructions", "make it a multiple of %d", code.Longest)
	case s.Kind == ir.PatchPointSite && n < uint64(code.DirectCall):
		found(LintWarning, "it calls nothing, and is too small to patch a call in", "give it at least %d", code.DirectCall)
	case n > 0 && n < uint64(code.DirectCall):
		found(LintWarning, "it is too small to patch a call or jump in", "give it 0, or at least %d", code.DirectCall)
	}
}

// nullTarget reports whether the callee of a site is null or undefined.
func nullTarget(s *ir.Site) bool {
	c, ok := s.Callee.(*ir.Const)
	return ok && (c.Kind == ir.ConstNull || c.Kind == ir.ConstZero || c.Kind == ir.ConstUndef || c.Kind == ir.ConstPoison)
}
