package maps

import (
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/internal/progspace"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
)

// CheckSchema names the JSON of a [CheckReport].
const CheckSchema = "reframe.check/v1"

// CheckReport holds the results of all rules for the stack maps of a source.
type CheckReport struct {
	Schema string       `json:"schema"`
	Source string       `json:"source"`
	Images []CheckImage `json:"images"`
}

// CheckImage holds the results for one image.
type CheckImage struct {
	Name   string      `json:"name"`
	Format string      `json:"format,omitempty"`
	Arch   string      `json:"arch,omitempty"`
	Error  string      `json:"error,omitempty"` // the reason why its maps cannot be read
	Rules  []CheckRule `json:"rules"`
}

// CheckRule is the result of one rule.
type CheckRule struct {
	Rule       string           `json:"rule"`
	Fact       string           `json:"fact"` // the guarantee of LLVM that the rule checks
	Checked    int              `json:"checked"`
	Broken     int              `json:"broken"`
	Unknown    int              `json:"unknown,omitempty"` // number of checks with an unknown result
	Skipped    string           `json:"skipped,omitempty"` // the reason why some or all checks were skipped
	Violations []CheckViolation `json:"violations,omitempty"`
}

// CheckViolation is a violation of a rule. A violation about a missing record has neither a map nor an offset.
type CheckViolation struct {
	Map       *int      `json:"map,omitempty"`
	Function  string    `json:"function,omitempty"`
	Demangled string    `json:"demangled,omitempty"` // the demangled name, if it differs
	Address   frame.Hex `json:"address,omitempty"`   // address of the function; empty in an unlinked object
	Offset    *int64    `json:"offset,omitempty"`    // offset in the section
	What      string    `json:"what"`
}

// Check checks all maps against the rules, and their records against layouts of virtual machines. An error comes from one of the modules.
func (m *Maps) Check(vms ...*vmlayout.Layout) (*CheckReport, error) {
	out := &CheckReport{Schema: CheckSchema, Source: m.Source, Images: []CheckImage{}}
	for _, i := range m.Images {
		head := i.JSON()
		image := CheckImage{Name: head.Name, Format: head.Format, Arch: head.Arch, Error: head.Error, Rules: []CheckRule{}}
		if i.Section != nil {
			results := append(stackmap.Check(i.placed(), i.Arch, i.code()), i.checkUnwind())
			more, err := i.checkIR()
			if err != nil {
				return nil, err
			}
			results = append(results, more...)
			if len(vms) > 0 {
				results = append(results, i.checkVM(vms))
			}
			for _, r := range results {
				image.Rules = append(image.Rules, i.rule(r))
			}
		}
		out.Images = append(out.Images, image)
	}
	return out, nil
}

// Broken counts violated rules, and maps that cannot be read.
func (r *CheckReport) Broken() int {
	n := 0
	for _, i := range r.Images {
		if i.Error != "" {
			n++
		}
		for _, rule := range i.Rules {
			if rule.Broken > 0 {
				n++
			}
		}
	}
	return n
}

func (i *Image) rule(r stackmap.Result) CheckRule {
	out := CheckRule{Rule: r.Rule.Name, Fact: r.Rule.Fact, Checked: r.Checked, Broken: r.Broken, Unknown: r.Unknown, Skipped: strings.Join(r.Skipped, "; ")}
	for _, v := range r.Violations {
		c := CheckViolation{What: v.What}
		if v.Pos < 0 {
			out.Violations = append(out.Violations, c)
			continue
		}
		c.Map, c.Offset = &v.Map, &v.Pos
		if !i.Unlinked {
			c.Address = frame.HexOf(v.Function)
		}
		if i.image != nil {
			if s, ok := i.image.SymbolStarting(v.Function); ok {
				c.Function, c.Demangled = s.Name, names.IfMangled(s.Name)
			}
		}
		out.Violations = append(out.Violations, c)
	}
	return out
}

// placed returns the section with the addresses at which the functions have their code.
func (i *Image) placed() *stackmap.Section {
	if i.image == nil {
		return i.Section
	}
	out := *i.Section
	out.Maps = progspace.Entered(i.image, i.Section.Maps)
	return &out
}

// code returns the code that the maps describe, for the checker; nil if there is none.
func (i *Image) code() stackmap.Code {
	switch {
	case i.image != nil:
		c := imageCode{i.image, i, map[machine.Addr]machine.Addr{}}
		for _, m := range i.Section.Maps {
			for _, f := range m.Functions {
				code, known := i.image.Entry(f.Addr)
				if !known || code == f.Addr {
					continue
				}
				// The symbol has the address of the descriptor and the size of the code.
				if s, ok := i.image.SymbolStarting(f.Addr); ok && s.Size > 0 {
					c.ends[code] = code + machine.Addr(s.Size)
				}
			}
		}
		return c
	case i.target != nil:
		return targetCode{i.target}
	}
	return nil
}

// imageCode is the code of an image, at its loaded addresses.
type imageCode struct {
	*object.Image
	maps *Image
	ends map[machine.Addr]machine.Addr // ends of functions that have a descriptor
}

// targetCode is code in the memory of a target outside of all images.
type targetCode struct{ *ptrace.Target }

// Placed implements [stackmap.Code]. In an unlinked object, an address has a value only if a relocation gave it one.
func (c imageCode) Placed(pos int64) bool {
	if !c.maps.Unlinked {
		return true
	}
	r, found := c.maps.relocation(pos)
	return found && r.Defined
}

// Pointer implements [stackmap.Code].
func (c imageCode) Pointer() int { return c.maps.pointer() }

// Placed implements [stackmap.Code]: the addresses of a map in memory are final.
func (c targetCode) Placed(int64) bool { return true }

// Pointer implements [stackmap.Code].
func (c targetCode) Pointer() int { return c.Arch().Pointer }

// Function implements [stackmap.Code].
func (c imageCode) Function(addr machine.Addr) (end machine.Addr, executable, endKnown bool) {
	s := c.CodeAt(addr)
	if s == nil {
		return 0, false, false
	}
	if end, ok := c.ends[addr]; ok {
		return end, true, true
	}
	end = s.Loaded() + machine.Addr(s.Size)
	if sym, ok := c.SymbolStarting(addr); ok && sym.Size > 0 {
		return addr + machine.Addr(sym.Size), true, true
	}
	if next, ok := c.Next(addr); ok {
		end = min(end, next)
	}
	return end, true, false
}

// Function implements [stackmap.Code].
func (c targetCode) Function(addr machine.Addr) (end machine.Addr, executable, endKnown bool) {
	r, ok := c.Mapping(addr)
	return r.End, ok && r.Exec, false
}

// ReadMemory implements [stackmap.Code].
func (c imageCode) ReadMemory(p []byte, addr machine.Addr) error {
	s := c.CodeAt(addr)
	if s == nil {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: "no code of " + c.Name}
	}
	_, err := s.ReadAt(p, int64(addr-s.Loaded()))
	return err
}
