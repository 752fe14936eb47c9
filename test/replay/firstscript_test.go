package replay_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

// TestFirstScriptOfSelfDescription requires that record --script of a process that describes itself expects the frames of its virtual machine, and
// that the script passes.
func TestFirstScriptOfSelfDescription(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	vm, _, _ := clitest.TinyVM(t)
	meter := livetest.Testdata(t, "..", "examples", "tinyvm", "meter.tvm")
	dir := t.TempDir()
	core, script := filepath.Join(dir, "exit.core"), filepath.Join(dir, "exit.txtar")
	r := clitest.Run(t, "record", "--function", "Meter.hour", "-o", core, "--script", script, "--", vm, "--fault", "stale", meter)
	require.Equal(t, 0, r.Code, r.Stderr)
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	require.Contains(t, string(text), "\nexpect method Meter.reading\nexpect position 4\n")
	require.Contains(t, string(text), "\nexpect caller[1].local[0] = 83\n")
	require.Equal(t, 0, clitest.Run(t, "replay", script).Code)
	kept := filepath.Join(dir, "kept")
	_, _, serve := clitest.TinyVM(t)
	program := livetest.Testdata(t, "..", "examples", "tinyvm", "points.tvm")
	r = clitest.Run(t, "verify", "--with", serve, "--limit", "1", "--keep", kept, "--", vm, "--fuel", tinyvmtest.Fuel, "--entries", "--fault", "mode", program)
	require.Equal(t, 3, r.Code, r.Stderr)
	scripts, err := filepath.Glob(filepath.Join(kept, "*.txtar"))
	require.NoError(t, err)
	require.Len(t, scripts, 1)
	text, err = os.ReadFile(scripts[0])
	require.NoError(t, err)
	require.Contains(t, string(text), "\nexpect method ")
	require.Equal(t, 0, clitest.Run(t, "replay", scripts[0]).Code)
}

// TestFirstScriptOfFolder requires that a first script can name modules by a folder or pattern, and that it expects locks and the layout's info.
func TestFirstScriptOfFolder(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "vmsimple.ll", "orc")
	dir := t.TempDir()
	text, err := os.ReadFile(p.IR)
	require.NoError(t, err)
	folder := filepath.Join(dir, "ir")
	require.NoError(t, os.Mkdir(folder, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "vmsimple.ll"), text, 0o644))
	simple, err := os.ReadFile("../../internal/vm/vmlayout/layouts/simple.star")
	require.NoError(t, err)
	layout := clitest.TempFile(t, "own.star", string(simple)+"\ndef info(method, position): return {\"line\": \"number %d\" % position}\n")
	for _, modules := range []string{folder, filepath.Join(folder, "*.ll")} {
		core := filepath.Join(t.TempDir(), "exit.core")
		r := clitest.Run(t, "record", "-p", clitest.PID(p), "-o", core, "--script", core+".txtar", "--ir", modules, "--layout", layout)
		require.Equal(t, 0, r.Code, r.Stderr)
		script, err := os.ReadFile(core + ".txtar")
		require.NoError(t, err)
		require.Contains(t, string(script), "\nexpect method Foo.bar\nexpect position 17\nexpect info line 'number 17'\n")
		require.Contains(t, string(script), "\nexpect lock[0] object 4\n")
		r = clitest.Run(t, "replay", core+".txtar")
		require.Equal(t, 0, r.Code, r.Stdout+r.Stderr)
	}
}
