package truth_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// A stuckError reports that a program makes no progress. state describes its threads.
type stuckError struct{ state string }

func (e *stuckError) Error() string { return "the program makes no progress\n" + e.state }

// watch ends a trace if, for the time of patience, the program has neither reached an exit nor used the processor. The result does not depend on the
// speed of the machine.
func (c *comparer) watch(ctx context.Context, stop context.CancelCauseFunc, pid int, seen *atomic.Int64) {
	tick := time.NewTicker(c.patience / 20)
	defer tick.Stop()
	last, since := "", time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := fmt.Sprint(seen.Load(), usedBy(pid))
		if now != last {
			last, since = now, time.Now()
		} else if time.Since(since) > c.patience {
			stop(&stuckError{standing(pid)})
			return
		}
	}
}

// usedBy returns the processor time of a process, as text: utime and stime of proc(5).
func usedBy(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // an error means that it has ended
	_, after, _ := strings.Cut(string(text), ") ")
	if fields := strings.Fields(after); len(fields) > 13 {
		return fields[11:13]
	}
	return nil
}

// standing describes where the threads of a process, and those of this process, wait.
func standing(pid int) string {
	var out strings.Builder
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, task := range tasks {
		fmt.Fprintln(&out, task)
		for _, name := range []string{"stat", "wchan", "syscall"} {
			text, err := os.ReadFile(filepath.Join(task, name))
			fmt.Fprintln(&out, " ", name, strings.TrimSpace(string(text)), errors.Unwrap(err))
		}
	}
	stacks := make([]byte, 1<<18)
	out.Write(stacks[:runtime.Stack(stacks, true)])
	return out.String()
}

// TestStuck requires that a program which never ends fails the campaign, whether it waits or computes. A JIT that never finishes
// compiling must count as a tool that did not accept the program, like llc.
func TestStuck(t *testing.T) {
	livetest.Slow(t)
	module := filepath.Join(t.TempDir(), "empty.ll")
	require.NoError(t, os.WriteFile(module, nil, 0o600))
	const forever = "while :; do :; done"
	for _, x := range []struct {
		name, how string
		command   []string
		stuck     int
		tool      string
	}{
		{"asleep", "aot", []string{livetest.Tool(t, "sleep"), "infinity"}, 1, ""},
		{"busy", "aot", []string{livetest.Tool(t, "sh"), "-c", forever}, 1, ""},
		{"compiling", "orc", []string{livetest.Tool(t, "sh"), "-c", forever}, 0, "orc: it took more than"},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := &program{Machine: "amd64", How: x.how, Threads: 1, Version: 19}
			c := newComparer(p, newTally())
			c.seconds = 1
			if x.name == "asleep" {
				c.patience = time.Second
			}
			err := c.live(t, &built{module: module, source: module, command: x.command})
			require.Equal(t, x.stuck, c.Stuck)
			if x.tool == "" {
				require.NoError(t, err)
				require.Len(t, c.failed, 1)
				return
			}
			not := (*notBuilt)(nil)
			require.ErrorAs(t, err, &not)
			require.Equal(t, x.tool, not.reason())
		})
	}
}
