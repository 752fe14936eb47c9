// Package truth_test compares the values that reframe shows with the logs of random programs. These have sites of every kind; beside each site, code
// stores the bits of the same values in memory. Each value that is shown as ok must have these bits.
//
// Its main type is program: a random module, with the way to compile and run it. make test compares a few thousand exits; with FIDELITY=all in the
// environment (make fidelity) the campaign compares a million. doc/dev/truth.md describes the campaign and its results.
//
// # Security
//
// The programs are compiled by the machine's own compilers and run as native code with the rights of the test. They make no system calls except those
// of testdata/runtime.c.
package truth_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// all selects all programs, instead of a share.
var all = os.Getenv("FIDELITY") == "all"

// maxHits returns the number of exits of one program that are examined.
func maxHits() uint64 {
	if all {
		return 600
	}
	return 100
}

// releases are the releases of LLVM with which the campaign compiles.
var releases = []int{14, 16, 19, 22}

// judged is the result for one program.
type judged struct {
	*tally
	program *program
	failed  []string
	refused []string
}

// judge builds and runs the program of a seed. If a tool rejects it, judge uses the tame program of the seed.
func judge(t testing.TB, dir string, seed int64, version int, machine string) judged {
	t.Helper()
	y := newTally()
	for _, tame := range []bool{false, true} {
		j := judgeProgram(t, dir, generate(seed, version, machine, tame))
		y.add(j.tally)
		if j.NotBuilt == 0 || tame {
			j.tally = y
			return j
		}
	}
	panic("unreachable")
}

func judgeProgram(t testing.TB, dir string, p *program) judged {
	t.Helper()
	y := newTally()
	y.Programs = 1
	c := newComparer(p, y)
	b, err := p.build(t, dir)
	switch {
	case err != nil:
	case p.Dies:
		err = c.core(t, b)
	default:
		err = c.live(t, b)
	}
	if not := (*notBuilt)(nil); errors.As(err, &not) {
		y.Programs, y.NotBuilt = 0, 1
		y.Tools[not.reason()]++
	} else {
		require.NoError(t, err, "%s", p)
	}
	return judged{y, p, c.failed, c.refusals}
}

// campaign runs programs of one release and machine until enough exits were compared.
func campaign(t testing.TB, dir, machine string, version, exits int) *tally {
	t.Helper()
	y := newTally()
	for seed := int64(1); y.Exits+y.Outer < exits; seed++ {
		j := judge(t, dir, seed, version, machine)
		y.add(j.tally)
		if j.Wrong+j.Stuck > 0 {
			t.Errorf("%s\n%s", j.program, strings.Join(j.failed, "\n"))
		}
		if seed%10 == 0 {
			t.Logf("%s of LLVM %d: %d exits behind seed %d, %d wrong", machine, version, y.Exits+y.Outer, seed, y.Wrong)
		}
	}
	return y
}

// TestTruth requires that every value that reframe shows for random programs is the one in the program's log.
func TestTruth(t *testing.T) {
	livetest.Slow(t)
	exits := 5000
	if all {
		exits = 250_000
	}
	if n, err := strconv.Atoi(os.Getenv("EXITS")); err == nil { // number of exits for each release
		exits = n
	}
	dir := t.TempDir()
	runtimeIn(t, dir, "amd64", "gcc", true)
	runtimeIn(t, dir, "amd64", "gcc", false)
	rows := make([]row, len(releases))
	for n, version := range releases {
		rows[n] = row{"amd64", version, newTally()}
	}
	t.Run("amd64", func(t *testing.T) {
		var done sync.WaitGroup
		for n, version := range releases {
			done.Go(func() { rows[n].add(campaign(t, dir, "amd64", version, exits)) })
		}
		done.Wait()
	})
	for machine, versions := range others {
		if !all {
			versions = []int{19}
		}
		compiler := crossTools[machine] + "gcc"
		runtimeIn(t, dir, machine, compiler, false)
		for _, version := range versions {
			rows = append(rows, row{machine, version, newTally()})
		}
	}
	t.Run("cores", func(t *testing.T) {
		cores := 40
		if all {
			cores = 4000
		}
		if n, err := strconv.Atoi(os.Getenv("CORES")); err == nil { // number of exits for each other machine and release
			cores = n
		}
		for _, r := range rows[len(releases):] {
			t.Run(fmt.Sprint(r.machine, r.version), func(t *testing.T) {
				t.Parallel()
				r.add(campaign(t, dir, r.machine, r.version, cores))
			})
		}
	})
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.machine, b.machine), a.version-b.version) })
	t.Logf("\n%s", table(rows))
}

// TestSeed runs the programs of the seeds from SEED to TO, or only that of SEED: SEED=7 TO=9 VERSION=19 MACHINE=arm64 go test -run TestSeed. With
// SHRINK=1 it shrinks a failing program.
func TestSeed(t *testing.T) {
	number := func(name string, otherwise int64) int64 {
		n, err := strconv.ParseInt(os.Getenv(name), 10, 64)
		if err != nil {
			return otherwise
		}
		return n
	}
	seed := number("SEED", 1)
	machine := os.Getenv("MACHINE")
	if machine == "" {
		machine = "amd64"
	}
	dir := os.Getenv("KEEP")
	if dir == "" {
		dir = t.TempDir()
	}
	var rows []row
	for _, v := range releases {
		if want := number("VERSION", 19); want != 0 && int(want) != v {
			continue
		}
		y := newTally()
		for n := seed; n <= number("TO", seed); n++ {
			j := judge(t, dir, n, v, machine)
			y.add(j.tally)
			for _, r := range j.refused {
				t.Logf("%s\nrefused: %s", j.program, r)
			}
			if j.Wrong > 0 && os.Getenv("SHRINK") != "" {
				small := shrunk(j.program, func(p *program) bool { return judgeProgram(t, dir, p).Wrong > 0 })
				j = judgeProgram(t, dir, small)
				t.Errorf("%s\n%s", small, small.IR())
			}
			if j.Wrong+j.Stuck > 0 {
				t.Errorf("%s\n%s", j.program, strings.Join(j.failed, "\n"))
			}
		}
		rows = append(rows, row{machine, v, y})
	}
	t.Logf("\n%s", table(rows))
}

// String returns the environment variables that reproduce the program.
func (p *program) String() string {
	return fmt.Sprintf("SEED=%d VERSION=%d MACHINE=%s tame %v: %s %s", p.Seed, p.Version, p.Machine, p.Tame, p.How, strings.Join(p.Flags, " "))
}
