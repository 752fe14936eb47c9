package deopt_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// errKept ends a trace when the test has enough exits.
var errKept = errors.New("enough")

// TestRecordedExits requires that a core of an exit, minimal or not, compressed or not, shows the same frames as the process at that exit. The
// interpreter must get the same results from each of them. The innermost frame is that of the exit.
func TestRecordedExits(t *testing.T) {
	livetest.Slow(t)
	var turns livetest.Turns
	for _, version := range []int{14, 19, 22} {
		for _, program := range []string{"tick.ll", "guards.ll", "patch.ll", "state.ll", "memory.ll", "floats.ll", "recursion.ll"} {
			if turns.Out(4) {
				continue
			}
			t.Run(fmt.Sprint(program, " ", version), func(t *testing.T) {
				p, begin, o := frametest.Hosted(t, version, program, "-O2", livetest.ObjectHostOptions{Threads: 2, Rounds: 20})
				described := filepath.Join("..", "testdata", "programs", "guards.layout.json")
				if program == "guards.ll" {
					l, err := layout.Read(described)
					require.NoError(t, err)
					o.Layouts = []*layout.Layout{l}
				}
				ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
				defer cancel()
				s, err := ptrace.Open(ctx, p.PID)
				require.NoError(t, err)
				begin()
				sites := map[uint64]int{}
				compared, resumed := 0, 0
				_, err = trace.Run(ctx, s, trace.Options{Options: o, Full: true, Warn: func(string) {}}, func(x *trace.Exited) error {
					if sites[x.Point.Record]++; sites[x.Point.Record] > 2 {
						if compared >= 12 || sites[x.Point.Record] > 200 {
							return errKept
						}
						return nil
					}
					target, err := s.Target()
					require.NoError(t, err)
					target.KeepTouched()
					view, err := deopt.Frames(target, o)
					require.NoError(t, err)
					own := slices.IndexFunc(view.Threads, func(th deopt.Thread) bool { return th.ID == x.Thread.ID })
					require.Equal(t, x.Frame.Frame.Record, view.Threads[own].Frames[0].Record)
					require.Equal(t, x.Frame.Resume, view.Threads[own].Frames[0].Resume)
					require.Equal(t, x.Frame.Slots, view.Threads[own].Frames[0].Slots)
					view.Touch(ctx, deopt.Limits{Steps: 1e6})
					want := everyRun(ctx, view)
					for _, w := range []ptrace.RecordOptions{{Memory: ptrace.Minimal}, {Memory: ptrace.Minimal, Compress: true}, {Memory: ptrace.Writable}} {
						w.Thread = x.Thread.ID
						path := filepath.Join(t.TempDir(), "core")
						_, err := target.WriteCore(ctx, path, w)
						require.NoError(t, err)
						core, err := ptrace.OpenCore(path, ptrace.CoreOptions{})
						require.NoError(t, err)
						again, err := deopt.Frames(core, o)
						require.NoError(t, err)
						require.Equal(t, reports(view), reports(again), "%+v", w)
						require.Equal(t, want, everyRun(ctx, again), "%+v", w)
						if w.Memory == ptrace.Writable { // also touch the memory for the minimal core that is made from the large core
							core.KeepTouched()
							again, err = deopt.Frames(core, o)
							require.NoError(t, err)
							again.Touch(ctx, deopt.Limits{Steps: 1e6})
							_, err = core.WriteCore(ctx, path+".thin", ptrace.RecordOptions{Memory: ptrace.Minimal})
							require.NoError(t, err)
							thin, err := ptrace.OpenCore(path+".thin", ptrace.CoreOptions{})
							require.NoError(t, err)
							again, err = deopt.Frames(thin, o)
							require.NoError(t, err)
							require.Equal(t, reports(view), reports(again))
							require.Equal(t, want, everyRun(ctx, again))
							thin.Close()
						}
						core.Close()
					}
					for _, r := range want {
						if r.err == "" {
							resumed++
						}
					}
					compared++
					return nil
				})
				if !errors.Is(err, errKept) {
					require.NoError(t, err)
				}
				require.NoError(t, s.Detach())
				require.NoError(t, p.Wait())
				require.GreaterOrEqual(t, compared, 2)
				require.GreaterOrEqual(t, resumed, cmp.Or(map[string]int{"patch.ll": 1}[program], 2))
			})
		}
	}
}

// oneRun is the result of one frame in the interpreter.
type oneRun struct {
	tid, index int
	resumed    *frame.Resumed
	err        string
}

// everyRun resumes each frame that can be resumed.
func everyRun(ctx context.Context, v *deopt.View) (out []oneRun) {
	for i := range v.Threads {
		for _, f := range v.Threads[i].Frames {
			if f.Resume == nil {
				continue
			}
			r := oneRun{tid: v.Threads[i].ID, index: f.Index}
			got, err := v.Run(ctx, &deopt.Stack{Thread: &v.Threads[i], Frames: []*deopt.Frame{f}}, deopt.Limits{Steps: 1e6})
			if err != nil {
				r.err = err.Error()
			} else {
				r.resumed = got
			}
			out = append(out, r)
		}
	}
	return out
}

// reports returns the threads of a report, by number.
func reports(v *deopt.View) []frame.Thread {
	threads := v.Report().Threads
	slices.SortFunc(threads, func(a, b frame.Thread) int { return cmp.Compare(a.TID, b.TID) })
	return threads
}
