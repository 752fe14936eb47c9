package livetest

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// DLV builds Delve's command dlv, and returns its path.
func DLV(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(moduleRoot(t), "test", "livetest", "dlv")
	// build appends -o and the output path, but "go build" accepts them only before the package.
	const script = `CGO_ENABLED=0 go build -C "$1" -buildvcs=false "$2" "$3" github.com/go-delve/delve/cmd/dlv`
	return build(t, recipe{
		output:   "dlv",
		tool:     Tool(t, "sh"),
		args:     []string{"-c", script, "sh", dir},
		inputs:   []string{filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum")},
		pathless: true, // the sources are in Go's module cache
	})
}

// DLVServer is a running headless server of dlv.
type DLVServer struct {
	*exec.Cmd
	Addr string // as reframe --delve expects it
}

// Headless starts a headless server of dlv with a command and its arguments, such as "attach" and a number, and waits until it listens at a socket. The
// server is killed at the end of the test. A process that it attached to may survive that, and ends with its own test.
func Headless(t testing.TB, args ...string) *DLVServer {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "dlv")
	return HeadlessAt(t, "unix:"+socket, args...)
}

// HeadlessAt is like Headless, at an address of dlv --listen.
func HeadlessAt(t testing.TB, listen string, args ...string) *DLVServer {
	t.Helper()
	c := exec.Command(DLV(t), append([]string{"--headless", "--listen=" + listen, "--check-go-version=false"}, args...)...)
	config := t.TempDir()
	telemetry := filepath.Join(config, "go", "telemetry") // unless telemetry is off, dlv starts a process that writes there after the test
	require.NoError(t, os.MkdirAll(telemetry, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(telemetry, "mode"), []byte("off\n"), 0o600))
	c.Env = append(os.Environ(), "XDG_CONFIG_HOME="+config)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	c.Stderr = c.Stdout
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if addr, ok := strings.CutPrefix(lines.Text(), "API server listening at: "); ok {
			go func() { // otherwise the server blocks when the pipe is full
				for lines.Scan() {
				}
			}()
			if strings.HasPrefix(addr, "/") {
				addr = "unix:" + addr
			}
			return &DLVServer{c, addr}
		}
		t.Log(lines.Text())
	}
	require.Fail(t, "dlv does not listen", "%v", args)
	return nil
}
