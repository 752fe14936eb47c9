package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// A process and its core show the same, whatever its JIT has registered, and what it shows
// is what the compiler of that release puts in an object.
func TestMapsOfCore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version int
		kind    string
	}{{14, "mcjit"}, {19, "orc"}, {22, "mcjit"}} {
		p := livetest.Lli(t, c.version, "jit_pp.ll", c.kind)
		live, core := mapsOf(t, "-p", pid(p)), livetest.Gcore(t, p)
		want := readobj(t, livetest.Object(t, c.version, "jit_pp.ll"))
		require.Equal(t, want.ids, recount(t, live).ids)
		dead := mapsOf(t, "--core", core)
		require.Equal(t, len(live), len(dead))
		for n := range live {
			require.Equal(t, live[n]["functions"], dead[n]["functions"])
			require.Equal(t, live[n]["arch"], dead[n]["arch"])
			for _, f := range list(t, live[n]["functions"]) {
				require.Equal(t, "work", f["name"])
				require.NotEmpty(t, f["address"])
			}
		}
		r := reframe(t, "maps", "--core", core)
		require.Equal(t, 0, r.code, r.stderr)
		require.Contains(t, r.stdout, "\n  work at 0x")
		unharmed(t, p)
	}
}

// What a JIT has compiled is not lost in a core from which the pages of files are missing.
func TestMapsOfSmallCore(t *testing.T) {
	t.Parallel()
	p := livetest.Linked(t, 19, "jit_sp.ll", "-no-pie", "-w")
	live := mapsOf(t, "-p", pid(p))
	require.Len(t, live, 1)
	require.Equal(t, readobj(t, livetest.Object(t, 19, "jit_sp.ll", "-relocation-model=pic")).ids, recount(t, live).ids)
	dead := mapsOf(t, "--core", livetest.Gcore(t, p, "dump-excluded-mappings off"))
	require.Len(t, dead, 1)
	require.Equal(t, live[0]["functions"], dead[0]["functions"])
	unharmed(t, p)
}
