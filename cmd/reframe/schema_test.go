package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestMapsSchema requires that the JSON of maps matches its schema, for all kinds of options.
func TestMapsSchema(t *testing.T) {
	t.Parallel()
	statepoint := livetest.Object(t, 19, "jit_sp.ll")
	patchpoint := livetest.Object(t, 19, "jit_pp.ll")
	broken := clitest.ChangedObject(t, patchpoint, "broken.o", func(b []byte, at int) []byte { b[at] = 9; return b })
	p := livetest.Lli(t, 19, "jit_sp.ll", "mcjit")
	for _, args := range [][]string{
		{statepoint},
		{statepoint, "--ir", p.IR},
		{patchpoint},
		{patchpoint, "--function", "wor."},
		{patchpoint, "--function", "nothing"},
		{patchpoint, "--record", "2001"},
		{patchpoint, "--address", "0x1"},
		{"-p", clitest.PID(p)},
		{"-p", clitest.PID(p), "--ir", p.IR},
	} {
		r := clitest.Run(t, append([]string{"maps", "--json"}, args...)...)
		require.Contains(t, []int{0, 1}, r.Code, "%v\n%s", args, r.Stderr)
		clitest.RequireValid(t, "maps.schema.json", r.Stdout)
	}
	for _, args := range [][]string{{statepoint}, {statepoint, "--ir", p.IR}, {broken}, {"-p", clitest.PID(p)}, {"-p", clitest.PID(p), "--ir", p.IR}} {
		r := clitest.Run(t, append([]string{"maps", "--check", "--json"}, args...)...)
		require.Contains(t, []int{0, 1}, r.Code, "%v\n%s", args, r.Stderr)
		clitest.RequireValid(t, "check.schema.json", r.Stdout)
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

// TestFramesAndResumeSchema requires that the JSON of frames and resume matches its schemas for many kinds of targets; [finish] checks all output.
// Each field must occur at least once, except for fields that no target of this test has.
func TestFramesAndResumeSchema(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	exit := livetest.Lli(t, 19, clitest.StoringModule(t), "orc")
	call := livetest.Lli(t, 22, "jit_pp.ll", "mcjit")
	chain := livetest.Lli(t, 16, "chain.ll", "mcjit")
	odd := livetest.Lli(t, 19, "odd_types.ll", "orc")
	refused := livetest.Lli(t, 19, "false_match.ll", "orc")
	plain := livetest.C(t, "nojit.c", nil)
	direct := livetest.Lli(t, 19, livetest.Module(t, clitest.AllocasModule), "mcjit")
	vm, informed := livetest.Lli(t, 19, "vmsimple.ll", "orc"), filepath.Join(t.TempDir(), "informed.star")
	require.NoError(t, os.WriteFile(informed, []byte("def frames(site):\n  skip(site.operands)\n  f = frame('m', 3)\n  f.local(0, ref(1))\n  f.local(1, ref(2))\n  return f\n"+
		"def info(method, position):\n  return {'line': 7}\ndef text(v):\n  return 'two' if v.bits == 2 else fail('not two')\n"), 0o644))
	paired := livetest.Lli(t, 19, livetest.Raw(t, clitest.DerivedPointersModule), "mcjit")
	double := livetest.Lli(t, 19, livetest.Module(t, twice), "mcjit")
	core, stackmap := livetest.Gcore(t, exit), filepath.Join(t.TempDir(), "stackmap.core")
	object, tick := clitest.TickObject(t)
	kept := clitest.Run(t, append([]string{"record", "--ir", tick, "-o", stackmap, "--"}, livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{})...)...)
	require.Equal(t, 0, kept.Code, kept.Stderr)
	with := func(result string) string {
		command, _ := clitest.AnsweringInterpreter(t, result)
		return command
	}
	var texts []string
	for _, args := range [][]string{
		{"resume", "-p", clitest.PID(vm), "--ir", vm.IR, "--layout", "simple", "--with", with(clitest.Returned42)},
		{"resume", "-p", clitest.PID(vm), "--ir", vm.IR, "--layout", "simple", "--with", with(`{"threw":{"text":"x"}}`)},
		{"resume", "-p", clitest.PID(vm), "--ir", vm.IR, "--layout", "simple", "--with", with(`{"unsupported":"x"}`)},
		{"resume", "-p", clitest.PID(vm), "--ir", vm.IR, "--layout", "simple", "--with", with(`{"malformed":"x"}`)},
		{"frames", "-p", clitest.PID(exit)},
		{"frames", "-p", clitest.PID(direct), "--ir", direct.IR},
		{"frames", "-p", clitest.PID(exit), "--ir", exit.IR},
		{"frames", "-p", clitest.PID(exit), "--ir", exit.IR, "--layout", clitest.DeoptimizeLayout(t)},
		{"frames", "-p", clitest.PID(exit), "--layout", clitest.DeoptimizeLayout(t)},
		{"frames", "-p", clitest.PID(exit), "--stack-bytes", "4096"},
		{"frames", "-p", clitest.PID(exit), "-f", "0"},
		{"frames", "-p", clitest.PID(call), "--ir", call.IR},
		{"frames", "-p", clitest.PID(chain), "--ir", chain.IR, "--hold"},
		{"frames", "-p", clitest.PID(odd), "--ir", odd.IR},
		{"frames", "-p", clitest.PID(plain)},
		{"frames", "-p", clitest.PID(refused), "--ir", refused.IR},
		{"frames", "-p", clitest.PID(vm), "--ir", vm.IR, "--layout", "simple"},
		{"frames", "-p", clitest.PID(vm), "--ir", vm.IR, "--layout", informed},
		{"frames", "-p", clitest.PID(exit), "--ir", exit.IR, "--layout", "simple"},
		{"frames", "-p", clitest.PID(paired), "--ir", paired.IR},
		{"frames", "-p", clitest.PID(double), "--ir", double.IR},
		{"frames", "-p", clitest.PID(chain), "--ir", chain.IR, "--depth", "2"},
		{"resume", "-p", clitest.PID(double), "--ir", double.IR},
		{"frames", "--core", core, "--ir", exit.IR, "--layout", clitest.DeoptimizeLayout(t)},
		{"frames", "--core", core, "--sysroot", t.TempDir()},
		{"frames", "--core", stackmap, "--ir", tick},
		{"resume", "--core", stackmap, "--ir", tick},
		{"resume", "-p", clitest.PID(exit), "--ir", exit.IR, "--layout", clitest.DeoptimizeLayout(t)},
		{"resume", "--core", core, "--ir", exit.IR, "--layout", clitest.DeoptimizeLayout(t)},
		{"resume", "-p", clitest.PID(chain), "--ir", chain.IR, "--to-frame", "all", "--result", "-1"},
		{"resume", "-p", clitest.PID(exit), "--ir", exit.IR, "--layout", clitest.DeoptimizeLayout(t), "--commit", "--dry-run"},
	} {
		r := clitest.Run(t, append(args, "--json")...)
		require.NotEmpty(t, r.Stdout, "%v\n%s", args, r.Stderr)
		texts = append(texts, r.Stdout)
	}
	for _, verb := range []string{"frames", "resume"} {
		schema, seen := clitest.SchemaOf(t, verb+".schema.json"), map[string]bool{}
		for _, text := range texts {
			if !strings.Contains(text, `"reframe.`+verb+`/v1"`) {
				continue
			}
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			require.NoError(t, err)
			objects := clitest.ObjectsOf(v, nil)
			for n, o := range objects {
				for name, is := range o {
					if n%(1+len(objects)/20) == 0 || !seen[name] { // only some of the many objects of one kind are tested
						o[name] = json.Number("1.5")
						require.Error(t, schema.Validate(v), "%s: %s is no number with a fraction", verb, name)
						o[name] = is
					}
					seen[name] = true
				}
				if n%(1+len(objects)/20) == 0 {
					o["unknown"] = json.Number("1.5") // maps never have such a value
					require.Error(t, schema.Validate(v), "%s: %v", verb, o)
					delete(o, "unknown")
				}
			}
			require.NoError(t, schema.Validate(v))
		}
		known, err := os.ReadFile("../../doc/user/schema/" + verb + ".schema.json")
		require.NoError(t, err)
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(known))
		require.NoError(t, err)
		for _, o := range clitest.ObjectsOf(v, nil) {
			fields, _ := o["properties"].(map[string]any)
			for name := range fields {
				if !seen[name] {
					require.Contains(t, elsewhere, name, "%s: a field that is never there", verb)
				}
			}
		}
	}
}

// elsewhere lists the fields that only other tests cover.
var elsewhere = []string{
	"exit_code", "path", "stopped", // of programs that exit, of results with several scalars, of processes that SIGSTOP had stopped
	"demangled", "named_by", "source", "file", "line", "column", "inlined", "variable", "operand", // of names and sources
	"guess",                // of frames that are not certain
	"end_code",             // of stacks that a limit cut short
	"provider", "debugger", // of processes that another debugger holds
	"registers",                                           // of frames --registers
	"goroutine", "goroutines", "state", "start", "labels", // of Go programs
	"words", "element", "notes", "mismatch", "one_of", "one_of_more", // of values of several words, of layouts that describe objects or differ, and of ambiguous pointers
	"floating_point", "reason", "known", "environment", // of resume, in a thread whose floating-point environment is not the default
}
