package arm64_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// sharedMachine is a Linux for arm64 in QEMU. It boots once and runs the scripts of all tests that need it.
type sharedMachine struct {
	files  map[string]string
	script []string
	once   sync.Once
	booted bool
	out    map[string][]byte
}

var arm64Machine = &sharedMachine{}

// machineTurn reports whether the tests in QEMU run. make test runs only one of their two groups, because emulation takes minutes of processor time.
func machineTurn(t *testing.T) bool {
	t.Helper()
	groups := [][]string{{"TestLiveOnARM64", "TestWatcherKilledOnARM64", "TestTrapHandlerOnARM64"}, {"TestControlOnARM64", "TestCommitOnARM64", "TestPatchedShadowsLiveOnARM64"}}
	for _, group := range livetest.ShareOf(groups, "arm64 machine") {
		if slices.Contains(group, t.Name()) {
			return true
		}
	}
	return false
}

// onARM64 runs a test's script in the shared machine, together with the scripts of other tests, and returns the results of all. The test must be
// parallel. Each test first registers its files and script, then waits for the tests that are not parallel. The first test that continues boots the
// machine.
func onARM64(t *testing.T, files map[string]string, script ...string) map[string][]byte {
	t.Helper()
	if arm64Machine.booted { // the machine ran in an earlier round of go test -count
		arm64Machine = &sharedMachine{}
	}
	m := arm64Machine
	if m.files == nil {
		m.files = map[string]string{"reframe": buildFor(t, "arm64")}
	}
	for name, path := range files {
		require.NotContains(t, m.files, name, "another test has it")
		m.files[name] = path
	}
	left := map[string]bool{}
	for _, line := range m.script {
		left[leaves(line)] = true
	}
	for _, line := range script {
		require.False(t, leaves(line) != "" && left[leaves(line)], "another test has %s", line)
	}
	m.script = append(m.script, script...)
	t.Parallel()
	m.once.Do(func() {
		m.booted = true
		m.out = livetest.BootARM64(t, "testdata/arm64init", m.files, m.script...)
	})
	require.NotNil(t, m.out, "another test failed to boot it")
	return m.out
}

// leaves returns the name under which the shared machine stores the results of a script's line, or "" if the line has no results.
func leaves(line string) string {
	if words := strings.Fields(line); words[0] == "run" || words[0] == "end" || words[0] == "kill" {
		return words[1]
	}
	return ""
}
