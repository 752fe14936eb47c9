package main_test

import (
	"debug/elf"
	"debug/macho"
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// counted holds the numbers on which two programs must agree.
type counted struct {
	functions, constants, records, locations, liveOuts int
	ids                                                []string
	kinds                                              map[string]int
}

// readobj returns what LLVM's own reader finds in an object.
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

// recount counts the same in the output of maps --json.
func recount(t *testing.T, images []map[string]any) counted {
	t.Helper()
	c := counted{kinds: map[string]int{}}
	for _, image := range images {
		require.NotContains(t, image, "error")
		for _, m := range list(t, image["maps"]) {
			require.Equal(t, json.Number("3"), m["version"])
			for key, total := range map[string]*int{"functions": &c.functions, "constants": &c.constants, "records": &c.records} {
				n, err := m[key].(json.Number).Int64()
				require.NoError(t, err)
				*total += int(n)
			}
		}
		for _, f := range list(t, image["functions"]) {
			for _, r := range list(t, f["records"]) {
				c.ids = append(c.ids, r["id"].(json.Number).String())
				for _, l := range list(t, r["locations"]) {
					c.kinds[l["kind"].(string)]++
					c.locations++
				}
				if r["live_outs"] != nil {
					c.liveOuts += len(list(t, r["live_outs"]))
				}
			}
		}
	}
	return c
}

// maps finds in files with every kind of site what llvm-readobj finds in them.
func TestMapsOfFile(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"jit_pp.ll", "jit_sp.ll", "deoptimize.ll", "sm_spill.ll", "dup.ll", "sp_push.ll"} {
		t.Run(program, func(t *testing.T) {
			path := livetest.Object(t, 19, program)
			want := readobj(t, path)
			r := reframe(t, "maps", path, "--json")
			require.Equal(t, 0, r.code, r.stderr)
			require.Empty(t, r.stderr)
			out := r.object(t)
			require.Equal(t, "reframe.maps/v1", out["schema"])
			require.Equal(t, path, out["source"])
			require.Equal(t, want, recount(t, list(t, out["images"])))

			r = reframe(t, "maps", path)
			require.Equal(t, 0, r.code, r.stderr)
			for _, id := range want.ids {
				require.Contains(t, r.stdout, "    record "+id+" at +0x")
			}
			require.NotContains(t, r.stdout, "R#")
		})
	}
}

// A process shows the content of its JIT's object: llc and lli of one release compile alike, except for how they place the code.
func TestMapsOfProcess(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mcjit", "orc"} {
		p := livetest.Lli(t, 19, "jit_sp.ll", kind)
		r := reframe(t, "maps", "-p", pid(p), "--json")
		require.Equal(t, 0, r.code, r.stderr)
		require.Empty(t, r.stderr)
		out := r.object(t)
		require.Equal(t, "process "+pid(p), out["source"])
		got, want := recount(t, list(t, out["images"])), readobj(t, livetest.Object(t, 19, "jit_sp.ll"))
		require.Equal(t, want.ids, got.ids)
		require.Equal(t, want.functions, got.functions)
		require.Equal(t, want.locations, got.locations)
		for _, image := range list(t, out["images"]) {
			for _, f := range list(t, image["functions"]) {
				require.Regexp(t, `^0x[0-9a-f]{6,}$`, f["address"])
				require.Equal(t, "f", f["name"])
			}
		}
		unharmed(t, p)
	}
}

// changed returns a changed copy of an object; at is the place of its stack maps.
func changed(t *testing.T, object, name string, change func(b []byte, at int) []byte) string {
	t.Helper()
	b, err := os.ReadFile(object)
	require.NoError(t, err)
	if f, err := macho.Open(object); err == nil {
		defer f.Close()
		return write(t, name, string(change(b, int(f.Section("__llvm_stackmaps").Offset))))
	}
	f, err := elf.Open(object)
	require.NoError(t, err)
	defer f.Close()
	return write(t, name, string(change(b, int(f.Section(".llvm_stackmaps").Offset))))
}
