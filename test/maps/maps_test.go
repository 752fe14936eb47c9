package maps_test

import (
	"encoding/json"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// counted holds the numbers on which maps and llvm-readobj must agree.
type counted struct {
	functions, constants, records, locations, liveOuts int
	ids                                                []string
	kinds                                              map[string]int
}

// readobj returns the numbers that llvm-readobj finds in an object.
func readobj(t *testing.T, path string) counted {
	t.Helper()
	text := livetest.Printed(t, "llvm-readobj-19", "--stackmap", path)
	number := func(pattern string) int {
		m := regexp.MustCompile(pattern).FindStringSubmatch(text)
		require.NotNil(t, m, "%s\n%s", pattern, text)
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		return n
	}
	c := counted{functions: number(`Num Functions: (\d+)`), constants: number(`Num Constants: (\d+)`),
		records: number(`Num Records: (\d+)`), kinds: map[string]int{}}
	for _, m := range regexp.MustCompile(`Record ID: (\d+),`).FindAllStringSubmatch(text, -1) {
		c.ids = append(c.ids, m[1])
	}
	for _, m := range regexp.MustCompile(`#\d+: (Register|Direct|Indirect|Constant|ConstantIndex)\b`).FindAllStringSubmatch(text, -1) {
		c.kinds[m[1]]++
		c.locations++
	}
	for _, m := range regexp.MustCompile(`(\d+) live-outs`).FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		c.liveOuts += n
	}
	return c
}

// recount returns the numbers in the output of maps --json.
func recount(t *testing.T, images []map[string]any) counted {
	t.Helper()
	c := counted{kinds: map[string]int{}}
	for _, image := range images {
		require.NotContains(t, image, "error")
		for _, m := range clitest.Objects(t, image["maps"]) {
			require.Equal(t, json.Number("3"), m["version"])
			for key, total := range map[string]*int{"functions": &c.functions, "constants": &c.constants, "records": &c.records} {
				n, err := m[key].(json.Number).Int64()
				require.NoError(t, err)
				*total += int(n)
			}
		}
		for _, f := range clitest.Objects(t, image["functions"]) {
			for _, r := range clitest.Objects(t, f["records"]) {
				c.ids = append(c.ids, r["id"].(json.Number).String())
				for _, l := range clitest.Objects(t, r["locations"]) {
					c.kinds[l["kind"].(string)]++
					c.locations++
				}
				if r["live_outs"] != nil {
					c.liveOuts += len(clitest.Objects(t, r["live_outs"]))
				}
			}
		}
	}
	return c
}

// TestMapsOfFile requires that maps and llvm-readobj find the same in files with every kind of site.
func TestMapsOfFile(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"jit_pp.ll", "jit_sp.ll", "deoptimize.ll", "sm_spill.ll", "dup.ll", "sp_push.ll"} {
		t.Run(program, func(t *testing.T) {
			path := livetest.Object(t, 19, program)
			want := readobj(t, path)
			r := clitest.Run(t, "maps", path, "--json")
			require.Equal(t, 0, r.Code, r.Stderr)
			require.Empty(t, r.Stderr)
			out := r.Object(t)
			require.Equal(t, "reframe.maps/v1", out["schema"])
			require.Equal(t, path, out["source"])
			require.Equal(t, want, recount(t, clitest.Objects(t, out["images"])))

			r = clitest.Run(t, "maps", path)
			require.Equal(t, 0, r.Code, r.Stderr)
			for _, id := range want.ids {
				require.Contains(t, r.Stdout, "    record "+id+" at +0x")
			}
			require.NotContains(t, r.Stdout, "R#")
		})
	}
}

// TestMapsOfProcess requires that a process has the records of its JIT's object. llc and lli of one release compile alike, but place the code
// differently.
func TestMapsOfProcess(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mcjit", "orc"} {
		p := livetest.Lli(t, 19, "jit_sp.ll", kind)
		r := clitest.Run(t, "maps", "-p", clitest.PID(p), "--json")
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Empty(t, r.Stderr)
		out := r.Object(t)
		require.Equal(t, "process "+clitest.PID(p), out["source"])
		got, want := recount(t, clitest.Objects(t, out["images"])), readobj(t, livetest.Object(t, 19, "jit_sp.ll"))
		require.Equal(t, want.ids, got.ids)
		require.Equal(t, want.functions, got.functions)
		require.Equal(t, want.locations, got.locations)
		for _, image := range clitest.Objects(t, out["images"]) {
			for _, f := range clitest.Objects(t, image["functions"]) {
				require.Regexp(t, `^0x[0-9a-f]{6,}$`, f["address"])
				require.Equal(t, "f", f["name"])
			}
		}
		clitest.RequireUnharmed(t, p)
	}
}
