// Package system is what the rest asks the Linux kernel for: which threads a process has and what /proc says of them, memory and registers of
// another process, and the requests of ptrace(2) that stop a thread and let it go.
//
// It has no state. Its main functions are [ThreadIDs], [ReadProcess] and [PollStop]; on other systems those that need Linux fail, and nobody
// comes to them.
//
// # Security
//
// Numbers of processes are used again: what is asked for here is of whatever process has the number by now, and all but what a thread that is
// traced and is stopped tells may be of another one than the last time.
package system

import "reframe/deopt/machine"

// Want is one range to be read in a batch; OK says whether it was.
type Want struct {
	Addr machine.Addr
	Buf  []byte
	OK   bool
}

// Progress is how far a thread is that was asked to stop.
type Progress int

// What [PollStop] finds.
const (
	StillRuns Progress = iota
	StandsStill
	HasEnded
)
