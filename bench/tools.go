package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds one run of a tool.
const patience = 60 * time.Second

// outcome is the result of one run of a tool from its start to its end.
type outcome struct {
	output []byte // standard output, if start ran the tool
	wall   time.Duration
	cpu    time.Duration // of all its threads
	memory int64         // peak of resident memory, in bytes
	code   int           // exit status, -1 if the tool was killed
	over   bool          // the tool was killed because it exceeded patience
}

// start runs a tool. It accepts any exit status: the output shows whether the tool did its work, and reframe and eu-stack have statuses for partial
// answers.
func (b *bench) start(tool string, args ...string) (outcome, string) {
	var stdout bytes.Buffer
	o, text := b.startTo(&stdout, tool, args...)
	o.output = stdout.Bytes()
	return o, fmt.Sprintf("%s\n%s", text, o.output)
}

// startTo is like start, but writes the output of the tool to stdout, or discards it if stdout is nil. The returned text is the command and its
// standard error.
func (b *bench) startTo(stdout io.Writer, tool string, args ...string) (outcome, string) {
	return b.startFed(nil, stdout, tool, args...)
}

// startFed is like startTo, with a standard input.
func (b *bench) startFed(stdin io.Reader, stdout io.Writer, tool string, args ...string) (outcome, string) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, args...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, &stderr
	began := time.Now()
	err := cmd.Run()
	o := outcome{wall: time.Since(began)}
	require.NoError(b, b.ctx.Err(), "interrupted")
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		o.over = true
	} else if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		require.NoError(b, err, "%s", cmd)
	}
	// Linux counts in KiB (getrusage(2)).
	o.memory = int64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) << 10
	o.code = cmd.ProcessState.ExitCode()
	o.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return o, fmt.Sprintf("%s\n%s", cmd, stderr.Bytes())
}

// need describes what the output of a run must contain.
type need struct {
	threads  int
	function string // the function of a frame in some thread; "" for any
}

// runGDB runs gdb's backtrace of all threads, or of the only thread. -nx ignores the user's own start-up file and changes nothing else.
func (b *bench) runGDB(pid int, n need) outcome {
	command := "bt"
	if n.threads > 1 {
		command = "thread apply all bt"
	}
	o, text := b.start(b.gdb, "-nx", "-p", fmt.Sprint(pid), "-batch", "-ex", command)
	if !o.over {
		require.GreaterOrEqual(b, bytes.Count(o.output, []byte("\n#0 ")), n.threads, text)
		require.Contains(b, string(o.output), n.function, text)
	}
	return o
}

// runEUStack runs eu-stack. eu-stack finds no CFI of JIT-compiled code, so its stacks may end early. It is only required to list each thread.
func (b *bench) runEUStack(pid int, n need) outcome {
	o, text := b.start(b.euStack, "-p", fmt.Sprint(pid))
	require.GreaterOrEqual(b, bytes.Count(o.output, []byte("\n#0 ")), n.threads, text)
	return o
}

// framesReport holds the members of the JSON of `reframe frames` that are used. It does not use the library's own type, because the JSON is an
// interface to other programs.
type framesReport struct {
	Target struct {
		PauseUS int64 `json:"pause_us"`
	}
	Threads []struct {
		TID    int
		Frames []struct{ Function string }
		End    string
	}
}

// runFrames runs `reframe frames` and also returns the pause that it reports. A thread that could not be stopped in time, which happens where many
// processes compete for the CPUs, is noted below the rows; the run still counts.
func (b *bench) runFrames(pid int, n need) (outcome, time.Duration) {
	o, text := b.start(b.reframe, "frames", "-p", fmt.Sprint(pid), "--json")
	var report framesReport
	require.NoError(b, json.Unmarshal(o.output, &report), text)
	require.GreaterOrEqual(b, len(report.Threads), n.threads, text)
	found := n.function == ""
	for _, thread := range report.Threads {
		if len(thread.Frames) == 0 {
			b.note("one run of reframe frames got nothing of thread %d: %s", thread.TID, thread.End)
			found = true
		}
		for _, f := range thread.Frames {
			found = found || f.Function == n.function
		}
	}
	require.True(b, found, text)
	require.Positive(b, report.Target.PauseUS, text)
	return o, time.Duration(report.Target.PauseUS) * time.Microsecond
}

// interleave calls each function once per round. Each round starts with another function.
func interleave(rounds int, once ...func()) {
	for round := range rounds {
		for i := range once {
			once[(round+i)%len(once)]()
		}
	}
}
