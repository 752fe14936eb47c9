package livetest

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"
)

// Whole reports whether tests run all of their cases, however long they take: FIDELITY=all, as make fidelity sets it.
func Whole() bool { return os.Getenv("FIDELITY") == "all" }

// Share reports whether make test runs a case: one in of, always the same, selected by a hash of its name, so that a new case changes no other. With
// FIDELITY=all it runs each.
func Share(of uint32, name ...any) bool {
	if Whole() {
		return true
	}
	h := fnv.New32a()
	for _, n := range name {
		fmt.Fprintf(h, "%v\x00", n)
	}
	return h.Sum32()%of == 0
}

// ShareOf returns the value of a list with which make test runs a case, selected by a hash of the case's name; with FIDELITY=all it returns all
// values.
func ShareOf[V any](values []V, name ...any) []V {
	if Whole() {
		return values
	}
	h := fnv.New32a()
	fmt.Fprint(h, strings.TrimSpace(fmt.Sprintln(name...)))
	n := h.Sum32() % uint32(len(values))
	return values[n : n+1]
}

// Slow skips a test in make check (go test -short), which runs only what takes no time.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("not in make check: it takes its time")
	}
}

// OnlyWhole skips a test in make test: only make fidelity runs it.
func OnlyWhole(t testing.TB) {
	t.Helper()
	if !Whole() {
		t.Skip("in make fidelity alone: it takes minutes, and what it tests changes rarely")
	}
}

// Times returns how often make test repeats a random test, or how many similar cases it runs: few, or all with FIDELITY=all.
func Times(few, all int) int {
	if Whole() {
		return all
	}
	return few
}

// Step returns the distance between the bytes, or other elements of a long row, that make test runs: of, or 1 with FIDELITY=all.
func Step(of int) int {
	if Whole() {
		return 1
	}
	return of
}

// Turns selects cases of nested loops in turn. The distance between selected cases must have no divisor in common with the number of values of each
// loop, so that each value is in some selected case.
type Turns int

// Out reports whether make test skips the next case: it runs the first of every of cases.
func (n *Turns) Out(of int) bool {
	at := int(*n)
	*n++
	return !Whole() && at%of != 0
}
