package livetest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ObjectHostOptions configures how obj_host.c runs an object. With the zero value, one thread calls the object's entry once.
type ObjectHostOptions struct {
	Threads, Rounds int
	Signals         bool   // a timer, SIGUSR1, and faults with a handler
	Unload          int    // unload and reload the object after this number of rounds; 0 for never
	Churn           int    // the number of additional threads, one after the other
	Middle          string // fork, spawn, exec, exit or abort after half of the calls; "" for none of these
	Shared          bool   // put the object into shared memory
}

// PICObject is [Object] for obj_host.c, which loads position-independent code. It supports the code models small and large.
func PICObject(t testing.TB, version int, program string, flags ...string) string {
	t.Helper()
	return Object(t, version, program, append([]string{"-relocation-model=pic"}, flags...)...)
}

// ObjectHostCommand builds obj_host.c and returns the command line that runs an object, given by its path, to the end.
func ObjectHostCommand(t testing.TB, object string, o ObjectHostOptions) []string {
	t.Helper()
	include := "-I" + filepath.Join(moduleRoot(t), "internal", "demo", "target")
	flags := []string{include, "-rdynamic"}
	if o.Shared {
		flags = append(flags, "-DCODE_MAPPING=MAP_SHARED")
	}
	command := []string{CBinary(t, "programs/obj_host.c", flags...),
		"-u", fmt.Sprint(o.Unload), "-c", fmt.Sprint(o.Churn)}
	if o.Signals {
		command = append(command, "-g")
	}
	if o.Middle != "" {
		command = append(command, "-m", o.Middle)
	}
	return append(command, object, fmt.Sprint(max(o.Threads, 1)), fmt.Sprint(max(o.Rounds, 1)))
}

// ObjectHost starts obj_host.c and returns when it has loaded the object and waits in read, before any call. Calling begin lets it continue.
func ObjectHost(t testing.TB, object string, o ObjectHostOptions) (p *Process, begin func()) {
	t.Helper()
	command := ObjectHostCommand(t, object, o)
	cmd := exec.Command(command[0], append([]string{"-w"}, command[1:]...)...)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	t.Cleanup(func() { stdin.Close() })
	return start(t, cmd, inKernel), func() { stdin.Close() }
}

// CVersion runs twins.c, which has C versions of the programs of testdata/programs. It returns the line that obj_host.c prints at its end, without
// the newline, and the line that its child prints after a fork.
func CVersion(t testing.TB, program string, o ObjectHostOptions) (checksum, child string) {
	t.Helper()
	twins := CBinary(t, "programs/twins.c")
	cmd := exec.Command(twins, strings.TrimSuffix(program, ".ll"),
		fmt.Sprint(max(o.Threads, 1)), fmt.Sprint(max(o.Rounds, 1)), fmt.Sprint(o.Churn))
	out, err := cmd.Output()
	require.NoError(t, err, "%s", cmd)
	for line := range strings.Lines(string(out)) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "child "):
			child = line
		case strings.HasPrefix(line, "checksum "):
			checksum = line
		}
	}
	return checksum, child
}
