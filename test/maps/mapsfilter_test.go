package maps_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

const filtered = `
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
define void @_ZN3foo3barEi(i32 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i32 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i32 %a)
  ret void
}
define void @plain(i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 -1, i32 4, i64 %a)
  ret void
}
define void @plainer(i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i64 %a)
  ret void
}
`

// filteredFile links the module, and returns the addresses of its functions from llvm-nm.
func filteredFile(t *testing.T) (path string, at map[string]uint64) {
	t.Helper()
	path = livetest.Link(t, "filtered", links["no-pie"], livetest.Object(t, 19, clitest.TempFile(t, "filtered.ll", filtered)))
	out, err := exec.Command(livetest.LLVM(t, 19, "llvm-nm"), path).Output()
	require.NoError(t, err)
	at = map[string]uint64{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 {
			at[f[2]], err = strconv.ParseUint(f[0], 16, 64)
			require.NoError(t, err)
		}
	}
	require.Contains(t, at, "plain")
	return path, at
}

// shown lists the records of a report, each with its function and id.
func shown(t *testing.T, report map[string]any) (records []string) {
	t.Helper()
	for _, image := range clitest.Objects(t, report["images"]) {
		for _, f := range clitest.Objects(t, image["functions"]) {
			list := clitest.Objects(t, f["records"])
			require.NotEmpty(t, list, "a function without a record that fits")
			for _, r := range list {
				records = append(records, fmt.Sprintf("%s %s", f["name"], r["id"]))
			}
		}
	}
	return records
}

func TestMapsFilters(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	path, at := filteredFile(t)
	// In a function that moves no values, both stackmaps are at the end of its only push; the second has a shadow of 4 bytes (llvm-objdump shows
	// push, then nops).
	first := func(function string) string { return fmt.Sprintf("%#x", at[function]+pushes(t, path, function)) }
	const large = "18446744073709551615"
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--function", "plain"}, []string{"plain 2", "plain " + large}},
		{[]string{"--function", "plain.*"}, []string{"plain 2", "plain " + large, "plainer 3"}},
		{[]string{"--function", "plain|plainer"}, []string{"plain 2", "plain " + large, "plainer 3"}},
		{[]string{"--function", "_ZN3foo3barEi"}, []string{"_ZN3foo3barEi 1", "_ZN3foo3barEi 2"}},
		{[]string{"--function", `foo::bar\(int\)`}, []string{"_ZN3foo3barEi 1", "_ZN3foo3barEi 2"}},
		{[]string{"--function", "foo::.*"}, []string{"_ZN3foo3barEi 1", "_ZN3foo3barEi 2"}},
		{[]string{"--record", "2"}, []string{"_ZN3foo3barEi 2", "plain 2"}},
		{[]string{"--record", "0x2"}, []string{"_ZN3foo3barEi 2", "plain 2"}},
		{[]string{"--record", "2", "--record", "3"}, []string{"_ZN3foo3barEi 2", "plain 2", "plainer 3"}},
		{[]string{"--record", "2", "--record", "99"}, []string{"_ZN3foo3barEi 2", "plain 2"}},
		{[]string{"--record", large}, []string{"plain " + large}},
		{[]string{"--record", "0xffffffffffffffff"}, []string{"plain " + large}},
		{[]string{"--address", first("plainer")}, []string{"plainer 3"}},
		{[]string{"--address", first("_ZN3foo3barEi")}, []string{"_ZN3foo3barEi 1", "_ZN3foo3barEi 2"}},
		{[]string{"--address", strconv.FormatUint(at["plainer"]+pushes(t, path, "plainer"), 10)}, []string{"plainer 3"}},
		{[]string{"--function", "plain", "--record", "2"}, []string{"plain 2"}},
		{[]string{"--function", "foo.*", "--record", "2", "--address", first("_ZN3foo3barEi")}, []string{"_ZN3foo3barEi 2"}},
		{[]string{"--record", "1", "--address", first("_ZN3foo3barEi")}, []string{"_ZN3foo3barEi 1"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			r := clitest.Run(t, append([]string{"maps", path, "--json"}, c.args...)...)
			require.Equal(t, 0, r.Code, r.Stderr)
			require.Empty(t, r.Stderr)
			require.Equal(t, c.want, shown(t, r.Object(t)))

			r = clitest.Run(t, append([]string{"maps", path}, c.args...)...)
			require.Equal(t, 0, r.Code, r.Stderr)
			require.Empty(t, r.Stderr)
			var ids []string
			for line := range strings.Lines(r.Stdout) {
				if f := strings.Fields(line); len(f) > 1 && f[0] == "record" {
					ids = append(ids, f[1])
				}
			}
			var want []string
			for _, w := range c.want {
				_, id, _ := strings.Cut(w, " ")
				want = append(want, id)
			}
			require.Equal(t, want, ids)
		})
	}
}

// pushes returns the size of a function's first instructions in the disassembly of llvm-objdump, up to the first that is neither a push nor a mov of
// the frame pointer.
func pushes(t *testing.T, path, function string) uint64 {
	t.Helper()
	out, err := exec.Command(livetest.LLVM(t, 19, "llvm-objdump"), "-d", "--no-show-raw-insn", "--disassemble-symbols="+function, path).Output()
	require.NoError(t, err)
	var start uint64
	for line := range strings.Lines(string(out)) {
		address, instruction, ok := strings.Cut(strings.TrimSpace(line), ":")
		at, err := strconv.ParseUint(address, 16, 64)
		if !ok || err != nil {
			continue
		}
		if start == 0 {
			start = at
		}
		if f := strings.Fields(instruction); f[0] != "pushq" && !strings.HasPrefix(strings.Join(f, " "), "movq %rsp, %rbp") {
			return at - start
		}
	}
	require.FailNow(t, "no instruction", "%s", out)
	return 0
}

// TestMapsNothingFits requires that, if no record matches, one line on stderr reports it, with the record nearest to an address.
func TestMapsNothingFits(t *testing.T) {
	t.Parallel()
	path, at := filteredFile(t)
	object := livetest.Object(t, 19, clitest.TempFile(t, "filtered.ll", filtered))
	near := func(function string) string { return fmt.Sprintf("%#x", at[function]+pushes(t, path, function)) }
	for _, c := range []struct {
		path string
		args []string
		want []string
	}{
		{path, []string{"--function", "lain"}, []string{"none of its 5 records matches the filters"}}, // the filter matches whole names only
		{path, []string{"--function", "PLAIN"}, []string{"none of its 5 records matches the filters"}},
		{path, []string{"--record", "4"}, []string{"none of its 5 records matches the filters"}},
		{path, []string{"--function", "plain", "--record", "3"}, []string{"none of its 5 records matches the filters"}},
		{path, []string{"--address", "0"}, []string{"nearest to 0x0 is record 1 at " + near("_ZN3foo3barEi")}},
		{path, []string{"--address", "0xffffffffffffffff"}, []string{"nearest to 0xffffffffffffffff is record 3 at " + near("plainer")}},
		{path, []string{"--address", near("plainer"), "--record", "1"}, []string{"none of its 5 records matches the filters"}},
		{object, []string{"--address", "0x0"}, []string{"an unlinked object has no addresses"}},
		{object, []string{"--record", "4"}, []string{"none of its 5 records matches the filters"}},
	} {
		t.Run(filepath.Base(c.path)+" "+strings.Join(c.args, " "), func(t *testing.T) {
			r := clitest.Run(t, append([]string{"maps", c.path}, c.args...)...)
			r.Fails(t, 1, append(c.want, c.path)...)
			require.NotContains(t, r.Stdout, "record 1 at")
			r = clitest.Run(t, append([]string{"maps", c.path, "--json"}, c.args...)...)
			r.Fails(t, 1, append(c.want, c.path)...)
			require.Empty(t, shown(t, r.Object(t)))
		})
	}
}

// TestMapsUsage requires that contradictory flags are rejected before the file is opened.
func TestMapsUsage(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	const missing = "/nonexistent"
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "maps takes one of FILE, -p PID, --core CORE, --remote ADDR and --delve ADDR"},
		{[]string{missing, "-p", "1"}, "maps takes one of FILE, -p PID, --core CORE, --remote ADDR and --delve ADDR"},
		{[]string{missing, "--core", missing}, "maps takes one of FILE, -p PID, --core CORE, --remote ADDR and --delve ADDR"},
		{[]string{"-p", "1", "--core", missing}, "maps takes one of FILE, -p PID, --core CORE, --remote ADDR and --delve ADDR"},
		{[]string{missing, "-p", "1", "--core", missing}, "maps takes one of FILE, -p PID, --core CORE, --remote ADDR and --delve ADDR"},
		{[]string{missing, missing}, "received 2"},
		{[]string{"-p", "0"}, "-p 0: a process id must be above 0"},
		{[]string{"-p", "-5"}, "-p -5: a process id must be above 0"},
		{[]string{"-p", "x"}, `"x"`},
		{[]string{missing, "--record", "x"}, "--record x: expected a 64-bit number"},
		{[]string{missing, "--record", "-1"}, "--record -1: expected a 64-bit number"},
		{[]string{missing, "--record", ""}, "--record : expected a 64-bit number"},
		{[]string{missing, "--record", "18446744073709551616"}, "--record 18446744073709551616: expected a 64-bit number"},
		{[]string{missing, "--record", "1", "--record", "1.5"}, "--record 1.5: expected a 64-bit number"},
		{[]string{missing, "--address", "rip"}, "--address rip: expected an address"},
		{[]string{missing, "--address", "0x"}, "--address 0x: expected an address"},
		{[]string{missing, "--address", "-1"}, "--address -1: expected an address"},
		{[]string{missing, "--address", "0x10000000000000000"}, "--address 0x10000000000000000: expected an address"},
		{[]string{missing, "--function", "("}, "--function (: "},
		{[]string{missing, "--function", "*"}, "--function *: "},
		{[]string{missing, "--function", "a)|(?:b"}, "--function a)|(?:b: "},
		{[]string{missing, "--function", "\xff"}, "--function"},
		{[]string{missing, "--function", "\x1b[31m("}, "[31m("},
		{[]string{missing, "--function", ""}, "--function"},
		{[]string{missing, "--address", ""}, "--address"},
		{[]string{missing, "--arch", ""}, "--arch"},
		{[]string{missing, "--dialect", ""}, "--dialect"},
		{[]string{missing, "--format", "yaml"}, "--format yaml: expected text or llvm"},
		{[]string{missing, "--format", "llvm", "--json"}, "--format llvm"},
		{[]string{missing, "--format", "llvm", "--check"}, "--format llvm"},
		{[]string{missing, "--format", "llvm", "--record", "1"}, "--format llvm"},
		{[]string{missing, "--check", "--record", "1"}, "--check cannot be combined with a filter"},
		{[]string{missing, "--check", "--function", "f"}, "--check cannot be combined with a filter"},
		{[]string{missing, "--check", "--address", "1"}, "--check cannot be combined with a filter"},
		{[]string{missing, "--dialect", "nonsense"}, "--dialect nonsense: expected one of v1, v2, v3, yk, yk-old"},
		{[]string{missing, "--dialect", "V3"}, "--dialect V3: expected one of v1, v2, v3, yk, yk-old"},
		{[]string{missing, "--dialect", "v1, v2"}, "--dialect v1, v2: expected one of v1, v2, v3, yk, yk-old"},
		{[]string{missing, "--dialect", "\x1b[31m"}, "--dialect"},
		{[]string{missing, "--arch", "vax"}, "--arch vax: expected one of amd64, arm64"},
		{[]string{"-p", "1", "--arch", "amd64"}, "--arch requires a file with the raw bytes of a section"},
		{[]string{"--core", missing, "--arch", "amd64"}, "--arch requires a file with the raw bytes of a section"},
		{[]string{missing, "--thread", "1"}, "unknown flag: --thread"},
		{[]string{missing, "--color", "red"}, "--color red: expected auto, always or never"},
	} {
		t.Run(fmt.Sprintf("%q", c.args), func(t *testing.T) {
			r := clitest.Run(t, append([]string{"maps"}, c.args...)...)
			r.FailsEmpty(t, 64, c.want)
			require.NotContains(t, r.Stderr, clitest.Escape)
		})
	}
}
