package deopt

import (
	"fmt"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/isa"
)

// Reached returns the reason why a frame at the address of a record may not have passed the record's site, or "". Call it only for frames that
// are not at a return address: a frame that waits for a call has passed the site of the call. The address after a site at the end of its block is
// also the start of the next block. Other code may jump there, with other values in the record's registers.
func (f *Frame) Reached(m *Match) string {
	switch s := m.Site; {
	case m.Moment == frame.Before && m.Kind == ir.PatchPointSite && (s == nil || s.PatchBytes > 0):
		return "" // the site's own code starts at this address, so it has not run
	case m.Moment == frame.Before && s != nil && begins(s.Instr):
		return "" // the site is the first of its block, so a jump to this address runs it
	case m.Moment == frame.Before && f.physical.PC < m.Entry.Addr:
		return "" // any thread at this address will make the call
	}
	at := f.code.SymbolAt(f.physical.PC)
	from, jumped := f.code.JumpTo(isa.Of(f.view.target.Arch()), at, f.physical.PC)
	if !jumped {
		return ""
	}
	certainty := "is not certain"
	if m.Kind == "" {
		certainty = "matches only if its site begins a block"
	}
	return fmt.Sprintf("record %d %s: code at +%#x jumps here too", uint64(m.Entry.Record.ID), certainty, uint64(from-at.Start))
}

// begins reports whether an instruction is the first of its block after the phis.
func begins(i *ir.Instr) bool {
	return i.Index == 0 || i.Block.Instrs[i.Index-1].Op == ir.OpPhi
}
