package vmframes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

// The number of exits of a program to test, and the number of single steps from each.
const (
	steppedExits = 12
	stepsOfExit  = 100
)

// stepped counts the comparisons.
type stepped struct {
	programs, exits, places, nexts, backs, ended int
}

func (c stepped) String() string {
	return fmt.Sprintf("%d programs, %d exits, %d places between instructions, %d steps over calls and out of methods, %d steps back, %d ends", c.programs, c.exits, c.places, c.nexts, c.backs, c.ended)
}

// A walk steps through a program from exit to exit.
type walk struct {
	t     *testing.T
	h     *history
	child func(context.Context) (*protocol.Child, error)
	fuel  machine.Addr // address of the fuel
	about string

	seen  []tinyvmtest.Arrival // arrivals that were reached, in order
	where []string             // a description of each arrival, for test messages
	stepped
}

// at returns the arrival in the log at which a run is, and its index in the plain interpreter's run.
func (w *walk) at(r *session.VMRun) (tinyvmtest.Arrival, int) {
	w.t.Helper()
	fuel, err := word(r.Memory(), w.fuel)
	require.NoError(w.t, err)
	a, err := arrival(r.VM(), r.Memory(), int64(fuel), "", false)
	require.NoError(w.t, err, "%s, after %d", w.about, r.Steps())
	n, ok := w.h.at[a.Key()]
	require.True(w.t, ok, "%s, after %d: the plain interpreter never came to %+v", w.about, r.Steps(), a.Key())
	return a, n
}

// exit runs the interpreter from an exit in all ways.
func (w *walk) exit(x *trace.Exited) error {
	ctx := w.t.Context()
	stack := &handover.Stack{View: x.Frame.View(), Thread: x.Stack().Thread, Frames: []*deopt.Frame{x.Frame}}
	r, err := session.StartVM(stack, w.child, deopt.Limits{})
	if err != nil {
		return err
	}
	w.exits++
	began, first := w.at(r)
	under := began.Depth - len(began.Frames) + 1 // number of frames that are not passed
	require.NoError(w.t, r.Continue(ctx))
	end, failed := r.Ended()
	require.NoError(w.t, failed, w.about)
	steps, output := r.Steps(), r.Output()

	// Take single steps: each must reach the next arrival.
	r.Restart()
	var frames [][]protocol.Frame
	for n := first; r.Steps() < stepsOfExit; {
		frames = append(frames, r.Frames())
		require.NoError(w.t, r.Step(ctx, 1))
		if is, failed := r.Ended(); is != nil || failed != nil {
			require.NoError(w.t, failed, w.about)
			break
		}
		a, at := w.at(r)
		require.Equal(w.t, n+1, at, "%s, after %d", w.about, r.Steps())
		n = at
		w.places++
		w.seen, w.where = append(w.seen, a), append(w.where, fmt.Sprintf("%s, after %d", w.about, r.Steps()))
	}

	// Go back by one or more instructions, and run from there to the end.
	for k := range 3 {
		if back := uint64(1 + k*k); r.Steps() > back {
			require.NoError(w.t, r.Back(ctx, back))
			require.Equal(w.t, frames[r.Steps()], r.Frames(), w.about)
			w.backs++
		}
	}
	if is, _ := r.Ended(); is == nil {
		require.NoError(w.t, r.Continue(ctx))
	}
	again, _ := r.Ended()
	require.Equal(w.t, []any{end.Returned, end.Threw, steps, output}, []any{again.Returned, again.Threw, r.Steps(), r.Output()}, w.about)
	w.ended++

	// Step over a call to the next arrival with at most as many frames, and out of the method to the next with fewer frames.
	for _, on := range []struct {
		do   func(context.Context) error
		most int
	}{{func(ctx context.Context) error { return r.Next(ctx, 1) }, began.Depth}, {r.Finish, began.Depth - 1}} {
		r.Restart()
		require.NoError(w.t, on.do(ctx))
		want := w.h.back(first+1, on.most+1)
		if is, _ := r.Ended(); is != nil {
			require.True(w.t, want < 0 || w.h.keys[want].Depth < under, w.about)
			continue
		}
		_, at := w.at(r)
		require.Equal(w.t, want, at, w.about)
		w.nexts++
	}
	return nil
}

// TestStepsAreAsLogged requires that single steps of both interpreters, from exits of random programs, agree with the plain interpreter's log. After
// each step the frames and the objects that they refer to must be those of the next arrival in the log. A run from any arrival must have the same
// end, and running back must reach the same frames.
func TestStepsAreAsLogged(t *testing.T) {
	livetest.Slow(t)
	var sum stepped
	for seed := range uint64(200) {
		if livetest.Out(41, int(seed)) { // both interpreters are tested
			continue
		}
		sum.programs++
		w := way{llvm: tinyvmtest.Versions[seed%3], opt: []string{"0", "2"}[seed/3%2]}
		file := tinyvmtest.File(t, seed)
		command := tinyvmtest.Binary(t, w.llvm) + " --serve " + file
		if seed%2 == 1 {
			command = tinyvmtest.ServeInPython(t, file)
		}
		var child *protocol.Child
		to := &walk{t: t, h: historyOf(t, w.llvm, file)}
		traced(t, w, file, deopt.Options{}, func(x *trace.Exited, fuel int64, callee string) error {
			if callee != "" || to.exits == steppedExits {
				return nil // the result of the call is not yet known
			}
			target := x.Frame.View().Target()
			symbol, ok := target.FindSymbol("tinyvm_fuel")
			require.True(t, ok)
			to.fuel, to.about = symbol.Addr, fmt.Sprintf("%s, %v, %s+%#x", filepath.Base(file), w, x.Point.Function, x.Point.Offset)
			to.child = func(ctx context.Context) (_ *protocol.Child, err error) {
				if child.Ended() {
					child, err = handover.Start(ctx, command, target, os.Stderr)
				}
				return child, err
			}
			return to.exit(x)
		})
		child.Close()
		wanted := map[tinyvmtest.Key]bool{}
		for _, a := range to.seen {
			wanted[a.Key()] = true
		}
		log := map[tinyvmtest.Key]tinyvmtest.Arrival{}
		for _, a := range tinyvmtest.ReadLog(t, to.h.log, func(k tinyvmtest.Key) bool { return wanted[k] }) {
			log[a.Key()] = a
		}
		for n, a := range to.seen {
			require.Empty(t, tinyvmtest.Compare(log[a.Key()], a), to.where[n])
		}
		require.NoError(t, os.Remove(to.h.log))
		sum.exits, sum.places, sum.nexts = sum.exits+to.exits, sum.places+to.places, sum.nexts+to.nexts
		sum.backs, sum.ended = sum.backs+to.backs, sum.ended+to.ended
		if livetest.Whole() && sum.programs%25 == 0 {
			t.Logf("%v", sum)
		}
	}
	t.Logf("%v", sum)
	require.GreaterOrEqual(t, sum.places, livetest.Times(100, 20_000))
	require.Positive(t, sum.nexts)
	require.Positive(t, sum.backs)
}
