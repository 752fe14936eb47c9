package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/ptrace"
)

// PlannedSchema names the JSON of a [Planned].
const PlannedSchema = "reframe.trace.breakpoint/v1"

// Planned is a byte that a trace would overwrite, or a debug register that it would use.
type Planned struct {
	Schema          string           `json:"schema"`
	Address         frame.Hex        `json:"address"`
	Byte            frame.Hex        `json:"byte,omitempty"`     // the current byte; empty if it cannot be read
	Hardware        bool             `json:"hardware,omitempty"` // a free debug register would hold the breakpoint; the byte stays
	Shared          bool             `json:"shared,omitempty"`   // in shared memory: without Hardware the breakpoint is refused, as it would end other processes
	Symbol          string           `json:"symbol,omitempty"`   // the symbol at whose entry the breakpoint is; "" for a breakpoint of a record
	SymbolDemangled string           `json:"symbol_demangled,omitempty"`
	Exits           []*TracepointRow `json:"exits,omitempty"`
}

// TracepointRow is a [Tracepoint] in JSON.
type TracepointRow struct {
	Function  string       `json:"function,omitempty"`
	Demangled string       `json:"demangled,omitempty"`
	Offset    uint64       `json:"offset"`
	Record    uint64       `json:"record"`
	Site      string       `json:"site"`
	Moment    frame.Moment `json:"moment"`
	Module    string       `json:"module,omitempty"`
	Note      string       `json:"note,omitempty"`
}

// Plan lists, by address, the breakpoints that [Run] would set in a process, and does not set them. The list includes the places at which reframe
// must stop to see that the process loads code. Plan returns an error if there would be no exit to report. The error may be a [*SharedError].
func Plan(t *ptrace.Target, o Options) ([]Planned, error) {
	l := newLoaded(&o, func(format string, args ...any) { o.Warn(fmt.Sprintf(format, args...)) })
	if err := l.start(t, o.Options); err != nil {
		return nil, err
	}
	insert, _, err := l.update(false)
	if err != nil {
		return nil, err
	}
	var out []Planned
	held, refused := 0, 0
	shared := func(addr machine.Addr) bool {
		r, ok := t.Mapping(addr)
		return ok && r.Share
	}
	slices.SortStableFunc(insert, func(a, b ptrace.Breakpoint) int { // sort the breakpoints in the order in which they get debug registers
		return cmp.Compare(rankOf(shared(b.Addr)), rankOf(shared(a.Addr)))
	})
	for _, b := range insert {
		p := Planned{Schema: PlannedSchema, Address: frame.HexOf(b.Addr), Shared: shared(b.Addr)}
		if (b.Hardware || p.Shared) && held < ptrace.HardwareBreakpoints() {
			p.Hardware = true
			held++
		}
		if p.Shared && !p.Hardware {
			refused++
		}
		var is [1]byte
		if t.ReadMemory(is[:], b.Addr) == nil {
			p.Byte = frame.HexOf(uint64(is[0]))
		}
		if _, watch := l.watches[b.Addr]; watch {
			p.Symbol = l.view.Space().NameOf(b.Addr)
		} else {
			for _, x := range l.places[b.Addr].points {
				if x.Symbol != "" {
					p.Symbol = x.Symbol
					continue
				}
				p.Exits = append(p.Exits, x.row())
				for _, other := range x.folded {
					p.Exits = append(p.Exits, other.row())
				}
			}
		}
		p.SymbolDemangled = names.IfMangled(p.Symbol)
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Planned) int {
		return cmp.Or(cmp.Compare(len(a.Address), len(b.Address)), cmp.Compare(a.Address, b.Address))
	})
	switch {
	case len(l.places) == 0:
		err = errors.New(l.whyNone())
	case refused > 0:
		err = &SharedError{refused}
	}
	return out, err
}

func (p *Tracepoint) row() *TracepointRow {
	return &TracepointRow{p.Function, names.IfMangled(p.Function), p.Offset, p.Record, p.Site, p.Moment, p.Module, p.Note}
}

// SharedError reports that breakpoints would be refused, because the code is in memory that other processes may also execute.
type SharedError struct{ Places int }

func (e *SharedError) Error() string {
	return fmt.Sprintf("%s in shared memory (MAP_SHARED) and would be refused: a breakpoint there would end other processes that run the same code, and debug registers can hold %d breakpoints here",
		countOf(e.Places, "place"), ptrace.HardwareBreakpoints())
}

func rankOf(first bool) int {
	if first {
		return 1
	}
	return 0
}
