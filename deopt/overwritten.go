package deopt

import (
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/progspace/patched"
)

// Place returns the place of the frame in its function: its pc, or the place of the jump if the frame jumped to a stub.
func (f *Frame) Place() machine.Addr {
	if o := f.physical.Overwritten; o != nil && o.From != o.At {
		return o.At
	}
	return f.physical.PC
}

// overwritten returns the matches of a frame for patched code at one address.
func (f *Frame) overwritten(all []*patched.Code) (matches []*Match) {
	for _, s := range all {
		m := &Match{Entry: s.Entry, Kind: sites.KindOf(s.Sites.Sites), Candidates: s.Sites, Moment: frame.Before, patched: s}
		if m.Kind != "" && m.Kind != ir.StackMapSite {
			m.Moment = frame.InCall // a call in a region replaces the site's own call
		}
		if s.Trapped {
			m.Moment = frame.Before
		} else if m.Kind == "" && s.WasSled() {
			m.Moment = frame.Unknown // the nops may be those of a patchpoint without a target, whose call would be running
		}
		if len(m.Sites) == 1 {
			m.Site = m.Sites[0]
		}
		matches = append(matches, m)
	}
	if s := all[0]; s.Stub != 0 {
		how := "jump"
		if s.Called() {
			how = "call"
		}
		f.AddNote(frame.Errorf("the %s that was written into the %s of its record leads to %v, where a call was made that returns to %v", how, s.Noun(), s.Stub, f.physical.PC))
	}
	if all[0].Bytes == 0 && !all[0].Trapped {
		f.Notes = append(f.Notes, "no module gives the size of the record's shadow: the call written over the code after the record is assumed to be in the shadow")
	}
	return matches
}

// Returns reports whether a pending call returns to [Frame.Place].
func (f *Frame) Returns() bool { return f.physical.Return && f.Place() == f.physical.PC }
