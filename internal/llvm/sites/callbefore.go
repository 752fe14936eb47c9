package sites

import (
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
)

// CallBefore returns the call that runs directly before a stackmap, without a memory access between the two, or nil.
func CallBefore(s *ir.Site) *ir.Instr {
	if s.Kind != ir.StackMapSite {
		return nil
	}
	for k := s.Instr.Index - 1; k >= 0; k-- {
		i := s.Instr.Block.Instrs[k]
		switch name := ""; {
		case i.Call != nil:
			if name = CalledName(i); strings.HasPrefix(name, "llvm.dbg.") || strings.HasPrefix(name, "llvm.lifetime.") || name == "llvm.assume" {
				continue
			}
			_, assembly := i.Call.Callee.(*ir.InlineAsm)
			if assembly || strings.HasPrefix(name, "llvm.") || slices.Contains(loweredInPlace, name) {
				return nil
			}
			return i
		case !computes(i):
			return nil
		}
	}
	return nil
}

// ComputedOfCall returns a live value of a stackmap that instructions after the call compute from its result, or nil. These instructions lie between the
// call and the stackmap. A copy of the result does not count.
func ComputedOfCall(s *ir.Site, call *ir.Instr) *ir.Instr {
	made := map[ir.Value]bool{call: false} // values derived from the result, and whether that takes an instruction
	for _, i := range s.Instr.Block.Instrs[call.Index+1 : s.Instr.Index] {
		for _, v := range i.Args {
			if work, of := made[v]; of {
				made[i] = made[i] || work || !copied(i)
			}
		}
	}
	for _, v := range s.Live {
		if i, ok := v.(*ir.Instr); ok && made[v] {
			return i
		}
	}
	return nil
}

// copied reports whether the result of an instruction is its operand or a part of it.
func copied(i *ir.Instr) bool {
	switch i.Op {
	case ir.OpExtractValue, ir.OpBitCast, ir.OpTrunc, ir.OpIntToPtr, ir.OpPtrToInt, ir.OpAddrSpaceCast, ir.OpFreeze:
		return true
	}
	return false
}

// computes reports whether an instruction only computes a value from its operands.
func computes(i *ir.Instr) bool {
	switch i.Op {
	case ir.OpAlloca, ir.OpLoad, ir.OpStore, ir.OpFence, ir.OpCmpXchg, ir.OpAtomicRMW, ir.OpVAArg, ir.OpPhi, ir.OpLandingPad, ir.OpCatchPad, ir.OpCleanupPad:
		return false
	}
	return true
}

// loweredInPlace lists C functions whose calls LLVM may replace by loads and stores.
var loweredInPlace = []string{"memcpy", "memmove", "memset", "mempcpy", "bcopy", "bzero", "stpcpy", "strcpy", "stpncpy", "strncpy", "__memcpy_chk", "__memmove_chk", "__memset_chk"}
