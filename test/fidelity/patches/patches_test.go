// Package patches_test compares the frames that are shown for patched code with the logs of random programs. Their sites are patched in random forms,
// and they stop in functions that the patched code has called.
//
// Its main type is program: a random module with its stubs. make test compares some moments; with FIDELITY=all in the environment (make fidelity) the
// campaign compares 20,000. doc/dev/patches.md describes it.
//
// # Security
//
// The programs are compiled by the machine's own compilers and run as native code with the rights of the test.
package patches_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// releases are the releases of LLVM with which the campaign compiles.
var releases = []int{14, 19, 22}

// show makes missing frames failures if the reason, or the form of patch, contains this text. only is the only form of patch to use; "" for all.
var show, only = os.Getenv("SHOW"), os.Getenv("ONLY")

// depth is the largest number of active functions of the module.
var depth = number("DEPTH", 4)

// number returns the number in an environment variable.
func number(name string, otherwise int) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		return otherwise
	}
	return n
}

// run builds a program, runs n of its moments, and compares them. With alone it compares only the moment of that number, but runs the earlier ones
// too, because they leave words on the stack.
func run(t testing.TB, p *program, n, alone int) *comparer {
	t.Helper()
	c := &comparer{p.build(t), newTally(), nil, alone}
	list := c.moments(n)
	if p.machine == "amd64" {
		c.live(t, list)
	} else {
		c.cores(t, list)
	}
	return c
}

// least is the percentage of frames that the campaign must find, and fewest the percentage for the few frames of make test. leastARM64 is smaller
// than least: on arm64, frames beyond a lost return address are guesses if the stack also agrees with a call in a function with unknown paths (see
// doc/dev/patches.md).
const fewest, least, leastARM64 = 85, 90, 87

// TestPatchedCode requires that no frame is wrong at random moments of patched programs, and that a minimum percentage of frames is found.
func TestPatchedCode(t *testing.T) {
	livetest.Slow(t)
	for _, machine := range []string{"amd64", "arm64"} {
		of, share := newTally(), livetest.Times(fewest, least)
		if machine == "arm64" {
			share = livetest.Times(fewest, leastARM64)
		}
		for _, version := range releases {
			programs, moments := livetest.Times(1, 30), livetest.Times(60, 200)
			if machine == "arm64" {
				programs, moments = 1, livetest.Times(4, 700)
			}
			for seed := range programs {
				c := run(t, generate(uint64(seed+1), version, machine), moments, -1)
				of.add(c.tally)
				if len(c.failed) > 0 {
					t.Errorf("%s", strings.Join(c.failed, "\n"))
				}
			}
		}
		t.Logf("%s: %s", machine, of)
		require.Greater(t, of.share(), float64(share))
	}
}

// foundMoments are moments of the campaign at which a frame or value was once wrong, or a frame was not found.
var foundMoments = []struct {
	name    string
	seed    uint64
	version int
	moment  int
	open    bool // the stack agrees with a jump and with a call, so the frames are guesses
}{
	{"an uncalled stub shares its end with one that was called", 4, 19, 4, false},
	{"a stub that was called shares its end with one that a jump leads to", 4, 19, 150, true},
	{"an earlier call of the handler left its return address on top of the stack", 3, 22, 49, false},
	{"a register was popped, and the call wrote over where it had been saved", 8, 22, 4, false},
	{"what is left of an instruction seems to change the frame pointer", 4, 19, 6, false},
	{"a call inside the stub has returned", 1, 19, 23, false},
	{"what is left of an instruction cannot be decoded", 1, 19, 35, false},
	{"a function calls a stub that switches stacks", 1, 22, 15, false},
	{"a function calls a stub that the patch of another one leads to", 1, 22, 2, false},
	{"an earlier call of the handler left its return address where the frame pointer leads on", 109, 19, 193, true},
	{"a function jumps to the handler that another stub calls, beyond a lost return address", 120, 19, 124, true},
	{"a register was popped, and the stub has aligned the stack and written over where it had been saved", 120, 19, 194, false},
	{"a call that has returned left its return address where its function would have the frame pointer that another function has", 14, 19, 3, false},
	{"the same, below other frames", 27, 19, 55, false},
}

// TestFoundMoments compares these moments again. No frame may be wrong, and each must be found unless the stack is ambiguous.
func TestFoundMoments(t *testing.T) {
	livetest.Slow(t)
	for _, m := range foundMoments {
		t.Run(m.name, func(t *testing.T) {
			c := run(t, generate(m.seed, m.version, "amd64"), m.moment+1, m.moment)
			require.Empty(t, c.failed)
			require.Equal(t, !m.open, c.Expected == c.Found, "%s", c.tally)
		})
	}
}

// TestSeed runs the programs of some seeds: SEED=7 TO=9 VERSION=19 MACHINE=arm64 MOMENTS=100 go test -run TestSeed.
func TestSeed(t *testing.T) {
	machine := "amd64"
	if m := os.Getenv("MACHINE"); m != "" {
		machine = m
	}
	y := newTally()
	for seed := number("SEED", 1); seed <= number("TO", number("SEED", 1)); seed++ {
		c := run(t, generate(uint64(seed), number("VERSION", 19), machine), number("MOMENTS", 20), number("MOMENT", -1))
		y.add(c.tally)
		if len(c.failed) > 0 {
			t.Error(strings.Join(c.failed, "\n\n"))
		}
	}
	fmt.Println(y)
}
