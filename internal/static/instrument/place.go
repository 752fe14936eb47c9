package instrument

import (
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
)

// places adds the places for sites in a block and after its end: the indices of the instructions before which sites are inserted.
func (w *writer) places(b *ir.Block, wanted map[*ir.Block][]int) {
	start := func(b *ir.Block) { wanted[b] = append(wanted[b], first(b)) }
	if w.Blocks {
		start(b)
	}
	for _, i := range b.Instrs {
		if i.Call == nil {
			continue
		}
		if w.Sites && w.isSite(i) {
			wanted[b] = append(wanted[b], i.Index)
		}
		if !w.Calls || !w.isCall(i) {
			continue
		}
		switch {
		case w.isSite(i):
			// Both records could have the same address, and the existing one could be found in place of the new one.
			w.leave("site", "the call before it is itself a site", w.at(i))
		case i.Call.Tail == "musttail":
			w.leave("site", "nothing may follow a musttail call", w.at(i))
		case i.Op == ir.OpInvoke:
			start(i.Blocks[0])
		case i.Op == ir.OpCall:
			wanted[b] = append(wanted[b], past(b, i.Index+1))
		}
	}
}

// first returns the index of the first instruction of a block before which a site may be. In the entry block it is after the allocas, because their
// addresses are also live values.
func first(b *ir.Block) int {
	n := 0
	for n < len(b.Instrs)-1 {
		switch op := b.Instrs[n].Op; {
		case op == ir.OpPhi, op == ir.OpLandingPad, op == ir.OpAlloca && b.Index == 0:
			n++
			continue
		}
		break
	}
	return past(b, n)
}

// past returns the index after the instructions that extract the results of a statepoint. A site before these would record pointers that are not
// relocated yet.
func past(b *ir.Block, n int) int {
	for n < len(b.Instrs)-1 && (called(b.Instrs[n], "llvm.experimental.gc.relocate") || called(b.Instrs[n], "llvm.experimental.gc.result")) {
		n++
	}
	return n
}

// called reports whether an instruction calls an intrinsic, by its name without type suffixes.
func called(i *ir.Instr, name string) bool {
	if i.Call == nil {
		return false
	}
	rest, ok := strings.CutPrefix(sites.CalledName(i), name)
	return ok && (rest == "" || rest[0] == '.')
}

// isCall reports whether an instruction calls code, or is a site. Other intrinsics and assembly are not calls.
func (w *writer) isCall(i *ir.Instr) bool {
	if _, assembly := i.Call.Callee.(*ir.InlineAsm); assembly {
		return false
	}
	return !strings.HasPrefix(sites.CalledName(i), "llvm.") || w.isSite(i)
}

// isSite reports whether an instruction has a record, or will have one.
func (w *writer) isSite(i *ir.Instr) bool { return w.sites[i] }

// allowed reports whether a site may be inserted before an instruction, and counts the omission if not.
func (w *writer) allowed(i *ir.Instr) bool {
	why := ""
	switch {
	case i.Op == ir.OpUnreachable:
		why = "nothing runs there: the block ends in unreachable"
	case w.afterSite(i):
		why = "an existing site is right before it, and would have the same address"
	case called(i, "llvm.experimental.gc.relocate"), called(i, "llvm.experimental.gc.result"):
		why = "gc.relocate and gc.result of a statepoint must come first"
	default:
		return true
	}
	w.leave("site", why, w.at(i))
	return false
}

// afterSite reports whether no code lies between the previous site of the block and an instruction.
func (w *writer) afterSite(i *ir.Instr) bool {
	for n := i.Index - 1; n >= 0; n-- {
		before := i.Block.Instrs[n]
		if w.isSite(before) {
			return true
		}
		if before.Call == nil || !called(before, "llvm.dbg") && !called(before, "llvm.lifetime") && !called(before, "llvm.assume") {
			return false
		}
	}
	return false
}

// bundled reports whether a call may get a deopt bundle.
func (w *writer) bundled(i *ir.Instr) bool {
	why := ""
	switch {
	case !w.isCall(i) || i.Op == ir.OpCallBr || w.isSite(i):
		return false
	case i.Call.Tail == "musttail":
		why = "a musttail call takes no deopt bundle"
	case len(i.Call.Bundles) > 0:
		why = "the call has other operand bundles"
	default:
		return true
	}
	w.leave("site", why, w.at(i))
	return false
}
