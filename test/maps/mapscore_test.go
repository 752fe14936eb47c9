package maps_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestMapsOfCore requires that maps shows the same for a process and for its core, whatever its JIT has registered, and the same as for an object of
// that release's compiler.
func TestMapsOfCore(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for _, c := range []struct {
		version int
		kind    string
	}{{14, "mcjit"}, {19, "orc"}, {22, "mcjit"}} {
		p := livetest.Lli(t, c.version, "jit_pp.ll", c.kind)
		live, core := mapsOf(t, "-p", clitest.PID(p)), livetest.Gcore(t, p)
		want := readobj(t, livetest.Object(t, c.version, "jit_pp.ll"))
		require.Equal(t, want.ids, recount(t, live).ids)
		dead := mapsOf(t, "--core", core)
		require.Equal(t, len(live), len(dead))
		for n := range live {
			require.Equal(t, live[n]["functions"], dead[n]["functions"])
			require.Equal(t, live[n]["arch"], dead[n]["arch"])
			for _, f := range clitest.Objects(t, live[n]["functions"]) {
				require.Equal(t, "work", f["name"])
				require.NotEmpty(t, f["address"])
			}
		}
		r := clitest.Run(t, "maps", "--core", core)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Contains(t, r.Stdout, "\n  work at 0x")
		clitest.RequireUnharmed(t, p)
	}
}

// TestMapsOfSmallCore requires that a core without the pages of files still has the code that a JIT has compiled.
func TestMapsOfSmallCore(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Linked(t, 19, "jit_sp.ll", "-no-pie", "-w")
	live := mapsOf(t, "-p", clitest.PID(p))
	require.Len(t, live, 1)
	require.Equal(t, readobj(t, livetest.Object(t, 19, "jit_sp.ll", "-relocation-model=pic")).ids, recount(t, live).ids)
	dead := mapsOf(t, "--core", livetest.Gcore(t, p, "dump-excluded-mappings off"))
	require.Len(t, dead, 1)
	require.Equal(t, live[0]["functions"], dead[0]["functions"])
	clitest.RequireUnharmed(t, p)
}

// TestMapsOfProgram requires that maps shows the same for a running program, its core and its file, except that addresses are moved by the load
// address.
func TestMapsOfProgram(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Linked(t, 19, "jit_pp.ll", "-pie", "-w")
	file, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
	require.NoError(t, err)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.PID))
	require.NoError(t, err)
	first := regexp.MustCompile(`(?m)^([0-9a-f]+)-\S+ \S+ 00000000 .*` + regexp.QuoteMeta(file) + `$`).FindSubmatch(text)
	require.NotNil(t, first, "%s", text)
	bias, err := strconv.ParseUint(string(first[1]), 16, 64)
	require.NoError(t, err)
	work := regexp.MustCompile(`(?m)^work T ([0-9a-f]+) `).FindStringSubmatch(clitest.RunTool(t, "llvm-nm-19", "--format=posix", file))
	require.NotNil(t, work)
	at, err := strconv.ParseUint(work[1], 16, 64)
	require.NoError(t, err)

	for _, source := range [][]string{{"-p", clitest.PID(p)}, {"--core", livetest.Gcore(t, p)}, {file}} {
		images := mapsOf(t, source...)
		require.Len(t, images, 1)
		require.Equal(t, file, images[0]["name"])
		functions := clitest.Objects(t, images[0]["functions"])
		require.Len(t, functions, 1)
		require.Equal(t, "work", functions[0]["name"])
		if len(source) == 1 {
			bias = 0
		}
		require.Equal(t, hex(at+bias), functions[0]["address"])
		require.Equal(t, readobj(t, livetest.Object(t, 19, "jit_pp.ll", "-relocation-model=pic")), recount(t, images))
	}
	clitest.RequireUnharmed(t, p)
}
