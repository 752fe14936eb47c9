package livetest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestChildrenHaveAllSignals requires that programs started by a test have the default handling of all signals, however the test was started, and
// that an ignored SIGHUP does not reach them.
func TestChildrenHaveAllSignals(t *testing.T) {
	NeedsTools(t)
	const inner = "LIVETEST_SIGNALS"
	// Besides SIGHUP and SIGTSTP, which Go leaves unchanged, the signals that Go handles, such as SIGCHLD, are checked.
	look := func() string {
		out, err := exec.Command("sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status").Output()
		require.NoError(t, err)
		return string(out)
	}
	if os.Getenv(inner) != "" {
		require.Equal(t, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n", look())
		session, err := unix.Getsid(0)
		require.NoError(t, err)
		require.Equal(t, os.Getenv(inner) == "own", session == os.Getpid(), "session %d", session)
		return
	}
	for _, c := range []struct {
		how     []string
		session string
	}{
		{nil, "shared"},
		{[]string{"env", "--ignore-signal=HUP"}, "own"}, // like nohup
		{[]string{"env", "--block-signal=HUP"}, "shared"},
		{[]string{"env", "--ignore-signal", "--block-signal"}, "own"}, // all signals that can be ignored or blocked
	} {
		line := append(c.how, os.Args[0], "-test.run=^TestChildrenHaveAllSignals$", "-test.v")
		cmd := exec.Command(line[0], line[1:]...)
		cmd.Env = append(os.Environ(), inner+"="+c.session)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%q\n%s", c.how, out)
		require.Equal(t, 1, strings.Count(string(out), "--- PASS: TestChildrenHaveAllSignals"), "%s", out)
	}
}
