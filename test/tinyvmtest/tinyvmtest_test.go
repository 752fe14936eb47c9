package tinyvmtest

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// seeds is the number of programs; they are numbered from 0.
const seeds = 1000

// where is the key of an exit, or of frames that wait for a call. Both can have the same key, so call distinguishes them.
type where struct {
	at   Key
	call bool
}

// TestBothTiers requires that compiled code behaves as the plain interpreter does, and that the frames at its exits are those of the interpreter at
// the same positions.
func TestBothTiers(t *testing.T) {
	livetest.Slow(t)
	var inlined atomic.Int64 // counts for all versions together, because the few programs of one version may have none
	t.Cleanup(func() { require.Positive(t, inlined.Load(), "exits that are inlined three deep or more") })
	for _, llvm := range Versions {
		t.Run(fmt.Sprint("llvm", llvm), func(t *testing.T) {
			t.Parallel()
			binary := Binary(t, llvm)
			runs, exits, calls, deep, clean := 0, 0, 0, 0, 0
			for seed := range uint64(seeds) {
				// The number is odd, because with an even one the hash would select only one of two programs for ShareOf.
				if !livetest.Share(51, "tinyvm", llvm, seed) {
					continue
				}
				file := File(t, seed)
				arrivals := filepath.Join(t.TempDir(), "arrivals")
				want := Run(t, binary, "--log", arrivals, "--log-limit", "300000", file)
				if want.Status == 0 {
					clean++
				}
				for _, opt := range livetest.ShareOf([]string{"0", "2"}, llvm, seed) {
					log := filepath.Join(t.TempDir(), "exits")
					got := Run(t, binary, "--opt", opt, "--exits", "--log-exits", log, file)
					require.Equal(t, want.Output, got.Output, "seed %d, --opt %s: %s", seed, opt, got.Errors)
					require.Equal(t, want.Status, got.Status)
					rebuilt := map[where]Arrival{}
					for _, e := range ReadLog(t, log, func(Key) bool { return true }) {
						rebuilt[where{e.Key(), e.Call != ""}] = e
						if e.Call != "" {
							calls++
						} else if len(e.Frames) > 3 {
							deep++
						}
					}
					for _, was := range ReadLog(t, arrivals, func(k Key) bool {
						return rebuilt[where{k, false}].Frames != nil || rebuilt[where{k, true}].Frames != nil
					}) {
						for _, call := range []bool{false, true} {
							at := where{was.Key(), call}
							if e, ok := rebuilt[at]; ok {
								require.Empty(t, Compare(was, e), "seed %d, --opt %s: %v", seed, opt, at)
								delete(rebuilt, at) // each key occurs once in the log
							}
						}
					}
					require.Empty(t, rebuilt, "seed %d, --opt %s: the interpreter never was there", seed, opt)
					runs++
					exits += got.Exits
				}
			}
			t.Logf("%d runs, %d exits, %d of them inlined three deep or more, %d calls; %d programs ended by themselves", runs, exits, deep, calls, clean)
			require.Greater(t, exits, 5*runs)
			inlined.Add(int64(deep))
		})
	}
}

// TestSelfDescription requires that the object which a compiled module registers contains its IR and the name of its layout, and that a debugger at
// an exit finds both.
func TestSelfDescription(t *testing.T) {
	livetest.Slow(t)
	for _, llvm := range Versions {
		p := livetest.Program(t, Binary(t, llvm), "--fuel", Fuel, "--stand", "2", File(t, 2))
		target, err := ptrace.Capture(p.PID, ptrace.Options{})
		require.NoError(t, err)
		seen := 0
		for _, r := range target.Registries {
			for _, e := range r.Entries {
				image := e.Image()
				require.NotNil(t, image, e.Bad)
				layout, err := image.Section(".reframe.layout").Data()
				require.NoError(t, err)
				require.Equal(t, "simple\x00", string(layout))
				text, err := image.Section(".reframe.ir").Data()
				require.NoError(t, err)
				module, err := ir.Parse("module", text)
				require.NoError(t, err)
				require.NoError(t, module.Check())
				seen++
			}
		}
		require.Positive(t, seen, "LLVM %d", llvm)
		p.Kill()
	}
}

// TestFaults requires that each fault which can be planted is found by comparison with the plain interpreter: in the output of a program, or in
// frames at exits.
func TestFaults(t *testing.T) {
	livetest.Slow(t)
	binary := Binary(t, 19)
	for _, fault := range []string{"constant", "guard", "swap", "field", "position", "mode", "stack", "class", "stale", "object"} {
		output, frames, runs := 0, 0, 0
		for seed := range uint64(livetest.Times(30, 200)) {
			file := File(t, seed)
			arrivals, log := filepath.Join(t.TempDir(), "arrivals"), filepath.Join(t.TempDir(), "exits")
			want := Run(t, binary, "--log", arrivals, "--log-limit", "300000", file)
			got := Run(t, binary, "--log-exits", log, "--fault", fault, file)
			runs++
			if want.Output != got.Output {
				output++
			}
			rebuilt := map[where]Arrival{}
			for _, e := range ReadLog(t, log, func(Key) bool { return true }) {
				rebuilt[where{e.Key(), e.Call != ""}] = e
			}
			for _, was := range ReadLog(t, arrivals, func(k Key) bool {
				return rebuilt[where{k, false}].Frames != nil || rebuilt[where{k, true}].Frames != nil
			}) {
				for _, call := range []bool{false, true} {
					if at := (where{was.Key(), call}); Compare(was, rebuilt[at]) == "" {
						delete(rebuilt, at)
					}
				}
			}
			if len(rebuilt) > 0 {
				frames++
			}
			if !livetest.Whole() && output > 0 && (frames > 0 || fault == "constant" || fault == "guard") {
				break
			}
		}
		t.Logf("%-9s %3d runs, other output in %d, other frames in %d", fault, runs, output, frames)
		require.Positive(t, output+frames, fault)
	}
}

// TestProgram requires that the program of a seed does not change, and that it contains the intended constructs.
func TestProgram(t *testing.T) {
	all := ""
	for seed := range uint64(20) {
		require.Equal(t, Program(seed), Program(seed))
		all += Program(seed)
	}
	for _, word := range []string{"getfield r", "putfield r", "enter", "exit", "call Level0.run", "double", "eq", "div", "mul", "print"} {
		require.Positive(t, strings.Count(all, word), strconv.Quote(word))
	}
}
