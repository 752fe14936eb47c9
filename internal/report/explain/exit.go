package explain

import (
	"fmt"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/vm/layout"
)

// CarriesOn describes the place at which a frame resumes, and the layout or site that determines it, or the reason why the frame does not resume.
type CarriesOn struct {
	Resume *frame.Resume `json:"resume,omitempty"`
	By     string        `json:"by,omitempty"`
	Why    string        `json:"why,omitempty"`   // why it does not resume
	Exits  []ExitTried   `json:"exits,omitempty"` // the layouts' exits for the record, up to the one that matched
}

// ExitTried is an exit of a layout, compared with a frame.
type ExitTried struct {
	Layout string      `json:"layout"`
	Index  int         `json:"index"` // its index in the layout's exits
	To     string      `json:"to"`    // the function and block in which it resumes
	When   []WhenTried `json:"when,omitempty"`
	Taken  bool        `json:"taken"`
}

// WhenTried is one condition of an exit.
type WhenTried struct {
	Operand int    `json:"operand"`
	Equals  int64  `json:"equals"`
	Value   string `json:"value,omitempty"` // the value of the operand
	Holds   bool   `json:"holds"`
	Why     string `json:"why,omitempty"` // why the value is unavailable
}

// carries describes the place at which the frame resumes.
func carries(f *deopt.Frame) *CarriesOn {
	out := &CarriesOn{Resume: f.Resume}
	plain := f.Recorded(f.Match())
	exit, layout, _ := plain.ExitOf(f.View().Layouts())
	out.Exits = tried(plain, f.View().Layouts(), exit)
	switch {
	case f.Resume == nil:
		out.Why = f.WhyNotResumed().Error()
	case exit != nil:
		out.By = layout.Name
	default:
		out.By = fmt.Sprintf("the site itself, line %d of %s", f.Match().Site.Instr.Line, f.Match().Site.Func.Module.Name)
	}
	return out
}

// tried lists the exits that were compared with the frame, up to the one that it takes.
func tried(f *deopt.Frame, layouts []*layout.Layout, taken *layout.Exit) []ExitTried {
	var out []ExitTried
	for _, l := range layouts {
		for n := range l.Exits {
			x := &l.Exits[n]
			if !x.About(f.Function, f.Record.ID) {
				continue
			}
			t := ExitTried{Layout: l.Name, Index: n, To: fmt.Sprintf("%s, block %%%s", x.Resume.Function, x.Resume.Block), Taken: x == taken}
			for _, c := range x.When {
				t.When = append(t.When, when(f, c))
			}
			if out = append(out, t); t.Taken {
				return out
			}
		}
	}
	return out
}

// when evaluates a condition with the values of the record.
func when(f *deopt.Frame, c layout.Condition) WhenTried {
	out := WhenTried{Operand: c.Operand, Equals: c.Equals}
	if c.Operand < 0 || c.Operand >= len(f.Slots) {
		out.Why = fmt.Sprintf("the record has %d live values", len(f.Slots))
		return out
	}
	s := &f.Slots[c.Operand]
	if !s.Read() {
		out.Why = s.Reason
		return out
	}
	if out.Value = s.Value; out.Value == "" {
		out.Value = string(s.Hex)
	}
	out.Holds = layout.Equals(s, c.Equals)
	return out
}
