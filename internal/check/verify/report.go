package verify

import (
	"maps"
	"time"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine"
)

// These are the outcomes of a verified exit.
const (
	Same          = "same"
	Different     = "different"
	NotComparable = "not comparable"
)

// Verified is the outcome of one exit.
type Verified struct {
	Exit   *trace.Exited
	Number uint64 // number of the exit, from 1, counting skipped exits; for an activation its number among the followed ones
	Hit    uint64 // number of the hit of the exit's record, from 1, counting skipped exits; for an activation as Number
	Status string // one of the constants
	Why    string // the reason why the exit is not comparable
	reason error  // the error of Why; Reasons removes its addresses
	Entry  string // the function, if this is an activation that is compared with a baseline; "" for an exit
	With   bool   // the user's own interpreter ran
	Result []ResultPart
	// Again is the comparison with the next hit of the record if native code did not return; otherwise nil.
	Again *Again
	// Baseline is the comparison with a run from the function's entry; nil if there is none.
	Baseline *Baseline
	Memory   []MemoryDifference
	// Call is the native call in which both sides differ, or nil. If it is set, neither the result nor memory was compared.
	Call  *CallDifference
	Calls uint64 // number of native calls that both sides reached
	Words uint64 // words of eight bytes that differ in memory, including those that Memory omits
	// NativeOnly reports whether stores of native code alone were compared. It is false if native code called code without IR.
	NativeOnly  bool
	Interpreter VerifiedRun
	Native      VerifiedRun
	Outside     []string // code without IR that native code called, if there is a difference
	Core        string   // the file with the core of the exit, or ""
	// Before is the writable memory of the process at the exit; other memory is read in its current state. It is nil if memory was not copied: with
	// With, unless [Options.Picture] is set.
	Before machine.Memory
	Script string // the replay script for Core, or ""
	// VMState is the comparison with a run of the user's own interpreter from the start of the activation; nil if there is none.
	VMState *VMState
	// SameAs is the number of the first exit whose difference is equal, or came earlier in the same activation. It is 0 if this exit is the first, or
	// has no difference.
	SameAs uint64

	entry *activation // the activation of the exit, or nil
	run   *entryRun   // the run of VMState, or the run that begins at the exit; or nil
	// exitOnly is the reason why an exit with a layout is not compared with a run from the entry, or nil.
	exitOnly error
}

// VerifiedRun is the run of one side.
type VerifiedRun struct {
	Steps  uint64   `json:"steps"`
	Failed string   `json:"failed,omitempty"` // the reason why it did not return
	Tail   []string `json:"tail,omitempty"`   // its last instructions, oldest first, if there is a difference
}

// ResultPart is a scalar of the function's result: all of it, a field, an element.
type ResultPart struct {
	Path        string `json:"path,omitempty"` // indexes of the scalar in the result, such as "[0][2]"; "" if the result is a scalar
	Register    string `json:"register"`
	Type        string `json:"type"`
	Interpreter string `json:"interpreter"`
	Native      string `json:"native"`
	Same        bool   `json:"same"`
}

// MemoryDifference is memory that native code and the interpreter left differently. Bytes are in ascending order of address; ?? is a byte that the
// interpreter knows to be undefined.
type MemoryDifference struct {
	Address     frame.Hex `json:"address"`
	Near        string    `json:"near,omitempty"` // description of the address: "last+0x8", "[heap]+0x2a0"
	Size        uint64    `json:"size"`           // in bytes; only the first are shown
	Before      string    `json:"before"`
	Interpreter string    `json:"interpreter"`
	Native      string    `json:"native"`

	addr  machine.Addr
	bytes []machine.Addr // the addresses of shown bytes that differ
}

// Differing returns the addresses of the shown bytes that differ.
func (d *MemoryDifference) Differing() []machine.Addr { return d.bytes }

func (v *Verified) notComparable(why error) {
	v.Status, v.Why, v.reason = NotComparable, why.Error(), why
}

// Schema names the JSON of a [Report].
const Schema = "reframe.verify/v1"

// Report is the JSON that `reframe verify --json` prints for one exit.
type Report struct {
	Schema      string             `json:"schema"`
	Number      uint64             `json:"n"`
	Hit         uint64             `json:"hit"` // as in [Verified]
	TID         int                `json:"tid"`
	Thread      string             `json:"thread"`
	Address     frame.Hex          `json:"address"`
	Function    string             `json:"function,omitempty"`
	Demangled   string             `json:"demangled,omitempty"` // if it differs from the function
	Offset      *uint64            `json:"offset,omitempty"`
	Record      *frame.Record      `json:"record,omitempty"`
	Resume      *frame.Resume      `json:"resume,omitempty"`
	Status      string             `json:"status"`
	Why         string             `json:"why,omitempty"`
	Entry       string             `json:"entry,omitempty"` // the function, for an activation that is followed from its entry
	Result      []ResultPart       `json:"result,omitempty"`
	Again       *Again             `json:"again,omitempty"`
	Baseline    *Baseline          `json:"baseline,omitempty"`
	VMState     *VMState           `json:"vm_state,omitempty"`
	SameAs      uint64             `json:"same_as,omitempty"` // number of the first exit whose difference is equal, or came earlier in the same activation
	Call        *CallDifference    `json:"call,omitempty"`
	Calls       uint64             `json:"calls,omitempty"` // number of native calls that both sides reached
	Memory      []MemoryDifference `json:"memory,omitempty"`
	Words       uint64             `json:"memory_words,omitempty"`
	NativeOnly  bool               `json:"native_writes_compared"`
	Interpreter VerifiedRun        `json:"interpreter"`
	Native      VerifiedRun        `json:"native"`
	Outside     []string           `json:"outside,omitempty"`
	Slots       []frame.Slot       `json:"slots,omitempty"`
	VM          *frame.VM          `json:"vm,omitempty"` // frames of a virtual machine, if there are slots
	Core        string             `json:"core,omitempty"`
	Script      string             `json:"script,omitempty"`    // for reframe replay
	Reproduce   string             `json:"reproduce,omitempty"` // a command
}

// Report returns the JSON for the outcome of an exit. It has slots if there is a difference.
func (v *Verified) Report() *Report {
	x := v.Exit
	r := &Report{Schema: Schema, Number: v.Number, Hit: v.Hit, TID: x.Thread.ID, Thread: x.Thread.Name, Address: frame.HexOf(x.Point.Addr),
		Status: v.Status, Why: v.Why, Entry: v.Entry, Result: v.Result, Again: v.Again, Baseline: v.Baseline, VMState: v.VMState, SameAs: v.SameAs, Call: v.Call, Calls: v.Calls, Memory: v.Memory, Words: v.Words, NativeOnly: v.NativeOnly, Interpreter: v.Interpreter, Native: v.Native, Outside: v.Outside, Core: v.Core, Script: v.Script}
	if f := x.Frame; f != nil {
		r.Function, r.Demangled, r.Offset, r.Record, r.Resume = f.Function, f.Demangled, f.Offset, f.Record, f.Resume
		if v.Status == Different {
			r.Slots, r.VM = f.Slots, f.VM
		}
	}
	return r
}

// SummarySchema names the JSON of a [Summary].
const SummarySchema = "reframe.verify.summary/v1"

// Summary holds the counts of a verification that has ended.
type Summary struct {
	Schema        string `json:"schema"`
	Exits         uint64 `json:"exits"`             // exits to be verified
	Entries       uint64 `json:"entries,omitempty"` // activations that were compared with a baseline and have their own verdict
	Same          uint64 `json:"same"`
	Different     uint64 `json:"different"`
	NotComparable uint64 `json:"not_comparable"`
	Skipped       uint64 `json:"passed"` // exits that were skipped; the JSON keeps the older name
	// SkippedWhy counts skipped exits by reason; NeverVerified lists the records whose exits were all skipped while others were pending.
	SkippedWhy    map[string]uint64 `json:"passed_reasons,omitempty"`
	NeverVerified []SkippedRecord   `json:"never_verified,omitempty"`
	Reasons       map[string]uint64 `json:"reasons"` // counts of the reasons, without addresses, why exits were not comparable
	// ExitOnly counts, by reason, the exits that were compared only from the exit on, although a layout describes them or [Options.FromEntry] is set.
	ExitOnly map[string]uint64 `json:"from_exit_only,omitempty"`
	Seconds  float64           `json:"seconds"`
	// Overwritten counts the breakpoints that the process has overwritten: exits at these places may be missing.
	Overwritten uint64 `json:"overwritten,omitempty"`
	// Unwatched is the time in seconds without watching, because reframe was stopped or its output was not read: exits may be missing.
	Unwatched float64 `json:"unwatched_seconds,omitempty"`
	// CompiledFrom holds, for each verified function, the certainty that it was compiled from the given module.
	CompiledFrom []frame.CompiledFrom `json:"compiled_from,omitempty"`
	// Groups holds the differences that the user's own interpreter shows, equal ones as one.
	Groups []Group   `json:"groups,omitempty"`
	End    trace.End `json:"end"`
}

func (s *Summary) add(v *Verified) {
	if v.exitOnly != nil && v.Status != NotComparable {
		trace.Reasons(s.ExitOnly).Add(v.exitOnly)
	}
	switch v.Status {
	case Same:
		s.Same++
	case Different:
		s.Different++
	default:
		s.NotComparable++
		trace.Reasons(s.Reasons).Add(v.reason)
	}
}

func (s *Summary) finish(end trace.End, took time.Duration) {
	s.Schema, s.End, s.Seconds = SummarySchema, end, took.Seconds()
}

// SkippedPending returns, by reason, the numbers of exits that were skipped because too many others were pending, or because [Options.For] ended the
// verification. It omits those that --skip, --every and --limit skip.
func (s *Summary) SkippedPending() map[string]uint64 {
	list := maps.Clone(s.SkippedWhy)
	delete(list, skippedByFlags)
	delete(list, skippedByLimit)
	return list
}

// Why lists the reasons, the most frequent first.
func (s *Summary) Why() []string { return trace.Reasons(s.Reasons).Sorted() }
