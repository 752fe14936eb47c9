package interp_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
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

// TestExceptionsAreAsNative compiles programs that throw to an executable and to IR; both must do the
// same. One that ends by SIGABRT has the status -1.
func TestExceptionsAreAsNative(t *testing.T) {
	files, err := filepath.Glob("testdata/exceptions/*.cc")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".cc")
		for _, version := range []string{"14", "19"} {
			for _, level := range []string{"-O0", "-O2"} {
				t.Run(name+"/"+version+level, func(t *testing.T) {
					dir := t.TempDir()
					program, module := filepath.Join(dir, name), filepath.Join(dir, name+".ll")
					clang(t, version, "-std=c++17", "-w", level, "-o", program, file, "-lstdc++")
					clang(t, version, "-std=c++17", "-w", level, "-S", "-emit-llvm", "-o", module, file)
					same(t, native(t, nil, program), endedAs(t, module, program))
				})
			}
		}
	}
}
