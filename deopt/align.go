package deopt

import (
	"fmt"
	"math/big"
	"math/bits"

	"reframe/deopt/ir"
	"reframe/deopt/stackmap"
)

// alignment says which location of a record is that of which operand of a site. They are not simply one behind the other: an
// operand in an x87 register is taken off the instruction by the pass that makes a stack of those registers
// (X86FloatingPoint.cpp, FPS::handleCall), while one that was spilled before stays. Nothing in the record says so; of a
// statepoint even the number of deopt values counts on, over what stands behind them (StackMaps.cpp, parseStatepointOpers).
type alignment struct {
	record *stackmap.Record
	head   int // operands before the live values: those of [head]
	first  int // the location at which operands begin: behind the constants of a statepoint
	live   int // live values
	// at has of each operand, those of the head too, the number of its location counted from first, or absent or untold. nil:
	// they are one behind the other.
	at []int
	// sp is the record of a statepoint, else nil. With moved it has neither pairs nor allocas: LLVM wrote them by operands
	// that may have been others.
	sp    *stackmap.Statepoint
	moved bool
}

const (
	absent = -1 // the record has no location for the operand
	untold = -2 // it may be one of several, or none
)

// place is the number of the location of live value k, counted from first, or absent or untold.
func (a *alignment) place(k int) int {
	if a.at == nil {
		return a.head + k
	}
	return a.at[a.head+k]
}

// location returns the location of live value k, and whether there is one that is known.
func (a *alignment) location(k int) (l stackmap.Location, ok bool) {
	at := a.place(k)
	if at < 0 {
		return l, false
	}
	return a.record.Locations[a.first+at], true
}

// unknown says why live value k of type t has no location that is known.
func (a *alignment) unknown(k int, t *ir.Type) string {
	if a.place(k) == absent {
		return unrecorded(t)
	}
	return "LLVM writes no location for a value in an x87 register, and this one's may be another's of this record"
}

// behind are the locations that a statepoint with moved has behind as many as it counts deopt values.
func (a *alignment) behind() []stackmap.Location {
	if !a.moved {
		return nil
	}
	return a.record.Locations[a.first+len(a.sp.Deopt):]
}

const behindMoved = "LLVM read it behind an operand that is missing from the statepoint, and what it read there is not told"

// align finds the location of each operand. why says that the record cannot be that of the site: no way to leave out operands
// that may be left out makes the others fit.
func align(s *ir.Site, e recordEntry) (alignment, string) { return alignOrCount(s, e, true) }

// alignOrCount is align. Without solve only numbers are compared, and the alignment says nothing.
func alignOrCount(s *ir.Site, e recordEntry, solve bool) (a alignment, why string) {
	a = alignment{record: e.Record, head: head(s), live: len(s.Live)}
	may, extended := 0, false
	for k := range a.head + a.live {
		if v := operand(s, a.head, k); mayVanish(s, v) {
			may++
			extended = extended || firstLeaf(v.Type()).Kind == ir.X86FP80Kind
		}
	}
	locations, whole := e.Record.Locations, true
	if recordsStatepoint(s) {
		sp, ok := e.Record.AsStatepoint()
		if whole = ok; !ok && may > 0 {
			sp, ok = deoptAlone(e.Record)
		}
		if !ok {
			return a, notShaped
		}
		a.sp, a.first, locations = &sp, stackmap.StatepointHead, sp.Deopt
	} else if a.head > len(locations)+may {
		return a, fmt.Sprintf("has %d values, and the module's patchpoint records %d before the live ones", len(locations), a.head)
	}
	f := fitting{s, e, &a, locations, may}
	dropped := f.dropped()
	switch {
	case dropped == 0:
		return a, fmt.Sprintf("has %d live values, and line %d of the module %d", len(locations)-a.head, s.Instr.Line, a.live)
	case dropped == 1 && !extended && whole || !solve:
		return a, ""
	}
	if why = f.solve(dropped); why == "" && !whole && !a.moved {
		why = notShaped
	}
	return a, why
}

const notShaped = "is not shaped like that of a statepoint, which the module has there"

// maxVanished is how many missing operands of one site are too many to tell where the others are.
const maxVanished = 63

// recordsStatepoint says whether the record of a site begins with the constants of a statepoint's.
func recordsStatepoint(s *ir.Site) bool {
	return s.Kind == ir.StatepointSite || s.Kind == ir.DeoptimizeSite
}

// operand is operand k of those that a site's record has locations for: with head of them, the result and the arguments of an
// anyregcc patchpoint first, then the live values.
func operand(s *ir.Site, head, k int) ir.Value {
	switch {
	case k >= head:
		return s.Live[k-head]
	case s.Instr.Typ.Kind == ir.VoidKind:
		return s.Instr.Args[patchpointHead+k]
	case k == 0:
		return s.Instr
	}
	return s.Instr.Args[patchpointHead+k-1]
}

// deoptAlone reads a record as that of a statepoint of which nothing behind the deopt values is as it should be, and that may
// end before there are as many as it counts.
func deoptAlone(rec *stackmap.Record) (stackmap.Statepoint, bool) {
	short := *rec
	if len(rec.Locations) < stackmap.StatepointHead {
		return stackmap.Statepoint{}, false
	}
	declared := rec.Locations[stackmap.StatepointHead-1]
	if declared.Kind != stackmap.Constant || declared.Offset < 0 {
		return stackmap.Statepoint{}, false
	}
	n := min(stackmap.StatepointHead+int(declared.Offset), len(rec.Locations))
	short.Locations = append([]stackmap.Location(nil), rec.Locations[:n]...)
	short.Locations[stackmap.StatepointHead-1].Offset = int32(n - stackmap.StatepointHead)
	return short.AsStatepoint()
}

// fitting holds the operands of a site against the locations of a record.
type fitting struct {
	site      *ir.Site
	entry     recordEntry
	out       *alignment
	locations []stackmap.Location // of the operands, and of a statepoint with others missing what took their places
	most      int                 // operands that may be missing
}

// dropped is the set of how many operands may be missing, by what the record counts: bit n for n of them.
func (f *fitting) dropped() (set uint64) {
	operands := f.out.head + f.out.live
	if f.out.sp == nil {
		if n := operands - len(f.locations); n >= 0 && n <= f.most {
			return 1 << min(n, maxVanished)
		}
		return 0
	}
	declared := int(f.entry.Record.Locations[stackmap.StatepointHead-1].Offset)
	if declared != operands {
		return 0
	}
	if len(f.locations) == declared {
		set = 1
	}
	for n := 1; n <= f.most; n++ {
		if f.tookPlaces(operands - n) {
			set |= 1 << min(n, maxVanished)
		}
	}
	return set
}

// tookPlaces says whether a statepoint's deopt values may end at location n, and those behind be of what the instruction has
// next: the number of gc pointers, as many pointers, and the number of allocas.
func (f *fitting) tookPlaces(n int) bool {
	s := f.site
	pointers, allocas := len(s.GCLive)+len(s.Live), len(s.GCLive)
	switch {
	case s.Instr.Typ.Kind == ir.TokenKind:
	case s.Func.GC != "":
		pointers, allocas = maxRecorded, maxRecorded // rewrite-statepoints-for-gc may have added any
	default:
		pointers, allocas = 0, 0
	}
	number := func(at, most int) bool {
		if at >= len(f.locations) {
			return true // the instruction ended
		}
		l := f.locations[at]
		return l.Kind == stackmap.Constant && l.Offset >= 0 && int(l.Offset) <= most
	}
	if n < 0 || n > len(f.locations) || !number(n, pointers) {
		return false
	}
	return n < len(f.locations) && f.locations[n].Offset != 0 || number(n+1, allocas)
}

// maxRecorded is the largest number of locations of a record.
const maxRecorded = 0xffff

// solve finds the location of each operand, where as many are missing as one of a set says. Operand k with n missing before
// it has location k-n, if it has any, so what can be is a set of n for each: those that can be reached from the first operand
// and from which the last can be.
func (f *fitting) solve(dropped uint64) (why string) {
	operands := f.out.head + f.out.live
	f.out.at = make([]int, operands)
	if dropped>>maxVanished != 0 {
		f.move()
		for k := range f.out.at {
			f.out.at[k] = untold
		}
		return ""
	}
	within := uint64(1)<<(min(f.most, maxVanished)+1) - 1
	reach, kept := make([]uint64, operands+1), make([]uint64, operands)
	reach[0] = 1
	for k := range operands {
		v := operand(f.site, f.out.head, k)
		for left := reach[k]; left != 0; left &= left - 1 {
			n := bits.TrailingZeros64(left)
			if at := k - n; at < len(f.locations) && f.holds(v, k, f.locations[at]) {
				kept[k] |= 1 << n
			}
		}
		reach[k+1] = kept[k]
		if mayVanish(f.site, v) {
			reach[k+1] |= reach[k] << 1 & within
		}
	}
	end := reach[operands] & dropped
	if end == 0 {
		return fmt.Sprintf("has values that those of line %d of the module do not fit, whichever of them lay in x87 registers and are missing", f.site.Instr.Line)
	}
	if end == 1 {
		f.out.at = nil
		return ""
	}
	f.move()
	for k := operands - 1; k >= 0; k-- {
		stays, goes := kept[k]&end, uint64(0)
		if mayVanish(f.site, operand(f.site, f.out.head, k)) {
			goes = reach[k] & (end >> 1)
		}
		f.out.at[k] = f.told(k, stays, goes != 0)
		end = stays | goes
	}
	return ""
}

// move takes from a statepoint what LLVM read behind operands of which one is missing.
func (f *fitting) move() {
	if sp := f.out.sp; sp != nil {
		f.out.moved, sp.Pairs, sp.Allocas = true, nil, nil
	}
}

// told is what is known of operand k that has a location where as many are missing before it as stays says.
func (f *fitting) told(k int, stays uint64, goes bool) int {
	switch {
	case stays == 0:
		return absent
	case goes:
		return untold
	}
	at := k - bits.TrailingZeros64(stays)
	for left := stays & (stays - 1); left != 0; left &= left - 1 {
		if f.locations[k-bits.TrailingZeros64(left)] != f.locations[at] {
			return untold
		}
	}
	return at
}

// holds says whether a location may be that of an operand. Constants of up to 64 bits and allocas are recorded as such
// (StatepointLowering.cpp, lowerIncomingStatepointValue; SelectionDAGBuilder.cpp, visitStackmap; FastISel.cpp,
// addStackMapLiveVars), but not as an argument of anyregcc, which is in a register.
func (f *fitting) holds(v ir.Value, k int, l stackmap.Location) bool {
	constant := l.Kind == stackmap.Constant || l.Kind == stackmap.ConstantIndex
	if k < f.out.head {
		return l.Kind == stackmap.Register && f.sized(firstLeaf(v.Type()), l) || constant && isUndef(v)
	}
	switch v := v.(type) {
	case *ir.Const:
		if want := asNumber(v); want != nil {
			_, agrees := agreesWith(f.entry.Map, want, v.Typ, l)
			return constant && agrees
		}
		if isUndef(v) {
			return true
		}
	case *ir.Instr:
		if onFrame(v) {
			return l.Kind == stackmap.Direct
		}
	}
	t := firstLeaf(v.Type())
	switch {
	case t.Kind == ir.X86FP80Kind:
		return l.Kind == stackmap.Indirect && f.sized(t, l)
	case constant:
		return true // computed to be one
	case l.Kind == stackmap.Direct:
		// An argument in parts, too, is recorded by its address.
		layout := f.site.Func.Module.Layout
		// So is the number of an alloca's address: a ptrtoint of it costs no instruction.
		return t.Kind == ir.PointerKind || t.Kind == ir.IntKind && layout.StoreSize(t) >= uint64(layout.PointerBytes(0))
	}
	return f.sized(t, l)
}

// sized says whether a register or slot of a location's size may hold a value of type t. What is wider than it in a register
// was promoted; vectors may be anything.
func (f *fitting) sized(t *ir.Type, l stackmap.Location) bool {
	const register, x87 = 8, 16
	layout := f.site.Func.Module.Layout
	switch least, size := layout.StoreSize(t), uint64(l.Size); t.Kind {
	case ir.IntKind:
		return size >= least && (size <= register || t.Bits > 64)
	case ir.PointerKind:
		return size >= least && size <= register
	case ir.X86FP80Kind:
		return size >= least && size <= x87
	case ir.HalfKind, ir.BFloatKind, ir.FloatKind, ir.DoubleKind, ir.FP128Kind:
		return size >= least
	}
	return true
}

// asNumber is the number that a constant of up to 64 bits is recorded as, or nil.
func asNumber(c *ir.Const) *big.Int {
	switch {
	case c.Kind == ir.ConstInt && c.Typ.Bits <= 64:
		return c.Int
	case c.Kind == ir.ConstNull && c.Typ.AddrSpace == 0, c.Kind == ir.ConstZero && c.Typ.Kind == ir.IntKind && c.Typ.Bits <= 64:
		return new(big.Int)
	}
	return nil
}

// agreesWith holds a constant of a module against a location. It says no only of one that is a constant; got is that.
func agreesWith(m *stackmap.Map, want *big.Int, t *ir.Type, l stackmap.Location) (got *big.Int, agrees bool) {
	recorded, err := m.Constant(l)
	if err != nil {
		return nil, true // the compiler may keep a constant in a register or a slot
	}
	width := uint(64)
	if t.Kind == ir.IntKind {
		width = uint(t.Bits)
	}
	mask := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), width), big.NewInt(1))
	got = new(big.Int).And(new(big.Int).SetUint64(recorded), mask)
	return got, got.Cmp(new(big.Int).And(want, mask)) == 0
}

// alignTogether is what the alignments with all of several sites, which fit and have as many operands, agree on.
func alignTogether(sites []*ir.Site, e recordEntry) alignment {
	all, _ := align(sites[0], e)
	for _, s := range sites[1:] {
		if own, _ := align(s, e); all.at != nil || own.at != nil {
			all = all.common(&own)
		}
	}
	return all
}

// common is what two alignments with as many operands agree on.
func (a *alignment) common(b *alignment) alignment {
	out := *a
	out.at = make([]int, a.head+a.live)
	for k := range out.at {
		if out.at[k] = a.place(k - a.head); b.place(k-b.head) != out.at[k] {
			out.at[k] = untold
		}
	}
	if b.moved {
		out.moved, out.sp = true, b.sp
	}
	return out
}
