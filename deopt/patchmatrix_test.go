package deopt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// TestPatchMatrix writes each kind of patch at the start, in the middle and at the end of each kind of site. The frames must be those that the
// program logged. They must be the same for a resumed and a held process, in cores from the kernel and gdb, and in a minimal core.
func TestPatchMatrix(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{14, 19, 22} {
		for _, how := range ways {
			if !livetest.Whole() && version != map[string]int{"aot": 14, "aot-large": 22, "mcjit": 19, "orc": 22}[how] {
				continue
			}
			t.Run(fmt.Sprintf("llvm-%d %s", version, how), func(t *testing.T) {
				p := startPatches(t, version, how, 24)
				seen := map[string]bool{}
				var landings []*landing
				rounds, places := []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, 3
				if !livetest.Whole() {
					rounds, places = []int{0, 4, 8}, 1 // each kind of patch at each kind of site, but only in one place
				}
				for _, round := range rounds {
					if round > 0 {
						p.Do(t, "release")
						p.restore(t, p.patchedSites()...)
					}
					patched := p.matrix(round)
					p.patch(t, patched)
					landings = p.landAll(t, patched)
					for s, at := range patched {
						seen[fmt.Sprint(s.kind, at.kind, round%places)] = true
					}
					p.Quiet(t, 0)
					held := p.look(t, true, p.known)
					for _, l := range landings {
						got := judge(held, l, hasOne, true)
						require.Empty(t, got.wrong, "%+v", l)
						if !strings.Contains(got.unmatched, ownCallToo) {
							require.Empty(t, got.unmatched, "%+v", l)
						}
					}
					// A resumed thread restarts its system call, so its pc is first at the syscall instruction: wait until each thread is in the call
					// again.
					p.Quiet(t, 0)
					require.Equal(t, shownFrames(t, held), shownFrames(t, p.look(t, false, p.known)), "let go")
					p.Quiet(t, 0)
					require.Equal(t, shownFrames(t, held), shownFrames(t, p.recorded(t)), "recorded")
					if round < 8 {
						continue
					}
					p.Quiet(t, 0)
					if path := p.core(t, version, how); path != "" {
						require.Equal(t, shownFrames(t, held), shownFrames(t, p.inCore(t, path)), "core")
					}
				}
				require.Len(t, seen, 3*len(patchKinds)*places)
			})
		}
	}
}

// ownCallToo is the reason why a frame that came through a patched call may have no record: the frame returns to the end of LLVM's own call,
// whose target was overwritten.
const ownCallToo = "is not certain: a call was written over the function's own, which ended here too"

// core returns a core of the kernel, or of gdb if LLVM catches the signal first or the kernel may not write one. gdb takes seconds for lli, so
// without FIDELITY=all only one version gets a core from gdb.
func (p *patchTarget) core(t *testing.T, version int, how string) string {
	t.Helper()
	if strings.HasPrefix(how, "aot") {
		if path, can := livetest.KernelCore(t, p.Process); can {
			return path
		}
	} else if os.Getenv("FIDELITY") != "all" && version != map[string]int{"mcjit": 19, "orc": 22}[how] {
		return ""
	}
	return livetest.Gcore(t, p.Process)
}

// matrix returns the patches of one of nine rounds, which together have each kind at each place of each kind of site.
func (p *patchTarget) matrix(round int) map[*patchSite]overwrite {
	kinds := sortedKeys(patchKinds)
	places := map[*patchSite]overwrite{}
	of := map[string]int{}
	for _, s := range p.sites {
		if len(s.code) < 13 { // the longest patch
			continue
		}
		at := overwrite{kinds[(of[s.kind]+round/3*3)%len(kinds)], "n", 0}
		room := len(s.code) - patchKinds[at.kind]
		at.offset = []int{0, room / 2, room}[round%3]
		places[s] = at
		of[s.kind]++
	}
	return places
}

// landAll makes a thread wait at each patched site, and all other threads in calls that LLVM emitted.
func (p *patchTarget) landAll(t *testing.T, places map[*patchSite]overwrite) []*landing {
	t.Helper()
	var orders []string
	for _, s := range p.sites {
		if _, ok := places[s]; ok {
			orders = append(orders, fmt.Sprintf("land %d %d p", len(orders), s.number))
		}
	}
	call := slices.IndexFunc(p.sites, func(s *patchSite) bool { return s.function == "g_call" })
	for len(orders) < 24 {
		orders = append(orders, fmt.Sprintf("land %d %d o", len(orders), call))
	}
	p.Do(t, orders...)
	return p.wait(t)
}

// recorded returns the frames of a minimal core.
func (p *patchTarget) recorded(t *testing.T) *deopt.View {
	t.Helper()
	target, err := ptrace.Capture(p.PID, ptrace.Options{Record: true})
	require.NoError(t, err)
	defer target.Close()
	path := filepath.Join(t.TempDir(), "core")
	_, err = target.WriteCore(context.Background(), path, ptrace.RecordOptions{Memory: ptrace.Minimal})
	require.NoError(t, err)
	return p.inCore(t, path)
}

// inCore returns the frames of a core.
func (p *patchTarget) inCore(t *testing.T, path string) *deopt.View {
	t.Helper()
	core, err := ptrace.OpenCore(path, ptrace.CoreOptions{})
	require.NoError(t, err)
	defer core.Close()
	v, err := deopt.Frames(core, p.known)
	require.NoError(t, err)
	return v
}
