package livetest

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whole reports whether tests run all of their cases, however long they take: with FIDELITY=all, as make fidelity sets it.
func Whole() bool { return os.Getenv("FIDELITY") == "all" }

// committed is the selection in this version of the source. make rotate writes the next one.
//
//go:embed selection.txt
var committed string

// selection returns the text that selects the cases of all shares: the value of FIDELITY, or the text in selection.txt. Every clone runs the same
// cases, and a commit that fixes a case runs it again.
//
// It prints the text once, so that go test shows it above the failures of a package.
var selection = sync.OnceValue(func() string {
	selected := os.Getenv("FIDELITY")
	if selected == "" {
		selected = strings.TrimSpace(committed)
	}
	fmt.Printf("livetest: FIDELITY=%s selects the same cases\n", selected)
	return selected
})

// number returns a hash of a name under a selection.
func number(selected string, name ...any) uint32 {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00", selected)
	for _, n := range name {
		fmt.Fprintf(h, "%v\x00", n)
	}
	return binary.BigEndian.Uint32(h.Sum(nil))
}

// Share reports whether make test runs a case. It runs one case in of, chosen by a hash of the case's name and the selection. A new case does not
// change the choice of others. With FIDELITY=all all cases run.
func Share(of uint32, name ...any) bool {
	return Whole() || number(selection(), name...)%of == 0
}

// ShareOf returns the value of a list with which make test runs a case, chosen by a hash of the case's name and the selection. With FIDELITY=all it
// returns all values.
func ShareOf[V any](values []V, name ...any) []V {
	if Whole() {
		return values
	}
	n := number(selection(), name...) % uint32(len(values))
	return values[n : n+1]
}

// Out reports whether make test skips case n of a series. One case in of runs, a different one for each selection. For nested loops, n is the sum of
// their counters, so that the cases that run contain each value of each loop.
func Out(of, n int) bool {
	return !Whole() && (n+First(of))%of != 0
}

// First returns the index at which make test begins in a series of which it runs every of-th element. It is less than of, and 0 with FIDELITY=all.
func First(of int) int {
	if Whole() {
		return 0
	}
	return int(number(selection(), "first") % uint32(of))
}

// turns is the number of selections after which each slow test has run.
const turns = 8

// Slow skips a slow test in make check (go test -short), in a plain go test ./..., and in seven of eight selections of make test. A test that go test
// -run names is not skipped, so make test-all runs each test.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("not in make check: it takes its time")
	}
	NeedsTools(t)
	if named() || Whole() {
		return
	}
	if !turn(selection(), t.Name()) {
		t.Skip("not in this selection: go test -run names it, make test-all runs it")
	}
}

// named reports whether go test -run names the tests.
func named() bool {
	run := flag.Lookup("test.run")
	return run != nil && run.Value.String() != ""
}

// turn reports whether a slow test runs in a selection. Selections are numbers that make rotate increments, so each test runs in one of any eight
// consecutive selections. For another text the turn is random.
func turn(selected, name string) bool {
	at, err := strconv.ParseUint(selected, 10, 32)
	if err != nil {
		at = uint64(number(selected, "turn"))
	}
	return (at+uint64(number("", name)))%turns == 0
}

// OnlyWhole skips a test unless FIDELITY=all is set, as in make fidelity.
func OnlyWhole(t testing.TB) {
	t.Helper()
	if !Whole() {
		t.Skip("in make fidelity alone: it takes minutes, and what it tests changes rarely")
	}
}

// Times returns the number of repetitions of a random test, or of similar cases: few, or all with FIDELITY=all.
func Times(few, all int) int {
	if Whole() {
		return all
	}
	return few
}

// Part returns the part of the campaign to run, and the number of parts: with PART=2/8, every eighth program, starting with the second. Parts
// divide a campaign of an hour into shorter runs.
func Part(t testing.TB) (part, parts int) {
	t.Helper()
	text := os.Getenv("PART")
	if text == "" {
		return 1, 1
	}
	n, err := fmt.Sscanf(text, "%d/%d", &part, &parts)
	require.True(t, err == nil && n == 2 && 1 <= part && part <= parts, "PART must be a part of the campaign, such as 2/8, got %q", text)
	return part, parts
}

// Step returns the distance between the elements of a long series that make test runs: of, or 1 with FIDELITY=all.
func Step(of int) int {
	if Whole() {
		return 1
	}
	return of
}

// Turns selects every n-th case of nested loops. The distance between selected cases must be coprime to the number of values of each loop, so that
// some selected case has each value.
type Turns int

// Out reports whether make test skips the next case. One case in of runs.
func (n *Turns) Out(of int) bool {
	at := int(*n)
	*n++
	return Out(of, at)
}
