// Package instrument inserts sites into modules of LLVM IR: stackmaps that record all live values, at places that the user selects, and deopt
// bundles.
//
// The package edits the module's text: text outside of the new sites stays unchanged. Its main type is [Options], which selects the places of sites;
// [Module] writes them.
//
// # Security
//
// Package ir parses a module, with its bounds. The output is larger than the input by the live values at each site. For a malicious module that may
// be the square of its size, up to a bound.
package instrument

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine/names"
)

// maxText bounds the output, in bytes, to what package ir can read.
const maxText = 512 << 20

// Options selects the places of sites. The zero value selects no place.
type Options struct {
	Function *names.Pattern // select only functions that match; nil: all
	Blocks   bool           // at the start of each block: after its phis and landing pad, and in the first block after its allocas
	Calls    bool           // after each call; for an invoke, at the start of its normal destination
	Sites    bool           // before each existing stackmap, patchpoint and statepoint
	First    uint64         // the first id; 0: 1. Ids in the module are skipped
	Complete bool           // leave out sites that cannot record all live values
	Most     int            // leave out sites with more values than this, not counting frame addresses; 0: no limit
	Release  int            // the earliest release of LLVM that is to compile the module; 0: 14 if it has typed pointers, else 16
	// Bundles selects calls by the callee. Each gets a deopt bundle with all values that are live after it, and a statepoint-id, from FirstBundle on.
	Bundles     func(callee string) bool
	FirstBundle uint64
}

// Result holds the new text and describes it.
type Result struct {
	Text   string
	Sites  []Site // in the order of the text
	Values int    // number of values of all sites together
	Left   []Left // the omissions, in the order of their first occurrence
}

// Site is a site that was written.
type Site struct {
	ID       uint64
	Function *ir.Func
	Before   *ir.Instr // the instruction after a stackmap, or the call of a bundle
	Bundle   bool
	Values   int
	Lacks    int // number of live values that the site cannot record
}

// Left counts omissions of one kind for one reason.
type Left struct {
	What  string // "value", "site", "function"
	Why   string
	Count int
	First string // the first place: @function, or file:line
}

// Functions returns the number of functions in which sites were written.
func (r *Result) Functions() int {
	seen := map[*ir.Func]bool{}
	for _, s := range r.Sites {
		seen[s.Function] = true
	}
	return len(seen)
}

// Lacking returns the number of sites that lack a live value.
func (r *Result) Lacking() (n int) {
	for _, s := range r.Sites {
		if s.Lacks > 0 {
			n++
		}
	}
	return n
}

// writer edits a module.
type writer struct {
	Options
	m     *ir.Module
	out   Result
	left  map[[2]string]int // index into out.Left, by the What and Why of the omission
	edits []edit
	size  int
	taken map[uint64]bool
	sites map[*ir.Instr]bool    // existing sites
	next  [2]uint64             // the next ids, of a stackmap and of a bundle
	end   string                // line ending
	told  map[ir.Value][]string // operands that are written in place of a value; empty if a value has no such operands

	names   map[string]bool // names used in namesOf
	namesOf *ir.Func
}

// edit inserts text at an offset of the module's text.
type edit struct {
	at   int
	text string
}

// Module writes sites into a module. It returns an error if a body cannot be read, or if a site violates LangRef.
func Module(m *ir.Module, o Options) (*Result, error) {
	w := &writer{Options: o, m: m, left: map[[2]string]int{}, taken: map[uint64]bool{}, sites: map[*ir.Instr]bool{}, told: map[ir.Value][]string{}, next: [2]uint64{max(o.First, 1), max(o.FirstBundle, 1)}, end: "\n"}
	if w.Release == 0 {
		w.Release = 16
		if m.TypedPointers() {
			w.Release = 14
		}
	}
	if strings.Contains(m.Text(), "\r\n") {
		w.end = "\r\n"
	}
	if err := w.find(); err != nil {
		return nil, err
	}
	for _, f := range m.Funcs {
		if f.Declared() || o.Function != nil && !o.Function.Match(f.Name) {
			continue
		}
		why, err := refused(f)
		if err == nil && why == "" {
			err = w.function(f)
		}
		if err != nil {
			return nil, err
		}
		if why != "" {
			w.leave("function", why, f.Ref())
		}
	}
	w.write()
	return &w.out, nil
}

// find collects the existing sites and their ids.
func (w *writer) find() error {
	// LLVM gives these ids to statepoints without one (StatepointDirectives).
	w.taken[0xABCDEF00], w.taken[0xABCDEF0F] = true, true
	for _, f := range w.m.Funcs {
		list, err := sites.AllSites(f)
		if err != nil {
			return err
		}
		for _, s := range list {
			w.sites[s.Instr] = true
			for _, id := range s.IDs() {
				w.taken[id] = true
			}
		}
	}
	return nil
}

// id returns the next free id, for stackmaps (0) or bundles (1).
func (w *writer) id(of int) (uint64, error) {
	for w.taken[w.next[of]] {
		w.next[of]++
	}
	id := w.next[of]
	if id == 0 {
		return 0, errors.New("no ids are left: start at a smaller one (--id)")
	}
	w.taken[id] = true
	w.next[of]++
	return id, nil
}

// refused returns the reason why a function gets no sites, or "".
func refused(f *ir.Func) (string, error) {
	body, err := f.Body()
	switch {
	case err != nil:
		return "", err
	case !sites.Emits(f):
		return "no code is generated for an available_externally function", nil
	case f.Naked():
		return "it is naked: its body is assembly", nil
	case f.OrdersUses():
		return "its uselistorder directives depend on the number of uses", nil
	}
	for _, b := range body {
		for _, i := range b.Instrs {
			switch i.Op {
			case ir.OpCatchSwitch, ir.OpCatchPad, ir.OpCleanupPad:
				return "it has funclets, in which LLVM cuts off the code before a call without a funclet bundle", nil
			}
		}
	}
	return "", nil
}

// function writes the sites of one function.
func (w *writer) function(f *ir.Func) error {
	body, _ := f.Body()
	reached := sites.Reachable(f)
	wanted := map[*ir.Block][]int{}
	for _, b := range body {
		if reached[b] {
			w.places(b, wanted)
		}
	}
	for _, b := range body {
		if at := wanted[b]; len(at) > 0 || w.Bundles != nil && reached[b] {
			if err := w.block(b, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// block writes sites before the given instructions of a block.
func (w *writer) block(b *ir.Block, at []int) error {
	slices.Sort(at)
	at = slices.Compact(at)
	site := func(i *ir.Instr, bundle bool) error {
		index := i.Index
		if bundle {
			index++
		}
		live, err := ir.LiveAt(b, index)
		if err != nil {
			return err
		}
		return w.site(i, bundle, live)
	}
	for _, i := range b.Instrs {
		if len(at) > 0 && at[0] == i.Index {
			at = at[1:]
			if w.allowed(i) {
				if err := site(i, false); err != nil {
					return err
				}
			}
		}
		if w.Bundles != nil && i.Call != nil && w.Bundles(sites.CalledName(i)) && w.bundled(i) {
			if err := site(i, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// site writes a site: a stackmap before an instruction, or the bundle of a call.
func (w *writer) site(i *ir.Instr, bundle bool, live []ir.Value) error {
	s := Site{Function: i.Block.Func, Before: i, Bundle: bundle}
	var operands []string
	crowd := 0
	for _, v := range live {
		if bundle && v == ir.Value(i) { // a bundle records values from before the call
			continue
		}
		list, why := w.operands(i, bundle, v)
		if why != nil {
			w.leave("value", why.Error(), fmt.Sprintf("%s of %s, %s", v.Ref(), s.Function.Ref(), w.at(i)))
			s.Lacks++
			continue
		}
		operands = append(operands, list...)
		if place, ok := v.(*ir.Instr); !ok || !sites.OnFrame(place) {
			crowd += len(list)
		}
	}
	if s.Values = len(operands); w.Complete && s.Lacks > 0 {
		w.leave("site", "a value that is live there could not be recorded", w.at(i))
		return nil
	}
	if w.Most > 0 && crowd > w.Most {
		w.leave("site", fmt.Sprintf("more than %d values are live there", w.Most), w.at(i))
		return nil
	}
	var err error
	of := 0
	if bundle {
		of = 1
	}
	if s.ID, err = w.id(of); err != nil {
		return err
	}
	list := strings.Join(operands, ", ")
	if w.size += len(list) + 100; w.size+w.m.Size() > maxText {
		return fmt.Errorf("%s: the live values of its sites take more than %d MiB; select functions with --function", w.m.Name, maxText>>20)
	}
	if bundle {
		w.bundle(i, fmt.Sprintf(`"statepoint-id"="%d" [ "deopt"(%s) ]`, s.ID, list))
	} else {
		w.stackMap(i, s.ID, list)
	}
	w.out.Sites = append(w.out.Sites, s)
	w.out.Values += s.Values
	return nil
}

// at returns the file and line of an instruction, for messages.
func (w *writer) at(i *ir.Instr) string { return fmt.Sprintf("%s:%d", w.m.Name, i.Line) }

// leave counts an omission.
func (w *writer) leave(what, why, where string) {
	key := [2]string{what, why}
	n, seen := w.left[key]
	if !seen {
		n = len(w.out.Left)
		w.left[key] = n
		w.out.Left = append(w.out.Left, Left{What: what, Why: why, First: where})
	}
	w.out.Left[n].Count++
}
