package trace_test

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

var tickLine = regexp.MustCompile(`^\d+\.\d{6}  (\d+)(?: \S+)?  tick\+0x[0-9a-f]+  record 1 stackmap  %i=(\d+) %acc=(-?\d+) %x=(-?\d+) %y=(-?\d+)$`)

// tick holds the four values of tick.ll at one exit.
type tick struct{ i, acc, x, y int64 }

// next returns the values at the following exit, as tick.ll computes them.
func (k tick) next() tick {
	acc := 31*k.acc + k.x
	return tick{k.i + 1, acc, k.x ^ int64(uint64(k.acc)>>7), (k.y + k.i) ^ acc}
}

// TestTraceTellsEveryExit requires that each of a program's 100,000 exits is reported once, in order for each thread, with the values that the
// program computes. This must also hold with several threads, with signals, and if code is unloaded.
func TestTraceTellsEveryExit(t *testing.T) {
	livetest.Slow(t)
	object, module := clitest.TickObject(t)
	for name, o := range map[string]livetest.ObjectHostOptions{
		"one thread":          {Rounds: livetest.Times(5, 20)},
		"16 threads":          {Threads: 16, Rounds: 2},
		"signals":             {Threads: 4, Rounds: 2, Signals: true},
		"unload":              {Threads: 2, Rounds: livetest.Times(3, 6), Unload: 1},
		"threads come and go": {Threads: 2, Rounds: 2, Churn: livetest.Times(8, 20)},
		"fork":                {Threads: 4, Rounds: livetest.Times(2, 4), Middle: "fork"},
		"spawn":               {Threads: 4, Rounds: livetest.Times(2, 4), Middle: "spawn"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "exits")
			host := livetest.ObjectHostCommand(t, object, o)
			r := clitest.Run(t, append([]string{"trace", "--ir", module, "-o", file, "--"}, host...)...)
			require.Equal(t, 0, r.Code, r.Stderr)
			checksum, child := livetest.CVersion(t, "tick.ll", o)
			require.Contains(t, r.Stdout, checksum)
			if o.Middle == "fork" {
				require.Contains(t, r.Stdout, child)
			}
			f, err := os.Open(file)
			require.NoError(t, err)
			defer f.Close()
			told, last := 0, map[string]tick{}
			for lines := bufio.NewScanner(f); lines.Scan(); told++ {
				m := tickLine.FindStringSubmatch(lines.Text())
				require.NotNil(t, m, lines.Text())
				var v [4]int64
				for n := range v {
					v[n], err = strconv.ParseInt(m[n+2], 10, 64)
					require.NoError(t, err)
				}
				now := tick{v[0], v[1], v[2], v[3]}
				want := last[m[1]].next()
				if before, known := last[m[1]]; !known || before.i == 999 { // the first exit of a round
					want = tick{0, now.acc, 12345, 1}
				}
				if now != want {
					require.Equal(t, want, now, "exit %d, thread %s", told, m[1])
				}
				last[m[1]] = now
			}
			require.Equal(t, 1000*(max(o.Threads, 1)*o.Rounds+o.Churn), told)
			for thread, k := range last {
				require.EqualValues(t, 999, k.i, "the last exit of thread %s", thread)
			}
		})
	}
}
