package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// valid compares JSON with a schema of doc, in which objects may have only named members, and with the schema that was published under that name.
func valid(t *testing.T, schema, text string) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err, text)
	require.NoError(t, schemaOf(t, schema).Validate(v), text)
	published, err := schemaIn(filepath.Join("testdata", "published", schema), openSchema)
	require.NoError(t, err)
	require.NoError(t, published.Validate(v), "what was published refuses: %s", text)
}

// schemaOf returns a schema of doc, in which objects may have only named members.
func schemaOf(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	s, err := schemaIn("../../doc/"+name, closedSchema)
	require.NoError(t, err)
	return s
}

// schemas are the schemas that were requested, each read once.
var schemas sync.Map

// schemaIn returns the schema in a file, which read reads.
func schemaIn(path string, read func(path string) (any, error)) (*jsonschema.Schema, error) {
	once, _ := schemas.LoadOrStore(path, sync.OnceValues(func() (*jsonschema.Schema, error) {
		schema, err := read(path)
		if err != nil {
			return nil, err
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource(filepath.Base(path), schema); err != nil {
			return nil, err
		}
		return c.Compile(filepath.Base(path))
	}))
	return once.(func() (*jsonschema.Schema, error))()
}

// openSchema reads a schema.
func openSchema(path string) (any, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(file))
}

// closedSchema reads a schema, and changes it to reject members that it does not name: readers must accept those, but the program writes none.
func closedSchema(path string) (any, error) {
	schema, err := openSchema(path)
	for _, o := range objectsOf(schema, nil) {
		if properties, ok := o["properties"].(map[string]any); ok && len(properties) > 0 && o["additionalProperties"] == nil && o["type"] == "object" {
			o["additionalProperties"] = false
		}
	}
	return schema, err
}

// The JSON of maps matches its schema, for all kinds of options.
func TestMapsSchema(t *testing.T) {
	t.Parallel()
	statepoint := livetest.Object(t, 19, "jit_sp.ll")
	patchpoint := livetest.Object(t, 19, "jit_pp.ll")
	broken := changed(t, patchpoint, "broken.o", func(b []byte, at int) []byte { b[at] = 9; return b })
	p := livetest.Lli(t, 19, "jit_sp.ll", "mcjit")
	for _, args := range [][]string{
		{statepoint},
		{statepoint, "--ir", p.IR},
		{patchpoint},
		{patchpoint, "--function", "wor."},
		{patchpoint, "--function", "nothing"},
		{patchpoint, "--record", "2001"},
		{patchpoint, "--address", "0x1"},
		{"-p", pid(p)},
		{"-p", pid(p), "--ir", p.IR},
	} {
		r := reframe(t, append([]string{"maps", "--json"}, args...)...)
		require.Contains(t, []int{0, 1}, r.code, "%v\n%s", args, r.stderr)
		valid(t, "maps.schema.json", r.stdout)
	}
	for _, args := range [][]string{{statepoint}, {statepoint, "--ir", p.IR}, {broken}, {"-p", pid(p)}, {"-p", pid(p), "--ir", p.IR}} {
		r := reframe(t, append([]string{"maps", "--check", "--json"}, args...)...)
		require.Contains(t, []int{0, 1}, r.code, "%v\n%s", args, r.stderr)
		valid(t, "check.schema.json", r.stdout)
	}
}

// twice is a module with two records at one address.
const twice = livetest.Prelude + `
define i64 @work(i64 %a) noinline {
  %x = mul i64 %a, 3
  %y = mul i64 %a, 5
  %r = call i64 @wait(i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 21, i32 0, i64 %x, i64 %y, i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 22, i32 0, i64 %y, i64 %a, i64 %x)
  %s = add i64 %x, %y
  %s2 = add i64 %s, %a
  ret i64 %s2
}
` + livetest.Start

// The JSON of frames and resume, for targets of many kinds, matches its schemas: [finish] checks all of it. This test requires that each field was
// seen at least once, except for those that no target of this test has.
func TestFramesAndResumeSchema(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	exit := livetest.Lli(t, 19, storing(t), "orc")
	call := livetest.Lli(t, 22, "jit_pp.ll", "mcjit")
	chain := livetest.Lli(t, 16, "chain.ll", "mcjit")
	odd := livetest.Lli(t, 19, "odd_types.ll", "orc")
	refused := livetest.Lli(t, 19, "false_match.ll", "orc")
	plain := livetest.C(t, "nojit.c", nil)
	direct := livetest.Lli(t, 19, livetest.Module(t, variables), "mcjit")
	vm, informed := livetest.Lli(t, 19, "vmsimple.ll", "orc"), filepath.Join(t.TempDir(), "informed.star")
	require.NoError(t, os.WriteFile(informed, []byte("def frames(site):\n  skip(site.operands)\n  return frame('m', 3)\ndef info(method, position):\n  return {'line': 7}\n"), 0o644))
	paired := livetest.Lli(t, 19, livetest.Raw(t, derived), "mcjit")
	double := livetest.Lli(t, 19, livetest.Module(t, twice), "mcjit")
	core, stackmap := livetest.Gcore(t, exit), filepath.Join(t.TempDir(), "stackmap.core")
	object, tick := ticking(t)
	kept := reframe(t, append([]string{"record", "--ir", tick, "-o", stackmap, "--"}, livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{})...)...)
	require.Equal(t, 0, kept.code, kept.stderr)
	with := func(result string) string {
		command, _ := answering(t, result)
		return command
	}
	var texts []string
	for _, args := range [][]string{
		{"resume", "-p", pid(vm), "--ir", vm.IR, "--layout", "simple", "--with", with(returned42)},
		{"resume", "-p", pid(vm), "--ir", vm.IR, "--layout", "simple", "--with", with(`{"threw":{"text":"x"}}`)},
		{"resume", "-p", pid(vm), "--ir", vm.IR, "--layout", "simple", "--with", with(`{"unsupported":"x"}`)},
		{"resume", "-p", pid(vm), "--ir", vm.IR, "--layout", "simple", "--with", with(`{"malformed":"x"}`)},
		{"frames", "-p", pid(exit)},
		{"frames", "-p", pid(direct), "--ir", direct.IR},
		{"frames", "-p", pid(exit), "--ir", exit.IR},
		{"frames", "-p", pid(exit), "--ir", exit.IR, "--layout", layout(t)},
		{"frames", "-p", pid(exit), "--layout", layout(t)},
		{"frames", "-p", pid(exit), "--stack-bytes", "4096"},
		{"frames", "-p", pid(exit), "-f", "0"},
		{"frames", "-p", pid(call), "--ir", call.IR},
		{"frames", "-p", pid(chain), "--ir", chain.IR, "--hold"},
		{"frames", "-p", pid(odd), "--ir", odd.IR},
		{"frames", "-p", pid(plain)},
		{"frames", "-p", pid(refused), "--ir", refused.IR},
		{"frames", "-p", pid(vm), "--ir", vm.IR, "--layout", "simple"},
		{"frames", "-p", pid(vm), "--ir", vm.IR, "--layout", informed},
		{"frames", "-p", pid(exit), "--ir", exit.IR, "--layout", "simple"},
		{"frames", "-p", pid(paired), "--ir", paired.IR},
		{"frames", "-p", pid(double), "--ir", double.IR},
		{"frames", "-p", pid(chain), "--ir", chain.IR, "--depth", "2"},
		{"resume", "-p", pid(double), "--ir", double.IR},
		{"frames", "--core", core, "--ir", exit.IR, "--layout", layout(t)},
		{"frames", "--core", core, "--sysroot", t.TempDir()},
		{"frames", "--core", stackmap, "--ir", tick},
		{"resume", "--core", stackmap, "--ir", tick},
		{"resume", "-p", pid(exit), "--ir", exit.IR, "--layout", layout(t)},
		{"resume", "--core", core, "--ir", exit.IR, "--layout", layout(t)},
		{"resume", "-p", pid(chain), "--ir", chain.IR, "--to-frame", "all", "--result", "-1"},
		{"resume", "-p", pid(exit), "--ir", exit.IR, "--layout", layout(t), "--commit", "--dry-run"},
	} {
		r := reframe(t, append(args, "--json")...)
		require.NotEmpty(t, r.stdout, "%v\n%s", args, r.stderr)
		texts = append(texts, r.stdout)
	}
	for _, verb := range []string{"frames", "resume"} {
		schema, seen := schemaOf(t, verb+".schema.json"), map[string]bool{}
		for _, text := range texts {
			if !strings.Contains(text, `"reframe.`+verb+`/v1"`) {
				continue
			}
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			require.NoError(t, err)
			objects := objectsOf(v, nil)
			for n, o := range objects {
				for name, is := range o {
					if n%(1+len(objects)/20) == 0 || !seen[name] { // those of one kind are many
						o[name] = json.Number("1.5")
						require.Error(t, schema.Validate(v), "%s: %s is no number with a fraction", verb, name)
						o[name] = is
					}
					seen[name] = true
				}
				if n%(1+len(objects)/20) == 0 {
					o["unknown"] = json.Number("1.5") // which no map has as a value either
					require.Error(t, schema.Validate(v), "%s: %v", verb, o)
					delete(o, "unknown")
				}
			}
			require.NoError(t, schema.Validate(v))
		}
		known, err := os.ReadFile("../../doc/" + verb + ".schema.json")
		require.NoError(t, err)
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(known))
		require.NoError(t, err)
		for _, o := range objectsOf(v, nil) {
			fields, _ := o["properties"].(map[string]any)
			for name := range fields {
				if !seen[name] {
					require.Contains(t, elsewhere, name, "%s: a field that is never there", verb)
				}
			}
		}
	}
}

// elsewhere lists the fields that other tests have seen.
var elsewhere = []string{
	"exit_code", "path", "stopped", // programs that exit, results of several scalars, processes that SIGSTOP had stopped
	"demangled", "named_by", "source", "file", "line", "column", "inlined", "variable", "operand", // of names and sources
	"guess",                                            // of frames that are not certain
	"floating_point", "reason", "known", "environment", // of resume, in a thread whose floating-point environment is not the default
}

// objectsOf lists the objects in a JSON value.
func objectsOf(v any, found []map[string]any) []map[string]any {
	switch v := v.(type) {
	case map[string]any:
		found = append(found, v)
		for _, member := range v {
			found = objectsOf(member, found)
		}
	case []any:
		for _, member := range v {
			found = objectsOf(member, found)
		}
	}
	return found
}
