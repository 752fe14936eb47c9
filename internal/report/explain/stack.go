package explain

import (
	"fmt"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// UnwoundFrame is a frame, how it was found, and what says where its caller is.
type UnwoundFrame struct {
	Index     int       `json:"index"`
	PC        frame.Hex `json:"pc"`
	Function  string    `json:"function,omitempty"`
	Demangled string    `json:"demangled,omitempty"` // where it differs
	Offset    *uint64   `json:"offset,omitempty"`    // of pc in the function
	Rule      string    `json:"rule"`                // how the frame was found, as in `reframe frames`
	CFA       frame.Hex `json:"cfa,omitempty"`       // the value of the stack pointer before the call that made the frame
	NoCFA     string    `json:"no_cfa,omitempty"`    // why there is none
	LeftBy    string    `json:"left_by,omitempty"`   // the rule that says where its caller is
	CFARule   string    `json:"cfa_rule,omitempty"`
	// Registers say of each register that has a rule where the caller's value is.
	Registers []string `json:"registers,omitempty"`
	FDE       *FDEName `json:"fde,omitempty"`   // that has these rules; nil where they are from elsewhere
	Tried     []string `json:"tried,omitempty"` // what gave nothing before
	Guess     string   `json:"guess,omitempty"` // why the frame may not be the caller of the one before
}

// FDEName says where the FDE and the row of it are whose rules were applied.
type FDEName struct {
	Image    string    `json:"image"`
	Section  string    `json:"section"`
	Offset   int64     `json:"offset"`
	Start    frame.Hex `json:"start"` // of the code that the FDE covers
	End      frame.Hex `json:"end"`
	RowStart frame.Hex `json:"row_start"`
	RowEnd   frame.Hex `json:"row_end"`
}

// unwound says of each frame from the innermost up to this one how it was found and left.
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

// origin says how the value of a register came up to this frame.
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
		case cfi.RuleNone, cfi.RuleSameValue: // the frame has not changed it
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
	return strings.Join(append(steps, fmt.Sprintf("the thread's own %s, which no frame inside has changed", arch.RegisterName(reg))), ", ")
}
