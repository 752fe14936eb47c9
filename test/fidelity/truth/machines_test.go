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

// others lists, for each machine whose programs QEMU runs, the releases of LLVM that compile sites for it (doc/dev/facts.md).
var others = map[string][]int{
	"arm64":   {14, 16, 19, 22},
	"ppc64le": {14, 16, 19, 22},
	"s390x":   {14, 16, 19, 22},
	"riscv64": {19, 22},
}

// crossOf returns the tools that build and run programs of a machine.
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

// core runs a program that aborts under QEMU, and compares all frames of its core with its log. All of them wait for the return of a call.
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

// opened compares the frames of a core with the program's log. Frame #0 must be at one of the places; without places, all frames wait for the return
// of a call.
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
		// The program must abort in the runtime. If it stops elsewhere, LLVM compiled it wrongly, which is not tested here.
		return &notBuilt{"qemu", "the program died in " + first.Function}
	}
	if places != nil && !slices.ContainsFunc(places, func(p place) bool { return len(entries) > 0 && entries[0].site.standsAt(p) }) {
		c.Frames["the address is that of a site, and the code came to it from elsewhere"]++
		return nil
	}
	c.stack(view.Threads[0].Frames, entries, places != nil)
	return nil
}

// areaOf returns the address of the only thread's block, for a program of another machine.
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
