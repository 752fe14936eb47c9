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

	"reframe/deopt/interp"
	"reframe/deopt/ir"
)

// endedAs is what the interpreter does with the IR of a program that may abort.
func endedAs(t *testing.T, path string, args ...string) ran {
	t.Helper()
	src, err := os.ReadFile(path)
	require.NoError(t, err)
	m, err := ir.Parse(filepath.Base(path), src)
	require.NoError(t, err)
	in, err := interp.New(m, interp.Options{Stdin: &bytes.Buffer{}})
	require.NoError(t, err)
	res, err := in.Main(context.Background(), args)
	var run *interp.RunError
	if err != nil {
		require.ErrorAs(t, err, &run)
		require.Equal(t, interp.KindAbort, run.Kind, "%v", err)
		return ran{res.Output, res.Errors, -1}
	}
	status := 0
	if res.ExitCode != nil {
		status = *res.ExitCode & 0xff
	} else if v, ok := res.Value.Uint(); ok {
		status = int(v & 0xff)
	}
	return ran{res.Output, res.Errors, status}
}

// arguments of a program that does another thing with each: their number.
var exceptionArguments = map[string]int{"endings": 24, "specs": 7}

// exceptionStandards are those that are not of C++17.
var exceptionStandards = map[string]string{"specs": "c++14"}

// TestExceptionsAreAsNative compiles programs that throw to an executable and to IR; both must do the
// same. One that ends by SIGABRT has the status -1. Without FIDELITY=all it is done with two of the compilers' ways.
func TestExceptionsAreAsNative(t *testing.T) {
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
