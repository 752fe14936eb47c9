package trace

import (
	"cmp"
	"slices"
	"time"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/ptrace"
)

// These are the ways in which a trace ends.
const (
	EndExited      = "exited"      // the process exited
	EndKilled      = "killed"      // a signal killed the process
	EndLimit       = "limit"       // the requested number of exits was reached
	EndTime        = "time"        // the requested time is over
	EndStopped     = "stopped"     // an exit fulfilled the condition
	EndInterrupted = "interrupted" // the caller canceled the trace
)

// End describes the end of a trace. Kind is one of the constants, or "" if the trace failed.
type End struct {
	Kind     string `json:"kind"`
	ExitCode int    `json:"exit_code,omitempty"`
	Signal   int    `json:"signal,omitempty"`
}

// EndOf returns the end of a process, from its last event.
func EndOf(ev ptrace.Event) End {
	if ev.Signal != 0 {
		return End{Kind: EndKilled, Signal: ev.Signal}
	}
	return End{Kind: EndExited, ExitCode: ev.ExitCode}
}

// SummarySchema names the JSON of a [Summary].
const SummarySchema = "reframe.trace.summary/v1"

// Summary is the report at the end of a trace.
type Summary struct {
	Schema    string          `json:"schema"`
	Exits     uint64          `json:"exits"` // exits that happened
	Reported  uint64          `json:"told"`  // exits that were reported
	Seconds   float64         `json:"seconds"`
	Sites     []SiteCount     `json:"sites"`     // the most frequent first
	Functions []FunctionCount `json:"functions"` // the most frequent first
	// Unavailable counts the unavailable values of reported exits, and exits without a frame or without the values of their record. An exit at a
	// place without a record is complete.
	Unavailable uint64 `json:"unavailable"`
	// Undecided counts the exits with a slot of the condition whose value is unavailable, and Absent those without such a slot.
	Undecided uint64 `json:"undecided,omitempty"`
	Absent    uint64 `json:"absent,omitempty"`
	// Overwritten counts the breakpoints that the process has overwritten: exits at these places may be missing.
	Overwritten uint64 `json:"overwritten,omitempty"`
	// Unwatched is the time in seconds without watching, because reframe was stopped or its output was not read: exits may be missing.
	Unwatched float64 `json:"unwatched_seconds,omitempty"`
	// By counts exits by the values of Options.By, the most frequent first.
	By  []ByCount `json:"by,omitempty"`
	End End       `json:"end"`
}

// SiteCount counts the exits at one place.
type SiteCount struct {
	Function  string    `json:"function"`
	Demangled string    `json:"demangled,omitempty"` // if it differs from Function
	Address   frame.Hex `json:"address,omitempty"`   // address of the place, if no function is known
	Offset    uint64    `json:"offset"`
	Record    uint64    `json:"record"`
	Site      string    `json:"site"` // "" for a frame without a record
	Count     uint64    `json:"count"`

	start machine.Addr // start of the function, if it has no name
}

// FunctionCount counts the exits of a function.
type FunctionCount struct {
	Function  string    `json:"function"`
	Demangled string    `json:"demangled,omitempty"` // if it differs from Function
	Address   frame.Hex `json:"address,omitempty"`   // the start of the function if it has no name, or otherwise the address of the place
	Count     uint64    `json:"count"`
}

// counts holds the counters of a trace.
type counts struct {
	sites       map[SiteCount]uint64 // number of exits by place; Count is 0 in the keys
	by          byCounts
	hits        map[machine.Addr]uint64
	reported    uint64
	unavailable uint64
	undecided   uint64
	absent      uint64
	missing     time.Duration         // time that the process ran without breakpoints
	overwritten map[machine.Addr]bool // places whose exits may be missing
	end         End
}

// countReported counts a reported exit.
func (t *counts) countReported(x *Exited) {
	t.reported++
	if x.Frame == nil || x.doubtful() {
		t.unavailable++
		return
	}
	if x.Frame.WhyUnreadable() != "" {
		t.unavailable++
	}
	for i := range x.Frame.Slots {
		if s := x.Frame.Slots[i].Status; s == frame.Missing || s == frame.Guessed {
			t.unavailable++
		}
	}
}

// count counts an exit by its place.
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

// site returns the entry of the place in a summary, with Count 0.
func (p *Tracepoint) site() SiteCount {
	at := SiteCount{Function: p.Function, Offset: p.Offset, Record: p.Record, Site: p.Site}
	if p.Function == "" {
		at.Address, at.start = frame.HexOf(p.Addr), p.Addr-machine.Addr(p.Offset)
	}
	return at
}

// addSessionHits adds the hits that only the session has counted to the current tracepoints of each place.
func (t *tracer) addSessionHits() error {
	if !t.sessionCounts() {
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
	s := &Summary{Schema: SummarySchema, Reported: t.reported, Seconds: took.Seconds(), Sites: []SiteCount{}, Functions: []FunctionCount{},
		Unavailable: t.unavailable, Undecided: t.undecided, Absent: t.absent, Overwritten: uint64(len(t.overwritten)), Unwatched: t.missing.Seconds(), End: t.end}
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
	s.By = t.by.sorted()
	for f, n := range functions {
		f.Count, f.Demangled = n, names.IfMangled(f.Function)
		s.Functions = append(s.Functions, f)
	}
	slices.SortFunc(s.Functions, func(a, b FunctionCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Function, b.Function), cmp.Compare(a.Address, b.Address))
	})
	return s
}
