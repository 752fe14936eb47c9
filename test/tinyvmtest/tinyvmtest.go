// Package tinyvmtest runs random programs in examples/tinyvm, the virtual machine with whose frames other tests compare reframe's. Its main functions
// are [Program], which makes a program of a seed, [Binary], which builds the VM, and [Run].
//
// # Security
//
// The VM and the programs are this repository's own and are trusted; a run that does not end is killed.
package tinyvmtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// Versions lists the releases of LLVM with which the VM is built.
var Versions = []int{14, 19, 22}

// Binary builds tinyvm with an LLVM release and returns its path.
func Binary(t testing.TB, llvm int) string {
	t.Helper()
	dir := livetest.Testdata(t, "..", "examples", "tinyvm")
	config := func(flags ...string) []string {
		cmd := exec.Command(livetest.LLVM(t, llvm, "llvm-config"), flags...)
		out, err := cmd.Output()
		require.NoError(t, err, "%s", cmd)
		return strings.Fields(string(out))
	}
	args := []string{"-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-isystem", config("--includedir")[0]}
	for _, pattern := range []string{"*.cpp", "testing/*.cpp", "*.S"} {
		sources, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, sources)
		args = append(args, sources...)
	}
	args = append(args, config("--ldflags", "--libs", "core", "orcjit", "native", "passes", "irreader", "analysis")...)
	return livetest.Made(t, "g++", fmt.Sprintf("tinyvm-llvm%d", llvm), args...)
}

// File writes a seed's program to a temporary file, and returns its path.
func File(t testing.TB, seed uint64) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), fmt.Sprintf("seed%d.tvm", seed))
	require.NoError(t, os.WriteFile(file, []byte(Program(seed)), 0o644))
	return file
}

// Result is the result of a run.
type Result struct {
	Output string // standard output
	Status int    // exit status
	Exits  int    // number of exits of compiled code, with --exits
	Errors string // standard error
}

var exits = regexp.MustCompile(`(?m)^(\d+) exits$`)

// Fuel is the fuel of each run. Most programs need a few hundred; a program that needs much more would write a long log.
const Fuel = "3000"

// Run runs tinyvm with the given arguments and Fuel, at most for [livetest.Patience]. If a signal ends the VM, the status is -1.
func Run(t testing.TB, binary string, args ...string) Result {
	t.Helper()
	return run(t, []string{binary}, args...)
}

func run(t testing.TB, command []string, args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
	defer cancel()
	args = slices.Concat(command[1:], []string{"--fuel", Fuel}, args)
	cmd := exec.CommandContext(ctx, command[0], args...)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	failure := cmd.Run()
	require.NoError(t, ctx.Err(), "%s does not end", cmd)
	if exit := (*exec.ExitError)(nil); !errors.As(failure, &exit) {
		require.NoError(t, failure, "%s", cmd)
	}
	return Told(cmd.ProcessState.ExitCode(), out.String(), err.String())
}

// Told returns the Result of a run that the caller has started, from its exit status and output.
func Told(status int, output, errors string) Result {
	r := Result{Output: output, Errors: errors, Status: status}
	if m := exits.FindStringSubmatch(r.Errors); m != nil {
		r.Exits, _ = strconv.Atoi(m[1])
	}
	return r
}
