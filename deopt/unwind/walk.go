package unwind

import (
	"fmt"
	"maps"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// walk is the state of walking one stack. Its own methods choose the step from a frame to its caller and check it against the stack. The embedded
// types do the rest. They do not use each other, except where their fields name one.
type walk struct {
	*Unwinder
	*recorder                // reads memory
	trial                    // computes registers by the rules of a row, and reads code
	foundFrames              // holds the frames
	stackOrder               // checks that each frame is further up the stack
	finder      SwitchFinder // see switchAt; nil until it is needed
	looking     bool         // the walk looks ahead for another walk
}

// newWalk returns a walk without frames.
func newWalk(u *Unwinder) *walk {
	return newWalkOver(u, newARM64Code(u))
}

// newWalkOver does the same as newWalk, but shares what another walk has read of arm64 code.
func newWalkOver(u *Unwinder, code *arm64Code) *walk {
	memory := &recorder{of: u}
	return &walk{Unwinder: u, recorder: memory, trial: trial{&rules{u.Arch, memory}, &codeReader{Unwinder: u, arm64: code}}}
}

// lookAhead returns a walk from a copy of a frame that does not affect w. The CFA of that frame's caller must be above floor.
func (w *walk) lookAhead(f *Frame, floor machine.Addr) *walk {
	ahead := w.another()
	ahead.frames, ahead.floor = []Frame{*f}, floor
	return ahead
}

// copied returns a copy of w that looks ahead: continuing it does not change w.
func (w *walk) copied() *walk {
	ahead := w.another()
	ahead.frames, ahead.dropped = slices.Clone(w.frames), w.dropped
	ahead.floor, ahead.signals, ahead.switches = w.floor, maps.Clone(w.signals), maps.Clone(w.switches)
	return ahead
}

// another returns a walk without frames that looks ahead.
func (w *walk) another() *walk {
	ahead := newWalkOver(w.Unwinder, w.arm64)
	ahead.off, ahead.looking = true, true
	return ahead
}

// recorder reads the memory of a target, except for code, for one walk. It records the words read, so that a later walk can find out whether its
// frames are the same.
type recorder struct {
	of    *Unwinder
	off   bool // nothing is recorded
	reads []read
	until []int   // number of reads made when each frame was left
	word  [8]byte // buffer for one read
}

// ReadMemory implements [machine.Memory].
func (r *recorder) ReadMemory(p []byte, addr machine.Addr) error {
	err := r.of.Memory.ReadMemory(p, addr)
	if r.off {
		return err
	}
	made := read{addr: addr}
	if err == nil && len(p) <= len(r.word) {
		made.value, made.size = r.of.Arch.Uint(p), len(p)
	}
	r.reads = append(r.reads, made)
	return err
}

// endFrame records that a frame was left.
func (r *recorder) endFrame() {
	if !r.off {
		r.until = append(r.until, len(r.reads))
	}
}

// codeReader reads code: the targets of calls, and the steps by which a frame can be unwound at a place. It reads no stack.
type codeReader struct {
	*Unwinder
	arm64   *arm64Code
	entries map[machine.Addr]*reading // results of the method entry, by the start of the code
}

// foundFrames holds the frames that a walk has found.
type foundFrames struct {
	frames  []Frame
	depth   *Depth // nil to keep all frames
	head    int    // number of innermost frames that are kept in a stack of any depth
	dropped int    // number of dropped frames
	omitted []Omitted
	callees map[int]*Frame // see [Stack.callees]
}

// found returns the number of frames that were found.
func (s *foundFrames) found() int { return len(s.frames) + s.dropped }

// innermostScanned returns the number of the first frame that was found by a scan, or -1 for none.
func (s *foundFrames) innermostScanned() int {
	scanned := -1
	for i := range s.frames {
		if s.frames[i].Rule == FromScan {
			scanned = s.frames[i].Index
			break
		}
	}
	for _, o := range s.omitted {
		if o.scanned >= 0 && (scanned < 0 || o.scanned < scanned) {
			scanned = o.scanned
		}
	}
	return scanned
}

// stackOrder checks that each frame is further up its stack than the one before. Stacks grow down and every call uses some of the stack, so a
// caller's CFA is above its callee's. The exceptions are signal handlers, which may run on another stack, and code that switches stacks.
type stackOrder struct {
	floor    machine.Addr          // the CFA of the next frame must be above it
	signals  map[machine.Addr]bool // CFAs of the signal frames passed so far
	switches map[machine.Addr]bool // CFAs of the frames passed so far whose code had switched stacks
	scans    int                   // number of frames left by a scan
}

// leaveStack records that a frame with this CFA is on another stack than its caller. It returns false if the walk has passed such a frame before.
func (o *stackOrder) leaveStack(cfa machine.Addr) bool {
	if o.switches[cfa] {
		return false
	}
	if o.switches == nil {
		o.switches = map[machine.Addr]bool{}
	}
	o.switches[cfa] = true
	return true
}

// leaveSignal does the same as leaveStack for a signal frame, whose caller may be on any stack.
func (o *stackOrder) leaveSignal(cfa machine.Addr) bool {
	if o.signals[cfa] {
		return false
	}
	if o.signals == nil {
		o.signals = map[machine.Addr]bool{}
	}
	o.signals[cfa], o.floor = true, 0
	return true
}

// setCFA sets the CFA of f, or returns an end if it contradicts the order.
func (o *stackOrder) setCFA(f *Frame, cfa machine.Addr) *End {
	loop := func(format string, args ...any) *End {
		return cutShort(frame.Because(frame.StackLoop, f.Index, fmt.Sprintf(format, args...)))
	}
	switch {
	case f.Signal:
		if !o.leaveSignal(cfa) {
			return loop("a signal frame with CFA %v for the second time: a loop", cfa)
		}
	case f.switched:
		if !o.leaveStack(cfa) {
			return loop("it leaves its stack for the CFA %v for the second time: a loop", cfa)
		}
		o.floor = cfa
	case f.Index > 0 && cfa <= o.floor:
		return loop("its CFA %v is not above that of frame #%d, %v", cfa, f.Index-1, o.floor)
	default:
		o.floor = cfa
	}
	f.CFA, f.NoCFA = cfa, ""
	return nil
}

// lowest returns a lower bound of the CFA of f, which the CFA must exceed.
func (o *stackOrder) lowest(f *Frame, arch *machine.Arch) (machine.Addr, bool) {
	sp, err := f.Registers.Addr(arch.SP)
	if err == nil && arch.Link == arch.PC {
		return sp, true // the return address is on the stack, at sp or above
	}
	if err == nil && sp > o.floor {
		return sp - 1, true // a frame may be empty
	}
	return o.floor, f.Index > 0
}

// trial computes the callers of frames that are only assumed. It changes nothing in the walk.
type trial struct {
	*rules
	*codeReader
}
