package trace

import (
	"cmp"
	"slices"
	"time"

	"reframe/deopt/frame"
	"reframe/deopt/machine"
	"reframe/deopt/names"
	"reframe/ptrace"
)

// How a trace has ended.
const (
	EndExited      = "exited"      // the process has
	EndKilled      = "killed"      // by a signal
	EndLimit       = "limit"       // so many exits came as were asked for
	EndTime        = "time"        // the time is over that was asked for
	EndStopped     = "stopped"     // an exit fulfilled the condition
	EndInterrupted = "interrupted" // whoever traced gave it up
)

// End is how a trace has ended: one of the constants, or "" where it failed.
type End struct {
	Kind     string `json:"kind"`
	ExitCode int    `json:"exit_code,omitempty"`
	Signal   int    `json:"signal,omitempty"`
}

// EndOf is how a process ended, by the event that says so.
func EndOf(ev ptrace.Event) End {
	if ev.Signal != 0 {
		return End{Kind: EndKilled, Signal: ev.Signal}
	}
	return End{Kind: EndExited, ExitCode: ev.ExitCode}
}

// SummarySchema names the JSON of a [Summary].
const SummarySchema = "reframe.trace.summary/v1"

// Summary is what there is to say when a trace has ended.
type Summary struct {
	Schema    string          `json:"schema"`
	Exits     uint64          `json:"exits"` // that happened
	Told      uint64          `json:"told"`  // of them, those that were reported
	Seconds   float64         `json:"seconds"`
	Sites     []SiteCount     `json:"sites"`     // the most frequent first
	Functions []FunctionCount `json:"functions"` // the same
	// Unavailable counts the values of exits that were reported which could not be had, and the exits
	// without a frame, or without the values of its record. One whose place has no record lacks nothing.
	Unavailable uint64 `json:"unavailable"`
	// Undecided counts the exits that have a slot which the condition asks for, of which the value
	// is not there, and Absent those that have no such slot.
	Undecided uint64 `json:"undecided,omitempty"`
	Absent    uint64 `json:"absent,omitempty"`
	// Overwritten counts the places whose breakpoint the process has overwritten: exits there may be missing.
	Overwritten uint64 `json:"overwritten,omitempty"`
	End         End    `json:"end"`
}

// SiteCount says how often execution left at one place.
type SiteCount struct {
	Function  string    `json:"function"`
	Demangled string    `json:"demangled,omitempty"` // where it differs from Function
	Address   frame.Hex `json:"address,omitempty"`   // of the place, where no function is known
	Offset    uint64    `json:"offset"`
	Record    uint64    `json:"record"`
	Site      string    `json:"site"` // "" for a frame without a record
	Count     uint64    `json:"count"`

	start machine.Addr // of the function, where it has no name
}

// FunctionCount says how often execution left a function.
type FunctionCount struct {
	Function  string    `json:"function"`
	Demangled string    `json:"demangled,omitempty"` // where it differs from Function
	Address   frame.Hex `json:"address,omitempty"`   // where it begins, if it has no name; or else of the place in it
	Count     uint64    `json:"count"`
}

// counts are those of a trace.
type counts struct {
	sites       map[SiteCount]uint64 // by place, with Count 0
	hits        map[machine.Addr]uint64
	told        uint64
	unavailable uint64
	undecided   uint64
	absent      uint64
	overwritten map[machine.Addr]bool // places whose exits may be missing
	end         End
}

// tell counts an exit that is reported.
func (t *counts) tell(x *Exited) {
	t.told++
	if x.Frame == nil || x.Point.doubt {
		t.unavailable++
		return
	}
	if x.Frame.Blind() != "" {
		t.unavailable++
	}
	for i := range x.Frame.Slots {
		if s := x.Frame.Slots[i].Status; s == frame.Missing || s == frame.Guessed {
			t.unavailable++
		}
	}
}

// count counts an exit by where it was.
func (t *counts) count(x *Exited) {
	at := x.Point.site()
	if f := x.Frame; x.Point.Symbol != "" && f != nil {
		at = SiteCount{Function: f.Function}
		if f.Function == "" {
			at.Address, at.start = f.PC, f.Physical().PC
		}
		if f.Offset != nil {
			at.Offset = *f.Offset
		}
		if f.Record != nil {
			at.Record, at.Site = f.Record.ID, f.Record.Site
		}
	}
	t.sites[at]++
}

// site is the place in a summary, not yet counted.
func (p *Tracepoint) site() SiteCount {
	at := SiteCount{Function: p.Function, Offset: p.Offset, Record: p.Record, Site: p.Site}
	if p.Function == "" {
		at.Address, at.start = frame.HexOf(p.Addr), p.Addr-machine.Addr(p.Offset)
	}
	return at
}

// settle counts what only the session has counted, for those to whom the places belong now.
func (t *tracer) settle() error {
	if !t.unseen() {
		return nil
	}
	hits, err := t.session.Hits()
	if err != nil {
		return err
	}
	for _, h := range hits {
		p := t.places[h.Addr]
		if p == nil {
			continue
		}
		for _, point := range p.points {
			t.sites[point.site()] += h.Count - t.hits[h.Addr]
		}
		t.hits[h.Addr] = h.Count
	}
	return nil
}

func (t *counts) summary(took time.Duration) *Summary {
	s := &Summary{Schema: SummarySchema, Told: t.told, Seconds: took.Seconds(), Sites: []SiteCount{}, Functions: []FunctionCount{},
		Unavailable: t.unavailable, Undecided: t.undecided, Absent: t.absent, Overwritten: uint64(len(t.overwritten)), End: t.end}
	functions := map[FunctionCount]uint64{}
	for at, n := range t.sites {
		if n == 0 {
			continue
		}
		s.Exits += n
		function := FunctionCount{Function: at.Function}
		if at.Function == "" {
			function.Address = frame.HexOf(at.start)
		}
		functions[function] += n
		at.Count, at.Demangled = n, names.IfMangled(at.Function)
		s.Sites = append(s.Sites, at)
	}
	slices.SortFunc(s.Sites, func(a, b SiteCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Function, b.Function), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Record, b.Record), cmp.Compare(a.Site, b.Site))
	})
	for f, n := range functions {
		f.Count, f.Demangled = n, names.IfMangled(f.Function)
		s.Functions = append(s.Functions, f)
	}
	slices.SortFunc(s.Functions, func(a, b FunctionCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Function, b.Function), cmp.Compare(a.Address, b.Address))
	})
	return s
}
