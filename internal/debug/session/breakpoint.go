package session

import (
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/condition"
)

// Breakpoint selects exits at which the process stops. It is in the code only while the process runs; the code of a stopped process is unchanged.
type Breakpoint struct {
	Number int
	trace.ExitFilter
	At   *names.Pattern       // calls of functions; nil: sites that match the filter
	If   *condition.Condition // selects exits at which it holds; nil: all exits
	VM   *condition.Condition // selects the place in the program of a virtual machine; nil: any
	Line *ir.Instr            // selects exits whose site may be this instruction of a module; nil: any
	// Meant is called for an exit at which all conditions hold, and reports whether the process stops there. If Meant is nil, the process stops.
	Meant    func(*trace.Exited) bool
	Once     bool // delete the breakpoint after the first hit
	Disabled bool
	Hits     uint64 // number of times that the breakpoint stopped the process
	Passed   uint64 // number of exits at which its condition did not hold
}

// String describes the breakpoint.
func (b *Breakpoint) String() string {
	var parts []string
	if b.At != nil {
		parts = append(parts, "calls of "+b.At.Text)
	}
	for _, id := range b.Records {
		parts = append(parts, fmt.Sprintf("record %d", id))
	}
	if len(b.Sites) > 0 {
		parts = append(parts, strings.Join(b.Sites, ", ")+" sites")
	}
	if b.Function != nil {
		parts = append(parts, "function "+b.Function.Text)
	}
	if len(parts) == 0 {
		parts = append(parts, "any exit")
	}
	if b.VM != nil {
		parts = append(parts, b.VM.Text)
	}
	if b.Line != nil {
		parts = append(parts, fmt.Sprintf("line %d", b.Line.Line))
	}
	if b.If != nil {
		parts = append(parts, "if "+b.If.Text)
	}
	return strings.Join(parts, ", ")
}

// reached reports whether an exit matches the breakpoint.
func (b *Breakpoint) reached(x *trace.Exited) bool {
	if !x.Point.SelectedBy(&b.ExitFilter, b.At) {
		return false
	}
	if b.Line != nil && !mayBe(x.Frame, b.Line) || b.VM != nil && !x.Fulfils(b.VM) {
		return false
	}
	if b.If != nil && !x.Fulfils(b.If) {
		b.Passed++
		return false
	}
	b.Hits++
	return b.Meant == nil || b.Meant(x)
}

// mayBe reports whether an instruction may be the site of a frame's record: duplicated code has several candidates.
func mayBe(f *deopt.Frame, i *ir.Instr) bool {
	if f == nil || f.Match() == nil {
		return false
	}
	m := f.Match()
	return m.Site != nil && m.Site.Instr == i || slices.ContainsFunc(m.Sites, func(s *ir.Site) bool { return s.Instr == i })
}

// Break sets a breakpoint. It returns an error if the condition is false at all exits of the breakpoint.
func (s *Session) Break(b Breakpoint) (*Breakpoint, error) {
	for _, c := range []*condition.Condition{b.If, b.VM} {
		if c == nil || b.At != nil {
			continue
		}
		// The target's images so far are known; later ones may contain more modules and layouts.
		asks := s.config.Describe != nil
		modules := asks && !slices.ContainsFunc(s.config.Modules, func(m *ir.Module) bool { return !m.Found })
		if err := trace.CheckStop(&s.config.Options, c, &b.ExitFilter, trace.Undescribed{Modules: modules, Layouts: asks}); err != nil {
			return nil, err
		}
	}
	s.number++
	b.Number = s.number
	s.breakpoints = append(s.breakpoints, &b)
	return &b, nil
}

// Breakpoints lists the breakpoints in their order.
func (s *Session) Breakpoints() []*Breakpoint { return s.breakpoints }

// Breakpoint returns the breakpoint with a number.
func (s *Session) Breakpoint(number int) (*Breakpoint, error) {
	for _, b := range s.breakpoints {
		if b.Number == number {
			return b, nil
		}
	}
	return nil, fmt.Errorf("breakpoint %d not found", number)
}

// Delete deletes a breakpoint.
func (s *Session) Delete(number int) {
	s.breakpoints = slices.DeleteFunc(s.breakpoints, func(b *Breakpoint) bool { return b.Number == number })
}
