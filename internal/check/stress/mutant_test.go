package stress

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/check/verify"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// Programs that fork, exec, are unloaded, get signals, start threads or end in the middle do all that as they do untouched; and with the same
// seed the same exits are committed, whatever order threads run in.
func TestAdverse(t *testing.T) {
	livetest.Slow(t)
	const program = "recursion.ll"
	var turns livetest.Turns
	for _, h := range []livetest.ObjectHostOptions{
		{Signals: true}, {Middle: "fork"}, {Middle: "spawn"}, {Middle: "exec"}, {Middle: "exit"}, {Middle: "abort"}, {Unload: 3}, {Churn: 20},
		{Signals: true, Unload: 5, Churn: 10, Middle: "fork"},
	} {
		if turns.Out(4) {
			continue
		}
		t.Run(fmt.Sprintf("%+v", h), func(t *testing.T) {
			t.Parallel()
			h.Threads, h.Rounds = 3, 12
			o := options(t, 19, program)
			o.Probability = 0.2
			command := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, program, "-O2"), h)
			r := run(t, command, o)
			require.Equal(t, Same, r.Status, "%+v", r.Differences)
			switch h.Middle { // another thread may do that while one is looked at
			case "exec":
			case "exit", "abort":
				for why := range r.Reasons {
					require.Contains(t, why, "the process ended")
				}
			default:
				require.Zero(t, r.Left, r.Reasons)
			}
			require.Positive(t, r.Committed)
			if h.Middle == "" && h.Churn == 0 && h.Unload == 0 { // else the threads of the host have others beside them, or what they run is not there for a moment
				again := run(t, command, o)
				require.Equal(t, []uint64{r.Exits, r.Committed}, []uint64{again.Exits, again.Committed})
			}
		})
	}
}

// functionsOf are the functions of an object's stack map.
func functionsOf(t *testing.T, object string) []stackmap.BlobFunction {
	t.Helper()
	f, err := elf.Open(object)
	require.NoError(t, err)
	defer f.Close()
	section, err := f.Section(".llvm_stackmaps").Data()
	require.NoError(t, err)
	parsed, err := stackmap.Parse(section, stackmap.Options{Order: binary.LittleEndian, Dialect: stackmap.V3})
	require.NoError(t, err)
	return parsed.Maps[0].Blob().Functions
}

// swaps are all pairs of neighbours that an object's records can have the wrong way round.
func swaps(t *testing.T, object string) (list []swapped) {
	t.Helper()
	for _, f := range functionsOf(t, object) {
		for _, r := range f.Records {
			first := 0
			if _, is := r.AsStatepoint(); is {
				first = stackmap.StatepointHead
			}
			for n := first; n+1 < len(r.Locations); n++ {
				if r.Locations[n] != r.Locations[n+1] {
					list = append(list, swapped{r.ID, n})
				}
			}
		}
	}
	return list
}

type swapped struct {
	id  stackmap.RecordID
	one int
}

// TestFoundIsWrong requires that an exit reported for wrong records is wrong: verify finds the same at that exit, and it belongs to such a record.
func TestFoundIsWrong(t *testing.T) {
	livetest.Slow(t)
	var turns livetest.Turns
	for _, program := range []string{"tick.ll", "memory.ll", "floats.ll", "recursion.ll", "state.ll", "patch.ll"} {
		object := livetest.PICObject(t, 22, program, "-O2")
		for _, s := range swaps(t, object) {
			if turns.Out(11) {
				continue
			}
			t.Run(fmt.Sprintf("%s record %d location %d", program, s.id, s.one), func(t *testing.T) {
				t.Parallel()
				o := options(t, 22, program)
				o.Probability = 0.5
				command := livetest.ObjectHostCommand(t, wrongRecord(t, object, s.id, s.one, s.one+1), livetest.ObjectHostOptions{Rounds: 5})
				r := run(t, command, o)
				t.Log(r.Status, r.Committed, r.Reasons)
				if r.Status == Same { // nobody can see it, or the interpreter did not get to the return
					return
				}
				require.NotNil(t, r.Culprit, "%+v", r)
				require.True(t, r.Culprit.Alone)
				require.EqualValues(t, s.id, r.Culprit.Record.ID)
				session, err := ptrace.LaunchWith(context.Background(), command, ptrace.LaunchOptions{Stdout: "/dev/null", Bound: true})
				require.NoError(t, err)
				v := verify.Options{Options: o.Options, ExitFilter: trace.ExitFilter{Records: []uint64{uint64(s.id)}}, Skip: r.Culprit.Hit - 1, Limit: 1, Time: livetest.Patience, Warn: func(string) {}}
				sum, err := verify.Run(context.Background(), session, v, func(*verify.Verified) error { return nil })
				require.NoError(t, err)
				require.NoError(t, session.Detach())
				require.EqualValues(t, 1, sum.Different, "%+v", sum)
			})
		}
	}
}
