package verify

import (
	"maps"
	"time"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine"
)

// The outcomes of a verified exit.
const (
	Same          = "same"
	Different     = "different"
	NotComparable = "not comparable"
)

// Verified is the outcome of one exit.
type Verified struct {
	Exit   *trace.Exited
	Number uint64 // of the exit among those that are meant, from 1
	Hit    uint64 // of its record among those that are meant, from 1
	Status string // one of the constants
	Why    string // why it is not comparable
	Entry  string // the function whose entry it is, of an activation that is held against a baseline; "" for an exit
	With   bool   // the interpreter is the user's own
	Result []ResultPart
	// Again is the comparison with the next hit where native code did not come to the return; nil where it did.
	Again *Again
	// Baseline is the comparison with a run from the function's entry; nil where there is none.
	Baseline *Baseline
	Memory   []MemoryDifference
	// Call is the call of native code at which both parted, or nil: then neither the result nor memory was compared.
	Call  *CallDifference
	Calls uint64 // calls of native code that both came to
	Words uint64 // of eight bytes that differ in memory, those too that Memory leaves out
	// NativeOnly reports whether stores of native code alone were compared too. They are not where it called code that no module describes.
	NativeOnly  bool
	Interpreter VerifiedRun
	Native      VerifiedRun
	Outside     []string // code that native code called and no module is about, where there is a difference
	Core        string   // the file that holds the moment, or ""
	// Before is the memory of the process at the exit, as far as it was writable; other memory is read as it is now. It is nil where nothing was
	// copied, as with With unless [Options.Picture] is set.
	Before machine.Memory
	Script string // what whoever kept it has written for it, or ""

	outside []machine.Addr
	entry   *entry // of whose activation the exit is, or nil
	// exitOnly is the reason why it is not compared with a run from the entry, where a layout describes where it resumes, or "".
	exitOnly string
}

// VerifiedRun is one of the two runs.
type VerifiedRun struct {
	Steps  uint64   `json:"steps"`
	Failed string   `json:"failed,omitempty"` // why it did not return
	Tail   []string `json:"tail,omitempty"`   // its last instructions, oldest first, where there is a difference
}

// ResultPart is a scalar of the function's result: all of it, a field, an element.
type ResultPart struct {
	Path        string `json:"path,omitempty"` // "[1]", "[0][2]"
	Register    string `json:"register"`
	Type        string `json:"type"`
	Interpreter string `json:"interpreter"`
	Native      string `json:"native"`
	Same        bool   `json:"same"`
}

// MemoryDifference is memory that both left otherwise. Bytes are in the order of their addresses; ?? is one that the
// interpreter knows to be undefined.
type MemoryDifference struct {
	Address     frame.Hex `json:"address"`
	Near        string    `json:"near,omitempty"` // what lies there: "last+0x8", "[heap]+0x2a0"
	Size        uint64    `json:"size"`           // bytes; of many only the first are shown
	Before      string    `json:"before"`
	Interpreter string    `json:"interpreter"`
	Native      string    `json:"native"`

	addr  machine.Addr
	bytes []machine.Addr // that differ, of those that are shown
}

// Differing are the addresses of the bytes that differ, of those that are shown.
func (d *MemoryDifference) Differing() []machine.Addr { return d.bytes }

func (v *Verified) notComparable(why string) { v.Status, v.Why = NotComparable, why }

// Schema names the JSON of a [Report].
const Schema = "reframe.verify/v1"

// Report is the JSON that `reframe verify --json` prints for one exit.
type Report struct {
	Schema      string             `json:"schema"`
	Number      uint64             `json:"n"`
	Hit         uint64             `json:"hit"` // of the record
	TID         int                `json:"tid"`
	Thread      string             `json:"thread"`
	Address     frame.Hex          `json:"address"`
	Function    string             `json:"function,omitempty"`
	Demangled   string             `json:"demangled,omitempty"` // where it differs
	Offset      *uint64            `json:"offset,omitempty"`
	Record      *frame.Record      `json:"record,omitempty"`
	Resume      *frame.Resume      `json:"resume,omitempty"`
	Status      string             `json:"status"`
	Why         string             `json:"why,omitempty"`
	Entry       string             `json:"entry,omitempty"` // the function, where it is no exit but an activation from its entry on
	Result      []ResultPart       `json:"result,omitempty"`
	Again       *Again             `json:"again,omitempty"`
	Baseline    *Baseline          `json:"baseline,omitempty"`
	Call        *CallDifference    `json:"call,omitempty"`
	Calls       uint64             `json:"calls,omitempty"` // of native code that both came to
	Memory      []MemoryDifference `json:"memory,omitempty"`
	Words       uint64             `json:"memory_words,omitempty"`
	NativeOnly  bool               `json:"native_writes_compared"`
	Interpreter VerifiedRun        `json:"interpreter"`
	Native      VerifiedRun        `json:"native"`
	Outside     []string           `json:"outside,omitempty"`
	Slots       []frame.Slot       `json:"slots,omitempty"`
	VM          *frame.VM          `json:"vm,omitempty"` // frames of a virtual machine, with the slots
	Core        string             `json:"core,omitempty"`
	Script      string             `json:"script,omitempty"`    // for reframe replay
	Reproduce   string             `json:"reproduce,omitempty"` // a command
}

// Report returns the JSON for the outcome of an exit. It has slots where there is a difference.
func (v *Verified) Report() *Report {
	x := v.Exit
	r := &Report{Schema: Schema, Number: v.Number, Hit: v.Hit, TID: x.Thread.ID, Thread: x.Thread.Name, Address: frame.HexOf(x.Point.Addr),
		Status: v.Status, Why: v.Why, Entry: v.Entry, Result: v.Result, Again: v.Again, Baseline: v.Baseline, Call: v.Call, Calls: v.Calls, Memory: v.Memory, Words: v.Words, NativeOnly: v.NativeOnly, Interpreter: v.Interpreter, Native: v.Native, Outside: v.Outside, Core: v.Core, Script: v.Script}
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
	Exits         uint64 `json:"exits"`             // that were to be verified
	Entries       uint64 `json:"entries,omitempty"` // of functions, that were held against a baseline and have a verdict of their own
	Same          uint64 `json:"same"`
	Different     uint64 `json:"different"`
	NotComparable uint64 `json:"not_comparable"`
	Skipped       uint64 `json:"passed"` // exits that were not looked at; the JSON keeps its older name
	// SkippedWhy counts skipped exits by reason; NeverVerified are records of which every exit was skipped while others were pending.
	SkippedWhy    map[string]uint64 `json:"passed_reasons,omitempty"`
	NeverVerified []SkippedRecord   `json:"never_verified,omitempty"`
	Reasons       map[string]uint64 `json:"reasons"` // why exits were not comparable, without addresses, and how many
	// ExitOnly counts by reason the exits that were compared only with the run from the exit on, though a layout describes where they resume or
	// [Options.FromEntry] is set.
	ExitOnly map[string]uint64 `json:"from_exit_only,omitempty"`
	Seconds  float64           `json:"seconds"`
	// Overwritten counts the places whose breakpoint the process has overwritten: exits there may be missing.
	Overwritten uint64 `json:"overwritten,omitempty"`
	// Unwatched is the time in which exits are missing, because reframe was stopped or its output was not read, in seconds.
	Unwatched float64 `json:"unwatched_seconds,omitempty"`
	// CompiledFrom holds for each function that was verified how sure it is that it was compiled from the given module.
	CompiledFrom []frame.CompiledFrom `json:"compiled_from,omitempty"`
	End          trace.End            `json:"end"`
}

func (s *Summary) add(v *Verified) {
	if v.exitOnly != "" && v.Status != NotComparable {
		trace.Reasons(s.ExitOnly).Add(v.exitOnly)
	}
	switch v.Status {
	case Same:
		s.Same++
	case Different:
		s.Different++
	default:
		s.NotComparable++
		trace.Reasons(s.Reasons).Add(v.Why)
	}
}

func (s *Summary) finish(end trace.End, took time.Duration) {
	s.Schema, s.End, s.Seconds = SummarySchema, end, took.Seconds()
}

// SkippedPending holds the reasons for exits that were skipped because too many others were pending, or because [Options.For] ended the
// verification while they were pending. It omits those that --skip, --every and --limit skip.
func (s *Summary) SkippedPending() map[string]uint64 {
	list := maps.Clone(s.SkippedWhy)
	delete(list, skippedByFlags)
	delete(list, skippedByLimit)
	return list
}

// Why lists the reasons, the most frequent first.
func (s *Summary) Why() []string { return trace.Reasons(s.Reasons).Sorted() }
