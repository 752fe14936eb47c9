// Package system is what the rest asks the Linux kernel for: the threads of a process and their data in /proc, memory and registers of another
// process, and the requests of ptrace(2) that stop and resume a thread.
//
// It has no state. Its main functions are [ThreadIDs], [ReadProcess] and [PollStop]; on other systems those that need Linux fail, and are not
// called.
//
// # Security
//
// Process numbers are reused: all data here is of whatever process has the number now, and may be of another one than the last time, except for a
// thread that is traced and stopped.
package system

import "reframe/deopt/machine"

// Want is one range to be read in a batch; OK reports whether it was.
type Want struct {
	Addr machine.Addr
	Buf  []byte
	OK   bool
}

// Progress is the state of a thread that was told to stop.
type Progress int

// The results of [PollStop].
const (
	StillRuns Progress = iota
	StandsStill
	HasEnded
)
