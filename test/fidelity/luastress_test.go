package fidelity_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/stress"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// luaFunctions matches the functions of Lua whose exits are deoptimized: tables, strings, the garbage collector, the parser, and the libraries for
// strings and tables. Together they have many exits in each script. The loop that runs bytecode is left out, because it has millions.
const luaFunctions = `^(luaH_|luaS_|luaX_|luaK_|luaC_|str_|sort|tconcat|tinsert|luaB_|auxsort)`

// TestStressOfLuasOwnScripts requires that Lua's own test scripts have the same output if Lua's functions are deoptimized at random as without
// deoptimization.
func TestStressOfLuasOwnScripts(t *testing.T) {
	livetest.Slow(t)
	scripts, err := filepath.Glob(filepath.Join(livetest.DebianSource(t, "lua5.1"), "test", "*.lua"))
	require.NoError(t, err)
	require.Len(t, scripts, 19)
	p := packagedExits(t, "lua")
	p.args = []string{"-"}
	committed := uint64(0)
	for _, w := range livetest.ShareOf([]way{{19, "-O2", "ahead"}, {14, "-O1", "ahead"}, {22, "-O3", "ahead"}}, "lua's scripts") {
		command, m := p.build(t, w)
		for n, script := range scripts {
			name := filepath.Base(script)
			if slices.Contains([]string{"fib.lua", "printf.lua", "life.lua"}, name) || !livetest.Whole() && n%5 != 0 {
				continue // these scripts print the time, or run too long
			}
			t.Run(fmt.Sprintf("%s, %v", name, w), func(t *testing.T) {
				o := stress.Options{Options: deopt.Options{Modules: []*ir.Module{m}}, ExitFilter: trace.ExitFilter{Function: frametest.Pattern(names.Loose, luaFunctions)}, Seed: 1, Probability: 0.02,
					Stdin: script, Time: livetest.Patience, Warn: func(text string) { t.Log(text) }}
				r, err := stress.Run(context.Background(), command, o)
				require.NoError(t, err)
				require.Equal(t, stress.Same, r.Status, "%s: %+v", r.Why, r)
				committed += uint64(r.Committed)
				t.Logf("%d exits, %d chosen, %d committed, %v, %.1f s", r.Exits, r.Chosen, r.Committed, r.Reasons, r.Seconds)
			})
		}
	}
	require.Positive(t, committed)
}
