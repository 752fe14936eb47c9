package sites

import (
	"slices"
	"strings"

	"reframe/deopt/ir"
)

// CallBefore returns the call of the machine that runs right before a stackmap: between the two nothing touches memory. It is nil
// where there is none.
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

// computes says whether an instruction makes a value of values, and does nothing else.
func computes(i *ir.Instr) bool {
	switch i.Op {
	case ir.OpAlloca, ir.OpLoad, ir.OpStore, ir.OpFence, ir.OpCmpXchg, ir.OpAtomicRMW, ir.OpVAArg, ir.OpPhi, ir.OpLandingPad, ir.OpCatchPad, ir.OpCleanupPad:
		return false
	}
	return true
}

// loweredInPlace are functions of C whose calls LLVM may replace by loads and stores.
var loweredInPlace = []string{"memcpy", "memmove", "memset", "mempcpy", "bcopy", "bzero", "stpcpy", "strcpy", "stpncpy", "strncpy", "__memcpy_chk", "__memmove_chk", "__memset_chk"}
