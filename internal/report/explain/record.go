package explain

import (
	"fmt"
	"math"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
)

// NearRecord is a record at a place or near it, with the reason why it is or is not the record of the frame at that place.
type NearRecord struct {
	ID        uint64       `json:"id"`
	Address   frame.Hex    `json:"address"` // the address of the site, by the convention of its kind
	Function  frame.Hex    `json:"function"`
	Name      string       `json:"name,omitempty"`      // the name of the function
	Demangled string       `json:"demangled,omitempty"` // empty if it equals Name
	Offset    uint32       `json:"offset"`              // the offset in the function
	Distance  int64        `json:"distance"`            // bytes from the place; negative for a record before it
	Matched   bool         `json:"matched"`             // it is the record of the explained frame
	Site      string       `json:"site"`                // stackmap, patchpoint, statepoint, deoptimize, unknown
	Moment    frame.Moment `json:"moment,omitempty"`
	Line      int          `json:"line,omitempty"` // the line of the site in the module
	Module    string       `json:"module,omitempty"`
	Why       string       `json:"why"` // the reason why it matches or does not; at a place without a frame, the meaning of its address
}

// maxAround bounds the reported records of a place.
const maxAround = 16

// around lists the records at the frame's place and near it: first the one that matched, then the others by address.
func around(f *deopt.Frame) []NearRecord {
	out := []NearRecord{}
	if f.Code() == nil || f.Code().Records == nil {
		return out
	}
	pc := f.Place()
	before := f.Code().Records.Range(0, pc+1)
	behind := f.Code().Records.Range(pc+1, math.MaxUint64)
	var nearest machine.Addr // the nearest record before pc
	for n := before.Len() - 1; n >= 0 && len(out) < maxAround; n-- {
		e := before.Entry(n)
		if nearest == 0 && e.Addr < pc {
			nearest = e.Addr
		}
		// If pc is more than the longest patchpoint region after the record, report only the nearest record.
		if e.Addr < nearest && (e.Addr+sites.MaxPatch < pc || !refusesNear(f, e)) {
			break
		}
		out = append(out, near(f, sites.RecordEntry{Entry: e, Record: e.Record()}))
	}
	slices.Reverse(out)
	for n := 0; n < behind.Len() && len(out) < maxAround; n++ {
		e := behind.Entry(n)
		if e.Addr != behind.Entry(0).Addr {
			break
		}
		out = append(out, near(f, sites.RecordEntry{Entry: e, Record: e.Record()}))
	}
	slices.SortStableFunc(out, func(a, b NearRecord) int {
		switch {
		case a.Matched == b.Matched:
			return 0
		case a.Matched:
			return -1
		}
		return 1
	})
	return out
}

// refusesNear reports whether the matcher had a reason to reject a record before the place.
func refusesNear(f *deopt.Frame, e stackmap.Entry) bool {
	_, why, err := judge(f).Try(sites.RecordEntry{Entry: e, Record: e.Record()}, f.Place(), f.Returns())
	return why != "" || err != nil
}

// judge returns the matcher that compares records with the frame's place.
func judge(f *deopt.Frame) *deopt.Matcher {
	within := f.Physical().Lookup()
	name, _, _ := f.SymbolAt(within)
	return f.Matcher(name, f.Code().SymbolAt(within).Owner)
}

// near describes a record that is at the frame's place or near it.
func near(f *deopt.Frame, e sites.RecordEntry) NearRecord {
	pc := f.Place()
	out := NearRecord{ID: uint64(e.Record.ID), Address: frame.HexOf(e.Addr), Function: frame.HexOf(e.Function.Addr),
		Offset: e.Record.Offset, Distance: int64(e.Addr - pc), Site: deopt.UnknownSite}
	if name, start, ok := f.Code().NameAt(e.Function.Addr); ok && start == e.Function.Addr {
		out.Name, out.Demangled = name, names.IfMangled(name)
	}
	describe := func(m *deopt.Match) {
		if m.Kind != "" {
			out.Site = string(m.Kind)
		}
		if m.Site != nil {
			out.Line, out.Module = m.Site.Instr.Line, m.Site.Func.Module.Name
		}
	}
	if own := f.Match(); isOf(f, e) {
		describe(own)
		out.Matched, out.Moment, out.Why = true, own.Moment, convention(own, pc)
		if why := own.Overwritten(f); why != "" {
			out.Why = why
		}
		return out
	}
	m := judge(f)
	c, err := m.Sites(e)
	if err != nil {
		out.Why = err.Error()
		return out
	}
	what := &deopt.Match{Entry: e, Kind: sites.KindOf(c.Sites), Candidates: c}
	if len(c.Sites) == 1 {
		what.Site = c.Sites[0]
	}
	if what.Kind == "" && m.PatchpointCall(e.Addr) != 0 {
		what.Kind = ir.PatchPointSite
	}
	describe(what)
	if f.Rule == "" { // f is a place without a frame
		out.Why = meaning(what, m)
		return out
	}
	out.Why = refusal(f, m, what)
	return out
}

// convention explains why a record belongs to a frame at pc.
func convention(m *deopt.Match, pc machine.Addr) string {
	switch {
	case m.Kind == "":
		return "it is at the pc; no module gives the kind of its site, so its progress is unknown"
	case m.Kind == ir.StackMapSite && m.Entry.Addr != pc:
		return fmt.Sprintf("the record of a stackmap is at the site itself, %d bytes after the pc: the %s between only move values in registers and in the frame",
			uint64(m.Entry.Addr-pc), sites.Plural(len(m.Moves), "instruction"))
	case m.Kind == ir.StackMapSite:
		return "the record of a stackmap is at the site itself, and so is the pc"
	case m.Entry.Addr > pc && m.Moment == frame.Before:
		return fmt.Sprintf("the region of the %s starts at the pc: nothing of it has run", m.Kind)
	case m.Entry.Addr > pc:
		return fmt.Sprintf("the record of a %s is at the end of its region, and a call in the region ends at the pc, %d bytes before: %s", m.Kind, uint64(m.Entry.Addr-pc), progress(m))
	case m.Kind == ir.PatchPointSite && m.Moment == frame.Before:
		return "the record of a patchpoint is at the start of its region, and so is the pc: nothing of it has run"
	case m.Kind == ir.PatchPointSite:
		return fmt.Sprintf("the record of a patchpoint is at the start of its region, and a call in the region ends at the pc, %d bytes after: %s", uint64(pc-m.Entry.Addr), progress(m))
	case m.Moment == frame.Before:
		return fmt.Sprintf("the record of a %s is at the return address of its call, and the call at the pc ends there: it has not run yet", m.Kind)
	}
	return fmt.Sprintf("the record of a %s is at the return address of its call, which is the pc: %s", m.Kind, progress(m))
}

// progress returns, as text, whether the call of a site has started and returned.
func progress(m *deopt.Match) string {
	if m.Moment == frame.InCall {
		return "the call is still running"
	}
	return "the call has returned"
}

// meaning returns, as text, which instruction a record's address names: the site, the start of a patchpoint's region, or a return address.
func meaning(m *deopt.Match, by *deopt.Matcher) string {
	switch {
	case m.Kind == "":
		return "no module gives the kind of its site: its place is a return address, or the start of a patchpoint or stackmap"
	case m.Kind == ir.StackMapSite:
		return "its place is the site itself"
	case m.Kind == ir.PatchPointSite:
		if end := by.PatchpointCall(m.Entry.Addr); end != 0 {
			return fmt.Sprintf("its place is the start of its region; a frame that waits for its call is at %v", end)
		}
		return "its place is the start of its region"
	}
	return "its place is the return address of its call"
}

// refusal explains why a record does not belong to the frame.
func refusal(f *deopt.Frame, m *deopt.Matcher, what *deopt.Match) string {
	e, pc := what.Entry, f.Place()
	if e.Function.Addr != m.Function {
		return "it belongs to another function"
	}
	got, why, err := m.Try(e, pc, f.Returns())
	switch {
	case err != nil:
		return err.Error()
	case why != "":
		return why
	case got != nil && f.Match() != nil:
		return "it is at this address too; the other one comes first, or has more values"
	case got != nil:
		return f.Reached(got)
	}
	where := fmt.Sprintf("%d bytes before the pc", uint64(pc-e.Addr))
	if e.Addr > pc {
		where = fmt.Sprintf("%d bytes after the pc", uint64(e.Addr-pc))
	}
	switch {
	case what.Kind == "":
		return "its place is " + where
	case what.Kind == ir.StackMapSite:
		return "the site itself is " + where
	case what.Kind != ir.PatchPointSite:
		return "the return address of its call is " + where
	case e.Addr > pc:
		return "its region starts " + where
	case what.Site != nil && uint64(pc-e.Addr) > what.Site.PatchBytes:
		return fmt.Sprintf("its region of %d bytes starts %s and ends before it", what.Site.PatchBytes, where)
	}
	return "its region starts " + where + ", and its call does not end there"
}

// otherNotes returns the notes of a frame that no other part of the explanation contains.
func otherNotes(f *deopt.Frame, records []NearRecord) []string {
	return f.OtherNotes(func(id uint64) bool {
		return slices.ContainsFunc(records, func(r NearRecord) bool { return r.ID == id })
	})
}

// withoutRecords explains why there are no records at a place.
func withoutRecords(f *deopt.Frame) []string {
	switch {
	case f.Code() == nil:
		return nil
	case f.Code().MapsErr != nil:
		return []string{"its stack map cannot be read: " + f.Code().MapsErr.Error()}
	case f.Code().Records == nil:
		return []string{f.Code().Name + " has no stack map"}
	}
	return []string{"its stack map has no record"}
}
