package maps_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// moduleOf returns a module with a function of each name, escaped for LLVM's assembly.
func moduleOf(names ...string) string {
	var b strings.Builder
	b.WriteString("target triple = \"x86_64-pc-linux-gnu\"\ndeclare void @llvm.experimental.stackmap(i64, i32, ...)\n")
	for n, name := range names {
		b.WriteString("define void @\"")
		for _, c := range []byte(name) {
			fmt.Fprintf(&b, "\\%02X", c)
		}
		fmt.Fprintf(&b, "\"(i64 %%a) {\n  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %d, i32 0, i64 %%a)\n  ret void\n}\n", n)
	}
	return b.String()
}

// hostile lists function names that text and JSON must not misinterpret.
var hostile = []string{
	"\x1b[31mred\x07", "\x1b]0;title\x07", "two\nlines", "carriage\rreturn", "tab\ttab", `quo"te`, `back\slash`, `\u0041`,
	"c1\u009b31m", "not\xffUTF-8", "\xed\xa0\x80surrogate", "cut\xe2\x80", "right\u202eto left", "\x7f", "<script>&", "line\u2028separator",
	"\U0001f600", " ", "'", "}", "],", "-", strings.Repeat("n", 4096), strings.Repeat("\x1b", 4096), "_Z", "_Z3foo", "_ZN", "_R", "_RNv",
	"_Z4\x1b[1mv", "_Z999999999999999999999f", "_Z1fIXadL_Z1gvEEEvv", strings.Repeat("_ZN", 1000), "_Z1f" + strings.Repeat("P", 4000) + "i",
}

// control reports whether a terminal may interpret a character as a command.
func control(r rune) bool { return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r == '\u202e' }

// TestMapsHostileNames requires that, whatever the names of functions are, the JSON is valid and contains these names, and no output contains a
// control character.
func TestMapsHostileNames(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object := livetest.Object(t, 19, clitest.TempFile(t, "named.ll", moduleOf(hostile...)))
	r := clitest.Run(t, "maps", object, "--json")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Equal(t, -1, strings.IndexFunc(r.Stdout, control))
	require.True(t, utf8.ValidString(r.Stdout))
	clitest.RequireValid(t, "maps.schema.json", r.Stdout)
	other(t, r.Stdout)
	images := clitest.Objects(t, r.Object(t)["images"])
	require.Len(t, images, 1)
	functions := clitest.Objects(t, images[0]["functions"])
	require.Len(t, functions, len(hostile))
	for n, f := range functions {
		require.Equal(t, strings.ToValidUTF8(hostile[n], ""), strings.ReplaceAll(f["name"].(string), "\ufffd", ""))
		require.Equal(t, json.Number(fmt.Sprint(n)), clitest.Objects(t, f["records"])[0]["id"])
	}

	r = clitest.Run(t, "maps", object)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Equal(t, -1, strings.IndexFunc(r.Stdout, control))
	require.Equal(t, len(hostile), strings.Count(r.Stdout, "\n    record "))
	// A name is one line, so that it cannot look like a record.
	require.Equal(t, 2+4*len(hostile), strings.Count(r.Stdout, "\n"))

	// Broken rules are reported with the names of such functions.
	broken := clitest.ChangedObject(t, object, "broken.o", func(b []byte, at int) []byte {
		for n := range hostile {
			record := at + 16 + 24*len(hostile) + n*(16+12+4+8)
			b[record+12] = 1 // flags of the record
		}
		return b
	})
	for _, args := range [][]string{{"--check"}, {"--check", "--json"}} {
		r = clitest.Run(t, append([]string{"maps", broken}, args...)...)
		require.Equal(t, 1, r.Code)
		require.Empty(t, r.Stderr)
		require.Equal(t, -1, strings.IndexFunc(r.Stdout, control))
	}
	clitest.RequireValid(t, "check.schema.json", r.Stdout)
	other(t, r.Stdout)
	v, _, _ := verdict(t, r)
	require.Len(t, v["reserved fields are zero"], len(hostile))
}

// other requires that Python parses the JSON.
func other(t *testing.T, text string) {
	t.Helper()
	c := exec.Command(livetest.Tool(t, "python3"), "-c", "import json, sys; json.load(sys.stdin)")
	c.Stdin = strings.NewReader(text)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestMapsNameThatGrows requires that the output and memory of maps stay bounded for a short name whose demangled form would be huge. Each argument
// is a template of two copies of the previous one (Itanium C++ ABI, 5.1.10, substitutions), so 400 bytes would become 2⁴⁰.
func TestMapsNameThatGrows(t *testing.T) {
	t.Parallel()
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	name := "_Z1f1AIiiE"
	for n := range 40 {
		seq := string(digits[n%36])
		if n >= 36 {
			seq = "1" + seq
		}
		name += "S_IS" + seq + "_S" + seq + "_E"
	}
	object := livetest.Object(t, 19, clitest.TempFile(t, "grows.ll", moduleOf(name)))
	for _, args := range [][]string{nil, {"--json"}, {"--function", "f.*"}, {"--check"}} {
		// The address space is limited, so that a failure ends only this process.
		c := clitest.Command(t)
		c.Path, c.Args = livetest.Tool(t, "prlimit"), append([]string{"prlimit", "--as=2147483648", clitest.Binary(), "maps", object}, args...)
		r := clitest.Finish(t, c)
		if args == nil || args[0] != "--function" {
			require.Equal(t, 0, r.Code)
		}
		require.Less(t, len(r.Stdout), 100_000)
	}
}

// TestMapsHostileFileNames requires valid JSON, and output without control characters, also for untrusted names of files and members.
func TestMapsHostileFileNames(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	text, err := os.ReadFile(livetest.Object(t, 19, "sp_push.ll"))
	require.NoError(t, err)
	member := clitest.TempFile(t, "\x1b[31m\"\\\xff\u009b.o", string(text))
	archive := filepath.Join(t.TempDir(), "\x1b[32m\u202e.a")
	out, err := exec.Command(livetest.LLVM(t, 19, "llvm-ar"), "rc", archive, member).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, path := range []string{member, archive} {
		for _, args := range [][]string{nil, {"--json"}, {"--check"}, {"--check", "--json"}, {"--record", "1"}, {"--record", "1", "--json"}} {
			r := clitest.Run(t, append([]string{"maps", path}, args...)...)
			require.Contains(t, []int{0, 1}, r.Code)
			require.Equal(t, -1, strings.IndexFunc(r.Stdout+r.Stderr, control), "%q", r.Stdout+r.Stderr)
			if len(args) > 0 && args[len(args)-1] == "--json" {
				require.True(t, utf8.ValidString(r.Stdout))
				other(t, r.Stdout)
				source := r.Object(t)["source"].(string)
				require.Equal(t, strings.ToValidUTF8(path, ""), strings.ReplaceAll(source, "\ufffd", ""))
			}
		}
	}
}

// TestMapsJSONKeepsDigits requires that 64-bit numbers keep all of their digits.
func TestMapsJSONKeepsDigits(t *testing.T) {
	t.Parallel()
	shapes, err := filepath.Abs("../../deopt/stackmap/testdata/shapes.ll")
	require.NoError(t, err)
	r := clitest.Run(t, "maps", livetest.Object(t, 19, shapes), "--json")
	require.Equal(t, 0, r.Code, r.Stderr)
	other(t, r.Stdout)
	ids := map[string]bool{}
	for _, image := range clitest.Objects(t, r.Object(t)["images"]) {
		for _, f := range clitest.Objects(t, image["functions"]) {
			if f["name"] == "dynamic" {
				require.NotContains(t, f, "stack_size")
			} else {
				require.Contains(t, f, "stack_size")
			}
			for _, rec := range clitest.Objects(t, f["records"]) {
				ids[rec["id"].(json.Number).String()] = true
				if rec["id"] == json.Number("5") {
					locations := clitest.Objects(t, rec["locations"])
					require.Equal(t, "-9223372036854775808", locations[3]["constant"])
					require.Equal(t, "-1", locations[4]["constant"])
				}
			}
		}
	}
	require.Equal(t, map[string]bool{"1": true, "18446744073709551615": true, "81985529216486895": true, "4": true, "5": true, "6": true}, ids)
}
