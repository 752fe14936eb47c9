package gohost

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m)) }

// TestExample requires that the example host in Go can be inspected, traced, verified and recorded. In its 27th call of square, i is 26 and acc is
// the sum of the squares of smaller numbers.
func TestExample(t *testing.T) {
	livetest.Slow(t)
	config := func(flags ...string) string {
		text, err := exec.Command(livetest.LLVM(t, 19, "llvm-config"), flags...).Output()
		require.NoError(t, err)
		return strings.TrimSpace(string(text))
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "gohost")
	build := exec.Command(livetest.Tool(t, "go"), "build", "-C", filepath.Join("..", "..", "examples", "gohost"), "-buildvcs=false", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=1", "CC=gcc", "GOFLAGS=", "CGO_CFLAGS="+config("--cflags"), "CGO_LDFLAGS="+config("--ldflags", "--libs", "core", "orcjit", "native", "passes", "irreader"))
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	module := filepath.Join(dir, "work.ll") // the host writes its module to its working directory

	run := func(args ...string) clitest.Result {
		c := clitest.Command(t, args...)
		c.Dir = dir
		return clitest.Finish(t, c)
	}
	count := run("trace", "--count", "--", program, "run")
	require.Zero(t, count.Code, count.Stderr)
	require.Contains(t, count.Stdout+count.Stderr, "1000 exits")
	verified := run("verify", "--ir", module, "--limit", "5", "--", program, "run")
	require.Zero(t, verified.Code, verified.Stderr)
	require.Contains(t, verified.Stdout+verified.Stderr, "5 same, 0 different")

	host := exec.Command(program)
	host.Dir = dir
	output, err := host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, host.Start())
	t.Cleanup(func() { _ = host.Process.Kill(); _ = host.Wait() })
	pid := 0
	_, err = fmt.Fscanf(output, "pid %d\n", &pid)
	require.NoError(t, err)
	live := []string{"frames", "--json", "--ir", module, "-p", fmt.Sprint(pid)}
	require.Eventually(t, func() bool { return run(live...).Code == 0 }, livetest.Patience, 10*time.Millisecond) // wait until the goroutine sleeps
	core := filepath.Join(dir, "host.core")
	require.Zero(t, run("record", "-p", fmt.Sprint(pid), "--ir", module, "-o", core).Code)
	for _, args := range [][]string{live, {"frames", "--json", "--ir", module, "--core", core}} {
		report := run(args...).Object(t)
		f := clitest.FrameOf(t, report, "work")
		values := map[string]string{}
		for _, s := range clitest.Objects(t, f["slots"]) {
			values[fmt.Sprint(s["name"])] = fmt.Sprint(s["value"])
		}
		require.Equal(t, map[string]string{"%i": "26", "%acc": "5525", "%n": "1000"}, values)
		require.Equal(t, "in-call", f["record"].(map[string]any)["moment"])
	}
}
