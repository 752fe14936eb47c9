package stress

import (
	"fmt"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
)

// These are the values of [Report].Status.
const (
	Same      = "same"
	Different = "different"
	Undecided = "undecided"
)

// Schema names the JSON of a [Report].
const Schema = "reframe.stress/v1"

// Report is the JSON that `reframe stress --json` prints.
type Report struct {
	Schema      string   `json:"schema"`
	Command     []string `json:"command"`
	Seed        uint64   `json:"seed,string"`
	Probability float64  `json:"probability"`
	Only        []Exit   `json:"only,omitempty"`
	Status      string   `json:"status"`
	Why         string   `json:"why,omitempty"` // the reason for the status undecided
	// These are counts of the stressed run: the exits that the program reached, the chosen exits, and how many of the chosen ones were committed or left
	// to native code.
	Exits     uint64        `json:"exits"`
	Chosen    uint64        `json:"chosen"`
	Committed uint64        `json:"committed"`
	Left      uint64        `json:"left"`
	Reasons   trace.Reasons `json:"reasons"` // counts of the reasons why exits were left to native code
	// Failed counts exits at which the program failed in the interpreter, for example by a fault: native code may fail too, or the frame is wrong.
	Failed      uint64       `json:"failed,omitempty"`
	Overwritten uint64       `json:"overwritten,omitempty"`
	Untouched   *Outcome     `json:"untouched"`
	Stressed    *Outcome     `json:"stressed,omitempty"`
	Differences []Difference `json:"differences"`
	Reruns      int          `json:"reruns"`
	Narrowed    string       `json:"narrowed,omitempty"` // the reason why the exit that causes the difference was not found
	Culprit     *Culprit     `json:"culprit,omitempty"`
	Seconds     float64      `json:"seconds"`
}

func (r *Report) undecided(format string, args ...any) {
	r.Status, r.Why = Undecided, fmt.Sprintf(format, args...)
}

// Culprit is the exit whose commit causes a difference.
type Culprit struct {
	Exit      Exit   `json:"exit"`                // number of the exit in the stressed run
	Native    Exit   `json:"native"`              // number of the exit in a run without other commits
	Uncounted string `json:"uncounted,omitempty"` // the reason why the number in Native may be too low
	Hit       uint64 `json:"hit"`                 // number of the hit of its record, counted as in Native
	Single    bool   `json:"alone"`               // the exit causes a difference without any other commit
	After     int    `json:"behind,omitempty"`    // if Single is false: number of commits before this one in the run that differs
	TID       int    `json:"tid"`
	Thread    string `json:"thread"`

	Address   frame.Hex     `json:"address"` // the address at which the thread was stopped
	Function  string        `json:"function,omitempty"`
	Demangled string        `json:"demangled,omitempty"` // if it differs
	Offset    *uint64       `json:"offset,omitempty"`
	Record    *frame.Record `json:"record"`
	Resume    *frame.Resume `json:"resume,omitempty"`
	Slots     []frame.Slot  `json:"slots"`
	Steps     uint64        `json:"steps"` // number of the interpreter's instructions
	// Result is the result for the caller, and Bytes the number of changed bytes of memory.
	Result []frame.CommittedResult `json:"result"`
	Bytes  int                     `json:"bytes"`

	Frame   *frame.Frame   `json:"-"` // the complete frame
	Resumed *frame.Resumed `json:"-"`

	Core      string `json:"core,omitempty"`
	Script    string `json:"script,omitempty"`
	Reproduce string `json:"reproduce,omitempty"` // a command
	Verify    string `json:"verify,omitempty"`    // a command
}

// culprit returns a Culprit that describes the exit of a frame.
func culprit(f *frame.Frame) *Culprit {
	return &Culprit{Address: f.PC, Function: f.Function, Demangled: f.Demangled, Offset: f.Offset, Record: f.Record, Resume: f.Resume, Slots: slices.Clone(f.Slots), Frame: f,
		Result: []frame.CommittedResult{}}
}

// resumed records the result of a resumed exit.
func (c *Culprit) resumed(r *frame.Resumed) {
	c.Resumed, c.Steps, c.Result, c.Bytes = r, r.Steps, r.Committed.Result, r.Committed.Bytes
}
