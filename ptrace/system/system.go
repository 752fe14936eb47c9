// Package system wraps the interfaces of the Linux kernel that the other packages use: a process's threads and their data in /proc, the memory and
// registers of another process, and the requests of ptrace(2) that stop and resume a thread.
//
// Its main functions are [ThreadIDs] and [PollStop], its main type is [Memory]; all else has no state. On other systems what needs Linux fails, and is
// not called.
//
// # Security
//
// Process numbers are reused: all data here is of whatever process has the number now, and may be of another one than the last time, except for a
// thread that is traced and stopped.
package system

import (
	"errors"

	"example.com/reframe/internal/machine"
)

// ErrLate is the error of a read that did not end within its time.
var ErrLate = errors.New("reading it takes too long: its file system or the provider of its pages does not answer")

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
