package main

import (
	"encoding/json"
	"path/filepath"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

// withRuns is the number of times that each tool verifies the program.
const withRuns = 5

// interpretersOfVMs measures the cost of the VM's own interpreter: how many activations of tinyvm's compiled code it verifies in a second, compared
// with the reference interpreter, which runs the IR; and how many requests it sends for one exit.
func (b *bench) interpretersOfVMs() {
	b.section("Activations of tinyvm verified a second by its own interpreter (points.tvm, LLVM 19), %d runs", withRuns)
	vm, program := tinyvmtest.Binary(b, 19), livetest.Testdata(b, "..", "examples", "tinyvm", "points.tvm")
	dump, serve := b.TempDir(), vm+" --serve "+program
	_, text := b.start(vm, "--entries", "--dump", dump, program)
	modules, err := filepath.Glob(filepath.Join(dump, "*.ll"))
	require.NoError(b, err)
	require.NotEmpty(b, modules, text)
	python := tinyvmtest.ServeInPython(b, program)
	command := []string{"--", vm, "--entries", program}
	var plain, own, script times
	verify := func(series *times, flags ...string) func() {
		return func() {
			series.add(b.exitsOf(b.reframe, append(append([]string{"verify", "--site", "stackmap"}, flags...), command...)))
		}
	}
	interleave(withRuns, verify(&plain, "--ir", dump, "--limit", "10"), verify(&own, "--with", serve, "--limit", "300"), verify(&script, "--with", python, "--limit", "300"))
	core := filepath.Join(b.TempDir(), "exit.core")
	b.start(b.reframe, "record", "--site", "deoptimize", "--function", "Math.step", "-o", core, "--", vm, program)
	for _, by := range []string{serve, python} {
		o, text := b.start(b.reframe, "resume", core, "--with", by, "--json")
		var out struct {
			With struct {
				Interpreter string
				Requests    int
			}
		}
		require.NoError(b, json.Unmarshal(o.output, &out), "%s", text)
		require.Positive(b, out.With.Requests)
		b.note("one exit of points.tvm, with two objects that do not exist: %s asks %d times", out.With.Interpreter, out.With.Requests)
	}
	b.print(rates("verify --with, tinyvm", "verify", plain, own), rates("verify --with, tinyvm.py", "verify", plain, script))
}
