package ptrace

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestMemoryOfATargetThatBecomesAnotherUser requires that the tracer opens the memory file again after the target has changed its user by execve(2).
// If the tracer is killed, the watchdog restores the code through that file.
func TestMemoryOfATargetThatBecomesAnotherUser(t *testing.T) {
	user := os.Geteuid()
	if user == 0 {
		user = 65534
	}
	s, err := Launch(context.Background(), []string{livetest.Tool(t, "setpriv"), fmt.Sprintf("--reuid=%d", user), livetest.Tool(t, "true")})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Detach() })
	for e := (Event{}); e.Kind != Exec; {
		e, err = s.Next(context.Background())
		require.NoError(t, err)
	}
	dir := fmt.Sprintf("/proc/%d/fd", tracerPID(s))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var files []string
	for _, e := range entries {
		if file, err := os.Readlink(dir + "/" + e.Name()); err == nil && strings.HasPrefix(file, "/proc/") && strings.HasSuffix(file, "/mem") {
			files = append(files, file)
		}
	}
	require.NotEmpty(t, files)
}
