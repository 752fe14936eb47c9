package tracer

import (
	"encoding/gob"
	"syscall"
	"time"
)

// Breakpoint is a place in the code and what is to happen there.
type Breakpoint struct {
	Addr      uint64
	Hold      bool // all threads are stopped at a hit until [Go]
	Uncounted bool // counts neither for Every nor for Limit
	Vectors   bool // all registers come with a hit, not the general ones alone
	Hardware  bool // the target may write over the code there: a debug register holds it, where one is free
	Reads     []Read
}

// Read is memory that comes with a hit: it starts at a register, given by its place in
// [General] counted in words, plus an offset.
type Read struct {
	Reg    uint8
	Offset int64
	Size   uint32
}

// Launching describes how a program is started. Empty fields mean those of the tracer itself.
type Launching struct {
	Dir                   string
	Env                   []string
	Stdin, Stdout, Stderr string // files; the last two are created
	// Bound means that the program is killed when the client is gone without a [Detach].
	Bound bool
	// Group makes the program lead a process group of its own: it does not get the terminal's interrupts.
	Group bool
}

// Counting selects which hits are reported, of those that are counted from then on.
type Counting struct {
	Every, Limit uint64
	Quiet        bool
}

// Op is a request to the tracer.
type Op uint8

// The requests. All but Go have a reply.
const (
	Attach   Op = iota // to PID
	Launch             // Command, and stop before its first instruction
	Go                 // all threads, if they are stopped
	Stop               // all threads
	Insert             // Breakpoints
	Remove             // the breakpoints at Addrs
	Count              // as Counting specifies
	Yield              // as On says: do not let the target wait for a client that does not read events, or that is stopped
	LetRun             // remove all breakpoints and let the target run; [Away] follows
	Pass               // let thread TID pass so many hits
	Hits               // how often the breakpoints were hit
	Look               // whether the target has written over breakpoints
	Threads            // their registers; they are stopped
	Alone              // let thread TID run by itself
	Commit             // Changes of memory, and Raw's registers
	Rseq               // where the kernel writes for thread TID
	Clear              // the debug registers of a tracer that was killed, those for Addrs
	Restore            // Changes, where a breakpoint of a tracer that was killed lies
	Unhandle           // take out the handler of SIGTRAP of a tracer that was killed
	Detach             // put everything back and end
)

// Request is one thing that the tracer is asked to do.
type Request struct {
	Op Op
	// Seen counts the events after which all threads are stopped, and Programs those of an exec and those called [Away], that the client has seen: a
	// request in ignorance of one is not executed.
	Seen, Programs uint64

	PID, TID    int
	Command     []string
	Launching   Launching
	Breakpoints []Breakpoint
	Addrs       []uint64
	Changes     []Change
	Counting    Counting
	Pass        uint64
	On          bool
	Alone       AloneOptions
	Raw         *Raw
}

// Raw are the registers of a thread as the kernel hands them out.
type Raw struct {
	TID     int
	General General
	Others  [][]byte // the other sets (package regset); nil if not requested, and empty for one that the kernel does not provide
	Missing string   // why the thread is not stopped, or ""
}

// Change is memory and what is to be in it.
type Change struct {
	Addr uint64
	Data []byte
}

// AloneOptions bound how far a thread runs by itself.
type AloneOptions struct {
	Returns []Return
	Hits    bool     // it stops at counted breakpoints too; otherwise it passes them
	Pass    []uint64 // counted ones that it passes all the same
	Loads   bool     // it stops at uncounted ones too; otherwise the run ends there
	Fatal   bool     // it stops before a signal that ends the process; otherwise it is given the signal
	Inside  []Range  // ascending
	Entries []uint64 // functions to stop at, where code inside calls them
	Steps   uint64
	Time    time.Duration
	Tail    int
}

// Return holds the return address of a function, its canonical frame address, and how many bytes it may pop.
type Return struct{ Addr, CFA, Pops uint64 }

// Range is code from Start up to End.
type Range struct{ Start, End uint64 }

// AloneRun is the result of running a thread by itself.
type AloneRun struct {
	Stopped string // why it reached neither a return nor a breakpoint, or ""
	Late    bool   // the reason is that the time was up
	Return  int    // the index of the return that it reached, or -1
	Hit     uint64 // the breakpoint that it reached, or 0
	Load    bool   // that is an uncounted one
	Entered uint64 // the entry that it reached, or 0
	Back    Return // and where that returns to
	Passed  uint64 // counted breakpoints that it did not stop at
	Signal  int    // the first signal that its own instructions raised, or 0
	// Handling reports that a handler of such a signal has begun, and is not known to have returned.
	Handling bool
	Fatal    int    // the signal that it is stopped at and that ends the process, or 0
	Fault    uint64 // what the instruction accessed that raised it, or 0
	Steps    uint64
	Outside  time.Duration // that code outside took
	Tail     []uint64
	Calls    []uint64
	Thread   Raw
}

// Reply answers a request.
type Reply struct {
	Error   string
	Errno   syscall.Errno // 0 if the error is not the kernel's
	PID     int
	Threads []Raw
	Hits    map[uint64]uint64
	Alone   *AloneRun
	Rseq    Range
	// Hardware lists the requested breakpoints that debug registers hold.
	Hardware []uint64
	Restored int // how many of the Changes were made
	// Unhandled is the reason why a kill of the tracer may end the process, which has no handler of SIGTRAP; "" where it has one.
	Unhandled string
}

// EventKind is the kind of an event.
type EventKind uint8

// The events.
const (
	Hit EventKind = iota
	Exec
	Ended
	LimitReached
	Missed // the target has overwritten a breakpoint, or a thread cannot have it: hits may have been missed; Why has details
	Away   // the client did not read, was stopped or asked for it: all breakpoints have been removed, and the target runs
	Broken // the tracer cannot continue; Why is the reason
)

// Event is an unsolicited message of the tracer.
type Event struct {
	Kind   EventKind
	Time   int64 // nanoseconds since 1970
	Addr   uint64
	Number uint64
	Held   bool // all threads are stopped, until Go
	Raw    Raw
	Data   []byte // all Reads, one after the other
	Got    uint64 // a bit for each Read that succeeded
	Code   int    // exit status
	Signal int
	Armed  bool // for Missed: it is set again, and Under is the code under it now
	Under  Code
	Why    string
}

// MaxReads bounds the Reads of a breakpoint: there is a bit for each.
const MaxReads = 64

// message is a message from the tracer to its client: one of the two.
type message struct {
	Reply *Reply
	Event *Event
}

func init() {
	gob.Register(message{})
	gob.Register(Request{})
}
