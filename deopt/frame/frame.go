// Package frame defines the abstract frame and its JSON. The abstract frame is the state that an interpreter needs to continue where compiled code
// stopped. Other packages import this one and it imports none of them, so it knows no stack map, no process and no LLVM. A slot's type is a plain
// kind and width, with the source's own spelling beside it.
//
// Its main type is [Frame]; a [Report] is all frames of one moment.
//
// # Security
//
// Values are bytes that were copied from a target. This package does not follow pointers in them.
package frame

import "strings"

// Schema identifies the JSON of a [Report].
const Schema = "reframe.frames/v1"

// Report is the output of `reframe frames --json`.
type Report struct {
	Schema  string   `json:"schema"`
	Target  Target   `json:"target"`
	Threads []Thread `json:"threads"`
	// Goroutines lists the goroutines of a Go program that no thread runs. It is nil unless they were requested.
	Goroutines []ParkedGoroutine `json:"goroutines,omitempty"`
}

// Target describes the process or core that was read.
type Target struct {
	Kind     string   `json:"kind"`               // process, core, or machine (an emulator without processes)
	Provider string   `json:"provider,omitempty"` // the kind of debugger that holds the process: remote, delve, gdb or lldb
	PID      int      `json:"pid,omitempty"`
	Arch     string   `json:"arch"`
	PauseUS  *int64   `json:"pause_us,omitempty"` // how long all threads were stopped, in microseconds; nil for a target that was not running
	Stopped  bool     `json:"stopped,omitempty"`  // a signal had stopped the process before it was read, and it was left stopped
	Core     string   `json:"core,omitempty"`     // path of the core
	Debugger string   `json:"debugger,omitempty"` // address of the debugger that holds the process
	Notes    []string `json:"notes,omitempty"`    // data that is missing or uncertain
}

// Thread is one thread and its frames, innermost first.
type Thread struct {
	TID    int     `json:"tid"`
	Name   string  `json:"name"`
	Frames []Frame `json:"frames"`
	End    string  `json:"end,omitempty"` // why the frames end before the outermost one; empty if they are complete
	// EndCode is the code of End, or "" if End has none.
	EndCode Code `json:"end_code,omitempty"`
	// Total is the number of frames of the stack. Omitted lists the parts in the middle of a deep stack that Frames leaves out.
	Total   int       `json:"total,omitempty"`
	Omitted []Omitted `json:"omitted,omitempty"`
	// Goroutine is the goroutine that the thread runs. It is nil if there is none, or if the program is not written in Go.
	Goroutine *Goroutine `json:"goroutine,omitempty"`
}

// Goroutine describes a goroutine of a Go program.
type Goroutine struct {
	ID     int64             `json:"id"`
	State  string            `json:"state"`            // as in Go's run time: "running", "syscall" (also in a call of C), "waiting"
	Start  string            `json:"start,omitempty"`  // its first function
	Labels map[string]string `json:"labels,omitempty"` // labels set by runtime/pprof, if they could be read
}

// ParkedGoroutine is a goroutine that no thread runs, and its frames, innermost first. Its members have the meanings of those of [Thread].
type ParkedGoroutine struct {
	Goroutine Goroutine `json:"goroutine"`
	Frames    []Frame   `json:"frames"`
	End       string    `json:"end,omitempty"`
	EndCode   Code      `json:"end_code,omitempty"`
	Total     int       `json:"total,omitempty"`
	Omitted   []Omitted `json:"omitted,omitempty"`
}

// Omitted is a part of a deep stack that a report does not list.
type Omitted struct {
	From  int         `json:"from"`  // number of its first frame
	Count int         `json:"count"` // number of frames
	PCs   []OmittedPC `json:"pcs"`   // the most frequent pcs, at most eight, most frequent first
}

// OmittedPC counts the omitted frames with one pc.
type OmittedPC struct {
	PC       Hex     `json:"pc"`
	Function string  `json:"function,omitempty"`
	Offset   *uint64 `json:"offset,omitempty"`
	Count    int     `json:"count"`
}

// Kind tells the frames of a just-in-time compiler from all others.
type Kind string

// The kinds of frame.
const (
	JIT    Kind = "jit"    // has a record, or its code is in a registered JIT object or in executable memory without a file
	Native Kind = "native" // any other frame
)

// Frame is one activation: its place in the code, and its values if a record matches.
type Frame struct {
	Index int  `json:"index"`
	Kind  Kind `json:"kind"`
	PC    Hex  `json:"pc"`
	CFA   Hex  `json:"cfa,omitempty"`
	// Registers holds the known general registers of the physical frame, by name. It is nil for commands that do not list them.
	Registers map[string]Hex `json:"registers,omitempty"`
	Function  string         `json:"function,omitempty"`
	Offset    *uint64        `json:"offset,omitempty"`    // offset of pc in the function; nil if the function is unknown
	Demangled string         `json:"demangled,omitempty"` // if it differs from Function
	NamedBy   string         `json:"named_by,omitempty"`  // source of the function's name, if it is not a symbol: perf-map, jitdump
	Module    string         `json:"module,omitempty"`    // the file or JIT object that contains pc
	Rule      string         `json:"rule"`                // the unwind rule that found this frame
	Guess     string         `json:"guess,omitempty"`     // why the frame may not exist: it or an inner frame was found by a guess
	Source    []Source       `json:"source,omitempty"`    // the source lines, innermost first: inlined functions, then the function's own
	Record    *Record        `json:"record,omitempty"`
	Resume    *Resume        `json:"resume,omitempty"`
	Slots     []Slot         `json:"slots,omitempty"`
	Also      []Also         `json:"also,omitempty"` // other records at the same address
	// Direct lists variables in the frame's memory, for a frame without a record. Other records of the frame's function locate these variables.
	Direct []Direct `json:"direct,omitempty"`
	VM     *VM      `json:"vm,omitempty"`    // set if a VM's layout reads the record
	Notes  []string `json:"notes,omitempty"` // nearby records and why they were rejected; why slots have no names
	noted  []error  // the notes that have addresses, as errors, for [Frame.Noted]
	// CompiledFrom is set only for commands that show it.
	CompiledFrom *CompiledFrom `json:"compiled_from,omitempty"`
}

// Also is another record at the same address, with its values.
type Also struct {
	Record Record   `json:"record"`
	Slots  []Slot   `json:"slots,omitempty"`
	Notes  []string `json:"notes,omitempty"` // why slots have no names
}

// CompiledFrom rates the evidence that a function's code was compiled from a given module.
type CompiledFrom struct {
	Module    string `json:"module"` // file of the module
	Function  string `json:"function"`
	Demangled string `json:"demangled,omitempty"` // if it differs from Function
	Sure      string `json:"sure"`                // certain, likely, open (no evidence) or contradicted
	Why       string `json:"why"`
}

// Source is a source line of a frame. If the frame waits for a call, it is the line of the call.
type Source struct {
	Function string `json:"function,omitempty"` // demangled, and without parameters; empty if unknown
	File     string `json:"file,omitempty"`     // the path that was passed to the compiler
	Line     int    `json:"line,omitempty"`     // from 1; 0 for code without a line
	Column   int    `json:"column,omitempty"`   // from 1; 0 if unknown
	Inlined  bool   `json:"inlined,omitempty"`  // the function was inlined into that of the next entry
}

// Record identifies the stack map record that matched.
type Record struct {
	ID     uint64 `json:"id"`
	Site   string `json:"site"`   // stackmap, patchpoint, statepoint, deoptimize, unknown
	Offset uint64 `json:"offset"` // offset of the instruction in its function, as recorded
	Moment Moment `json:"moment"`
}

// Moment tells whether the site of a frame has run.
type Moment string

// The moments.
const (
	Before  Moment = "before"  // the site has not run
	InCall  Moment = "in-call" // the site is a call, and its callee is still running
	After   Moment = "after"   // the site has run
	Unknown Moment = "unknown" // the kind of the site is unknown
)

// Resume is the point in the IR at which the frame resumes.
type Resume struct {
	Function  string `json:"function"`
	Demangled string `json:"demangled,omitempty"` // if it differs from Function
	Block     string `json:"block"`
	After     string `json:"after,omitempty"` // the call in that block after which it resumes; empty: at the block's start
	At        string `json:"at,omitempty"`    // the instruction in that block before which it resumes
}

// Status tells whether a slot has a value.
type Status string

// The statuses of a slot.
const (
	OK        Status = "ok"
	Missing   Status = "unavailable"
	Undefined Status = "undef" // the value is undefined, so the compiler recorded arbitrary bits
	Guessed   Status = "guess" // read in a frame that is a guess or depends on one
)

// Slot is one named, typed value and its location. If the value is unavailable, the slot has the reason.
type Slot struct {
	Index    int       `json:"index"`
	Name     string    `json:"name,omitempty"`     // as the module spells it; empty for a constant
	Operand  string    `json:"operand,omitempty"`  // the site's operand as the module spells it, if the layout gives the slot another name
	Variable string    `json:"variable,omitempty"` // names of variables of the source program, separated by ", "; &x if the value is the address of x
	Type     Type      `json:"type,omitzero"`
	Value    string    `json:"value,omitempty"` // the value in the natural form of its type; empty if the type is unknown
	Hex      Hex       `json:"hex,omitempty"`   // the raw bits
	Status   Status    `json:"status"`
	Code     Code      `json:"code,omitempty"`   // the code of Reason
	Reason   string    `json:"reason,omitempty"` // why the value is unavailable or a guess
	Location *Location `json:"location,omitempty"`
	GC       *GC       `json:"gc,omitempty"` // for a statepoint: how the record lists the pointer for the collector

	// Bytes holds the raw bits in the byte order of the target. It has the size of the type, or of the location if the type is unknown. It is nil unless
	// the slot was read.
	Bytes []byte `json:"-"`

	why error // Reason as an error, if that wraps other codes or has addresses, else nil
}

// Read reports whether the slot has a value, which may be a guess.
func (s *Slot) Read() bool { return s.Status == OK || s.Status == Guessed }

// Location is the location of a slot's value, in the terms of the stack map format.
type Location struct {
	Kind     string  `json:"kind"` // Register, Direct, Indirect, Constant, ConstantIndex
	Register string  `json:"register,omitempty"`
	DWARF    *uint16 `json:"dwarf,omitempty"`
	Offset   int32   `json:"offset"` // offset from the register's value in bytes; for Register, the value's first bit in the register
	Size     int     `json:"size"`   // bytes
	Constant string  `json:"constant,omitempty"`
}

// Place is a location without its size. Places can be compared, so they can be keys of maps.
type Place struct {
	Kind     string
	DWARF    int // DWARF number of the register, -1 if there is none
	Offset   int32
	Constant string
}

// Place returns the location without its size.
func (l *Location) Place() Place {
	p := Place{l.Kind, -1, l.Offset, l.Constant}
	if l.DWARF != nil {
		p.DWARF = int(*l.DWARF)
	}
	return p
}

// Noted returns the notes as text to append to a message; "" for none.
func Noted(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return ": " + strings.Join(notes, "; ")
}
