// Package fidelity_test runs whole programs in the reference interpreter and as native code, and requires the same output and exit status. The
// programs were not written for these tests:
//
//   - random C programs of csmith, by clang 14 and 19 at four levels each, for 32-bit x86, and for a
//     processor with AVX2 (csmith_test.go);
//   - random modules of llvm-stress (stress_test.go);
//   - programs of Debian source packages on real input (source_test.go, script_test.go), and on files that
//     testdata/host keeps in their memory (program_test.go).
//
// Native code is also compared with the interpreter at exits of such programs, in which package instrument has inserted sites (exits_test.go).
//
// The native program is compiled from the same IR that the interpreter runs. No program is omitted because of the interpreter's result. By default
// the tests run a selection of the programs, by rules that are given at each test; with FIDELITY=all in the environment (make fidelity) they run all.
//
// # Security
//
// The programs are compiled by the machine's own compilers and run as native code with the rights of the test:
// random programs of a generator that writes no system calls, and packages of the distribution, whose signatures
// apt checks.
package fidelity_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/livetest"
)

// all selects all programs, instead of a share.
var all = os.Getenv("FIDELITY") == "all"

// outcome is the result of a program.
type outcome struct {
	Output, Errors string
	Status         int
}

// bound limits the duration of a program.
const bound = 5 * time.Minute

// native runs a command to its end, whatever its exit status is. If a signal ended the program, the status is 128 plus the number of the signal, as
// in shells.
func native(t testing.TB, stdin []byte, name string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	require.NoError(t, ctx.Err(), "%s", cmd)
	ended := cmd.ProcessState.Sys().(syscall.WaitStatus)
	out := outcome{stdout.String(), stderr.String(), ended.ExitStatus()}
	if ended.Signaled() {
		out.Status = 128 + int(ended.Signal())
	}
	return out
}

// endless reports whether a native program still runs after a second. In a second it executes about a thousand times as many instructions as the
// interpreter's limit.
func endless(t testing.TB, program string, args ...string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // on a slow machine more programs count as endless and are not compared
	defer cancel()
	_ = exec.CommandContext(ctx, program, args...).Run() // only the context's error matters
	return ctx.Err() != nil
}

// tool runs a compiler or linker. A file in the cache replaces the run.
func tool(t testing.TB, name string, args ...string) {
	t.Helper()
	livetest.Make(t, name, args...)
}

// interpreted runs the program of a module in the interpreter.
func interpreted(t testing.TB, module string, stdin []byte, args ...string) outcome {
	t.Helper()
	out, err := run(t, module, stdin, 100e9, args...)
	require.NoError(t, err, "%s", module)
	return out
}

// run is like interpreted, for a program that may fail.
func run(t testing.TB, module string, stdin []byte, steps uint64, args ...string) (outcome, error) {
	t.Helper()
	text, err := os.ReadFile(module)
	require.NoError(t, err)
	m, err := ir.Parse(module, text)
	require.NoError(t, err)
	in, err := interp.New(m, interp.Options{Stdin: bytes.NewReader(stdin), MaxSteps: steps})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	res, err := in.Main(ctx, args)
	if err != nil {
		return outcome{Output: res.Output, Errors: res.Errors}, err
	}
	out := outcome{Output: res.Output, Errors: res.Errors}
	if res.ExitCode != nil {
		out.Status = *res.ExitCode & 0xff
		return out, nil
	}
	v, ok := res.Value.Uint()
	require.True(t, ok, "the result of main is %s", res.Value.Format())
	out.Status = int(v & 0xff)
	return out, nil
}
