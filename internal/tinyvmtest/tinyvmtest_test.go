package tinyvmtest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

const seeds = 1000

// Compiled code, with all of its exits, does what the plain interpreter does.
func TestBothTiers(t *testing.T) {
	livetest.Slow(t)
	for _, llvm := range Versions {
		t.Run(fmt.Sprint("llvm", llvm), func(t *testing.T) {
			t.Parallel()
			binary := Binary(t, llvm)
			runs, exits, clean := 0, 0, 0
			for seed := range uint64(seeds) {
				if !livetest.Share(25, "tinyvm", llvm, seed) {
					continue
				}
				file := File(t, seed)
				plain := Run(t, binary, "--interpret", file)
				if plain.Status == 0 {
					clean++
				}
				for _, opt := range livetest.ShareOf([]string{"0", "2"}, llvm, seed) {
					compiled := Run(t, binary, "--opt", opt, "--exits", file)
					require.Equal(t, plain.Output, compiled.Output, "seed %d, --opt %s: %s", seed, opt, compiled.Errors)
					require.Equal(t, plain.Status, compiled.Status)
					runs++
					exits += compiled.Exits
				}
			}
			t.Logf("%d runs, %d exits, %d programs that ended by themselves", runs, exits, clean)
			require.Greater(t, exits, 10*runs)
		})
	}
}

// A program that is of a seed stays that, and has in it what it should provoke.
func TestProgram(t *testing.T) {
	all := ""
	for seed := range uint64(20) {
		require.Equal(t, Program(seed), Program(seed))
		all += Program(seed)
	}
	for _, word := range []string{"getfield r", "putfield r", "enter", "exit", "call Level0.run", "double", "eq", "div", "mul", "print"} {
		require.Positive(t, strings.Count(all, word), strconv.Quote(word))
	}
}
