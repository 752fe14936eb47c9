package livetest

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// hostedPrograms are the programs that obj_host.c runs. The outputs are those of their C versions in twins.c for 4 threads with 100 rounds and 2 more
// threads.
var hostedPrograms = map[string]struct{ checksum, child string }{
	"tick.ll":      {"checksum 16356454115172807516", "child 11581338984600133997"},
	"guards.ll":    {"checksum 7155754827218946661", "child 5385820223854518500"},
	"patch.ll":     {"checksum 12042376470554811632", "child 5926531696467586087"},
	"state.ll":     {"checksum 5708674173718428864", "child 5094893721280916369"},
	"memory.ll":    {"checksum 9576024066332410968", "child 2407180877355140705"},
	"floats.ll":    {"checksum 14159127882021888441", "child 5814397781717227028"},
	"recursion.ll": {"checksum 3841435793826030971", "child 12205854327939510546"},
	"null.ll":      {"checksum 16163826540907146819", "child 16707757964757970667"},
}

// runToEnd runs a command line without a terminal and returns its output and state.
func runToEnd(t *testing.T, command []string) (string, *exec.Cmd) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), Patience)
	defer stop()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Dir = t.TempDir() // the program may write a core there
	cmd.Run()             // the state reports how it ended
	require.NoError(t, ctx.Err())
	return out.String(), cmd
}

// TestObjectHostPrograms requires that every program computes the same as its C version, compiled by each release at each level.
func TestObjectHostPrograms(t *testing.T) {
	Slow(t)
	o := ObjectHostOptions{Threads: 4, Rounds: 100, Churn: 2}
	puts := regexp.MustCompile(`(?m)^sixtyfour\n`)
	for program, want := range hostedPrograms {
		t.Run(program, func(t *testing.T) {
			checksum, child := CVersion(t, program, o)
			require.Equal(t, want.checksum, checksum)
			require.Equal(t, want.child, child)
			for _, version := range []int{14, 19, 22} {
				for _, level := range []string{"-O0", "-O1", "-O2", "-O3"} {
					for _, model := range []string{"small", "large"} {
						name := fmt.Sprintf("LLVM %d %s %s", version, level, model)
						object := PICObject(t, version, program, level, "-code-model="+model)
						out, cmd := runToEnd(t, ObjectHostCommand(t, object, o))
						require.Equal(t, 0, cmd.ProcessState.ExitCode(), "%s: %s", name, out)
						if program == "memory.ll" { // the program uses only the arguments 63, 127 … 383, and -1
							require.Len(t, puts.FindAllString(out, -1), 7, name)
							out = puts.ReplaceAllString(out, "")
						}
						require.Equal(t, want.checksum+"\n", out, name)
					}
				}
			}
		})
	}
}

func TestObjectHostOptions(t *testing.T) {
	object, null := PICObject(t, 19, "guards.ll", "-O2"), PICObject(t, 19, "null.ll", "-O2")
	o := ObjectHostOptions{Threads: 4, Rounds: 100, Churn: 2}
	end := hostedPrograms["guards.ll"].checksum + "\n"
	with := func(change func(*ObjectHostOptions)) []string {
		changed := o
		change(&changed)
		return ObjectHostCommand(t, object, changed)
	}
	for name, c := range map[string]struct {
		command []string
		out     string
		status  int // -1 means a signal
	}{
		"unload": {with(func(o *ObjectHostOptions) { o.Unload = 7 }), end, 0},
		"signals": {with(func(o *ObjectHostOptions) { o.Signals = true }),
			"signals 402 faults 402\n" + end, 0},
		"fork": {with(func(o *ObjectHostOptions) { o.Middle = "fork" }),
			hostedPrograms["guards.ll"].child + "\n" + end, 0},
		"fork and unload": {with(func(o *ObjectHostOptions) { o.Middle, o.Unload = "fork", 30 }),
			hostedPrograms["guards.ll"].child + "\n" + end, 0},
		"spawn":            {with(func(o *ObjectHostOptions) { o.Middle = "spawn" }), end, 0},
		"exec":             {with(func(o *ObjectHostOptions) { o.Middle = "exec" }), end, 0},
		"exec and signals": {with(func(o *ObjectHostOptions) { o.Middle, o.Signals = "exec", true }), "signals 402 faults 402\n" + end, 0},
		"exit":             {with(func(o *ObjectHostOptions) { o.Middle = "exit" }), "", 3},
		"abort":            {with(func(o *ObjectHostOptions) { o.Middle = "abort" }), "", -1},
		// Of the arguments 0 … 399, -1 and -2, as unsigned numbers, 135 are divisible by 3: 134 of 0 … 399, and -1.
		"faults": {ObjectHostCommand(t, null, ObjectHostOptions{Threads: 4, Rounds: 100, Churn: 2, Signals: true}),
			"signals 402 faults 537\n" + hostedPrograms["null.ll"].checksum + "\n", 0},
	} {
		for range 5 {
			out, cmd := runToEnd(t, c.command)
			require.Equal(t, c.out, out, name)
			require.Equal(t, c.status, cmd.ProcessState.ExitCode(), name)
			if c.status < 0 {
				require.Equal(t, syscall.SIGABRT, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), name)
			}
		}
	}
}

func TestObjectHostWaits(t *testing.T) {
	p, begin := ObjectHost(t, PICObject(t, 19, "tick.ll", "-O2"), ObjectHostOptions{Threads: 4, Rounds: 100, Churn: 2})
	require.Equal(t, "ready\n", p.Output())
	require.Equal(t, fmt.Sprint(syscall.SYS_READ), p.blockedIn())
	begin()
	require.NoError(t, p.Wait())
	require.Equal(t, "ready\n"+hostedPrograms["tick.ll"].checksum+"\n", p.Output())
}
