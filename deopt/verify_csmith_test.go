package deopt

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/ir"
	"reframe/deopt/names"
	"reframe/internal/livetest"
)

// starter calls the main function of a program all of whose functions have sites.
const starter = `int csmith_main(int, char **);
int main(int n, char **v) { return csmith_main(n, v); }
`

// withSites compiles a C program ahead of time: to IR as e says, with a stackmap in every block of the functions func_N and
// csmith_main and a deopt bundle at the calls of one of them (see [instrumented]), and from there by llc at a level
// of its own.
func (e everywhere) withSites(t *testing.T, source, code string) ([]string, *ir.Module) {
	t.Helper()
	dir := filepath.Dir(source)
	plain, ll, object, path := filepath.Join(dir, "plain.ll"), filepath.Join(dir, "p.ll"), filepath.Join(dir, "p.o"), filepath.Join(dir, "p")
	command(t, dir, livetest.LLVM(t, e.clang, "clang"), e.level, "-fno-inline", "-w", "-Dmain=csmith_main", "-I/usr/include/csmith",
		"-S", "-emit-llvm", "-o", plain, source)
	m, err := ir.ParseFile(plain)
	require.NoError(t, err)
	text, err := os.ReadFile(plain)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(ll, instrumented(t, m, text), 0o600))
	m, err = ir.ParseFile(ll)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.c"), []byte(starter), 0o600))
	command(t, dir, livetest.LLVM(t, e.llc, "llc"), code, "-filetype=obj", "-relocation-model=pic", "-o", object, ll)
	command(t, dir, livetest.Tool(t, "gcc"), object, "main.c", "-lm", "-o", path)
	return []string{path}, m
}

// In random programs, with all live values recorded in each block and at each call, nothing is different. The
// program's main prints; of its other functions almost all exits can be compared. llc -O0 runs out of registers where
// many values are live. With FIDELITY=all each program is compiled at all levels.
func TestVerifyRandomPrograms(t *testing.T) {
	livetest.Slow(t)
	programs := []struct {
		everywhere
		code string
	}{
		{everywhere{3, 19, "-O0", 19}, "-O0"}, {everywhere{7, 19, "-O1", 22}, "-O1"}, {everywhere{9, 19, "-O2", 22}, "-O3"},
		{everywhere{15, 19, "-O1", 22}, "-O2"}, {everywhere{59, 14, "-O0", 16}, "-O2"},
	}
	if os.Getenv("FIDELITY") == "all" {
		ways := programs[:0:0]
		for _, e := range everywheres {
			for level := range 4 {
				p := programs[0]
				p.everywhere, p.code = everywhere{e.seed, 14, "-O0", 16}, fmt.Sprintf("-O%d", level)
				ways = append(ways, p)
				if p.everywhere = (everywhere{e.seed, 19, "-O1", 22}); level > 0 {
					ways = append(ways, p)
				}
			}
		}
		programs = ways
	}
	same, exits := uint64(0), uint64(0)
	for _, p := range programs {
		t.Run(p.String()+" "+p.code, func(t *testing.T) {
			program, m := p.withSites(t, livetest.Csmith(t, p.seed), p.code)
			o := VerifyOptions{Options: Options{Modules: []*ir.Module{m}}, ExitFilter: ExitFilter{Function: pattern(names.Loose, "^func_")}, Every: 3, Limit: 400}
			summary, list := verified(t, program, o)
			for _, v := range list {
				require.NotEqual(t, Different, v.Status, "exit %d: %+v", v.Number, v.Report())
			}
			t.Logf("%d exits, %d the same, %v", summary.Exits, summary.Same, summary.Reasons)
			same, exits = same+summary.Same, exits+summary.Exits
		})
	}
	require.GreaterOrEqual(t, exits, uint64(200))
	require.Greater(t, same, exits*9/10)
}
