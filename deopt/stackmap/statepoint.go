package stackmap

// Statepoint holds the locations of a gc.statepoint's record ("Garbage Collection Safepoints in LLVM", Stack Map Format): three constants, the values
// of the "deopt" bundle, and the gc pointers and allocas of the "gc-live" bundle.
type Statepoint struct {
	CallConv uint64
	Flags    uint64 // bit 0: the call is a gc transition
	Deopt    []Location
	Pairs    []Pair
	Allocas  []Location // one Direct location per alloca in gc-live
}

// Pair is a gc pointer and the base pointer that it was derived from.
type Pair struct{ Base, Derived Location }

// StatepointHead is the number of constants at the start of a statepoint's record, before the deopt values.
const StatepointHead = 3

// AsStatepoint reads rec as a statepoint's record. A record does not contain the kind of its site, so true only means that rec can be a statepoint's
// record. Such a record begins with three small constants: a possible calling convention (at most 1023, LLVM's CallingConv.h), defined flags
// (Statepoint.h), and a count of deopt values that does not exceed the remaining locations.
func (rec *Record) AsStatepoint() (Statepoint, bool) {
	if len(rec.Locations) < StatepointHead {
		return Statepoint{}, false
	}
	var head [StatepointHead]uint64
	for i := range head {
		l := rec.Locations[i]
		if l.Kind != Constant || l.Offset < 0 {
			return Statepoint{}, false
		}
		head[i] = uint64(l.Offset)
	}
	const maxCallConv, allFlags = 1023, 3
	rest := rec.Locations[StatepointHead:]
	if head[0] > maxCallConv || head[1] > allFlags || head[2] > uint64(len(rest)) {
		return Statepoint{}, false
	}
	s := Statepoint{CallConv: head[0], Flags: head[1], Deopt: rest[:head[2]]}
	rest = rest[head[2]:]
	// The allocas come last, and only they are Direct: a gc pointer is in a register or a spill slot, or is a constant.
	end := len(rest)
	for end > 0 && rest[end-1].Kind == Direct {
		end--
	}
	if end%2 != 0 {
		return Statepoint{}, false
	}
	s.Allocas = rest[end:]
	if end > 0 {
		s.Pairs = make([]Pair, 0, end/2)
	}
	for i := 0; i < end; i += 2 {
		s.Pairs = append(s.Pairs, Pair{rest[i], rest[i+1]})
	}
	return s, true
}

// AfterDeopt lists the locations after the deopt values: the pairs and the allocas.
func (s *Statepoint) AfterDeopt() (all []Location) {
	for _, p := range s.Pairs {
		all = append(all, p.Base, p.Derived)
	}
	return append(all, s.Allocas...)
}
