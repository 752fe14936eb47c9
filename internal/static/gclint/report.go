package gclint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
)

// Schema names the JSON of a [Report].
const Schema = "reframe.gclint/v1"

// Report lists the findings in modules.
type Report struct {
	Schema     string      `json:"schema"`
	Modules    []string    `json:"modules"`
	Functions  int         `json:"functions"`  // functions with a collector whose pointers are known
	Safepoints int         `json:"safepoints"` // safepoints in these functions, including calls that will become statepoints
	Unknown    []Collector `json:"unknown,omitempty"`
	Findings   []Finding   `json:"findings"`
}

// Collector is a collector whose managed pointers are unknown.
type Collector struct {
	Name      string `json:"name"`
	Functions int    `json:"functions"` // number of defined functions with this collector
}

// Certainty ranks a finding by the facts that it depends on.
type Certainty string

// The certainties.
const (
	Certain  Certainty = "certain"  // stale on each path to the instruction
	Likely   Certainty = "likely"   // stale on some path of the control flow, or unless two values are equal
	Possible Certainty = "possible" // depends on facts outside of the IR
)

var rank = map[Certainty]int{Possible: 0, Likely: 1, Certain: 2}

// Rule names a kind of finding.
type Rule string

// The rules.
const (
	StaleUse    Rule = "stale-use"    // a pointer is used after a safepoint that did not relocate it
	StaleCopy   Rule = "stale-copy"   // a copy of an address, such as the result of ptrtoint, is used after a safepoint
	StaleSlot   Rule = "stale-slot"   // an alloca holds an address from before a safepoint
	OwnBase     Rule = "own-base"     // a derived pointer is relocated as its own base
	WrongBase   Rule = "wrong-base"   // a derived pointer is relocated with the base of another one
	LeafCollect Rule = "leaf"         // gc-leaf-function on a function that can collect
	NoSafepoint Rule = "no-safepoint" // a call that can collect is not a safepoint
)

// Finding is one mistake.
type Finding struct {
	Rule      Rule       `json:"rule"`
	Certainty Certainty  `json:"certainty"`
	File      string     `json:"file"`
	Line      int        `json:"line"`
	Function  string     `json:"function"`
	Block     string     `json:"block,omitempty"`
	Value     string     `json:"value,omitempty"`     // the value that is used
	Origin    string     `json:"origin,omitempty"`    // the value that went stale, from which it is computed
	Safepoint *Safepoint `json:"safepoint,omitempty"` // the safepoint at which it went stale, or the statepoint of the pair
	What      string     `json:"what"`
	Do        string     `json:"do"`             // the fix
	More      int        `json:"more,omitempty"` // number of further uses of the same origin and safepoint
}

// Safepoint is a call that may run the collector.
type Safepoint struct {
	Line   int    `json:"line"`
	Block  string `json:"block"`
	Callee string `json:"callee"`
}

// Count returns the number of findings of a certainty.
func (r *Report) Count(c Certainty) int {
	n := 0
	for _, f := range r.Findings {
		if f.Certainty == c {
			n++
		}
	}
	return n
}

// Check checks the functions with a collector, and the marks of leaf functions, of modules. It returns an error if a body cannot be read or a gc.relocate
// violates LangRef.
func Check(modules []*ir.Module, collectors *Collectors) (*Report, error) {
	out := &Report{Schema: Schema, Modules: []string{}, Findings: []Finding{}}
	for _, m := range modules {
		out.Modules = append(out.Modules, m.Name)
		if err := out.module(m, collectors); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r *Report) module(m *ir.Module, collectors *Collectors) error {
	can, err := canCollect(m)
	if err != nil {
		return err
	}
	for _, f := range m.Funcs {
		if f.Declared() {
			continue
		}
		before := len(r.Findings)
		if err := r.leaves(f, can); err != nil {
			return err
		}
		p, known := collectors.of(f)
		switch {
		case !known:
			r.unknown(f.GC)
		case len(p) > 0:
			if err := r.function(f, p, can); err != nil {
				return err
			}
		}
		slices.SortStableFunc(r.Findings[before:], func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	}
	return nil
}

func (r *Report) unknown(name string) {
	for k := range r.Unknown {
		if r.Unknown[k].Name == name {
			r.Unknown[k].Functions++
			return
		}
	}
	r.Unknown = append(r.Unknown, Collector{name, 1})
}

// add adds a finding about an instruction.
func (r *Report) add(in *ir.Instr, f Finding) {
	fn := in.Block.Func
	f.File, f.Line, f.Function, f.Block = fn.Module.Name, in.Line, fn.Name, in.Block.Name
	r.Findings = append(r.Findings, f)
}

// function checks a function with a collector. A function with a statepoint counts as rewritten.
func (r *Report) function(f *ir.Func, p Pointers, can map[*ir.Func]reason) error {
	w, err := newFlow(f, p)
	if err != nil {
		return err
	}
	r.Functions++
	r.Safepoints += w.safepoints
	if w.safepoints > 0 {
		if err := w.run(); err != nil {
			return err
		}
		if err := w.report(r); err != nil {
			return err
		}
	}
	if w.rewritten {
		w.pairs(r)
		return r.notSafepoints(w, can)
	}
	return nil
}

// leaves reports the attribute gc-leaf-function on a function that can collect, and on calls of such functions.
func (r *Report) leaves(f *ir.Func, can map[*ir.Func]reason) error {
	by := func(why reason) (Certainty, string) {
		name := calleeName(why.call)
		if why.sure == contains {
			if isStatepoint(why.call) {
				return Likely, fmt.Sprintf("it has a statepoint at line %d (call of %s)", why.call.Line, name)
			}
			return Likely, fmt.Sprintf("it calls %s at line %d, which reaches a statepoint", name, why.call.Line)
		}
		unknown := "is not a leaf, and the module does not define it"
		if callee := calleeOf(why.call); callee != nil && !callee.Declared() {
			unknown = "calls a function that the module does not define"
		}
		return Possible, fmt.Sprintf("it calls %s at line %d, which %s", name, why.call.Line, unknown)
	}
	if why, ok := can[f]; ok && f.HasStringAttribute(leafAttribute) {
		sure, what := by(why)
		r.Findings = append(r.Findings, Finding{Rule: LeafCollect, Certainty: sure, File: f.Module.Name, Line: f.Line, Function: f.Name,
			Safepoint: safepointOf(why.call),
			What:      f.Ref() + ` has the attribute "gc-leaf-function", but ` + what,
			Do:        `remove "gc-leaf-function", or mark the callee with it if the callee cannot collect`})
	}
	blocks, err := f.Body()
	if err != nil {
		return err
	}
	for _, b := range blocks {
		for _, in := range b.Instrs {
			if in.Call == nil {
				continue
			}
			callee := calleeOf(in)
			_, marked := in.Call.Attrs[leafAttribute]
			if why, ok := can[callee]; ok && callee != nil && marked && !callee.HasStringAttribute(leafAttribute) {
				sure, what := by(why)
				r.add(in, Finding{Rule: LeafCollect, Certainty: sure, Safepoint: safepointOf(why.call), Value: callee.Ref(),
					What: `the call of ` + callee.Ref() + ` has the attribute "gc-leaf-function", but the function can collect: ` + what,
					Do:   `remove "gc-leaf-function" from the call`})
			}
		}
	}
	return nil
}

// notSafepoints reports the calls of a rewritten function that can collect and are not statepoints. A musttail call leaves no frame. A callee that the
// module does not define is reported only if a pointer is live after the call.
func (r *Report) notSafepoints(w *flow, can map[*ir.Func]reason) error {
	for _, b := range w.blocks {
		if !w.reached[b.Index] {
			continue
		}
		for _, in := range b.Instrs {
			if in.Call == nil || isStatepoint(in) || !mayCollect(in) || in.Call.Tail == "musttail" {
				continue
			}
			var names []string
			live, err := ir.LiveAt(b, in.Index+1)
			if err != nil {
				return err
			}
			for _, v := range live {
				if v != ir.Value(in) && w.p.holds(v.Type()) {
					names = append(names, v.Ref())
				}
			}
			sure, what := Possible, "may collect: the module does not define it"
			if f := calleeOf(in); f != nil && !f.Declared() {
				why, ok := can[f]
				if !ok {
					continue
				}
				what = "may collect: it calls a function that the module does not define"
				if why.sure == contains {
					sure, what = Likely, fmt.Sprintf("can collect: it reaches a statepoint by line %d", why.call.Line)
				}
			}
			if sure == Possible && len(names) == 0 {
				continue
			}
			if len(names) > 0 {
				what += "; " + strings.Join(names[:min(len(names), maxNames)], ", ") + " live after it"
			}
			r.add(in, Finding{Rule: NoSafepoint, Certainty: sure, Value: calleeName(in), Safepoint: safepointOf(in),
				What: "the call of " + calleeName(in) + " is not a statepoint, but its callee " + what,
				Do:   `make it a statepoint, or mark the callee with "gc-leaf-function" if it cannot collect`})
		}
	}
	return nil
}

// maxNames bounds the live values that one finding names.
const maxNames = 8

func safepointOf(in *ir.Instr) *Safepoint {
	return &Safepoint{in.Line, in.Block.Name, calleeName(in)}
}
