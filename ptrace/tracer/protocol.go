package tracer

import (
	"encoding/gob"
	"syscall"
	"time"
)

// Breakpoint is an address in the code, with the options of the breakpoint there.
type Breakpoint struct {
	Addr      uint64
	Hold      bool // all threads stop at a hit, until [Go]
	Uncounted bool // excluded from Every and Limit
	Vectors   bool // a hit reports all registers instead of only the general ones
	Hardware  bool // use a debug register if one is free, because the target may overwrite the code
	Reads     []Read
	// Expects lists memory. If it is not empty, Hold applies only to hits at which some of that memory differs.
	Expects []Expected
}

// Expected is memory with known contents. If Data is empty, it is Lost bytes that must be unreadable, which end at or below the address [MaxLost].
type Expected struct {
	Addr uint64
	Data []byte
	Lost uint32
}

// Read is a range of memory that is read at a hit and reported with it. It starts at a register plus an offset. Reg is the index of the register's
// word in [General].
type Read struct {
	Reg    uint8
	Offset int64
	Size   uint32
}

// Launching describes how a program is started. An empty field selects the tracer's own value.
type Launching struct {
	Dir                   string
	Env                   []string
	Stdin, Stdout, Stderr string // files; Stdout and Stderr are created
	// Bound kills the program when the client ends without a [Detach].
	Bound bool
	// Group makes the program the leader of a process group, so that it does not get the terminal's interrupts.
	Group bool
}

// Counting selects the counted hits to report. It applies to hits after the request.
type Counting struct {
	Every, Limit uint64
	Quiet        bool
}

// Op is a request to the tracer.
type Op uint8

// The requests. Every request except Go has a reply.
const (
	Attach   Op = iota // attach to PID
	Launch             // start Command, stopped before its first instruction
	Go                 // resume all threads, if they are stopped
	Stop               // stop all threads
	Insert             // set Breakpoints
	Remove             // remove the breakpoints at Addrs
	Count              // count as Counting specifies
	Yield              // if On is set, resume the target when the client does not read events or is stopped
	LetRun             // remove all breakpoints and resume the target; an [Away] event follows
	Pass               // let thread TID pass a number of hits
	Hits               // report the number of hits of each breakpoint
	Look               // check whether the target has overwritten breakpoints
	Threads            // report the registers of all threads, which must be stopped
	Alone              // run thread TID while the others are stopped
	Commit             // write Changes to memory, and Raw to the registers
	Rseq               // report the rseq area of thread TID, into which the kernel writes
	Clear              // clear debug registers with Addrs, which a killed tracer left set
	Restore            // write Changes, at breakpoints of a killed tracer
	Unhandle           // remove the SIGTRAP handler of a killed tracer
	Detach             // restore all code, release the target, and end
)

// Request is a request to the tracer.
type Request struct {
	Op Op
	// Seen counts the events with Held that the client has seen, and Programs the [Exec] and [Away] events. The tracer does not execute a request of
	// a client that has not seen the latest such event.
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
	Alone       SingleThreadOptions
	Raw         *Raw
}

// Raw holds the registers of a thread in the kernel's format.
type Raw struct {
	TID     int
	General General
	Others  [][]byte // the other sets (package regset); a set is nil if it was not requested, and empty if the kernel does not provide it
	Missing string   // why the thread's registers are unavailable, or ""
}

// Change is a write to memory: an address and the new bytes.
type Change struct {
	Addr uint64
	Data []byte
}

// SingleThreadOptions limit how far a thread runs while the others are stopped.
type SingleThreadOptions struct {
	Returns []Return
	Hits    bool     // also stop at counted breakpoints, instead of passing them
	Pass    []uint64 // counted breakpoints that the thread passes even with Hits
	Loads   bool     // also stop at uncounted breakpoints, with Hit and Load set; otherwise the run ends there, with a reason
	Fatal   bool     // stop before a signal that ends the process, instead of delivering it
	Inside  []Range  // the code that is single-stepped, in ascending order; other code runs at full speed
	Entries []uint64 // functions at which the thread stops when code in Inside calls them
	Steps   uint64
	Time    time.Duration
	Tail    int
}

// Return describes the return of a function: the return address, the canonical frame address, and the maximum number of bytes that it pops.
type Return struct{ Addr, CFA, Pops uint64 }

// Range is the code in [Start, End).
type Range struct{ Start, End uint64 }

// SingleThreadRun is the result of running a thread while the others were stopped.
type SingleThreadRun struct {
	Stopped string // why the run ended before the thread reached a return, breakpoint or entry, or ""
	Late    bool   // the time limit was the reason for Stopped
	Return  int    // index in Returns of the return that it reached, or -1
	Hit     uint64 // breakpoint that it reached, or 0
	Load    bool   // Hit is an uncounted breakpoint
	Entered uint64 // entry that it reached, or 0
	Back    Return // return of the function at Entered
	Passed  uint64 // number of counted breakpoints that it passed
	Signal  int    // first signal that its own instructions raised, or 0
	// Handling reports whether a handler of such a signal has begun and may not have returned.
	Handling bool
	Fatal    int    // signal at which it is stopped and that would end the process, or 0
	Fault    uint64 // address that the instruction which raised Fatal accessed, or 0
	Steps    uint64
	Outside  time.Duration // processor time in code outside of Inside
	Tail     []uint64
	Calls    []uint64
	Thread   Raw
}

// Reply is the reply to a request.
type Reply struct {
	Error   string
	Errno   syscall.Errno // 0 if the error does not come from the kernel
	PID     int
	Threads []Raw
	Hits    map[uint64]uint64
	Alone   *SingleThreadRun
	Rseq    Range
	// Hardware lists the requested breakpoints that are in debug registers.
	Hardware []uint64
	Restored int // number of Changes that were made
	// Unhandled is the reason why the process has no SIGTRAP handler of the tracer, so that killing the tracer may end the process. It is "" if the
	// process has the handler.
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
	Missed // hits may have been missed: the target has overwritten a breakpoint, or a thread cannot have it; Why has details
	Away   // the client did not read, was stopped, or sent LetRun, so the tracer has removed all breakpoints and has resumed the target
	Broken // the tracer cannot continue; Why is the reason
)

// Event is a message that the tracer sends without a request.
type Event struct {
	Kind   EventKind
	Time   int64 // nanoseconds since 1970
	Addr   uint64
	Number uint64
	Held   bool // all threads are stopped until Go
	Raw    Raw
	Data   []byte // the bytes of all Reads, concatenated
	Got    uint64 // bit i is set if Reads[i] succeeded
	Code   int    // exit status
	Signal int
	Armed  bool // for Missed: the breakpoint is set again, and Under is the code that is now under it
	Under  Code
	Why    string
}

// Bounds of a breakpoint.
const (
	MaxReads    = 64       // Reads, because Event.Got has one bit for each
	MaxExpects  = 64       // parts of the expected memory
	MaxExpected = 16 << 10 // bytes of all these parts
	MaxLost     = 64 << 10 // lowest address that an ordinary process can map (vm.mmap_min_addr of Linux): memory below it stays unreadable
)

// message is a message from the tracer to its client: either a reply or an event.
type message struct {
	Reply *Reply
	Event *Event
}

func init() {
	gob.Register(message{})
	gob.Register(Request{})
}
