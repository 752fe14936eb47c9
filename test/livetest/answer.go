package livetest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// answer is the name of the cached output of a tool.
const answer = "answer"

// Answer runs a tool that only reads files, and returns its output and whether it succeeds. The answer is cached under a hash of everything it
// depends on, like built files. If the output contains the path of a temporary file, the path may be from an earlier run.
func Answer(t testing.TB, tool string, args ...string) (stdout, stderr string, ok bool) {
	t.Helper()
	r := recipe{output: answer, tool: Tool(t, tool), args: args, inputs: dependencies(t, args)}
	for _, a := range args {
		if strings.Contains(a, os.TempDir()+"/") && !slices.Contains(r.inputs, a) {
			return r.ask(t) // a part of the argument is a temporary path, which changes with each run, so the answer is not cached
		}
	}
	path := filepath.Join(CacheRoot(), r.key(t), r.output)
	if kept, err := os.ReadFile(path); err == nil {
		used(filepath.Dir(path))
		head, said, _ := bytes.Cut(kept, []byte("\n"))
		var printed int
		_, err := fmt.Sscan(string(head), &ok, &printed)
		require.NoError(t, err, path)
		return string(said[:printed]), string(said[printed:]), ok
	}
	stdout, stderr, ok = r.ask(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	fresh, err := os.CreateTemp(filepath.Dir(path), "answering-")
	require.NoError(t, err)
	_, err = fmt.Fprintf(fresh, "%t %d\n%s%s", ok, len(stdout), stdout, stderr)
	require.NoError(t, errors.Join(err, fresh.Close(), os.Rename(fresh.Name(), path)))
	return stdout, stderr, ok
}

// Printed runs a tool that only reads files, requires that it succeeds, and returns its output.
func Printed(t testing.TB, tool string, args ...string) string {
	t.Helper()
	stdout, stderr, ok := Answer(t, tool, args...)
	require.True(t, ok, "%s %q: %s", tool, args, stderr)
	return stdout
}

// ask runs the tool.
func (r recipe) ask(t testing.TB) (stdout, stderr string, ok bool) {
	t.Helper()
	var out, errs strings.Builder
	cmd := exec.Command(r.tool, r.args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "LLVM_DISABLE_SYMBOLIZATION=1") // do not symbolize the tool's own stack after a crash: that is slow
	err := cmd.Run()
	require.NotNil(t, cmd.ProcessState, "%v", err)
	return out.String(), errs.String(), err == nil
}
