package interp_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/livetest"
)

// outcome holds the output and the exit status of a program.
type outcome struct {
	Output string
	Status int
}

// parse parses a module and all of its function bodies.
func parse(t testing.TB, src string) *ir.Module {
	t.Helper()
	m, err := ir.Parse("test.ll", []byte(src))
	require.NoError(t, err)
	require.NoError(t, m.Check())
	return m
}

// machineOf returns an interpreter for a module without a target.
func machineOf(t testing.TB, src string) (*interp.Interp, *ir.Module) {
	t.Helper()
	m := parse(t, src)
	in, err := interp.New(m, interp.Options{MaxSteps: 50e6})
	require.NoError(t, err)
	return in, m
}

// interpreted runs @main in the interpreter.
func interpreted(t *testing.T, src string) outcome {
	t.Helper()
	in, _ := machineOf(t, src)
	res, err := in.Main(context.Background(), []string{"test.ll"})
	require.NoError(t, err)
	if res.ExitCode != nil {
		return outcome{res.Output, *res.ExitCode & 0xff}
	}
	v, ok := res.Value.Uint()
	require.True(t, ok, "the result of main is %s", res.Value.Format())
	return outcome{res.Output, int(v & 0xff)}
}

// status runs a command and returns its output and exit status. Any exit status is valid.
func status(t *testing.T, name string, args ...string) outcome {
	t.Helper()
	livetest.NeedsTools(t)
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	require.Empty(t, stderr.String())
	return outcome{stdout.String(), cmd.ProcessState.ExitCode()}
}

// written writes a module to a file.
func written(t *testing.T, src string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.ll")
	require.NoError(t, os.WriteFile(path, []byte(src), 0o600))
	return path
}

// sameAsJIT compares the interpreter with native code, compiled by lli.
func sameAsJIT(t *testing.T, src string, versions ...string) {
	t.Helper()
	path := written(t, src)
	ours := interpreted(t, src)
	for _, v := range versions {
		require.Equal(t, status(t, "lli-"+v, path), ours, "lli-%s", v)
	}
}

// sameAsLinked compares the interpreter with a native program that llc compiles and gcc links. gcc adds the functions of libgcc, which lli cannot
// find.
func sameAsLinked(t *testing.T, src, version string) {
	t.Helper()
	path := written(t, src)
	object, program := path+".o", path+".exe"
	livetest.Make(t, "llc-"+version, "-filetype=obj", "-relocation-model=pic", "-o", object, path)
	livetest.Make(t, "gcc", "-o", program, object, "-lm")
	require.Equal(t, status(t, program), interpreted(t, src))
}

func TestProgramsAreAsNative(t *testing.T) {
	livetest.Slow(t)
	files, err := filepath.Glob("testdata/*.ll")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			require.NoError(t, err)
			sameAsJIT(t, string(src), "19", "22")
		})
	}
}

// rewritten runs LLVM's pass that turns calls into statepoints.
func rewritten(t *testing.T, file, version string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "rewritten.ll")
	livetest.Make(t, "opt-"+version, "-passes=rewrite-statepoints-for-gc", "-S", "-o", out, file)
	src, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Contains(t, string(src), "gc.statepoint")
	return string(src)
}

func TestTypedPointersAndStatepointsAreAsNative(t *testing.T) {
	livetest.Slow(t)
	const file = "testdata/typed/statepoint.ll"
	plain, err := os.ReadFile(file)
	require.NoError(t, err)
	sameAsJIT(t, string(plain), "14")
	sameAsJIT(t, rewritten(t, file, "14"), "14")
	for _, version := range []string{"16", "19", "22"} {
		if version == "16" {
			sameAsJIT(t, string(plain), version) // LLVM 16 reads typed pointers and prints opaque ones
			sameAsJIT(t, rewritten(t, file, version), version)
			continue
		}
		opaque := rewritten(t, file, "16")
		sameAsJIT(t, opaque, version)
	}
}

func TestMainGetsItsArguments(t *testing.T) {
	const src = `declare i32 @puts(ptr)
define i32 @main(i32 %argc, ptr %argv, ptr %envp) {
  %p = getelementptr ptr, ptr %argv, i64 2
  %s = load ptr, ptr %p
  %n = call i32 @puts(ptr %s)
  %e = load ptr, ptr %envp
  %end = getelementptr ptr, ptr %argv, i32 %argc
  %z = load ptr, ptr %end
  %same = icmp eq ptr %z, %e
  %r = select i1 %same, i32 %argc, i32 -1
  ret i32 %r
}`
	in, _ := machineOf(t, src)
	res, err := in.Main(context.Background(), []string{"prog", "one", "two words"})
	require.NoError(t, err)
	require.Equal(t, "two words\n", res.Output)
	require.Equal(t, "3", res.Value.Format())

	none, err := interp.New(parse(t, "declare i32 @main()"), interp.Options{})
	require.NoError(t, err)
	_, err = none.Main(context.Background(), nil)
	require.EqualError(t, err, "the module defines no @main")
}

func TestSharedProgramWithStackmapIsAsNative(t *testing.T) {
	src, err := os.ReadFile("../../testdata/programs/sm_spill.ll")
	require.NoError(t, err)
	sameAsJIT(t, string(src), "19")
}

// TestSharedProgramWithPatchpointIsAsNative runs the patchpoint program that other tests share. It replaces @blocker, which waits forever there,
// by a function that returns.
func TestSharedProgramWithPatchpointIsAsNative(t *testing.T) {
	src, err := os.ReadFile("../../testdata/programs/jit_pp.ll")
	require.NoError(t, err)
	text := string(src)
	for _, r := range [][2]string{
		{"br label %l\nl:\n  %r = call i32 @pause()\n  br label %l", "%y = mul i64 %a, 3\n  ret i64 %y"},
		{"ret i32 0\n}", "%r.hi = lshr i64 %r, 8\n  %r.x = xor i64 %r, %r.hi\n  %status = trunc i64 %r.x to i32\n  ret i32 %status\n}"},
	} {
		require.Contains(t, text, r[0])
		text = strings.ReplaceAll(text, r[0], r[1])
	}
	sameAsJIT(t, text, "19", "22")
}
