// Package frame defines the abstract frame, the state that an interpreter needs to continue where compiled code stopped, and its JSON. Other packages
// import it and it imports none of them, so it knows no stack map, no process and no LLVM: a slot's type is a plain kind and width, with the source's
// own spelling beside it.
//
// Its main type is [Frame]; a [Report] is all frames of one moment.
//
// # Security
//
// Values are bytes that were copied from a target. This package does not follow pointers in them.
package frame

import "strings"

// Schema names the JSON of a [Report].
const Schema = "reframe.frames/v1"

// Report is the output of `reframe frames --json`.
type Report struct {
	Schema  string   `json:"schema"`
	Target  Target   `json:"target"`
	Threads []Thread `json:"threads"`
}

// Target describes the process, core or snapshot that was read.
type Target struct {
	Kind    string   `json:"kind"` // process, core, snapshot
	PID     int      `json:"pid,omitempty"`
	Arch    string   `json:"arch"`
	PauseUS *int64   `json:"pause_us,omitempty"` // how long all threads were stopped, in microseconds; nil for a target that was not running
	Stopped bool     `json:"stopped,omitempty"`  // by a signal before, and afterwards
	Core    string   `json:"core,omitempty"`     // path of the core
	Notes   []string `json:"notes,omitempty"`    // what a core lacks, or what is uncertain in it
}

// Thread is one thread and its frames, innermost first.
type Thread struct {
	TID    int     `json:"tid"`
	Name   string  `json:"name"`
	Frames []Frame `json:"frames"`
	End    string  `json:"end,omitempty"` // why the stack was cut short; empty when it was followed to its outermost frame
	// Total is the number of frames of the stack. Omitted counts those that are not listed, in the middle of a deep stack.
	Total   int       `json:"total,omitempty"`
	Omitted []Omitted `json:"omitted,omitempty"`
}

// Omitted is a part of a deep stack.
type Omitted struct {
	From  int         `json:"from"`  // the number of its first frame
	Count int         `json:"count"` // of frames
	PCs   []OmittedPC `json:"pcs"`   // where most of them are, the most frequent first, at most eight
}

// OmittedPC counts the frames with one pc.
type OmittedPC struct {
	PC       Hex     `json:"pc"`
	Function string  `json:"function,omitempty"`
	Offset   *uint64 `json:"offset,omitempty"`
	Count    int     `json:"count"`
}

// Kind distinguishes the frames of a just-in-time compiler from all others.
type Kind string

// The kinds of frame.
const (
	JIT    Kind = "jit"    // has a record, or lies in a registered JIT object or in executable memory of no file
	Native Kind = "native" // anything else
)

// Frame is one activation: its place, and, if a record matches, the contents of its abstract frame.
type Frame struct {
	Index     int      `json:"index"`
	Kind      Kind     `json:"kind"`
	PC        Hex      `json:"pc"`
	CFA       Hex      `json:"cfa,omitempty"`
	Function  string   `json:"function,omitempty"`
	Offset    *uint64  `json:"offset,omitempty"`    // of pc in the function; nil when no function is known
	Demangled string   `json:"demangled,omitempty"` // where it differs from Function
	NamedBy   string   `json:"named_by,omitempty"`  // source of the function's name if it is no symbol: perf-map, jitdump
	Module    string   `json:"module,omitempty"`    // the file or JIT object that pc lies in
	Rule      string   `json:"rule"`                // how this frame was found
	Guess     string   `json:"guess,omitempty"`     // why it may not be there at all: it, or one further in, was found by a guess
	Source    []Source `json:"source,omitempty"`    // the places in the source, innermost first: those that were inlined, and at last the function's own
	Record    *Record  `json:"record,omitempty"`
	Resume    *Resume  `json:"resume,omitempty"`
	Slots     []Slot   `json:"slots,omitempty"`
	Also      []Also   `json:"also,omitempty"` // other records at the same address
	// Direct lists variables in the frame's memory that other records of its function locate, for a frame without a record.
	Direct []Direct `json:"direct,omitempty"`
	VM     *VM      `json:"vm,omitempty"`    // of a record that a VM's layout reads
	Notes  []string `json:"notes,omitempty"` // records that were near and why they were refused; why slots have no names
	// CompiledFrom is asked of those that show it alone.
	CompiledFrom *CompiledFrom `json:"compiled_from,omitempty"`
}

// Also is another record at the address where a frame stopped, with its values.
type Also struct {
	Record Record   `json:"record"`
	Slots  []Slot   `json:"slots,omitempty"`
	Notes  []string `json:"notes,omitempty"` // why slots have no names
}

// CompiledFrom grades how certain it is that code was compiled from a function of a given module.
type CompiledFrom struct {
	Module    string `json:"module"` // its file
	Function  string `json:"function"`
	Demangled string `json:"demangled,omitempty"` // where it differs
	Sure      string `json:"sure"`                // certain, likely, open (no evidence), contradicted
	Why       string `json:"why"`
}

// Source is a place in the source. For a pending call it is the place of the call.
type Source struct {
	Function string `json:"function,omitempty"` // demangled, without its parameters; empty if unknown
	File     string `json:"file,omitempty"`     // as the compiler was called with it
	Line     int    `json:"line,omitempty"`     // from 1; 0 for code without a line
	Column   int    `json:"column,omitempty"`   // from 1; 0 if unknown
	Inlined  bool   `json:"inlined,omitempty"`  // the function was inlined into the one of the next place
}

// Record identifies the stack map record that matched.
type Record struct {
	ID     uint64 `json:"id"`
	Site   string `json:"site"`   // stackmap, patchpoint, statepoint, deoptimize, unknown
	Offset uint64 `json:"offset"` // the record's instruction offset in its function
	Moment Moment `json:"moment"`
}

// Moment is how far a site has run.
type Moment string

// The moments of a site.
const (
	Before  Moment = "before"  // the site has not run
	InCall  Moment = "in-call" // its callee is still running
	After   Moment = "after"   // it has run
	Unknown Moment = "unknown" // the kind of site is unknown, and so is the meaning of the place
)

// Resume is the place where the frame resumes.
type Resume struct {
	Function  string `json:"function"`
	Demangled string `json:"demangled,omitempty"` // where it differs from Function
	Block     string `json:"block"`
	After     string `json:"after,omitempty"` // the call in that block after which it resumes; empty: at the block's start
	At        string `json:"at,omitempty"`    // the instruction in that block before which it resumes
}

// Status reports whether a slot has a value.
type Status string

// The statuses of a slot.
const (
	OK        Status = "ok"
	Missing   Status = "unavailable"
	Undefined Status = "undef" // the compiler was free to record anything, and did
	Guessed   Status = "guess" // it was read, for a frame that was found by a guess or lies beyond one
)

// Slot is one named, typed value, with where it came from, or why it could not be had.
type Slot struct {
	Index    int       `json:"index"`
	Name     string    `json:"name,omitempty"`     // as the module spells it; empty for a constant there
	Operand  string    `json:"operand,omitempty"`  // of the site, as its module spells it, where the layout calls it something else
	Variable string    `json:"variable,omitempty"` // of the source program: its name, several separated by ", ", or &x where the value is where x lies
	Type     Type      `json:"type,omitzero"`
	Value    string    `json:"value,omitempty"` // text in the type's natural form; empty without a type
	Hex      Hex       `json:"hex,omitempty"`   // the raw bits
	Status   Status    `json:"status"`
	Reason   string    `json:"reason,omitempty"` // why the value is not there, or is a guess
	Location *Location `json:"location,omitempty"`
	GC       *GC       `json:"gc,omitempty"` // of a statepoint: of what the record lists for the collector, and of references that it does not list

	// Bytes are the raw bits in the order of the target, as many as the type
	// stores (or the location is wide, without a type). Nil unless the slot is read.
	Bytes []byte `json:"-"`
}

// Read reports whether the slot has a value. The status tells whether it is certain.
func (s *Slot) Read() bool { return s.Status == OK || s.Status == Guessed }

// Location is the place of a slot's value, in the terms of the stack map.
type Location struct {
	Kind     string  `json:"kind"` // Register, Direct, Indirect, Constant, ConstantIndex
	Register string  `json:"register,omitempty"`
	DWARF    *uint16 `json:"dwarf,omitempty"`
	Offset   int32   `json:"offset"` // bytes from the register; bits into it for Register
	Size     int     `json:"size"`   // bytes
	Constant string  `json:"constant,omitempty"`
}

// Noted returns the notes as text to append to a message; "" for none.
func Noted(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return ": " + strings.Join(notes, "; ")
}
