//go:build !linux

package system

import (
	"debug/elf"
	"errors"
	"syscall"
	"time"

	"example.com/reframe/internal/machine"
)

// These functions are not called, because callers first check that live processes are supported.

// Memory is the memory of another process.
type Memory struct{}

func NewMemory(int) *Memory                                   { return nil }
func (*Memory) Close()                                        {}
func (*Memory) Open() error                                   { return errors.ErrUnsupported }
func (*Memory) Read([]byte, machine.Addr) (int, error)        { return 0, errors.ErrUnsupported }
func (*Memory) ReadWithin(time.Duration, []Want) (int, error) { return 0, errors.ErrUnsupported }
func Pages(uintptr, machine.Addr, machine.Addr, func(start, end machine.Addr)) error {
	return errors.ErrUnsupported
}
func ThisThread() int                                 { return 0 }
func Request(int, int, uintptr) error                 { return errors.ErrUnsupported }
func PollStop(int) (Progress, syscall.Signal)         { return HasEnded, 0 }
func PtraceDenied() bool                              { return false }
func FileOwner(string) (uid int, known bool)          { return 0, false }
func Exists(int) bool                                 { return false }
func Urgently(f func() error) error                   { return f() }
func Nap()                                            {}
func WakeOnTime()                                     {}
func RegisterSet(int, elf.NType, []byte) (int, error) { return 0, errors.ErrUnsupported }
func ProcessStart(int) time.Time                      { return time.Time{} }
