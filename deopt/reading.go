package deopt

import (
	"fmt"

	"reframe/deopt/ir"
	"reframe/deopt/stackmap"
)

// Reading is what the locations of a record mean, as far as it is known.
type Reading struct {
	// Kind is stackmap, patchpoint, statepoint or deoptimize, or "" where it is not known.
	Kind string
	// Sure says that the module told. Without it a statepoint is a reading: the record
	// has the shape of one, and does not say that it is.
	Sure bool
	// Sites are those of the modules that the record may be; with more than one, they do
	// not agree on what the locations hold.
	Sites []*ir.Site
	Note  string // why a module that was given does not say more

	statepoint bool
	sp         stackmap.Statepoint
	site       *ir.Site
	names      []ir.Value // live values by location, behind the head
	head       int
}

// Statepoint returns the statepoint that the record is or reads as.
func (r *Reading) Statepoint() (stackmap.Statepoint, bool) { return r.sp, r.statepoint }

// Read says in r what the locations of a record of the function mean. What r held before
// is forgotten.
func (f *MapFunction) Read(rec *stackmap.Record, r *Reading) {
	*r = Reading{}
	sp, shaped := f.Map.AsStatepoint(rec)
	if shaped {
		r.Kind, r.sp, r.statepoint = string(ir.StatepointSite), sp, true
	}
	ms := f.Image.modules
	if !f.Image.HasModules() {
		return
	}
	c, err := ms.sites(f.Source, recordEntry{stackmap.Entry{Map: f.Map, Function: f.Function}, rec})
	r.Sites, r.Note = c.sites, c.why
	if err != nil {
		r.Note = err.Error()
	}
	if kind := kindOf(c.sites); kind != "" {
		r.Kind, r.Sure = string(kind), true
		r.statepoint = shaped && (kind == ir.StatepointSite || kind == ir.DeoptimizeSite)
	}
	if len(c.sites) == 1 {
		r.name(c.sites[0])
	}
}

// name gives the locations the names of a site's operands.
func (r *Reading) name(s *ir.Site) {
	r.site, r.head = s, head(s)
	for _, v := range s.Live {
		if !noLocation(s, v) {
			r.names = append(r.names, v)
		}
	}
}

// Role is what one location of a record is for.
type Role struct {
	What  string // "flags", "deopt", "derived", "live"; "" where it is not known
	Of    int    // which of those, from 1; 0 where there is one
	Name  string // as the module spells it; "" for a constant, or without a module
	Type  string // as the module spells it
	Value string // what a number of the statepoint's head means
}

// String is the role with its number, counted from 0: "deopt 0".
func (r Role) String() string {
	if r.Of == 0 {
		return r.What
	}
	return fmt.Sprintf("%s %d", r.What, r.Of-1)
}

// Role says what location n is for.
func (r *Reading) Role(n int) Role {
	switch {
	case r.statepoint:
		return r.statepointRole(n)
	case n < r.head:
		return Role{What: "call"}
	case r.site != nil && n-r.head < len(r.names):
		v := r.names[n-r.head]
		return Role{What: "live", Of: n - r.head + 1, Name: name(v), Type: v.Type().String()}
	}
	return Role{}
}

func (r *Reading) statepointRole(n int) Role {
	switch n {
	case 0:
		return Role{What: "calling convention", Value: callingConvention(r.sp.CallConv)}
	case 1:
		return Role{What: "flags", Value: statepointFlags(r.sp.Flags)}
	case 2:
		return Role{What: "number of deopt values"}
	}
	n -= stackmap.StatepointHead
	if n < len(r.sp.Deopt) {
		role := Role{What: "deopt", Of: n + 1}
		if n < len(r.names) {
			role.Name, role.Type = name(r.names[n]), r.names[n].Type().String()
		}
		return role
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

// callingConvention names the calling conventions that belong to no machine (LLVM's
// CallingConv.h, and "Calling Conventions" in the language reference).
func callingConvention(n uint64) string {
	if n < uint64(len(callingConventions)) {
		return callingConventions[n]
	}
	return ""
}

var callingConventions = [...]string{0: "C", 8: "fast", 9: "cold", 10: "GHC", 11: "HiPE", 13: "anyreg", 14: "preserve_most",
	15: "preserve_all", 16: "swift", 17: "cxx_fast_tls", 18: "tail", 19: "cfguard_check", 20: "swift_tail", 21: "preserve_none"}

// statepointFlags says what the bits of a statepoint's flags mean (LLVM's Statepoint.h).
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
