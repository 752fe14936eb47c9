package deopt_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestFramesOfAWrittenCore requires the same frames from a stopped process and from the core that a session writes of it.
func TestFramesOfAWrittenCore(t *testing.T) {
	for program, version := range map[string]int{"deoptimize.ll": 19, "jit_pp.ll": 14, "jit_sp.ll": 22} {
		t.Run(fmt.Sprint(program, version), func(t *testing.T) {
			p := livetest.Lli(t, version, program, "mcjit")
			o := frametest.Known(t, p)
			live := frametest.Look(t, p, false, o)
			recorded(t, live)
			s, err := ptrace.Open(context.Background(), p.PID)
			require.NoError(t, err)
			path := filepath.Join(t.TempDir(), "core")
			target, err := s.Target()
			require.NoError(t, err)
			_, err = target.WriteCore(context.Background(), path, ptrace.RecordOptions{Memory: ptrace.Writable})
			require.NoError(t, err)
			require.NoError(t, s.Detach())
			core, err := ptrace.OpenCore(path, ptrace.CoreOptions{})
			require.NoError(t, err)
			t.Cleanup(core.Close)
			kept, err := deopt.Frames(core, o)
			require.NoError(t, err)
			require.Equal(t, shownFrames(t, live), shownFrames(t, kept))
		})
	}
}

// shownFrames returns the abstract frames of all threads, and the ends of the stacks. Thread names are removed: cores have none.
func shownFrames(t *testing.T, v *deopt.View) string {
	t.Helper()
	var all []any
	for _, thread := range v.Threads {
		all = append(all, thread.ID)
		for _, f := range thread.Frames {
			all = append(all, f.Frame)
		}
		all = append(all, fmt.Sprint(thread.End))
	}
	b, err := json.MarshalIndent(all, "", " ")
	require.NoError(t, err)
	return string(b)
}
