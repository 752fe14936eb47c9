//go:build !amd64 && !arm64

package tracer

import "errors"

// These functions are never called: Start returns an error if there are no tables ([Supported]). A new architecture must implement them, besides the
// tables of arch_other.go.

const trapCode = 0

type emulated struct{}

func shadowStack(int) bool                                     { return false }
func getRegs(int, *General) error                              { return errors.ErrUnsupported }
func setRegs(int, *General) error                              { return errors.ErrUnsupported }
func setGeneral(int, General) error                            { return errors.ErrUnsupported }
func (g *General) pc() uint64                                  { return 0 }
func (g *General) sp() uint64                                  { return 0 }
func (g *General) trapped() uint64                             { return 0 }
func (g *General) rewind()                                     {}
func (g *General) pass()                                       {}
func (g *General) arrive()                                     {}
func (g General) resembles(General) bool                       { return false }
func (info *sigInfo) steppedCall() bool                        { return false }
func (info *sigInfo) noReason() bool                           { return false }
func (t *thread) setDebug(debugRegisters) error                { return errors.ErrUnsupported }
func (t *thread) clearDebug(func(uint64) bool) error           { return errors.ErrUnsupported }
func (b *breakpoint) decode(memory, bool)                      {}
func (s *server) emulates(*thread, *breakpoint, *General) bool { return false }

func keepCall(int) (restore func())                       { return func() {} }
func (g *General) setCall(uint64, uint64, [6]uint64)      {}
func (g *General) called(uint64) (result uint64, ok bool) { return 0, false }

var syscallCode = []byte{0}

const seekStep, sysSigaction = 1, 0

const pushedByCall = 0

func (s *server) calledFrom(*General, place) (back place, call bool) { return place{}, false }
