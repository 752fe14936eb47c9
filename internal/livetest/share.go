package livetest

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"
)

// Whole says that all of a test's cases are wanted, however long they take: FIDELITY=all, as make fidelity has it.
func Whole() bool { return os.Getenv("FIDELITY") == "all" }

// Share reports whether make test runs a case: one in so many, always the same, by a hash of its name, so that one that is added
// moves no other. With FIDELITY=all it is each.
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

// ShareOf is the one of a list's values that make test runs a case with, by a hash of its name; with FIDELITY=all it is all of them.
func ShareOf[V any](values []V, name ...any) []V {
	if Whole() {
		return values
	}
	h := fnv.New32a()
	fmt.Fprint(h, strings.TrimSpace(fmt.Sprintln(name...)))
	n := h.Sum32() % uint32(len(values))
	return values[n : n+1]
}

// Slow leaves a test out of make check (go test -short), which is for what takes no time.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("not in make check: it takes its time")
	}
}

// OnlyWhole leaves a test out of make test: make fidelity has it.
func OnlyWhole(t testing.TB) {
	t.Helper()
	if !Whole() {
		t.Skip("in make fidelity alone: it takes minutes, and what it tests changes rarely")
	}
}

// Times is how often make test does what it does at random, or how many it takes of what is alike; with FIDELITY=all it is the other.
func Times(few, all int) int {
	if Whole() {
		return all
	}
	return few
}

// Step is how far apart lie the bytes, or others of a long row, that make test takes: so many, or one with FIDELITY=all.
func Step(of int) int {
	if Whole() {
		return 1
	}
	return of
}

// Turns choose cases of nested loops, whose values have their turn one after the other. How many cases make one that is run has no divisor in
// common with how many values the loops have: so each value is among what is run.
type Turns int

// Out reports whether make test leaves the next case out: it runs the first of so many.
func (n *Turns) Out(of int) bool {
	at := int(*n)
	*n++
	return !Whole() && at%of != 0
}
