package trace_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestNamesAtTheExit requires that trace shows the name that a method has at each exit. The process renames its method immediately after each exit,
// or after every 7th exit, and ends immediately after the last.
func TestNamesAtTheExit(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	layout := clitest.TempFile(t, "renamed.star", `def frames(site):
    f = frame(site.operands[0], site.operands[1])
    f.local(0, site.operands[2])
    return f

def method_name(m):
    return read_string(read(m))

def info(method, position):
    return {"letter": read_string(read(method), 1)}
`)
	for program, each := range map[string]int{"vmrenamed.ll": 1, "vmrenamedseldom.ll": 7} {
		for _, llvm := range []int{14, 19, 22} {
			module := livetest.IR(t, llvm, program)
			r := clitest.Run(t, append([]string{"trace", "--ir", module, "--layout", layout, "--"}, append(livetest.LliWords(t, llvm), "-jit-kind=mcjit", module)...)...)
			require.Equal(t, 0, r.Code, r.Stderr)
			for n := range 200 {
				name := []string{"even", "odd"}[n/each%2]
				require.Contains(t, r.Stderr, fmt.Sprintf("  %s @ 7, reexecute, letter %s local[0]=%d\n", name, name[:1], n), "LLVM %d", llvm)
			}
			require.Equal(t, 200, strings.Count(r.Stderr, " @ 7, reexecute"))
		}
	}
}
