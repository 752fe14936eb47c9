package livetest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// recipe describes how a tool builds a file.
type recipe struct {
	output   string   // base name of the file made
	tool     string   // path of the program that makes it
	args     []string // its arguments; "-o" and the output's path are appended
	inputs   []string // the files whose contents the output depends on
	pathless bool     // the output contains no path of this clone, although the tool may write paths
}

// build returns the path of the recipe's output, from the cache or built now. Packages tested in parallel may build the same file. Each writes its
// own file and renames it into place, so that no test sees an incomplete one.
func build(t testing.TB, r recipe) string {
	t.Helper()
	output, failure := r.make(t)
	if failure != "" { // remove the failure from the cache: the next run may have more memory or disk space
		require.NoError(t, os.Remove(output))
	}
	require.Empty(t, failure)
	return output
}

// Made returns the path of a file that a tool builds with the given arguments, followed by "-o" and a path. The file must depend only on the
// arguments that are files, and on the files that these include.
func Made(t testing.TB, tool, output string, args ...string) string {
	t.Helper()
	return build(t, recipe{output: output, tool: Tool(t, tool), args: args, inputs: dependencies(t, args)})
}

// TryMade is like Made, for a tool that may fail. After a failure it returns the reason instead of a path.
func TryMade(t testing.TB, tool, output string, args ...string) (path, failure string) {
	t.Helper()
	path, failure = recipe{output: output, tool: Tool(t, tool), args: args, inputs: dependencies(t, args)}.make(t)
	if failure != "" {
		return "", failure
	}
	return path, ""
}

// Make runs a tool that builds the file after "-o" among its arguments, or copies an earlier result for the same arguments there. The file is a copy
// because tests change such files.
func Make(t testing.TB, tool string, args ...string) {
	t.Helper()
	o := slices.Index(args, "-o")
	require.NotEqual(t, -1, o, "%s %q", tool, args)
	output := args[o+1]
	made := Made(t, tool, filepath.Base(output), slices.Delete(slices.Clone(args), o, o+2)...)
	content, err := os.ReadFile(made)
	require.NoError(t, err)
	info, err := os.Stat(made)
	require.NoError(t, err)
	// Hold the fork lock: a child that is forked meanwhile would briefly have the file open for writing, so that it could not be executed.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(output, content, info.Mode().Perm()))
}

// make builds the output, or returns the reason of the failure. The cache holds failures too.
func (r recipe) make(t testing.TB) (output, failure string) {
	t.Helper()
	NeedsTools(t)
	dir := filepath.Join(CacheRoot(), r.key(t))
	output = filepath.Join(dir, r.output)
	used(dir)
	if _, err := os.Stat(output); err == nil {
		return output, ""
	}
	if text, err := os.ReadFile(output + ".failed"); err == nil {
		return "", string(text)
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	work, err := os.MkdirTemp(dir, "building-")
	require.NoError(t, err)
	defer os.RemoveAll(work)
	fresh := filepath.Join(work, r.output)
	cmd := exec.Command(r.tool, append(r.args[:len(r.args):len(r.args)], "-o", fresh)...)
	cmd.Env = append(os.Environ(), "LLVM_DISABLE_SYMBOLIZATION=1") // do not symbolize the tool's own stack after a crash: that is slow
	text, err := cmd.CombinedOutput()
	if err != nil {
		failure = fmt.Sprintf("%v: %s\n%s", err, cmd, text)
		fresh, output = fresh+".failed", output+".failed"
		require.NoError(t, os.WriteFile(fresh, []byte(failure), 0o644))
	}
	require.NoError(t, os.Rename(fresh, output))
	return output, failure
}

// key returns a hash of everything the output depends on. It omits the directory of a temporary file, and that of this clone where the output does not
// contain it, so that clones share what they build. It
// includes the tool's resolved path, size and modification time, so that an upgraded compiler rebuilds.
func (r recipe) key(t testing.TB) string {
	t.Helper()
	tool, err := filepath.EvalSymlinks(r.tool)
	require.NoError(t, err)
	info, err := os.Stat(tool)
	require.NoError(t, err)
	args, root := slices.Clone(r.args), moduleRoot(t)+string(filepath.Separator)
	for i, a := range args {
		if n := slices.Index(r.inputs, a); n >= 0 && strings.HasPrefix(a, os.TempDir()+"/") {
			args[i] = fmt.Sprint("input ", n) // a temporary file, whose path changes with each run, is replaced by its number
		} else if !r.containsPaths() {
			args[i] = strings.ReplaceAll(a, root, "")
		}
	}
	var all bytes.Buffer
	fmt.Fprintf(&all, "%s %d %d %q %q\n", tool, info.Size(), info.ModTime().UnixNano(), r.output, args)
	for _, name := range r.inputs {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		fmt.Fprintf(&all, "%d\n%s", len(content), content)
	}
	return fmt.Sprintf("%x", sha256.Sum256(all.Bytes()))[:32]
}

// containsPaths reports whether the output may contain paths of sources, as debug information, messages of sanitizers, and LLVM IR of a source do.
// The output of Answer repeats its arguments.
func (r recipe) containsPaths() bool {
	if r.pathless {
		return false
	}
	tool := filepath.Base(r.tool)
	return r.output == answer || tool == "sh" || tool == "go" ||
		slices.ContainsFunc(r.args, func(a string) bool {
			return strings.HasPrefix(a, "-g") || strings.HasPrefix(a, "-fsanitize") || a == "-emit-llvm"
		})
}

// used sets the time of a cache entry to today, so that scripts/prune.sh keeps it.
func used(dir string) {
	if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
		now := time.Now()
		_ = os.Chtimes(dir, now, now) // after an error, the entry may be removed too early and built again
	}
}

// CacheRoot returns the directory of the files that tests build.
func CacheRoot() string {
	dir, err := os.UserCacheDir()
	if err != nil { // neither HOME nor XDG_CACHE_HOME is set
		dir = os.TempDir()
	}
	return filepath.Join(dir, "reframe-test")
}
