// This file finds the sites of a function in a module. Package sites matches them with records.

package ir

import (
	"fmt"
	"math"
	"strconv"
)

// SiteKind is the kind of call that a record describes.
type SiteKind string

// These are the kinds of sites.
const (
	StackMapSite   SiteKind = "stackmap"
	PatchPointSite SiteKind = "patchpoint"
	StatepointSite SiteKind = "statepoint"
	DeoptimizeSite SiteKind = "deoptimize"
)

// These are the ids that LLVM gives statepoints that have no id in the IR (StatepointDirectives): rewrittenID by rewrite-statepoints-for-gc, and
// bundleID by the code generator for a call with a deopt bundle that was not rewritten (seen: LLVM 14 to 22).
const (
	rewrittenID uint64 = 0xABCDEF00
	bundleID    uint64 = 0xABCDEF0F
)

// Site is a call for which LLVM writes a stack map record.
type Site struct {
	Kind       SiteKind
	ID         uint64
	PatchBytes uint64 // bytes to patch; for a stackmap, the shadow bytes
	Func       *Func
	Instr      *Instr
	// Live holds the live values in the order of the record's locations: the variable arguments of a stackmap or patchpoint, otherwise the deopt bundle.
	Live   []Value
	GCLive []Value // the gc-live bundle
	Callee Value   // the called value; nil for a stackmap and for a deoptimize that is not rewritten
	CC     string

	result *Instr // the gc.result of a gc.statepoint
	either bool   // the record has ID if rewrite-statepoints-for-gc rewrote the call, otherwise bundleID
}

// IDs returns the ids that the record of the site may have, the likelier first. A site has two possible ids in two cases. A call with a deopt bundle
// and no id, in a function whose collector rewrite-statepoints-for-gc handles, has an id that depends on whether that pass ran. The id of a
// statepoint that exceeds 32 bits is truncated by LLVM before release 19.
func (s *Site) IDs() []uint64 {
	switch cut, wide := s.CutID(); {
	case s.either:
		return []uint64{s.ID, bundleID}
	case wide:
		return []uint64{s.ID, cut}
	}
	return []uint64{s.ID}
}

// CutID returns the truncated id that LLVM before release 19 records for a statepoint, or a call that becomes one, whose id exceeds 32 bits
// (StatepointLoweringInfo; seen: LLVM 14 and 16). ok is false for all other sites.
func (s *Site) CutID() (id uint64, ok bool) {
	switch s.Kind {
	case StackMapSite, PatchPointSite:
		return 0, false
	}
	return uint64(uint32(s.ID)), s.ID > math.MaxUint32
}

// Result returns the instruction whose value is the call's result: the call itself, or for a gc.statepoint its gc.result. It returns nil if there is none.
func (s *Site) Result() *Instr {
	switch s.Instr.Typ.Kind {
	case VoidKind:
		return nil
	case TokenKind:
		return s.result
	}
	return s.Instr
}

// Sites returns the sites of a function in program order; none for a declaration. The error is that of its body, or names a site that violates LangRef.
func (f *Func) Sites() ([]*Site, error) {
	if f.Declared() {
		return nil, nil
	}
	blocks, err := f.Body()
	if err != nil {
		return nil, err
	}
	var sites []*Site
	results := map[Value]*Instr{} // gc.result instructions by token
	for _, b := range blocks {
		for _, in := range b.Instrs {
			if in.Call == nil {
				continue
			}
			if isIntrinsic(in, "experimental.gc.result") && len(in.Args) == 1 {
				results[in.Args[0]] = in
			}
			site, err := f.site(in)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", f.Module.Name, in.Line, err)
			}
			if site != nil {
				sites = append(sites, site)
			}
		}
	}
	for _, s := range sites {
		s.result = results[s.Instr]
	}
	return sites, nil
}

// site returns the site of a call, or nil if it is not a site.
func (f *Func) site(in *Instr) (*Site, error) {
	s := &Site{Func: f, Instr: in, CC: in.Call.CC}
	switch {
	case isIntrinsic(in, "experimental.stackmap"), isIntrinsic(in, "webkit.stackmap"): // the names in the proposal of 2013
		s.Kind = StackMapSite
		return s, s.stackMap()
	case isIntrinsic(in, "experimental.patchpoint"), isIntrinsic(in, "webkit.patchpoint"):
		s.Kind = PatchPointSite
		return s, s.patchPoint()
	case isIntrinsic(in, "experimental.gc.statepoint"):
		s.Kind = StatepointSite
		return s, s.statepoint()
	case isIntrinsic(in, "experimental.deoptimize"):
		s.Kind = DeoptimizeSite
		return s, s.bundled()
	}
	// A call with a deopt bundle becomes a statepoint. A call of any other intrinsic with such a bundle, such as a guard, is replaced by an earlier
	// pass.
	if intrinsic(in) == "" && hasBundle(in, "deopt") {
		s.Kind, s.Callee = StatepointSite, in.Call.Callee
		return s, s.bundled()
	}
	return nil, nil
}

// Sled reports whether the code has nops in place of the call: a statepoint, or a call that becomes one, that reserves bytes for patching. The code
// still sets up the arguments and reads the result. Between the two, the thread runs the nops, or the code that a runtime has written over them
// ("Garbage Collection Safepoints in LLVM", gc.statepoint; X86AsmPrinter::LowerSTATEPOINT and its counterparts for other targets).
func (in *Instr) Sled() bool {
	if in.Call == nil || !isIntrinsic(in, "experimental.gc.statepoint") && in.Call.Attrs["statepoint-num-patch-bytes"] == "" {
		return false
	}
	s, err := in.Block.Func.site(in)
	return err == nil && s != nil && statepoint[s.Kind] && s.PatchBytes > 0
}

var statepoint = map[SiteKind]bool{StatepointSite: true, DeoptimizeSite: true}

// head decodes the first two arguments of each of these intrinsics: the id and the number of bytes.
func (s *Site) head(least int) error {
	args := s.Instr.Args
	if len(args) < least {
		return fmt.Errorf("%s takes at least %d arguments, not %d", s.Kind, least, len(args))
	}
	for i, into := range []*uint64{&s.ID, &s.PatchBytes} {
		n, ok := smallConst(args[i])
		if !ok {
			return fmt.Errorf("argument %d of %s must be a constant, not %s", i+1, s.Kind, args[i].Ref())
		}
		*into = n
	}
	return nil
}

// stackMap decodes (id, shadow bytes, live…).
func (s *Site) stackMap() error {
	if err := s.head(2); err != nil {
		return err
	}
	s.Live = s.Instr.Args[2:]
	return nil
}

// patchPoint decodes (id, bytes, target, N, N call arguments, live…).
func (s *Site) patchPoint() error {
	if err := s.head(4); err != nil {
		return err
	}
	args := s.Instr.Args
	n, ok := smallConst(args[3])
	if !ok || n > uint64(len(args)-4) {
		return fmt.Errorf("patchpoint has %d arguments after the number of arguments, which is %s", len(args)-4, args[3].Ref())
	}
	s.Callee, s.Live = args[2], args[4+n:]
	return nil
}

// statepoint decodes (id, bytes, target, N, flags, N call arguments, 0, 0) and the operand bundles.
func (s *Site) statepoint() error {
	if err := s.head(5); err != nil {
		return err
	}
	s.Callee = s.Instr.Args[2]
	s.Live, s.GCLive = bundle(s.Instr, "deopt"), bundle(s.Instr, "gc-live")
	if leaves(s.Callee) {
		s.Kind = DeoptimizeSite
	}
	return nil
}

// leaves reports whether a callee is __llvm_deoptimize, which marks an exit call that rewrite-statepoints-for-gc has rewritten. With typed pointers (LLVM 14)
// it is a bitcast if the module defines that function with another type.
func leaves(callee Value) bool {
	c, ok := callee.(*Const)
	for ok && c.Kind == ConstExpr && c.Op == OpBitCast {
		if c = c.Elems[0]; c.Kind == ConstRef {
			callee, ok = c.Target, false
		}
	}
	f, ok := callee.(*Func)
	return ok && f.Name == "__llvm_deoptimize"
}

// bundled decodes a call that LLVM will lower to a statepoint.
func (s *Site) bundled() error {
	s.ID = bundleID
	if gc := s.Func.GC; gc == "statepoint-example" || gc == "coreclr" {
		s.ID, s.either = rewrittenID, true // rewrite-statepoints-for-gc handles these strategies
	}
	s.Live, s.GCLive = bundle(s.Instr, "deopt"), bundle(s.Instr, "gc-live")
	for key, into := range map[string]*uint64{"statepoint-id": &s.ID, "statepoint-num-patch-bytes": &s.PatchBytes} {
		text, ok := s.Instr.Call.Attrs[key]
		if !ok {
			continue
		}
		// LLVM ignores an attribute that is not a number.
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			*into = n
			if key == "statepoint-id" {
				s.either = false
			}
		}
	}
	return nil
}

func hasBundle(in *Instr, tag string) bool {
	for _, b := range in.Call.Bundles {
		if b.Tag == tag {
			return true
		}
	}
	return false
}

// GuardSite is the kind of a call of llvm.experimental.guard. It has no record: the pass lower-guard-intrinsic replaces it by a branch to a deoptimize call
// with the same deopt bundle (LangRef, "llvm.experimental.guard").
const GuardSite SiteKind = "guard"

// Guards returns the guards of a function in program order, as the deoptimize sites that they will become; none for a declaration. The error is that of
// its body.
func (f *Func) Guards() ([]*Site, error) {
	if f.Declared() {
		return nil, nil
	}
	blocks, err := f.Body()
	if err != nil {
		return nil, err
	}
	var guards []*Site
	for _, b := range blocks {
		for _, in := range b.Instrs {
			if !isIntrinsic(in, "experimental.guard") {
				continue
			}
			s := &Site{Kind: GuardSite, Func: f, Instr: in, CC: in.Call.CC}
			if err := s.bundled(); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", f.Module.Name, in.Line, err)
			}
			guards = append(guards, s)
		}
	}
	return guards, nil
}
