package sites

import (
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
)

// CallBefore returns the call that the machine runs right before a stackmap: nothing between the two touches memory. It returns nil for none.
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

// ComputedOfCall returns a live value of a stackmap that takes more than a copy of what the call before it returns, or nil: instructions for it are
// between the two, and run on the call's result.
func ComputedOfCall(s *ir.Site, call *ir.Instr) *ir.Instr {
	made := map[ir.Value]bool{call: false} // what comes of the result, and whether it takes an instruction
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

// copied reports whether the result of an instruction is its operand, or a part of it.
func copied(i *ir.Instr) bool {
	switch i.Op {
	case ir.OpExtractValue, ir.OpBitCast, ir.OpTrunc, ir.OpIntToPtr, ir.OpPtrToInt, ir.OpAddrSpaceCast, ir.OpFreeze:
		return true
	}
	return false
}

// computes reports whether an instruction makes a value of values, and does nothing else.
func computes(i *ir.Instr) bool {
	switch i.Op {
	case ir.OpAlloca, ir.OpLoad, ir.OpStore, ir.OpFence, ir.OpCmpXchg, ir.OpAtomicRMW, ir.OpVAArg, ir.OpPhi, ir.OpLandingPad, ir.OpCatchPad, ir.OpCleanupPad:
		return false
	}
	return true
}

// loweredInPlace are functions of C whose calls LLVM may replace by loads and stores.
var loweredInPlace = []string{"memcpy", "memmove", "memset", "mempcpy", "bcopy", "bzero", "stpcpy", "strcpy", "stpncpy", "strncpy", "__memcpy_chk", "__memmove_chk", "__memset_chk"}
