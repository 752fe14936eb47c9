package maps

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/internal/progspace"
)

// Reading explains the locations of a record, as far as it is known.
type Reading struct {
	// Kind is stackmap, patchpoint, statepoint or deoptimize, or "" if unknown.
	Kind string
	// Sure reports whether a module confirms the kind. Otherwise a statepoint is inferred from the shape of the record, which does not declare its
	// kind.
	Sure bool
	// Sites holds the sites of the modules to which the record may belong. If there are several, only names and types on which they agree are shown.
	Sites []*ir.Site
	Note  string // the reason why the given modules do not name more

	statepoint bool
	sp         stackmap.Statepoint
	Names      []sites.Agreed // live values
	head       int
	moved      bool  // the layout after a statepoint's deopt values is unknown
	operands   []int // for each location from that of the first operand on, the number of its operand including the head, or -1; nil: the locations are in the order of the operands
}

// Statepoint returns the head of a statepoint's record. It returns false if the record neither belongs to a statepoint nor has the shape of its
// record.
func (r *Reading) Statepoint() (stackmap.Statepoint, bool) { return r.sp, r.statepoint }

// Read sets r to the explanation of a record of the function. It discards the previous content of r.
func (f *Function) Read(rec *stackmap.Record, r *Reading) {
	*r = Reading{}
	sp, shaped := rec.AsStatepoint()
	if shaped {
		r.Kind, r.sp, r.statepoint = string(ir.StatepointSite), sp, true
	}
	ms := f.Image.modules
	if !f.Image.HasModules() {
		return
	}
	e := sites.RecordEntry{Entry: stackmap.Entry{Map: f.Map, Function: f.Function}, Record: rec}
	var c sites.Candidates
	var err error
	if f.Loose {
		c, err = ms.Sites(e)
	} else {
		c, err = ms.OfRecord(f.Image, e, f.Source)
	}
	r.Sites, r.Note = c.Sites, strings.Join(c.Uncertain(), "; ")
	if err != nil {
		r.Note = err.Error()
	}
	if kind := sites.KindOf(c.Sites); kind != "" {
		r.Kind, r.Sure = string(kind), true
		r.statepoint = shaped && (kind == ir.StatepointSite || kind == ir.DeoptimizeSite)
	}
	if all := sites.Agreements(c.Sites); all != nil {
		r.Names = all
		r.place(sites.AlignTogether(c.Sites, e))
	}
}

// place records the operand to which each location belongs.
func (r *Reading) place(a sites.Alignment) {
	r.head = a.Head
	if a.Moved {
		r.moved, r.statepoint, r.sp = true, true, *a.Statepoint
	}
	if a.At == nil {
		return
	}
	r.operands = make([]int, len(a.Record.Locations)-a.First)
	for n := range r.operands {
		r.operands[n] = -1
	}
	for k, n := range a.At {
		if n >= 0 {
			r.operands[n] = k
		}
	}
}

// operand returns the operand of location n, counted from the first operand; -1 if unknown.
func (r *Reading) operand(n int) int {
	switch {
	case r.operands == nil:
		return n
	case n < len(r.operands):
		return r.operands[n]
	}
	return -1
}

// Role is the purpose of a location of a record.
type Role struct {
	What  string // "flags", "deopt", "derived", "live", "argument"; "" if unknown
	Of    int    // its number among the locations with this What, from 1; 0 if there is only one
	Name  string // as the module spells it; undef or poison; "" for a constant, or without a module
	Type  string // as the module spells it
	Value string // the meaning of the number, in a location of the statepoint's head
}

// String returns the role with its number, counted from 0: "deopt 0".
func (r Role) String() string {
	if r.Of == 0 {
		return r.What
	}
	if few := numbered[r.What]; r.Of <= len(few) {
		return few[r.Of-1]
	}
	return r.What + " " + strconv.Itoa(r.Of-1)
}

// numbered holds the texts of the first numbered roles, which a million locations share.
var numbered = func() map[string][]string {
	all := map[string][]string{}
	for _, what := range []string{"live", "deopt", "base", "derived", "alloca", "argument"} {
		for n := range 32 {
			all[what] = append(all[what], what+" "+strconv.Itoa(n))
		}
	}
	return all
}()

// Role returns the purpose of location n.
func (r *Reading) Role(n int) Role {
	if r.statepoint {
		return r.statepointRole(n)
	}
	switch k := r.operand(n); {
	case k < 0:
	case k < r.head:
		return r.callRole(k)
	case k-r.head < len(r.Names):
		v := &r.Names[k-r.head]
		return Role{What: "live", Of: k - r.head + 1, Name: v.Role(), Type: v.Spelling()}
	}
	return Role{}
}

// callRole returns the role of a location before the live values of an anyregcc patchpoint: its result, if any, and then its arguments. If the
// candidate sites of the record disagree, it returns the role "call".
func (r *Reading) callRole(n int) Role {
	role := Role{What: "call"}
	for k, s := range r.Sites {
		own := Role{What: "result", Name: s.Instr.Ref(), Type: s.Instr.Typ.String()}
		at := n
		if s.Instr.Typ.Kind != ir.VoidKind {
			at--
		}
		if at >= 0 {
			v := s.Instr.Args[sites.PatchpointHead+at]
			own = Role{What: "argument", Of: at + 1, Name: sites.NameOf(v), Type: v.Type().String()}
		}
		switch {
		case k == 0:
			role = own
		case role.What != own.What || role.Of != own.Of:
			return Role{What: "call"}
		default:
			if role.Name != own.Name || s.Func != r.Sites[0].Func {
				role.Name = ""
			}
			if role.Type != own.Type || s.Func.Module != r.Sites[0].Func.Module {
				role.Type = ""
			}
		}
	}
	return role
}

func (r *Reading) statepointRole(n int) Role {
	switch n {
	case 0:
		return Role{What: "calling convention", Value: abi.ConventionTitle(r.sp.CallConv)}
	case 1:
		return Role{What: "flags", Value: statepointFlags(r.sp.Flags)}
	case 2:
		return Role{What: "number of deopt values"}
	}
	n -= stackmap.StatepointHead
	if n < len(r.sp.Deopt) {
		k := r.operand(n)
		if k < 0 {
			return Role{}
		}
		role := Role{What: "deopt", Of: k + 1}
		if k < len(r.Names) {
			role.Name, role.Type = r.Names[k].Role(), r.Names[k].Spelling()
		}
		return role
	}
	if r.moved {
		return Role{}
	}
	n -= len(r.sp.Deopt)
	if n < 2*len(r.sp.Pairs) {
		if n%2 == 0 {
			return Role{What: "base", Of: n/2 + 1}
		}
		return Role{What: "derived", Of: n/2 + 1}
	}
	return Role{What: "alloca", Of: n - 2*len(r.sp.Pairs) + 1}
}

// statepointFlags returns the meaning of the bits of a statepoint's flags (LLVM's Statepoint.h).
func statepointFlags(flags uint64) string {
	const transition, deoptLiveIn = 1, 2
	switch flags {
	case 0:
		return "none"
	case transition:
		return "gc transition"
	case deoptLiveIn:
		return "deopt live-in"
	case transition | deoptLiveIn:
		return "gc transition, deopt live-in"
	}
	return "unknown"
}

// Blobs implements [sites.Namer].
func (i *Image) Blobs() []*stackmap.Map { return i.Section.Maps }

// File implements [sites.Namer].
func (i *Image) File() *object.Image { return i.image }

// Symbols implements [sites.Namer]: it returns the symbol of the function's relocation, or else all that start at its address.
func (i *Image) Symbols(m *stackmap.Map, n int) []string {
	if i.image == nil {
		return nil
	}
	r, found := i.relocation(m.FunctionPos(&m.Functions[n]))
	if found && r.Addend == 0 {
		if name := r.Symbol(); name != "" {
			return []string{name}
		}
	}
	if i.Unlinked && !(found && r.Defined) {
		return nil // the address is not relocated yet
	}
	return progspace.SymbolsAt(i.image, m.Functions[n].Addr)
}

// relocation returns the relocation for an offset in the section, also one that was applied.
func (i *Image) relocation(pos int64) (object.Relocation, bool) {
	at, found := slices.BinarySearchFunc(i.named, uint64(pos),
		func(r object.Relocation, pos uint64) int { return cmp.Compare(r.Offset, pos) })
	if !found {
		return object.Relocation{}, false
	}
	return i.named[at], true
}

// NoteModules adds a note if no given module defines a function with records. It makes members of one architecture in an archive peers: they are
// parts of one program.
func (m *Maps) NoteModules() {
	type part struct { // an architecture, with 4-byte or 8-byte addresses, of the images
		arch   *machine.Arch
		narrow bool
	}
	programs := map[part]*sites.Peers{}
	defined, any := false, false
	for _, i := range m.Images {
		if !i.HasModules() || i.Section == nil {
			continue
		}
		any = true
		own := part{i.Arch, i.image != nil && i.image.Narrow()}
		p := programs[own]
		if p == nil || i.target != nil {
			p = &sites.Peers{}
			programs[own] = p
		}
		i.modules.Know(p, i, i.Blobs())
		defined = defined || i.defined()
	}
	if any && !defined {
		m.Notes = append(m.Notes, "no given module defines a function with records here")
	}
}

// defined reports whether a module defines a function of the image's maps, or may: a function without a name is identified by its records.
func (i *Image) defined() bool {
	for _, m := range i.Blobs() {
		c := i.modules.Maps[m]
		for n := range m.Functions {
			names := c.Names(&m.Functions[n])
			if len(names) == 0 || len(i.modules.Definitions(names...)) > 0 {
				return true
			}
		}
	}
	return false
}
