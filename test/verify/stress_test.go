package verify_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestStressCommand requires that only the summary is printed. The command's output is compared but not shown.
func TestStressCommand(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := livetest.PICObject(t, 19, "memory.ll", "-O2"), livetest.IR(t, 19, "memory.ll")
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 70})
	stress := func(args ...string) clitest.Result {
		return clitest.Run(t, append(append([]string{"stress", "--ir", module}, args...), append([]string{"--"}, host...)...)...)
	}
	r := stress("--probability", "1", "--seed", "7")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Empty(t, r.Stderr)
	require.Regexp(t, `^71 exits, 71 chosen with --probability 1 --seed 7: 69 committed, 2 left to native code
  2  the interpreter called @puts, whose effect would be lost: .*
nothing differs: exit status 0, \d+ bytes of output
$`, r.Stdout)

	// Without --seed each run has another seed. The seed is reported, and repeats the run.
	r = stress("--probability", "20%")
	require.Equal(t, 0, r.Code, r.Stderr)
	_, seed, _ := strings.Cut(r.Stdout, "--seed ")
	seed, _, _ = strings.Cut(seed, ":")
	require.Equal(t, r.Stdout, stress("--probability", "0.2", "--seed", seed).Stdout)

	// The program must get the same input in each run.
	const text = "some input\n"
	c := clitest.Command(t, "stress", "--ir", module, "--stdin", "-", "--json", "--", "cat")
	c.Stdin = strings.NewReader(text)
	r = clitest.Finish(t, c)
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Stderr, "no exit occurred")
	clitest.RequireValid(t, "stress.schema.json", r.Stdout)
	var out struct {
		Untouched, Stressed struct{ Stdout struct{ Bytes int } }
	}
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &out))
	require.Equal(t, []int{len(text), len(text)}, []int{out.Untouched.Stdout.Bytes, out.Stressed.Stdout.Bytes})
}

// TestStressWithoutReader requires that stress runs its command and prints the result, although standard error is a full terminal that is not read.
func TestStressWithoutReader(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := livetest.PICObject(t, 19, "memory.ll", "-O2"), livetest.IR(t, 19, "memory.ll")
	master, slave := livetest.Terminal(t)
	defer master.Close()
	defer slave.Close()
	filler, err := unix.Open(slave.Name(), unix.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer unix.Close(filler)
	for room := true; room; { // repeat, because the kernel moves bytes to the reader's buffer
		for err = nil; err == nil; {
			_, err = unix.Write(filler, []byte("."))
		}
		require.ErrorIs(t, err, unix.EAGAIN)
		ready, _ := unix.Poll([]unix.PollFd{{Fd: int32(filler), Events: unix.POLLOUT}}, 100)
		room = ready > 0
	}
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 3})
	c := clitest.Command(t, append([]string{"stress", "--ir", module, "--probability", "1", "--seed", "7", "--"}, host...)...)
	var out strings.Builder
	c.Stdout, c.Stderr = &out, slave
	require.NoError(t, c.Run(), out.String())
	require.Regexp(t, `(?m)^nothing differs: exit status 0, \d+ bytes of output$`, out.String())
}

// TestStressFault requires that, if the interpreter does not reach the return, nothing is committed, no difference is reported, and the summary
// mentions the fault.
func TestStressFault(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := livetest.PICObject(t, 19, "memory.ll", "-O2"), livetest.IR(t, 19, "memory.ll")
	object = clitest.WithChangedMap(t, object, func(b *stackmap.Blob) { // records the number 0 for %heap
		l := b.Functions[0].Records[0].Locations
		l[0] = l[1]
	})
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 3})
	args := append([]string{"stress", "--ir", module, "--record", "31", "--probability", "1"}, append([]string{"--"}, host...)...)
	r := clitest.Run(t, args...)
	require.Equal(t, 2, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "\n  3  @rewrite, block %entry, line ")
	require.Contains(t, r.Stderr, "at 3 exits left to native code, the interpreter stopped with an error that native code may not have: the frame may be wrong\n")
	found := clitest.RunInShell(t, clitest.Suggestions(r.Stderr)[0])
	require.Equal(t, 3, found.Code, found.Stderr)
	require.Contains(t, found.Stderr, "native code returns, and the interpreter does not")
	r = clitest.Run(t, append([]string{"stress", "--json"}, args[1:]...)...)
	require.Contains(t, r.Stdout, `"failed": 3,`)
	clitest.RequireValid(t, "stress.schema.json", r.Stdout)
}

// TestStressDifference requires that a wrong stack map is found, shown and kept, and that the commands in the report find it again.
func TestStressDifference(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.WrongTick(t)
	cores := filepath.Join(t.TempDir(), "it's here")
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 2})
	args := append([]string{"--ir", module, "--seed", "1", "--keep", cores, "--"}, host...)
	r := clitest.Run(t, append([]string{"stress"}, args...)...)
	require.Equal(t, 3, r.Code, r.Stderr)
	require.Regexp(t, `^\d+ exits, \d+ chosen with --probability 0.01 --seed 1: \d+ committed, 0 left to native code
different stdout, byte 9, in line 1
        untouched  checksum \d+
        stressed   checksum \d+

exit 2:168, hit 168 of record 1, thread obj_host causes the difference alone \(\d+ runs more\)
  #0   jit     tick\+0x[0-9a-f]+ +record 1, stackmap, before   → tick, block %loop, at instruction 5
        %i       i64    167 +\w+
        %acc     i64    -3114145823040589968 +\w+
        %x       i64    5931748030718079902 +\[\w+-\d+\]
        %y       i64    5931748030718079902 +\[\w+-\d+\]
written: 0 bytes in 0 places, 9 registers
result i64 7946794147618810192 in rax
frame #0 is discarded, and the thread continues at entry\+0x[0-9a-f]+, frame #1
  core: .*/it's here/stress-\d+-2-168.core
  script: .*/it's here/stress-\d+-2-168.core.txtar
  reproduce: reframe stress --ir .* --only 2:168 -- .*
  compare with native code: reframe verify --ir .* --record 1 --skip 167 --limit 1 -- .*
$`, r.Stdout)
	found := clitest.RunSuggestion(t, r.Stdout)
	require.Equal(t, 3, found.Code, found.Stderr)
	require.Contains(t, found.Stdout, "\nexit 2:168, hit 168 of record 1, thread obj_host causes the difference alone (2 runs more)\n")
	_, verify, _ := strings.Cut(r.Stdout, "compare with native code: ")
	found = clitest.RunInShell(t, strings.TrimSpace(verify))
	require.Equal(t, 3, found.Code, found.Stderr)
	require.Contains(t, found.Stderr, "\n        interpreter  7946794147618810192\n")
	scripts, err := filepath.Glob(filepath.Join(cores, "*.txtar"))
	require.NoError(t, err)
	require.Len(t, scripts, 1)
	text, err := os.ReadFile(scripts[0])
	require.NoError(t, err)
	require.Contains(t, string(text), "\nreturns i64 7946794147618810192\n")
	replayed := clitest.Run(t, "replay", scripts[0])
	require.Equal(t, 0, replayed.Code, replayed.Stdout)

	r = clitest.Run(t, append([]string{"stress", "--json"}, args...)...)
	require.Equal(t, 3, r.Code, r.Stderr)
	clitest.RequireValid(t, "stress.schema.json", r.Stdout)
	var out struct {
		Seed, Status string
		Culprit      struct {
			Exit, Native string
			Alone        bool
			Slots        []struct{ Name, Value string }
			Result       []struct{ Value, Register string }
			Core, Script string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &out))
	require.Equal(t, []string{"1", "different", "2:168", "2:168"}, []string{out.Seed, out.Status, out.Culprit.Exit, out.Culprit.Native})
	require.Equal(t, out.Culprit.Slots[2].Value, out.Culprit.Slots[3].Value)
	require.Equal(t, "rax", out.Culprit.Result[0].Register)
	require.FileExists(t, out.Culprit.Core)
	require.FileExists(t, out.Culprit.Script)
}

func TestStressUsage(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	clitest.RequireRefusals(t, []clitest.Refusal{
		{Args: "stress --ir x", Want: "the command to run, after --, is missing"},
		{Args: "stress --no-self-description -- ls", Want: "stress requires the compiled module, which the interpreter runs: --ir FILE.ll"},
		{Args: "stress --ir x --probability 0 -- ls", Want: `--probability "0": expected a share of all exits above 0 and up to 1, such as 0.01 or 1%`},
		{Args: "stress --ir x --probability 101% -- ls", Want: `--probability "101%": expected a share`},
		{Args: "stress --ir x --probability NaN -- ls", Want: `--probability "NaN": expected a share`},
		{Args: "stress --ir x --only 0 -- ls", Want: `--only "0": expected the number of an exit, such as 17, or 2:17 for exit 17 of the second thread`},
		{Args: "stress --ir x --only 3 --seed 1 -- ls", Want: "--only cannot be combined with --probability or --seed"},
		{Args: "stress --ir x --steps 0 -- ls", Want: "--steps 0: must be from 1 to 1099511627776"},
		{Args: "stress --ir x --time 0s -- ls", Want: "--time 0s: must be above 0"},
		{Args: "stress --ir x --reruns 0 -- ls", Want: "--reruns 0: must be above 0"},
		{Args: "stress --ir x --keep - -- ls", Want: "--keep -: expected a directory"},
		{Args: "stress --ir x --at f --record 3 -- ls", Want: "--at cannot be combined with"},
		{Args: "stress --ir x --site nosuch -- ls", Want: "--site nosuch: expected one of "},
	})
	host := strings.Join(livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{}), " ")
	clitest.RequireErrors(t, map[string]string{
		"stress --ir " + module + " -- /nothing/here":                 "/nothing/here",
		"stress --ir /nothing/here.ll -- ls":                          "/nothing/here.ll",
		"stress --ir " + module + " --stdin /nothing/here -- ls":      "/nothing/here",
		"stress --keep /dev/null/x --ir " + module + " -- true":       "/dev/null",
		"stress --ir " + module + " -- true":                          "no exit occurred\n",
		"stress -- true":                                              "no exit occurred; no module for the interpreter: the target contains none, and --ir FILE.ll was not given\n",
		"stress -- " + host:                                           "no selected exit could be committed; no module for the interpreter: ",
		"stress --ir " + module + " --only 5000 -- " + host:           "none of the exits of --only was among 1000 exits",
		"stress --ir " + module + " --steps 10 --only 2:5 -- " + host: "no selected exit could be committed",
		"stress --ir " + module + " --probability 1e-9 -- " + host:    "none of 1000 exits was selected",
		"stress --ir " + module + " --time 1ms -- sleep 100":          "it runs for longer than 1ms without deoptimizations",
	})
}

// TestStressInterrupted requires that a signal ends stress and the command, in any of the runs, and that killing reframe kills the command.
func TestStressInterrupted(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	_, module := clitest.TickObject(t)
	const endless = `echo $$ > "$0"; exec sleep 1000`
	for _, c := range []struct {
		signal syscall.Signal
		script string
		status int
	}{
		{syscall.SIGTERM, endless, 143},
		{syscall.SIGINT, `if mkdir "$0.d"; then exit; fi; ` + endless, 130},
		{syscall.SIGKILL, `if mkdir "$0.d"; then exit; fi; ` + endless, -1},
	} {
		pipe := filepath.Join(t.TempDir(), "pipe")
		require.NoError(t, syscall.Mkfifo(pipe, 0o600))
		run := clitest.Command(t, "stress", "--ir", module, "--time", "1h", "--", "sh", "-c", c.script, pipe)
		var stderr strings.Builder
		run.Stderr = &stderr
		require.NoError(t, run.Start())
		text, err := os.ReadFile(pipe) // waits until the command runs
		require.NoError(t, err)
		number, err := strconv.Atoi(strings.TrimSpace(string(text)))
		require.NoError(t, err)
		require.NoError(t, run.Process.Signal(c.signal))
		_ = run.Wait() // the test checks its status
		require.Equal(t, c.status, run.ProcessState.ExitCode(), stderr.String())
		if c.status > 0 {
			require.Contains(t, stderr.String(), "interrupted; the command was killed")
		}
		require.Eventually(t, func() bool {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", number))
			_, state, _ := strings.Cut(string(text), ") ")
			return err != nil || strings.HasPrefix(state, "Z") // its new parent, the process of another test, may not wait for it
		}, livetest.Patience, time.Millisecond)
	}
}
