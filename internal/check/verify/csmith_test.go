package verify

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestVerifyRandomPrograms requires no difference in random programs, with all live values recorded in each block and at each call. Exits of main
// cannot be compared, because it prints. Almost all exits of other functions can. llc -O0 runs out of registers with many live values. With
// FIDELITY=all each program is compiled at all levels.
func TestVerifyRandomPrograms(t *testing.T) {
	livetest.Slow(t)
	programs := []struct {
		frametest.Everywhere
		code string
	}{
		{frametest.Compiled(3, 19, "-O0", 19), "-O0"}, {frametest.Compiled(7, 19, "-O1", 22), "-O1"}, {frametest.Compiled(9, 19, "-O2", 22), "-O3"},
		{frametest.Compiled(15, 19, "-O1", 22), "-O2"}, {frametest.Compiled(59, 14, "-O0", 16), "-O2"},
	}
	if os.Getenv("FIDELITY") == "all" {
		ways := programs[:0:0]
		for _, e := range frametest.Everywheres {
			for level := range 4 {
				p := programs[0]
				p.Everywhere, p.code = frametest.Compiled(e.Seed, 14, "-O0", 16), fmt.Sprintf("-O%d", level)
				ways = append(ways, p)
				if p.Everywhere = (frametest.Compiled(e.Seed, 19, "-O1", 22)); level > 0 {
					ways = append(ways, p)
				}
			}
		}
		programs = ways
	}
	limit := uint64(livetest.Times(40, 400))
	same, exits := uint64(0), uint64(0)
	for _, p := range programs {
		t.Run(p.String()+" "+p.code, func(t *testing.T) {
			program, m := p.WithSites(t, livetest.Csmith(t, p.Seed), p.code)
			o := Options{Options: deopt.Options{Modules: []*ir.Module{m}}, ExitFilter: trace.ExitFilter{Function: frametest.Pattern(names.Loose, "^func_")}, Every: 3, Limit: limit}
			summary, list := verified(t, program, o)
			for _, v := range list {
				require.NotEqual(t, Different, v.Status, "exit %d: %+v", v.Number, v.Report())
			}
			t.Logf("%d exits, %d the same, %v", summary.Exits, summary.Same, summary.Reasons)
			same, exits = same+summary.Same, exits+summary.Exits
		})
	}
	require.GreaterOrEqual(t, exits, limit/2)
	require.Greater(t, same, exits*9/10)
}
