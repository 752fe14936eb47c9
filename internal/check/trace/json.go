package trace

import (
	"encoding/json"
	"fmt"
	"time"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine/names"
)

// ExitSchema names the JSON of an [ExitReport].
const ExitSchema = "reframe.trace/v1"

// ExitReport is the output of `reframe trace --json` for one exit.
type ExitReport struct {
	Schema          string         `json:"schema"`
	Number          uint64         `json:"n"`
	Time            json.Number    `json:"time"` // seconds since the trace began, to the microsecond
	TID             int            `json:"tid"`
	Thread          string         `json:"thread"`
	Address         frame.Hex      `json:"address"`                    // of the breakpoint
	Symbol          string         `json:"symbol,omitempty"`           // the symbol whose entry is at the address
	SymbolDemangled string         `json:"symbol_demangled,omitempty"` // if it differs from Symbol
	Function        string         `json:"function,omitempty"`
	Demangled       string         `json:"demangled,omitempty"` // if it differs from Function
	Offset          *uint64        `json:"offset,omitempty"`
	Record          *frame.Record  `json:"record,omitempty"`
	Source          []frame.Source `json:"source,omitempty"` // by the module's debug locations, as in [frame.Frame]
	Resume          *frame.Resume  `json:"resume,omitempty"`
	Slots           []frame.Slot   `json:"slots,omitempty"`
	Also            []frame.Also   `json:"also,omitempty"` // records of other functions that the linker folded into the same code, as in [frame.Frame]
	VM              *frame.VM      `json:"vm,omitempty"`   // if a layout of a virtual machine describes the record
	Notes           []string       `json:"notes,omitempty"`
	Frames          []frame.Frame  `json:"frames,omitempty"` // all of the thread, if requested
	End             string         `json:"end,omitempty"`    // the reason why the stack is incomplete; empty if the outermost frame is included
	EndCode         frame.Code     `json:"end_code,omitempty"`
	Stops           bool           `json:"stops,omitempty"` // the condition that ends the trace holds
}

// Seconds formats the time of the exit, in seconds since the trace began.
func (x *Exited) Seconds() string { return seconds(x.After) }

func seconds(after time.Duration) string {
	return fmt.Sprintf("%d.%06d", after/time.Second, after%time.Second/time.Microsecond)
}

// Report returns the JSON of the exit.
func (x *Exited) Report() *ExitReport {
	r := &ExitReport{Schema: ExitSchema, Number: x.Number, Time: json.Number(x.Seconds()), TID: x.Thread.ID, Thread: x.Thread.Name,
		Address: frame.HexOf(x.Point.Addr), Symbol: x.Point.Symbol, SymbolDemangled: names.IfMangled(x.Point.Symbol), Stops: x.Stops}
	if f := x.Frame; f != nil {
		r.Source = f.Source
		r.Function, r.Demangled, r.Offset, r.Record, r.Resume, r.Slots, r.Also, r.VM, r.Notes = f.Function, f.Demangled, f.Offset, f.Record, f.Resume, f.Slots, f.Also, f.VM, f.Notes
	}
	for _, f := range x.Frames {
		r.Frames = append(r.Frames, f.Frame)
	}
	if (r.Frames != nil || x.Frame == nil) && !x.End.Complete {
		r.End, r.EndCode = x.End.Reason, x.End.Code
	}
	return r
}
