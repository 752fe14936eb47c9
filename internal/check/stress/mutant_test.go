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

// TestAdverse requires that programs that fork, exec, unload code, get signals, start threads or end early behave as without reframe, and that the
// same seed commits the same exits for any order of threads.
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
			switch h.Middle { // another thread may do this during the commit
			case "exec":
			case "exit", "abort":
				for why := range r.Reasons {
					require.Contains(t, why, "the process ended")
				}
			default:
				require.Zero(t, r.Left, r.Reasons)
			}
			require.Positive(t, r.Committed)
			if h.Middle == "" && h.Churn == 0 && h.Unload == 0 { // otherwise the host has other threads, or its code is unloaded at times
				again := run(t, command, o)
				require.Equal(t, []uint64{r.Exits, r.Committed}, []uint64{again.Exits, again.Committed})
			}
		})
	}
}

// functionsOf returns the functions of an object's stack map.
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

// swaps returns all pairs of adjacent locations that can be exchanged in an object's records.
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

// TestFoundIsWrong requires that an exit that stress reports for wrong records belongs to a wrong record, and that verify also finds a difference at
// that exit.
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
				if r.Status == Same { // the fault has no effect, or the interpreter did not reach the return
					return
				}
				require.NotNil(t, r.Culprit, "%+v", r)
				require.True(t, r.Culprit.Single)
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
