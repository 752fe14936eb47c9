package deopt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestResumeAtEveryBlock stops native code at the first arrival in each block of every function of random programs. The interpreter resumes from
// there, with all calls, until the function returns. It resumes again with all callers of that frame as one stack, until the program's main returns.
// When the native code returns from the same activation, both must have returned the same value and left the same memory: all of the program's data,
// and the stack of its callers. At the end both must have printed the same. Blocks that the program never reaches are counted. With FIDELITY=all each
// program is compiled in four ways.
func TestResumeAtEveryBlock(t *testing.T) {
	livetest.Slow(t)
	var programs []frametest.Everywhere
	for n, e := range frametest.Everywheres {
		if n%2 == 0 { // half of the programs, which include each release of clang and of llc
			programs = append(programs, e)
		}
	}
	if livetest.Whole() {
		programs = nil
		for _, e := range frametest.Everywheres {
			programs = append(programs, frametest.Compiled(e.Seed, 14, "-O0", 16), frametest.Compiled(e.Seed, 19, "-O1", 19),
				frametest.Compiled(e.Seed, 14, "-O1", 16), frametest.Compiled(e.Seed, 19, "-O2", 22))
		}
	}
	var sum blockTally
	for _, e := range programs {
		t.Run(e.String(), func(t *testing.T) {
			n := compare(t, e)
			t.Logf("%v", n)
			sum.add(n)
		})
	}
	t.Logf("all: %v", sum)
	require.GreaterOrEqual(t, sum.functions, 20)
	require.GreaterOrEqual(t, sum.compared, 300)
}
