package truth_test

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// others are the releases of LLVM that compile sites for the machines whose programs QEMU runs (doc/dev/facts.md).
var others = map[string][]int{
	"arm64":   {14, 16, 19, 22},
	"ppc64le": {14, 16, 19, 22},
	"s390x":   {14, 16, 19, 22},
	"riscv64": {19, 22},
}

// crossOf returns how programs of a machine are run.
func crossOf(t testing.TB, machine string) *livetest.Cross {
	t.Helper()
	for n := range livetest.Crosses {
		if livetest.Crosses[n].Arch == machine {
			return &livetest.Crosses[n]
		}
	}
	require.FailNow(t, "no such machine", machine)
	return nil
}

// core runs a program that dies under QEMU and compares all frames of its core with its log: all of them wait for a call.
func (c *comparer) core(t testing.TB, b *built) error {
	t.Helper()
	x := crossOf(t, c.Machine)
	var path string
	if x.WritesCores() {
		path = x.Core(t, b.program)
	} else {
		path = livetest.RISCV64Core(t, x, b.program)
	}
	if err := c.opened(t, b, path, nil); err != nil {
		return err
	}
	return c.stops(t, x, b)
}

// opened compares the frames of a core with the program's log. Frame #0 is at one of the places; without places, each frame waits for a call.
func (c *comparer) opened(t testing.TB, b *built, path string, places []place) error {
	t.Helper()
	defer os.Remove(path)
	given, err := c.given(b)
	if err != nil {
		return err
	}
	target, err := ptrace.OpenCore(path, ptrace.CoreOptions{Exe: b.program})
	if err != nil {
		return err
	}
	defer target.Close()
	view, err := deopt.Frames(target, given)
	if mismatch := (*sites.MismatchError)(nil); errors.As(err, &mismatch) {
		c.refuse(mismatch)
		return nil
	}
	if err != nil {
		return err
	}
	block, err := areaOf(b.program)
	if err != nil {
		return err
	}
	entries, err := c.entries(target, block)
	if err != nil {
		return err
	}
	require.Len(t, view.Threads, 1)
	if first := view.Threads[0].Frames[0]; places == nil && ours.MatchString(first.Function) {
		// The program must die in the runtime. One that dies elsewhere does not count: how LLVM compiled it is not tested here.
		return &notBuilt{"qemu", "the program died in " + first.Function}
	}
	if places != nil && !slices.ContainsFunc(places, func(p place) bool { return len(entries) > 0 && entries[0].site.standsAt(p) }) {
		c.Frames["the address is that of a site, and the code came to it from elsewhere"]++
		return nil
	}
	c.stack(view.Threads[0].Frames, entries, places != nil)
	return nil
}

// areaOf returns the address of the block of the only thread, in a program for another machine.
func areaOf(program string) (uint64, error) {
	f, err := elf.Open(program)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	for _, s := range symbols {
		if s.Name == "truth_area" {
			return s.Value, nil
		}
	}
	return 0, fmt.Errorf("%s has no area: %v", program, err)
}
