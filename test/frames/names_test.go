package frames_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// The names that C++ would give to the functions of deoptimize.ll, and their spelling by c++filt.
const (
	mangledOpt = "_ZN2ns7sum_optEll"
	plainOpt   = "ns::sum_opt(long, long)"
	mangledSum = "_ZN2ns3sumEl"
	plainSum   = "ns::sum(long)"
)

// mangledModule writes deoptimize.ll and its layout with mangled names.
func mangledModule(t *testing.T) (ir, layout string) {
	t.Helper()
	dir := t.TempDir()
	for from, to := range map[string]*string{livetest.IR(t, 19, "deoptimize.ll"): &ir, livetest.Testdata(t, "programs", "deoptimize.layout.json"): &layout} {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		*to = filepath.Join(dir, filepath.Base(from))
		require.NoError(t, os.WriteFile(*to, []byte(strings.NewReplacer("@sum_opt", "@"+mangledOpt, "@sum", "@"+mangledSum, `"sum_opt"`, `"`+mangledOpt+`"`, `"sum"`, `"`+mangledSum+`"`).Replace(string(text))), 0o644))
	}
	return ir, layout
}

// demangledIn collects the names in JSON with their demangled forms: name=demangled.
func demangledIn(v any, into map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			demangledIn(x, into)
		}
	case map[string]any:
		for _, key := range []string{"function", "name", "symbol"} {
			name, ok := v[key].(string)
			beside := map[string]string{"symbol": "symbol_demangled"}[key]
			if beside == "" {
				beside = "demangled"
			}
			if ok && strings.HasPrefix(name, "_Z") {
				plain, _ := v[beside].(string)
				into[name+"="+plain] = true
			}
		}
		for _, x := range v {
			demangledIn(x, into)
		}
	}
}

// TestDemangled requires that each mangled name in the JSON of a verb has its demangled form beside it, and that the schema describes it.
func TestDemangled(t *testing.T) {
	t.Parallel()
	ir, layout := mangledModule(t)
	lli := livetest.LLVM(t, 19, "lli")
	p := livetest.Program(t, lli, "-jit-kind=mcjit", ir)
	text, err := os.ReadFile(ir)
	require.NoError(t, err)
	ending := strings.ReplaceAll(strings.Replace(string(text), "@pause()", "@exit(i32)", 1), "@pause()", "@exit(i32 0)") // a program that ends
	require.NotEqual(t, string(text), ending)
	dir := t.TempDir()
	core, exits := filepath.Join(dir, "exit.core"), filepath.Join(dir, "exits.json")
	known := []string{"--json", "--ir", ir, "--layout", layout}
	require.Equal(t, 0, clitest.Run(t, append([]string{"record", "-p", clitest.PID(p), "-o", core}, known...)...).Code)
	for _, c := range []struct {
		schema string
		args   []string
		sum    bool // the JSON names the place where the frame resumes
	}{
		{"frames", []string{"frames", "-p", clitest.PID(p)}, true},
		{"resume", []string{"resume", "-p", clitest.PID(p)}, true},
		{"resume", []string{"resume", "--core", core}, true},
		{"explain", []string{"explain", "-p", clitest.PID(p)}, true},
		{"trace", []string{"trace", "--limit", "1", "-o", exits}, true},
		{"trace", []string{"trace", "--limit", "1", "--full", "--at", mangledOpt, "-o", exits}, false},
		{"trace", []string{"trace", "-p", clitest.PID(p), "--dry-run"}, false},
		{"replay", []string{"replay", "--cores", core}, true},
		{"maps", []string{"maps", "-p", clitest.PID(p)}, false},
	} {
		args := append([]string{c.args[0]}, append(c.args[1:len(c.args):len(c.args)], known...)...)
		if c.args[0] == "maps" {
			args = append(c.args, "--json", "--ir", ir)
		}
		if c.args[0] == "trace" && c.args[1] != "-p" {
			args = append(args, "--", lli, "-jit-kind=mcjit", clitest.TempFile(t, "ends.ll", ending))
		}
		r := clitest.Run(t, args...)
		require.Contains(t, []int{0, 1}, r.Code, "%v\n%s", args, r.Stderr)
		text := r.Stdout
		if c.args[len(c.args)-1] == exits {
			written, err := os.ReadFile(exits)
			require.NoError(t, err)
			require.NoError(t, os.Remove(exits))
			text = string(written)
		}
		seen := map[string]bool{}
		d := json.NewDecoder(strings.NewReader(text))
		for d.More() {
			var object json.RawMessage
			require.NoError(t, d.Decode(&object))
			clitest.RequireValid(t, c.schema+".schema.json", string(object))
			var v any
			require.NoError(t, json.Unmarshal(object, &v))
			demangledIn(v, seen)
		}
		want := map[string]bool{mangledOpt + "=" + plainOpt: true}
		if c.sum {
			want[mangledSum+"="+plainSum] = true
		}
		for key := range seen {
			require.False(t, strings.HasSuffix(key, "="), "%v: %s", args, key)
		}
		for key := range want {
			require.True(t, seen[key], "%v: %s in %v", args, key, text)
		}
	}
	clitest.RequireUnharmed(t, p)
}

// cppSource has two functions with the same unqualified name, and a method.
const cppSource = `#include <stdio.h>
#include <unistd.h>
namespace ns {
__attribute__((noinline)) int f(int x) { asm volatile(""); return x + 1; }
__attribute__((noinline)) int f(long x) { asm volatile(""); return x + 2; }
struct A { __attribute__((noinline)) int m(const char *s) { asm volatile(""); return *s; } };
}
int main(int c, char **) {
  ns::A a;
  int r = 0;
  puts("ready");
  fflush(stdout);
  for (long i = 0; i < 5 || c > 1; i++) {
    if (c > 1) usleep(1000);
    r += ns::f((int)i) + ns::f(i) + a.m("x");
  }
  return r == 0;
}
`

// TestFunctionsByName requires that a function can be given by its name in the image, by its source name with or without parameters, or by an
// expression.
func TestFunctionsByName(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	program := filepath.Join(t.TempDir(), "cpp")
	clitest.RunTool(t, "g++", "-O1", "-o", program, clitest.TempFile(t, "cpp.cc", cppSource))
	for at, want := range map[string]string{
		"_ZN2ns1fEi":           "5 ns::f(int)",
		"ns::f(int)":           "5 ns::f(int)",
		"ns::f":                "5 ns::f(int), 5 ns::f(long)",
		"/^ns::.*\\(long\\)$/": "5 ns::f(long)",
		"ns::A::m":             "5 ns::A::m(char const*)",
		"/^ns::/":              "5 ns::A::m(char const*), 5 ns::f(int), 5 ns::f(long)",
	} {
		r := clitest.Run(t, "trace", "--count", "--json", "--at", at, "--", program)
		require.Equal(t, 0, r.Code, r.Stderr)
		var sum struct {
			Functions []struct {
				Demangled string
				Count     int
			}
		}
		require.NoError(t, json.Unmarshal([]byte(r.Stderr[strings.Index(r.Stderr, "{"):]), &sum), r.Stderr)
		var got []string
		for _, f := range sum.Functions {
			got = append(got, fmt.Sprint(f.Count, " ", f.Demangled))
		}
		slices.Sort(got)
		require.Equal(t, want, strings.Join(got, ", "), at)
	}

	// An unknown name is reported with similar names: for a started command when it has ended, for a process immediately.
	for at, want := range map[string]string{"ns::F": "; nearest: ns::f\n", "ns::g": "; nearest: ns::f\n", "maim": "; nearest: main", "/nothing at all/": "\n"} {
		r := clitest.Run(t, "trace", "--at", at, "--", program)
		require.Equal(t, 2, r.Code)
		require.Regexp(t, `^reframe: process \d+ had no function `+regexp.QuoteMeta(at+want), r.Stderr)
		require.Contains(t, r.Stderr, "reframe: no exit occurred\n")
	}
	r := clitest.Run(t, "trace", "--at", "/./", "--", program)
	require.Regexp(t, `libc\.so\.6 has \d{4} functions that match /\./, and none of them has a breakpoint: the limit is 1000, and \d+ have one already`, r.Stderr)

	p := livetest.Program(t, program, "stays")
	clitest.Run(t, "trace", "-p", clitest.PID(p), "--at", "ns::F").FailsEmpty(t, 2, "process "+clitest.PID(p)+" has no function ns::F; nearest: ns::f; use --wait to wait for one")
	r = clitest.Run(t, "trace", "-p", clitest.PID(p), "--at", "ns::F", "--at", "ns::f(int)", "--limit", "1")
	require.Contains(t, r.Stderr, "reframe: process "+clitest.PID(p)+" has no function ns::F; nearest: ns::f\n")
	require.Equal(t, 0, r.Code, r.Stderr)
	// No exit occurs, also on a slow machine.
	r = clitest.Run(t, "trace", "-p", clitest.PID(p), "--at", "ns::F", "--wait", "--for", "50ms")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Stderr, "the time limit of 50ms was reached")
	for function, want := range map[string]int{"main": 1, "/^mai/": 1, "_start": 1} {
		r = clitest.Run(t, "frames", "-p", clitest.PID(p), "--json", "--function", function)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Len(t, clitest.Frames(t, r.Object(t)), want)
	}
	clitest.Run(t, "frames", "-p", clitest.PID(p), "--function", "mian").Fails(t, 2, "no frame of mian found; nearest: main; ")
	for _, args := range [][]string{{"frames", "-p", clitest.PID(p), "--function", "/(/"}, {"maps", program, "--function", "["}, {"trace", "-p", clitest.PID(p), "--at", ""}} {
		r = clitest.Run(t, args...)
		require.Equal(t, 64, r.Code, "%v %s", args, r.Stderr)
	}
}

// TestFunctionOfRecords requires that --function selects frames, records and exits by any form of a name. In trace, a name without slashes is still
// an expression.
func TestFunctionOfRecords(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	ir, layout := mangledModule(t)
	p := livetest.Program(t, livetest.LLVM(t, 19, "lli"), "-jit-kind=mcjit", ir)
	known := []string{"-p", clitest.PID(p), "--ir", ir, "--layout", layout}
	for _, name := range []string{mangledOpt, plainOpt, "ns::sum_opt", "/sum_o/"} {
		for _, verb := range []string{"frames", "resume"} {
			r := clitest.Run(t, append([]string{verb, "--function", name}, known...)...)
			require.Equal(t, 0, r.Code, "%s %s: %s", verb, name, r.Stderr)
			require.Contains(t, r.Stdout, "ns::sum_opt+0x")
		}
		r := clitest.Run(t, "maps", "-p", clitest.PID(p), "--function", name)
		require.Equal(t, 0, r.Code, "%s: %s", name, r.Stderr)
		r = clitest.Run(t, "trace", "-p", clitest.PID(p), "--dry-run", "--function", name)
		require.Equal(t, 0, r.Code, "%s: %s", name, r.Stderr)
		require.Contains(t, r.Stdout, plainOpt)
	}
	clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", ir, "--function", "ns::sum_opd").FailsEmpty(t, 2, "no frame of ns::sum_opd has a stack map record; nearest: ns::sum_opt")
	require.Equal(t, 1, clitest.Run(t, "maps", "-p", clitest.PID(p), "--function", "sum_opt").Code, "the whole name has to match")
	require.Contains(t, clitest.Run(t, "trace", "-p", clitest.PID(p), "--dry-run", "--function", "sum_o").Stdout, plainOpt)
	clitest.RequireUnharmed(t, p)
}
