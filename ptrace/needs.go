package ptrace

import (
	"fmt"
	"runtime"

	"reframe/ptrace/guard"
)

// needLive says why no running process can be looked at, or made to stop, and what to do. what is what was to be done.
func needLive(what string) error {
	if guard.Supported {
		return nil
	}
	return fmt.Errorf("%s needs Linux on amd64 or arm64, and this reframe is built for %s/%s: keep the process as a core there (gcore, or reframe record -p PID -o CORE), and look at that with --core",
		what, runtime.GOOS, runtime.GOARCH)
}
