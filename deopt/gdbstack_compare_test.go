package deopt_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// stackPair is one stack at one moment, unwound by this package and by gdb.
type stackPair struct {
	tid    int
	view   *deopt.View
	ours   []*deopt.Frame
	end    unwind.End
	theirs *gdbWalk

	both      [][2]int // the frames that agree: index here, index in gdb
	gaps      []gap
	registers []registerGap
	equal     int            // number of registers that have the same value in both
	lost      map[string]int // registers that are unavailable here, by reason without frame numbers
}

// gap is a part of a stack that differs between this package and gdb: frames that only one of them has, or whose CFA differs. ours and theirs are
// its first frames, nil at the end of a stack.
type gap struct {
	*stackPair
	ours           *unwind.Frame
	theirs         *gdbPhysical
	extra, missing int // numbers of frames only in this package, and only in gdb
}

// registerGap is a register of a common frame whose value here differs from gdb's.
type registerGap struct {
	*stackPair
	ours, theirs int // the frames
	name         string
	value        uint64
}

// captured freezes a process and unwinds it here and in gdb, with debug information from another file if given.
func captured(t *testing.T, p *livetest.Process, symbols ...string) []*stackPair {
	t.Helper()
	p.Freeze(t)
	target, err := ptrace.Capture(p.PID, ptrace.Options{})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	v, err := deopt.Frames(target, deopt.Options{})
	require.NoError(t, err)
	walks := gdbWalks(t, p, symbols...)
	require.Len(t, walks, len(v.Threads))
	var pairs []*stackPair
	for _, thread := range v.Threads {
		require.Contains(t, walks, thread.ID)
		s := &stackPair{tid: thread.ID, view: v, ours: thread.Frames, end: thread.End, theirs: walks[thread.ID], lost: map[string]int{}}
		s.compare()
		pairs = append(pairs, s)
	}
	return pairs
}

// compare finds the frames that are in both stacks, in order, and the gaps between them.
func (s *stackPair) compare() {
	for i, j := 0, 0; i < len(s.ours) || j < len(s.theirs.frames); i, j = i+1, j+1 {
		i2, j2 := s.next(i, j)
		if i2 > i || j2 > j {
			g := gap{stackPair: s, extra: i2 - i, missing: j2 - j}
			if i < len(s.ours) {
				g.ours = s.ours[i].Physical()
			}
			if j < len(s.theirs.frames) {
				g.theirs = &s.theirs.frames[j]
			}
			s.gaps = append(s.gaps, g)
		}
		if i, j = i2, j2; i < len(s.ours) {
			s.both = append(s.both, [2]int{i, j})
			s.compareRegisters(i, j)
		}
	}
}

// next returns the first common frames from i and j, or the ends for none.
func (s *stackPair) next(i, j int) (int, int) {
	for j2 := j; j2 < len(s.theirs.frames); j2++ {
		for i2 := i; i2 < len(s.ours); i2++ {
			if same(s.ours[i2].Physical(), &s.theirs.frames[j2]) {
				return i2, j2
			}
		}
	}
	return len(s.ours), len(s.theirs.frames)
}

// same reports whether both are one activation, by pc and CFA. If one of them has no CFA, same compares the stack pointers: gdb computes none for
// the outermost frame, and a walk that was cut short has none for its last frame.
func same(ours *unwind.Frame, theirs *gdbPhysical) bool {
	if ours.PC != theirs.PC || ours.Signal != theirs.Signal {
		return false
	}
	if ours.NoCFA == "" && theirs.CFA != 0 {
		return ours.CFA == theirs.CFA
	}
	sp, err := ours.Registers.Addr(machine.AMD64.SP)
	return err == nil && sp == theirs.RSP
}

// calleeSaved lists the callee-saved registers (System V ABI, AMD64 supplement, figure 3.4). It lacks the stack pointer, which is compared as the
// CFA of the callee's frame.
var calleeSaved = []machine.DWARFReg{3, 6, 12, 13, 14, 15}

var frameNumber = regexp.MustCompile(`#\d+`)

// compareRegisters compares the registers that are known here. For others, gdb shows their last known values.
func (s *stackPair) compareRegisters(i, j int) {
	for _, reg := range calleeSaved {
		name := machine.AMD64.RegisterName(reg)
		v, err := s.ours[i].Physical().Registers.Uint(reg)
		if err != nil {
			why := strings.TrimPrefix(frameNumber.ReplaceAllString(err.Error(), "#"), name+": ")
			s.lost[why]++
			continue
		}
		if w, ok := s.theirs.frames[j].Registers[name]; ok && w == v {
			s.equal++
		} else {
			s.registers = append(s.registers, registerGap{s, i, j, name, v})
		}
	}
}

// String formats the gap and the frame before it.
func (g gap) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "thread %d: %d frames here alone, %d in gdb alone; here it ends: %s; in gdb: %s\n", g.tid, g.extra, g.missing, g.end.Reason, g.stackPair.theirs.end)
	const shown = 5
	if g.ours != nil {
		for i := max(0, g.ours.Index-1); i < min(len(g.stackPair.ours), g.ours.Index+min(shown, g.extra+1)); i++ {
			f := g.stackPair.ours[i]
			sp, _ := f.Physical().Registers.Addr(machine.AMD64.SP)
			fmt.Fprintf(&b, "  here #%d pc %v CFA %v %s sp %v found by %s %s %s %q\n", i, f.PC, f.CFA, f.Physical().NoCFA, sp, f.Rule, f.Function, f.Module, f.Physical().Guess)
		}
	}
	for j := range g.stackPair.theirs.frames {
		if f := &g.stackPair.theirs.frames[j]; f == g.theirs {
			for j := max(0, j-1); j < min(len(g.stackPair.theirs.frames), j+min(shown, g.missing+1)); j++ {
				f := g.stackPair.theirs.frames[j]
				fmt.Fprintf(&b, "  gdb  #%d pc %v CFA %v sp %v %s %s\n", j, f.PC, f.CFA, f.RSP, f.Function, f.Module)
			}
		}
	}
	return b.String()
}

func (r registerGap) String() string {
	theirs := "unknown"
	if w, ok := r.stackPair.theirs.frames[r.theirs].Registers[r.name]; ok {
		theirs = fmt.Sprintf("%#x", w)
	}
	f := r.stackPair.ours[r.ours]
	return fmt.Sprintf("thread %d: %s of frame #%d at %v %s found by %s: here %#x, in gdb's #%d %s\n", r.tid, r.name, r.ours, f.PC, f.Function, f.Rule, r.value, r.theirs, theirs)
}
