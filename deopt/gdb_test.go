package deopt_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

var (
	gdbFrame = regexp.MustCompile(`(?m)^#(\d+) +(0x[0-9a-f]+) in `)
	gdbValue = regexp.MustCompile(`(?m)^\$\d+ = (0x[0-9a-f]+)$`)
)

// question returns the gdb expression for the value at a location, with the registers of the frame.
func question(l *frame.Location) string {
	size := map[int]string{1: "char", 2: "short", 4: "int", 8: "long"}[l.Size]
	switch l.Kind {
	case "Register":
		return "p/x $" + l.Register
	case "Direct":
		return fmt.Sprintf("p/x (unsigned long)$%s%+d", l.Register, l.Offset)
	}
	return fmt.Sprintf("p/x *(unsigned %s*)((unsigned long)$%s%+d)", size, l.Register, l.Offset)
}

// TestAgainstGDB requires that gdb unwinds the same stack to the same frames, and finds the same bits at the recorded locations.
func TestAgainstGDB(t *testing.T) {
	livetest.Slow(t)
	var turns livetest.Turns
	for _, program := range []string{"deoptimize.ll", "jit_pp.ll", "jit_sp.ll"} {
		for _, version := range []int{14, 19, 22} {
			if turns.Out(4) { // take a share that has each program and each release
				continue
			}
			if version == 14 && program == "deoptimize.ll" {
				version = 16 // LLVM 14 rejects deoptimize.ll
			}
			t.Run(fmt.Sprintf("%s lli-%d", program, version), func(t *testing.T) {
				p := livetest.Lli(t, version, program, "mcjit")
				v := frametest.Look(t, p, false, frametest.Known(t, p))
				f := recorded(t, v)
				commands := []string{"bt", fmt.Sprintf("frame %d", f.Index)}
				var asked []frame.Slot
				for _, s := range f.Slots {
					if s.Status == frame.OK && (s.Location.Kind == "Register" || s.Location.Kind == "Indirect" || s.Location.Kind == "Direct") {
						asked = append(asked, s)
						commands = append(commands, question(s.Location))
					}
				}
				require.NotEmpty(t, asked)
				answer := livetest.GDB(t, p.PID, commands...)

				var ours, theirs []string
				for _, f := range v.Threads[0].Frames {
					ours = append(ours, string(f.PC))
				}
				backtrace, _, _ := strings.Cut(answer, "$1 = ")
				for _, m := range gdbFrame.FindAllStringSubmatch(backtrace, -1) {
					theirs = append(theirs, "0x"+strings.TrimLeft(m[2][2:], "0"))
				}
				// The command "frame" prints the frame again.
				require.Equal(t, theirs, append(ours, ours[f.Index]))
				answers := gdbValue.FindAllStringSubmatch(answer, -1)
				require.Len(t, answers, len(asked))
				for i, s := range asked {
					require.Equal(t, answers[i][1], string(s.Hex), "%s at %+v", s.Name, s.Location)
				}
			})
		}
	}
}
