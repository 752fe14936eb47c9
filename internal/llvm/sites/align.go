package sites

import (
	"fmt"
	"math/big"
	"math/bits"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
)

// Alignment maps the operands of a site to the locations of its record. There may be fewer locations than operands. The pass that allocates the x87 stack
// removes an operand in an x87 register from the instruction (X86FloatingPoint.cpp, FPS::handleCall), unless it was spilled before. The record does not show
// this. In a statepoint even the count of deopt values still includes the removed ones, so it covers locations that follow the deopt values
// (StackMaps.cpp, parseStatepointOpers).
type Alignment struct {
	Record *stackmap.Record
	Head   int // number of operands before the live values, counted by [head]
	First  int // index of the first operand's location: after the constants of a statepoint
	Live   int // number of live values
	// At holds, for each operand including those of the head, the index of its location counted from First, or Absent or Ambiguous. If At is nil, the locations
	// are in the order of the operands.
	At []int
	// Statepoint is the record as a statepoint, or nil. If Moved is set it has no pairs and no allocas, because LLVM may have read them from the wrong
	// operands.
	Statepoint *stackmap.Statepoint
	Moved      bool
}

const (
	Absent    = -1 // the record has no location for the operand
	Ambiguous = -2 // unknown: one of several locations, or none
)

// Place returns the index of the location of live value k, counted from First, or Absent or Ambiguous.
func (a *Alignment) Place(k int) int {
	if a.At == nil {
		return a.Head + k
	}
	return a.At[a.Head+k]
}

// Location returns the location of live value k; ok is false if it is unknown.
func (a *Alignment) Location(k int) (l stackmap.Location, ok bool) {
	at := a.Place(k)
	if at < 0 {
		return l, false
	}
	return a.Record.Locations[a.First+at], true
}

// Unknown returns the reason why live value k of type t has no known location.
func (a *Alignment) Unknown(k int, t *ir.Type) *frame.Reason {
	if a.Place(k) == Absent {
		return frame.Because(frame.NotRecorded, unrecorded(t))
	}
	return frame.Because(frame.NotRecorded, "a value of this record in an x87 register has no location, so this one may belong to another value")
}

// AfterDeopt returns the locations after the counted deopt values of a statepoint with Moved.
func (a *Alignment) AfterDeopt() []stackmap.Location {
	if !a.Moved {
		return nil
	}
	return a.Record.Locations[a.First+len(a.Statepoint.Deopt):]
}

// AfterMoved is the reason why the values after the deopt values of a statepoint are unavailable if Moved is set.
const AfterMoved = "an operand is missing from the statepoint, so LLVM may have read this from a wrong operand"

// Align finds the location of each operand. why is set if the record cannot belong to the site: the locations fit for no choice of missing operands.
func Align(s *ir.Site, e RecordEntry) (Alignment, string) { return alignOrCount(s, e, true) }

// alignOrCount implements Align. Without solve it compares only counts, and the alignment holds no locations.
func alignOrCount(s *ir.Site, e RecordEntry, solve bool) (a Alignment, why string) {
	shape, extended := counted(s)
	a = Alignment{Record: e.Record, Head: shape.head, Live: shape.live}
	may := shape.vanished
	locations, whole := e.Record.Locations, true
	if RecordsStatepoint(s) {
		sp, ok := e.Record.AsStatepoint()
		if whole = ok; !ok && may > 0 {
			sp, ok = deoptOnly(e.Record)
		}
		if !ok {
			return a, notShaped
		}
		a.Statepoint, a.First, locations = &sp, stackmap.StatepointHead, sp.Deopt
	} else if a.Head > len(locations)+may {
		return a, fmt.Sprintf("has %d values, but the module's patchpoint records %d before the live ones", len(locations), a.Head)
	}
	f := fitting{s, e, &a, locations, may}
	dropped := f.dropped()
	switch {
	case dropped == 0:
		return a, fmt.Sprintf("has %d live values, but line %d of the module has %d", len(locations)-a.Head, s.Instr.Line, a.Live)
	case dropped == 1 && !extended && whole || !solve:
		return a, ""
	}
	if why = f.solve(dropped); why == "" && !whole && !a.Moved {
		why = notShaped
	}
	return a, why
}

const notShaped = "is not a statepoint record, but the module has a statepoint there"

// maxVanished limits the missing operands for which locations are found. In a bit set, this bit stands for that many missing operands or more.
const maxVanished = 63

// RecordsStatepoint reports whether the record of a site begins with the constants of a statepoint record.
func RecordsStatepoint(s *ir.Site) bool {
	return s.Kind == ir.StatepointSite || s.Kind == ir.DeoptimizeSite
}

// operand returns operand k among the operands for which a site's record has locations. The first head operands are the result and the arguments of
// an anyregcc patchpoint; the live values follow.
func operand(s *ir.Site, head, k int) ir.Value {
	switch {
	case k >= head:
		return s.Live[k-head]
	case s.Instr.Typ.Kind == ir.VoidKind:
		return s.Instr.Args[PatchpointHead+k]
	case k == 0:
		return s.Instr
	}
	return s.Instr.Args[PatchpointHead+k-1]
}

// deoptOnly parses the record of a statepoint with missing operands. Everything after its deopt values is then invalid, and it may end before the number
// of deopt values that it states.
func deoptOnly(rec *stackmap.Record) (stackmap.Statepoint, bool) {
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

// fitting compares the operands of a site with the locations of a record.
type fitting struct {
	site      *ir.Site
	entry     RecordEntry
	out       *Alignment
	locations []stackmap.Location // locations of the operands; with missing operands in a statepoint, also the locations that took their places
	most      int                 // number of operands that may be missing
}

// dropped returns the possible numbers of missing operands according to the counts in the record, as a bit set.
func (f *fitting) dropped() (set uint64) {
	operands := f.out.Head + f.out.Live
	if f.out.Statepoint == nil {
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

// tookPlaces reports whether a statepoint's deopt values may end at location n. The next locations must then be those that follow in the instruction: the
// number of gc pointers, the pointers, and the number of allocas.
func (f *fitting) tookPlaces(n int) bool {
	s := f.site
	pointers, allocas := len(s.GCLive)+len(s.Live), len(s.GCLive)
	switch {
	case s.Instr.Typ.Kind == ir.TokenKind:
	case s.Func.GC != "":
		pointers, allocas = maxRecorded, maxRecorded // rewrite-statepoints-for-gc may have added any number
	default:
		pointers, allocas = 0, 0
	}
	number := func(at, most int) bool {
		if at >= len(f.locations) {
			return true // the record ends before this number
		}
		l := f.locations[at]
		return l.Kind == stackmap.Constant && l.Offset >= 0 && int(l.Offset) <= most
	}
	if n < 0 || n > len(f.locations) || !number(n, pointers) {
		return false
	}
	return n < len(f.locations) && f.locations[n].Offset != 0 || number(n+1, allocas)
}

// maxRecorded is the greatest number of locations in a record.
const maxRecorded = 0xffff

// solve finds the location of each operand. dropped is the set of possible numbers of missing operands. If n operands before operand k are missing, operand
// k has location k-n, or is missing too. So for each operand there is a set of possible n: those that are reachable from the first operand and from which
// the last operand is reachable.
func (f *fitting) solve(dropped uint64) (why string) {
	operands := f.out.Head + f.out.Live
	f.out.At = make([]int, operands)
	if dropped>>maxVanished != 0 {
		f.move()
		for k := range f.out.At {
			f.out.At[k] = Ambiguous
		}
		return ""
	}
	within := uint64(1)<<(min(f.most, maxVanished)+1) - 1
	reach, kept := make([]uint64, operands+1), make([]uint64, operands)
	reach[0] = 1
	for k := range operands {
		v := operand(f.site, f.out.Head, k)
		for left := reach[k]; left != 0; left &= left - 1 {
			n := bits.TrailingZeros64(left)
			if at := k - n; at < len(f.locations) && f.holds(v, k, f.locations[at]) {
				kept[k] |= 1 << n
			}
		}
		reach[k+1] = kept[k]
		if MayVanish(f.site, v) {
			reach[k+1] |= reach[k] << 1 & within
		}
	}
	end := reach[operands] & dropped
	if end == 0 {
		return fmt.Sprintf("has values that do not match those of line %d of the module, whichever x87 operands are missing", f.site.Instr.Line)
	}
	if end == 1 {
		f.out.At = nil
		return ""
	}
	f.move()
	for k := operands - 1; k >= 0; k-- {
		stays, goes := kept[k]&end, uint64(0)
		if MayVanish(f.site, operand(f.site, f.out.Head, k)) {
			goes = reach[k] & (end >> 1)
		}
		f.out.At[k] = f.told(k, stays, goes != 0)
		end = stays | goes
	}
	return ""
}

// move discards the parts of a statepoint that LLVM read after a missing operand.
func (f *fitting) move() {
	if sp := f.out.Statepoint; sp != nil {
		f.out.Moved, sp.Pairs, sp.Allocas = true, nil, nil
	}
}

// told returns the location of operand k, Absent or Ambiguous. stays is the set of possible numbers of missing operands before it if it is present; goes
// reports whether it may be missing itself.
func (f *fitting) told(k int, stays uint64, goes bool) int {
	switch {
	case stays == 0:
		return Absent
	case goes:
		return Ambiguous
	}
	at := k - bits.TrailingZeros64(stays)
	for left := stays & (stays - 1); left != 0; left &= left - 1 {
		if f.locations[k-bits.TrailingZeros64(left)] != f.locations[at] {
			return Ambiguous
		}
	}
	return at
}

// holds reports whether a location may be that of an operand. Constants of up to 64 bits and allocas have their own kinds of location
// (StatepointLowering.cpp, lowerIncomingStatepointValue; SelectionDAGBuilder.cpp, visitStackmap; FastISel.cpp, addStackMapLiveVars). An argument of anyregcc
// is always in a register.
func (f *fitting) holds(v ir.Value, k int, l stackmap.Location) bool {
	constant := l.Kind == stackmap.Constant || l.Kind == stackmap.ConstantIndex
	if k < f.out.Head {
		return l.Kind == stackmap.Register && f.sized(FirstLeaf(v.Type()), l) || constant && IsUndef(v)
	}
	switch v := v.(type) {
	case *ir.Const:
		if want := asNumber(v); want != nil {
			_, agrees := agreesWith(f.entry.Map, want, v.Typ, l)
			return constant && agrees
		}
		if IsUndef(v) {
			return true
		}
	case *ir.Instr:
		if OnFrame(v) {
			return l.Kind == stackmap.Direct
		}
	}
	t := FirstLeaf(v.Type())
	switch {
	case t.Kind == ir.X86FP80Kind:
		return l.Kind == stackmap.Indirect && f.sized(t, l)
	case constant:
		return true // the code generator may have found that the operand is constant
	case l.Kind == stackmap.Direct:
		// An argument that is passed in parts is also recorded by its address.
		layout := f.site.Func.Module.Layout
		// The record also holds an address for an alloca's address that is an integer, because its ptrtoint needs no instruction.
		return t.Kind == ir.PointerKind || t.Kind == ir.IntKind && layout.StoreSize(t) >= uint64(layout.PointerBytes(0))
	}
	return f.sized(t, l)
}

// sized reports whether a location of this size may hold a value of type t. A value narrower than its register was promoted; vectors may have any size.
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

// asNumber returns the number that a record holds for a constant of up to 64 bits, or nil.
func asNumber(c *ir.Const) *big.Int {
	switch {
	case c.Kind == ir.ConstInt && c.Typ.Bits <= 64:
		return c.Int
	case c.Kind == ir.ConstNull && c.Typ.AddrSpace == 0, c.Kind == ir.ConstZero && c.Typ.Kind == ir.IntKind && c.Typ.Bits <= 64:
		return new(big.Int)
	}
	return nil
}

// agreesWith compares a constant of a module with a location. agrees is false only if the location is a different constant; got is that constant.
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

// AlignTogether returns the common part of the alignments of several fitting sites with the same number of operands.
func AlignTogether(sites []*ir.Site, e RecordEntry) Alignment {
	all, _ := Align(sites[0], e)
	for _, s := range sites[1:] {
		if own, _ := Align(s, e); all.At != nil || own.At != nil {
			all = all.common(&own)
		}
	}
	return all
}

// common returns the common part of two alignments with the same number of operands.
func (a *Alignment) common(b *Alignment) Alignment {
	out := *a
	out.At = make([]int, a.Head+a.Live)
	for k := range out.At {
		if out.At[k] = a.Place(k - a.Head); b.Place(k-b.Head) != out.At[k] {
			out.At[k] = Ambiguous
		}
	}
	if b.Moved {
		out.Moved, out.Statepoint = true, b.Statepoint
	}
	return out
}
