package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// What C++ would have made of the functions of deoptimize.ll. c++filt spells them as below.
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

// demangledIn collects what stands beside the names in a JSON: name=demangled.
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

// Wherever a mangled name stands in the JSON of a verb its author's spelling stands beside it, and the schema knows it.
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
	require.Equal(t, 0, reframe(t, append([]string{"record", "-p", pid(p), "-o", core}, known...)...).code)
	for _, c := range []struct {
		schema string
		args   []string
		sum    bool // where it carries on is named
	}{
		{"frames", []string{"frames", "-p", pid(p)}, true},
		{"resume", []string{"resume", "-p", pid(p)}, true},
		{"resume", []string{"resume", "--core", core}, true},
		{"explain", []string{"explain", "-p", pid(p)}, true},
		{"trace", []string{"trace", "--limit", "1", "-o", exits}, true},
		{"trace", []string{"trace", "--limit", "1", "--full", "--at", mangledOpt, "-o", exits}, false},
		{"trace", []string{"trace", "-p", pid(p), "--dry-run"}, false},
		{"replay", []string{"replay", "--cores", core}, true},
		{"maps", []string{"maps", "-p", pid(p)}, false},
	} {
		args := append([]string{c.args[0]}, append(c.args[1:len(c.args):len(c.args)], known...)...)
		if c.args[0] == "maps" {
			args = append(c.args, "--json", "--ir", ir)
		}
		if c.args[0] == "trace" && c.args[1] != "-p" {
			args = append(args, "--", lli, "-jit-kind=mcjit", write(t, "ends.ll", ending))
		}
		r := reframe(t, args...)
		require.Contains(t, []int{0, 1}, r.code, "%v\n%s", args, r.stderr)
		text := r.stdout
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
			valid(t, c.schema+".schema.json", string(object))
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
	unharmed(t, p)
}
