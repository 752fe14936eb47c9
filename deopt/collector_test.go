package deopt_test

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// collecting runs testdata/gc/collector.c with a module until a collection has moved every object.
func collecting(t *testing.T, version int, program, passes string, round int) *livetest.Process {
	t.Helper()
	dir := t.TempDir()
	module, binary := filepath.Join(dir, program+".ll"), filepath.Join(dir, "collector")
	frametest.Command(t, "", livetest.LLVM(t, version, "opt"), "-passes="+passes, "-S", filepath.Join("testdata", "gc", program+".ll"), "-o", module)
	object := frametest.LLC(t, version, module, "-relocation-model=pic")
	frametest.Command(t, "", "gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-no-pie", filepath.Join("testdata", "gc", "collector.c"), object, "-o", binary)
	p := livetest.Program(t, binary, fmt.Sprint(round))
	p.AwaitPause(t)
	p.IR = module
	return p
}

var movedLine = regexp.MustCompile(`(?m)^moved 0x(\w+) 0x(\w+) to 0x(\w+) 0x(\w+)\r?$`)

// words returns the 64-bit pointers in a slot, in the order of their addresses.
func words(t *testing.T, s frame.Slot) (out []string) {
	t.Helper()
	require.Equal(t, frame.OK, s.Status, s.Reason)
	digits := strings.TrimPrefix(string(s.Hex), "0x")
	digits = strings.Repeat("0", (16-len(digits)%16)%16) + digits
	_, err := hex.DecodeString(digits)
	require.NoError(t, err)
	for ; digits != ""; digits = digits[:len(digits)-16] {
		out = append(out, strings.TrimLeft(digits[len(digits)-16:], "0"))
	}
	return out
}

// TestMovingCollector requires that a frame shows the new addresses of its pointers after a collector has moved the objects. Some pointers point
// outside of their objects, and some are in vectors. The collector prints the new addresses. It does not change a base that is no longer used, as
// the document specifies.
func TestMovingCollector(t *testing.T) {
	for _, version := range []int{16, 19, 22} {
		t.Run(fmt.Sprintf("llc-%d", version), func(t *testing.T) {
			p := collecting(t, version, "explicit", "verify", 1)
			f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")
			require.Equal(t, "statepoint", f.Record.Site)
			require.Equal(t, frame.InCall, f.Record.Moment)

			log := movedLine.FindAllStringSubmatch(p.Output(), -1)
			require.Len(t, log, 4, "two in a vector, one by itself, one outside of its object")
			var outside []string
			want := map[string]int{}
			for _, m := range log {
				want[m[4]]++
				if m[1] != m[2] {
					outside = m
				}
			}
			require.NotNil(t, outside)
			require.Equal(t, "100", frametest.Slot(t, f, "%n").Value)
			require.Equal(t, "0x0", f.Slots[2].Value, "null moves nowhere")
			got := map[string]int{}
			for _, s := range append([]frame.Slot{frametest.Slot(t, f, "%p")}, f.Slots[3:]...) {
				for _, w := range words(t, s) {
					if w == outside[1] { // the base of the outside pointer, which is not relocated
						continue
					}
					got[w]++
				}
			}
			require.Equal(t, want, got)

			p.Signal(t, syscall.SIGUSR1)
			require.NoError(t, p.Wait())
			require.Contains(t, p.Output(), "result 3030") // 30 + 2000 + 1000
		})
	}
}

// TestPlacedSafepoints requires that the polls that place-safepoints inserts match in each round of the loop. A poll is a call of the poll
// function and has no deopt values.
func TestPlacedSafepoints(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{19, 22} {
		for _, round := range []int{1, 3} {
			t.Run(fmt.Sprintf("llc-%d round %d", version, round), func(t *testing.T) {
				p := collecting(t, version, "polled", "function(place-safepoints),rewrite-statepoints-for-gc", round)
				f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")
				require.Equal(t, "statepoint", f.Record.Site)
				require.Equal(t, frame.InCall, f.Record.Moment)
				require.EqualValues(t, uint64(2882400000), f.Record.ID)
				log := movedLine.FindAllStringSubmatch(p.Output(), -1)
				require.Len(t, log, round)
				require.NotEmpty(t, f.Slots)
				for _, s := range f.Slots {
					require.Equal(t, []string{log[round-1][4]}, words(t, s), "base and derived pointer are the same")
				}
				// The polls are at two addresses, and the function has no other sites.
				require.Equal(t, 2, f.Code().Records.Len())
				p.Signal(t, syscall.SIGUSR1)
				require.NoError(t, p.Wait())
				require.Contains(t, p.Output(), "result 210") // four times 50, and 10
			})
		}
	}
}
