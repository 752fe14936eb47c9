package replay_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// memoryCeiling bounds the resident memory, in bytes, of a run with two workers over any number of these cores. slack bounds the difference between
// runs, because the garbage collector can be late on a busy machine.
const (
	memoryCeiling = 128 << 20
	slack         = 32 << 20
)

// TestReplayOfManyCoresIsFlat requires that two thousand cores need no more memory than two hundred, because each is opened, examined and closed.
func TestReplayOfManyCoresIsFlat(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	core := clitest.CoreAtExit(t)
	whole, err := os.ReadFile(core)
	require.NoError(t, err)
	peak := func(cores int) int64 {
		dir := t.TempDir()
		faulty := 0
		for i := range cores {
			path := filepath.Join(dir, fmt.Sprintf("core.%04d", i))
			if i%100 != 99 {
				require.NoError(t, os.Link(core, path))
				continue
			}
			faulty++
			content := slices.Clone(whole)
			if faulty%2 == 0 {
				content = content[:64+i%1000] // cuts the file in its program headers
			} else {
				content[32+i%8] ^= 0x55 // changes the offset of the program headers
			}
			require.NoError(t, os.WriteFile(path, content, 0o644))
		}
		// A small program starts the run: Linux counts the memory of a process before its exec (getrusage(2), ru_maxrss), which would be the memory
		// of this test.
		const measured = `import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(status)`
		c := clitest.Command(t)
		c.Args = slices.Concat([]string{livetest.Tool(t, "python3"), "-c", measured, clitest.Binary(), "replay", "--cores", dir, "--jobs", "2"}, clitest.ReplayNames(t))
		c.Path = c.Args[0]
		var out, words strings.Builder
		c.Stdout, c.Stderr = &out, &words
		_ = c.Run() // the exit status reports that some cores are broken
		require.Equal(t, 1, c.ProcessState.ExitCode())
		require.Regexp(t, fmt.Sprintf(`(?m)^%d cores: `, cores), out.String())
		require.GreaterOrEqual(t, strings.Count(out.String(), "returns i64 332833500\n"), cores-faulty)
		require.Equal(t, cores, strings.Count(out.String(), dir))
		lines := strings.Fields(words.String())
		kib, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
		require.NoError(t, err)
		return kib << 10
	}
	few, many := peak(200), peak(livetest.Times(800, 2000))
	t.Logf("%d KiB, %d KiB", few>>10, many>>10)
	require.Less(t, many, int64(memoryCeiling))
	require.Less(t, many, few*5/4+slack)
}
