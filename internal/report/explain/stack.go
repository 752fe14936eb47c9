package explain

import (
	"fmt"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// UnwoundFrame is a frame, the rule by which it was found, and the rule that leads to its caller.
type UnwoundFrame struct {
	Index     int       `json:"index"`
	PC        frame.Hex `json:"pc"`
	Function  string    `json:"function,omitempty"`
	Demangled string    `json:"demangled,omitempty"` // empty if it equals Function
	Offset    *uint64   `json:"offset,omitempty"`    // the offset of pc in the function
	Rule      string    `json:"rule"`                // the rule by which the frame was found, as in `reframe frames`
	CFA       frame.Hex `json:"cfa,omitempty"`       // the stack pointer before the call that made the frame
	NoCFA     string    `json:"no_cfa,omitempty"`    // the reason why the CFA is unknown
	LeftBy    string    `json:"left_by,omitempty"`   // the rule that leads to its caller
	CFARule   string    `json:"cfa_rule,omitempty"`
	// Registers lists the location of the caller's value for each register that has a rule.
	Registers []string `json:"registers,omitempty"`
	FDE       *FDEName `json:"fde,omitempty"`   // the source of the rules in Registers; nil if they have another source
	Tried     []string `json:"tried,omitempty"` // the methods that failed before
	Guess     string   `json:"guess,omitempty"` // the reason why the frame may not be the caller of the one before
}

// FDEName identifies the FDE and the row whose rules were applied.
type FDEName struct {
	Image    string    `json:"image"`
	Section  string    `json:"section"`
	Offset   int64     `json:"offset"`
	Start    frame.Hex `json:"start"` // the start of the code that the FDE covers
	End      frame.Hex `json:"end"`
	RowStart frame.Hex `json:"row_start"`
	RowEnd   frame.Hex `json:"row_end"`
}

// unwound describes the rules by which each frame, from the innermost to this one, was found and unwound.
func (s standing) unwound() []UnwoundFrame {
	var out []UnwoundFrame
	for _, f := range s.thread.Frames {
		out = append(out, unwound(f))
		if f == s.frame {
			break
		}
	}
	return out
}

func unwound(f *deopt.Frame) UnwoundFrame {
	p := f.Physical()
	out := UnwoundFrame{Index: p.Index, PC: f.PC, Function: f.Function, Demangled: f.Demangled, Offset: f.Offset, Rule: f.Rule, CFA: f.CFA, NoCFA: p.NoCFA, Guess: p.Guess}
	left := p.Left()
	out.LeftBy, out.Tried = string(left.Rule), left.Tried
	if left.Row == nil {
		return out
	}
	arch := f.View().Target().Arch()
	out.CFARule = left.Row.CFA.Text(arch)
	for reg, rule := range left.Row.Rules() {
		out.Registers = append(out.Registers, rule.Text(arch, reg))
	}
	if left.Section != "" {
		out.FDE = &FDEName{p.Source, left.Section, left.Offset, frame.HexOf(left.Start), frame.HexOf(left.End),
			frame.HexOf(left.Row.Start), frame.HexOf(left.Row.End)}
	}
	return out
}

// origin describes the source of a register's value in this frame: the thread, or a slot in which a callee saved the register.
func (s standing) origin(reg machine.DWARFReg) string {
	arch := s.frame.View().Target().Arch()
	name := arch.RegisterName(reg)
	var steps []string
	for k := s.frame.Index - 1; k >= 0; k-- {
		p := s.thread.Frames[k].Physical()
		left := p.Left()
		if left.Row == nil {
			return ""
		}
		rule := left.Row.Rule(reg)
		if reg == arch.SP && rule.Kind == cfi.RuleNone {
			return strings.Join(append(steps, fmt.Sprintf("%s is the CFA of frame #%d", name, k)), ", ")
		}
		switch rule.Kind {
		case cfi.RuleNone, cfi.RuleSameValue: // the frame did not change the register
			continue
		case cfi.RuleRegister:
			steps = append(steps, fmt.Sprintf("frame #%d has %s", k, rule.Text(arch, reg)))
			reg = rule.Register
			continue
		case cfi.RuleOffset:
			at := p.CFA + machine.Addr(rule.Offset)
			return strings.Join(append(steps, fmt.Sprintf("frame #%d has %s: %v %+d = %v", k, rule.Text(arch, reg), p.CFA, rule.Offset, at)), ", ")
		}
		return strings.Join(append(steps, fmt.Sprintf("frame #%d has %s", k, rule.Text(arch, reg))), ", ")
	}
	if s.frame.Index == 0 {
		return strings.Join(append(steps, "the thread's own "+arch.RegisterName(reg)), ", ")
	}
	return strings.Join(append(steps, fmt.Sprintf("the thread's own %s, which no inner frame has changed", arch.RegisterName(reg))), ", ")
}
