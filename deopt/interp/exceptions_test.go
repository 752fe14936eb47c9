package interp_test

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/livetest"
)

// endedAs returns the outcome of a program that may abort. It runs the IR by blocks and by single instructions, and requires the same outcome and the
// same step count. The step count is the number of traced instructions, or at most two more.
func endedAs(t *testing.T, path string, args ...string) ran {
	t.Helper()
	fast, steps := endedWith(t, path, nil, args...)
	traced := uint64(0)
	slow, again := endedWith(t, path, func(interp.Traced) { traced++ }, args...)
	same(t, fast, slow)
	require.Equal(t, steps, again)
	require.GreaterOrEqual(t, steps, traced) // the instruction that ends the run is not traced
	require.LessOrEqual(t, steps, traced+2)
	return fast
}

func endedWith(t *testing.T, path string, trace func(interp.Traced), args ...string) (ran, uint64) {
	t.Helper()
	src, err := os.ReadFile(path)
	require.NoError(t, err)
	m, err := ir.Parse(filepath.Base(path), src)
	require.NoError(t, err)
	in, err := interp.New(m, interp.Options{Stdin: &bytes.Buffer{}, Trace: trace})
	require.NoError(t, err)
	res, err := in.Main(context.Background(), args)
	total := uint64(0)
	for _, p := range in.Profile() {
		total += p.Instrs
	}
	require.Equal(t, res.Steps, total)
	var run *interp.RunError
	if err != nil {
		require.ErrorAs(t, err, &run)
		require.Equal(t, interp.KindAbort, run.Kind, "%v", err)
		return ran{res.Output, res.Errors, -1}, res.Steps
	}
	status := 0
	if res.ExitCode != nil {
		status = *res.ExitCode & 0xff
	} else if v, ok := res.Value.Uint(); ok {
		status = int(v & 0xff)
	}
	return ran{res.Output, res.Errors, status}, res.Steps
}

// exceptionArguments holds the number of test cases of a program that selects one by its argument.
var exceptionArguments = map[string]int{"endings": 24, "foreign": 4, "specs": 7}

// exceptionStandards holds the C++ standard of each program that is not C++17.
var exceptionStandards = map[string]string{"specs": "c++14"}

// TestExceptionsAreAsNative compiles throwing programs to an executable and to IR. Both must have the same output and exit status, where -1 means an
// end by SIGABRT. Without FIDELITY=all it tests only two combinations of compiler and optimization level.
func TestExceptionsAreAsNative(t *testing.T) {
	livetest.Slow(t)
	files, err := filepath.Glob("testdata/exceptions/*.cc")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".cc")
		for _, version := range []string{"14", "19"} {
			for _, level := range []string{"-O0", "-O1", "-O2"} {
				if way := version + level; os.Getenv("FIDELITY") != "all" && way != "14-O0" && way != "19-O2" {
					continue
				}
				t.Run(name+"/"+version+level, func(t *testing.T) {
					dir := t.TempDir()
					program, module := filepath.Join(dir, name), filepath.Join(dir, name+".ll")
					standard := "-std=" + cmp.Or(exceptionStandards[name], "c++17")
					clang(t, version, standard, "-w", level, "-S", "-emit-llvm", "-o", module, file)
					clang(t, version, "-w", level, "-o", program, module, "-lstdc++")
					for k := range max(exceptionArguments[name], 1) {
						argument := strconv.Itoa(k)
						t.Logf("argument %d", k)
						same(t, native(t, nil, program, argument), endedAs(t, module, program, argument))
					}
				})
			}
		}
	}
}
