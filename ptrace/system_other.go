//go:build !linux

package ptrace

import (
	"debug/elf"
	"errors"
	"syscall"
)

// What follows nobody comes to: needLive is asked first.

func readProcess(int, []want) (int, error)               { return 0, errors.ErrUnsupported }
func thisThread() int                                    { return 0 }
func ptraceRequest(int, int, uintptr) error              { return errors.ErrUnsupported }
func pollStop(int) (progress, syscall.Signal)            { return hasEnded, 0 }
func urgently(f func() error) error                      { return f() }
func nap()                                               {}
func wakeOnTime()                                        {}
func getRegisterSet(int, elf.NType, []byte) (int, error) { return 0, errors.ErrUnsupported }
