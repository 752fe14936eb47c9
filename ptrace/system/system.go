// Package system wraps the interfaces of the Linux kernel that the other packages use: a process's threads and their data in /proc, the memory and
// registers of another process, and the requests of ptrace(2) that stop and resume a thread.
//
// Its main functions are [ThreadIDs] and [PollStop], and its main type is [Memory]. On other systems, the functions that require Linux return errors
// and are not called.
//
// # Security
//
// Process numbers are reused: all data belongs to the process that has the number now. That may be another process than in the last call, unless the
// thread is traced and stopped.
package system

import (
	"errors"

	"example.com/reframe/internal/machine"
)

// ErrLate reports that a read did not end within its time limit.
var ErrLate = errors.New("reading it takes too long: its file system, or the process that provides its pages, does not answer")

// Want is a range to read in a batch; OK reports whether it was read.
type Want struct {
	Addr machine.Addr
	Buf  []byte
	OK   bool
}

// Progress is the state of a thread that was requested to stop.
type Progress int

// The results of [PollStop].
const (
	StillRuns Progress = iota
	StandsStill
	HasEnded
)
