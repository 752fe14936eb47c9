package vmframes_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/commit"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

// uncommitted matches the reasons for which the result of an exit of tinyvm cannot be committed.
var uncommitted = regexp.MustCompile(`^(object \d+ \(Class\d\) does not exist in the process: .*|compiled code left out a lock of .*|tinyvm allocated \d+ bytes, which do not exist in the process: .*|` +
	`tinyvm printed, which would be lost: .*|tinyvm does not report that it took no lock .*)$`)

// committed commits the result of the VM's own interpreter and lets the process continue. If nothing was committed, the error is the reason.
func committed(t *testing.T, p *livetest.Process, command string) error {
	t.Helper()
	session := frametest.Open(t, p)
	target, err := session.Target()
	require.NoError(t, err)
	d := described.Of(target, true, true)
	require.Empty(t, d.Notes)
	v, err := deopt.Frames(target, deopt.Options{Modules: d.Modules, VMs: []*vmlayout.Layout{layout(t, "simple")}})
	require.NoError(t, err)
	stack, err := handover.Pick(v, deopt.Choice{Frame: -1})
	require.NoError(t, err)
	_, c, err := commit.PrepareWith(session, stack, func(r *protocol.Resume) (*handover.Ran, error) {
		child, err := handover.Start(t.Context(), command, target, os.Stderr)
		require.NoError(t, err)
		defer child.Close()
		return stack.Run(t.Context(), child, r, nil)
	})
	if err == nil {
		require.NoError(t, c.Write())
	}
	require.NoError(t, session.Detach())
	return err
}

// TestCommitWithItsOwnInterpreter requires that a process ends as without compilation after the result of tinyvm's own interpreter was committed at
// an exit of a random program. A commit may also be refused because of an effect of the interpreter.
func TestCommitWithItsOwnInterpreter(t *testing.T) {
	livetest.Slow(t)
	random := rand.New(rand.NewPCG(77, 1))
	var done, stopped int
	first := uint64(livetest.First(seeds)) // each selection of make test begins at another program
	reasons := map[string]int{}
	for _, llvm := range tinyvmtest.Versions {
		binary := tinyvmtest.Binary(t, llvm)
		before, tried := done, 0
		for seed := range programs(t) {
			if !livetest.Whole() && tried >= 14 && done > before {
				break
			}
			seed = (seed + first) % seeds
			file := tinyvmtest.File(t, seed)
			plain := tinyvmtest.Run(t, binary, "--interpret", file)
			for _, opt := range livetest.ShareOf([]string{"0", "2"}, "commit", llvm, seed) {
				exits := tinyvmtest.Run(t, binary, "--opt", opt, "--exits", file).Exits
				for range min(exits, livetest.Times(4, 8)) {
					tried++
					stand := fmt.Sprint(1 + random.IntN(exits))
					p := livetest.Program(t, binary, "--fuel", tinyvmtest.Fuel, "--opt", opt, "--stand", stand, file)
					if err := committed(t, p, binary+" --serve "+file); err != nil {
						require.Regexp(t, uncommitted, err.Error(), "LLVM %d, --opt %s, seed %d, exit %s", llvm, opt, seed, stand)
						reasons[strings.Fields(err.Error())[1]]++
						p.Kill()
						continue
					}
					require.Equal(t, plain.Status != 0, p.Wait() != nil)
					require.Equal(t, plain.Output, strings.Replace(p.Output(), "ready\n", "", 1), "LLVM %d, --opt %s, seed %d, exit %s", llvm, opt, seed, stand)
					done++
					if plain.Status != 0 {
						stopped++
					}
				}
			}
		}
	}
	t.Logf("%d commits, %d of them in programs that did not end by themselves; refused: %v", done, stopped, reasons)
	require.GreaterOrEqual(t, done, least(len(tinyvmtest.Versions), len(tinyvmtest.Versions)))
}
