package interp_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/livetest"
)

// ran is the output and exit status of a C program.
type ran struct {
	Stdout, Stderr string
	Status         int
}

// native runs a command with an input. Any exit status is valid.
func native(t *testing.T, input []byte, name string, args ...string) ran {
	t.Helper()
	livetest.NeedsTools(t)
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	// Close descriptors inherited by the test process: they would shift the program's descriptor numbers.
	require.NoError(t, unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC))
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TZ=UTC0"}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return ran{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// clang runs clang to build the file named after "-o" in its arguments. It does not build a file again.
func clang(t *testing.T, version string, args ...string) {
	t.Helper()
	livetest.Make(t, "clang-"+version, append(slices.Clone(args), "-Werror")...)
}

// interpretedC runs the IR of a C program.
func interpretedC(t *testing.T, path string, input []byte, args ...string) ran {
	t.Helper()
	src, err := os.ReadFile(path)
	require.NoError(t, err)
	m, err := ir.Parse(filepath.Base(path), src)
	require.NoError(t, err)
	in, err := interp.New(m, interp.Options{Stdin: bytes.NewReader(input)})
	require.NoError(t, err)
	res, err := in.Main(context.Background(), args)
	require.NoError(t, err)
	if res.ExitCode != nil {
		return ran{res.Output, res.Errors, *res.ExitCode & 0xff}
	}
	v, ok := res.Value.Uint()
	require.True(t, ok, "the result of main is %s", res.Value.Format())
	return ran{res.Output, res.Errors, int(v & 0xff)}
}

// same compares line by line, so that a failure shows only the lines that differ.
func same(t *testing.T, want, got ran) {
	t.Helper()
	lines := strings.SplitAfter(got.Stdout, "\n")
	for k, line := range strings.SplitAfter(want.Stdout, "\n") {
		require.Less(t, k, len(lines), "line %d: %s", k+1, line)
		require.Equal(t, line, lines[k], "line %d", k+1)
	}
	require.Equal(t, want, got)
}

// targets holds the compiler flags for each target, by the suffix of its name.
var targets = map[string][]string{"": nil, "-i686": livetest.I686}

// TestCProgramsAreAsNative compiles each program of testdata/c to an executable and to IR. Both must behave the same with the same input.
func TestCProgramsAreAsNative(t *testing.T) {
	livetest.Slow(t)
	files, err := filepath.Glob("testdata/c/*.c")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".c")
		input, err := os.ReadFile("testdata/c/" + name + ".in")
		if err != nil {
			require.ErrorIs(t, err, os.ErrNotExist)
		}
		for _, version := range []string{"14", "19"} {
			for _, level := range []string{"-O0", "-O2"} {
				for target, flags := range targets {
					if flags != nil && (version == "14") == (level == "-O0") {
						continue // test only two of the four combinations for 32-bit x86
					}
					if (version != "19" || level != "-O2" || flags != nil) && !livetest.Share(4, name, version, level, target) {
						continue // always test one combination, and a share of the others
					}
					t.Run(name+"/"+version+level+target, func(t *testing.T) {
						dir := t.TempDir()
						program, module := filepath.Join(dir, name), filepath.Join(dir, name+".ll")
						clang(t, version, append(slices.Clone(flags), "-w", level, file, "-o", program, "-lm")...)
						clang(t, version, append(slices.Clone(flags), "-w", level, file, "-S", "-emit-llvm", "-o", module)...)
						command := []string{program, "argument"}
						if flags != nil {
							command = livetest.RunI686(t, program, "argument")
						}
						want := native(t, input, command[0], command[1:]...)
						same(t, want, interpretedC(t, module, input, program, "argument"))
					})
				}
			}
		}
	}
}
