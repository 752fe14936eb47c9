package frames_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/check/verify"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestVerifyNumba requires that numba's code, with stackmaps of all live values, agrees with the interpreter at every site that it reaches. At some
// sites an i1 or the result of an overflow intrinsic is live, which LLVM 14 records partly or not at all.
func TestVerifyNumba(t *testing.T) {
	livetest.NeedsTools(t)
	livetest.Slow(t)
	t.Parallel()
	sites := filepath.Join(t.TempDir(), "sites")
	c := exec.Command("/usr/bin/python3", "../../examples/numba_sites.py", sites, "../../examples/numba_work.py") // Debian's Python, which has numba
	c.Env = append(os.Environ(), "PATH="+filepath.Dir(clitest.Binary())+":/usr/bin:/bin", "NUMBA_CPU_NAME=generic")
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	pid := clitest.WaitingLine.FindStringSubmatch(line)
	require.NotNil(t, pid, line)

	r := clitest.Run(t, "verify", "-p", pid[1], "--ir", sites, "--function", "^_ZN8__main__", "--limit", "5", "--json")
	require.Equal(t, 0, r.Code, "%s%s", r.Stdout, r.Stderr)
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	var summary verify.Summary
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &summary), r.Stdout)
	require.EqualValues(t, 5, summary.Same, r.Stdout)
}
