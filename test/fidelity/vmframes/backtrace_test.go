package vmframes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

// alternating is a program in which compiled methods and interpreted methods call each other, with exits in both.
const alternating = `
method Main.main 0 1
  int 0
  set 0
loop:
  get 0
  int 6
  call Even.run
  print
  get 0
  int 1
  add
  dup
  set 0
  int 9
  lt
  if loop
  get 0
  return

method Even.run 2 2
  get 1
  int 1
  lt
  if end
  get 0
  get 1
  int -1
  add
  call Odd.run
  get 0
  add
  return
end:
  get 0
  int 5
  lt
  if small
  get 0
  call Big.run
  return
small:
  get 0
  return

method Odd.run 2 3
  get 1
  set 2
  get 0
  get 2
  int -1
  add
  call Even.run
  int 1
  add
  return

method Big.run 1 1
  get 0
  int 3
  call Even.run
  return
`

// backtrace is a complete stack of the VM: the activations of both tiers, innermost first.
type backtrace []tinyvmtest.Arrival

// backtraces reads tinyvm's log of complete stacks. The outermost activation has no frames under it.
func backtraces(t *testing.T, file string) (all []backtrace) {
	t.Helper()
	var next backtrace
	for _, a := range tinyvmtest.ReadLog(t, file, func(tinyvmtest.Key) bool { return true }) {
		if next = append(next, a); a.Depth == len(a.Frames)-1 {
			all, next = append(all, next), nil
		}
	}
	require.Empty(t, next, "the log ends within a stack")
	return all
}

// wholeStack returns the VM's stack as reframe shows it at an exit. Its first activation is the one that exits.
func wholeStack(x *trace.Exited, memory machine.Memory) (all backtrace, err error) {
	for n, f := range x.Frames {
		switch {
		case f.VM == nil:
			continue
		case n > 0 && f.Record != nil && f.Record.Site == string(ir.DeoptimizeSite):
			continue // the interpreter continues this activation with its values
		case f.VM.Error != "":
			return nil, fmt.Errorf("%s: %s", f.Title(), f.VM.Error)
		}
		s := newShown(f.VM, memory)
		var a tinyvmtest.Arrival
		if a.Frames, err = s.frames(f.VM.Frames[0].Resume == frame.Calling); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Title(), err)
		}
		if len(all) > 0 && f.VM.Frames[0].Resume != frame.Calling {
			return nil, fmt.Errorf("%s does not wait for a call", f.Title())
		}
		if a.Heap, err = s.heap(); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Title(), err)
		}
		all = append(all, a)
	}
	return all, nil
}

// TestBacktracesThroughBothTiers requires that the complete stack of the VM at each exit is that of tinyvm's own backtrace: the methods, positions
// and all values of compiled and interpreted activations.
func TestBacktracesThroughBothTiers(t *testing.T) {
	livetest.NeedsTools(t)
	mixed := filepath.Join(t.TempDir(), "alternating.tvm")
	require.NoError(t, os.WriteFile(mixed, []byte(alternating), 0o644))
	files := []string{mixed}
	for seed := range uint64(12) {
		files = append(files, tinyvmtest.File(t, seed))
	}
	own, err := vmlayout.Read(livetest.Testdata(t, "..", "examples", "tinyvm", "interpreter.star"))
	require.NoError(t, err)
	for _, llvm := range tinyvmtest.Versions {
		t.Run(fmt.Sprintf("LLVM %d", llvm), func(t *testing.T) {
			stacks, interpreted, compiled, frames := 0, 0, 0, 0
			for _, file := range files {
				w := way{llvm: llvm, opt: "2"}
				log := filepath.Join(t.TempDir(), "backtraces")
				var shown []backtrace
				o := deopt.Options{VMs: []*vmlayout.Layout{layout(t, "simple"), own}}
				traced(t, w, file, o, func(x *trace.Exited, _ int64, _ string) error {
					is, err := wholeStack(x, x.Frame.View().Target())
					require.NoError(t, err, "%s, exit %d", filepath.Base(file), len(shown))
					shown = append(shown, is)
					return nil
				}, "--backtrace", log)
				all := backtraces(t, log)
				require.Len(t, shown, len(all), "%s", filepath.Base(file))
				for n, was := range all {
					about := fmt.Sprintf("%s, stack %d", filepath.Base(file), n)
					require.Len(t, shown[n], len(was), about)
					for k, a := range was {
						require.Len(t, shown[n][k].Frames, len(a.Frames), "%s, activation %d", about, k)
						a.Call = ""
						require.Empty(t, tinyvmtest.Compare(a, shown[n][k]), "%s, activation %d", about, k)
						frames += len(a.Frames)
						if k > 0 && was[k].Call == "" {
							interpreted++
						} else if k > 0 {
							compiled++
						}
					}
				}
				stacks += len(all)
			}
			t.Logf("%d stacks with %d frames; outside of the exits, %d activations of the interpreter and %d of compiled code", stacks, frames, interpreted, compiled)
			require.Greater(t, interpreted, stacks, "a stack has an activation of the interpreter at its end, and some have others")
			require.Positive(t, compiled)
		})
	}
}
