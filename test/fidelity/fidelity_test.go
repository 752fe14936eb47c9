// Package fidelity_test runs whole programs in the reference interpreter and as native code, and wants the same of
// both: what they print, and their exit status. The programs were not written for it:
//
//   - random C programs of csmith, by clang 14 and 19 at four levels each, for 32-bit x86, and for a
//     processor with AVX2 (csmith_test.go);
//   - random modules of llvm-stress (stress_test.go);
//   - programs of Debian source packages on real input (source_test.go, script_test.go), and on files that
//     testdata/host keeps in their memory (program_test.go).
//
// Beside that, native code is compared with the interpreter at exits of such programs, into which package instrument writes sites (exits_test.go).
//
// The native side is compiled from the very IR that the interpreter runs. No program is left out for what the interpreter
// makes of it. By itself the test runs a share of them, by rules that are written beside each; with FIDELITY=all in its
// environment (make fidelity) it runs all.
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

// bound ends a program that does not end.
const bound = 5 * time.Minute

// native runs a command to its end, whatever its exit status. For a program that dies of a signal the status is 128 plus the signal's number, as in
// shells.
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

// endless reports whether a program still runs after a second, in which it executes a thousand times the instructions that the interpreter did before
// its limit.
func endless(t testing.TB, program string, args ...string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // on a slow machine more programs count as endless, and are not compared
	defer cancel()
	_ = exec.CommandContext(ctx, program, args...).Run() // its status does not matter
	return ctx.Err() != nil
}

// tool runs a compiler or linker that makes a file, unless the file is cached.
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

// run is interpreted for a program that may fail.
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
