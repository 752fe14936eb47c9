package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// verbs lists the commands of the program, except for those about the program itself.
var verbs = sync.OnceValue(func() (list []string) {
	out, err := exec.Command(clitest.Binary(), "--help").Output()
	if err != nil {
		panic(err)
	}
	_, text, _ := strings.Cut(string(out), "\nAvailable Commands:\n")
	text, _, _ = strings.Cut(text, "\n\n")
	for line := range strings.Lines(text) {
		name := strings.Fields(line)[0]
		if !strings.HasPrefix(line, "   ") && name != "completion" && name != "help" {
			list = append(list, name)
		}
	}
	return list
})

func TestWrongUsage(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"nosuch", `unknown command "nosuch"`},
		{"frames", "-p PID"},
		{"resume", "-p PID"},
		{"maps", "FILE, -p PID, --core CORE, --remote ADDR and --delve ADDR"},
		{"maps a.o -p 1", "FILE, -p PID, --core CORE, --remote ADDR and --delve ADDR"},
		{"maps a.o b.o", "at most 1 arg"},
		{"frames -p", "needs an argument"},
		{"frames -p abc", `"abc"`},
		{"frames -p -1", "-p -1"},
		{"frames -p 0", "-p 0"},
		{"maps -p 0", "-p 0"},
		{"frames -p 99999999999999999999", "99999999999999999999"},
		{"frames -p 1 extra", `"extra"`},
		{"resume -p 1 extra", `"extra"`},
		{"demo extra", `"extra"`},
		{"frames -p 1 --nosuch", "--nosuch"},
		{"frames -p 1 -t -5", "-t -5"},
		{"frames -p 1 -f x", `"x"`},
		{"frames -p 1 --color x", "--color x: expected auto, always or never"},
		{"frames -p 1 --stack-bytes 1", "--stack-bytes 1: must be from 4096 to 1073741824"},
		{"resume -p 1 --timeout 5", `--timeout "5": expected a time, such as 5s or 100ms`},
		{"resume -p 1 --steps -1", `--steps "-1": expected a whole number, 0 or more`},
		{"run", "MODULE.ll is missing"},
		{"run --depth many x.ll", `--depth "many": expected a whole number`},
		{"lint", "MODULE.ll is missing"},
		{"instrument", "MODULE.ll is missing"},
		{"instrument a.ll b.ll", "expected one module, got also b.ll"},
		{"instrument a.ll --at blocks,nowhere", "--at nowhere: expected blocks, calls, sites"},
		{"instrument a.ll --at=", "--at: expected one or more of blocks, calls, sites"},
		{"instrument a.ll --id 0", "--id 0: must be 1 or more"},
		{"instrument a.ll --llvm 13", "--llvm 13: must be a release from 14 to 22"},
		{"instrument a.ll --most 0", "--most 0: must be above 0"},
		{"instrument a.ll --output=", "-o requires the name of a file"},
		{"explain 0x10", "-p PID"},
		{"explain -p 1 0xfg", `"0xfg": expected a 64-bit hexadecimal address`},
		{"explain -p 1 0x10000000000000000", "expected a 64-bit hexadecimal address"},
		{"explain -p 1 main", `"main": expected an address (0x...), the id of a record (a decimal number) or a frame (#N)`},
		{"explain -p 1 -7", "unknown shorthand flag"},
		{"explain -p 1 18446744073709551616", "the id of a record"},
		{"explain -p 1 #x", `"#x": expected the number of a frame after #`},
		{"explain -p 1 -f x", "--frame \"x\": expected a whole number"},
		{"frames -p 1 --depth 0", "--depth 0: expected a number above 0, or all"},
		{"explain -p 1 -f 3 #2", "-f and #2 cannot be combined: both select a frame"},
		{"explain -p 1 2 3", "expected one address, record or frame, got 2 and 3"},
		{"frames -p 1 --core x", "-p and --core cannot be combined"},
		{"resume", "resume requires a process or a core: -p PID or --core CORE"},
		{"frames --core", "needs an argument"},
		{"frames --core=", "--core requires the name of a file"},
		{"maps --core=", "--core requires the name of a file"},
		{"frames --core x --exe=", "--exe requires the name of a file"},
		{"frames -p 1 --exe x", "--exe requires --core, --remote or --delve: the files of a process are known"},
		{"maps -p 1 --sysroot x", "--sysroot requires --core, --remote or --delve: the files of a process are known"},
		{"frames --core x --hold", "--hold requires a process that runs: -p PID"},
		{"explain --core x --stack-bytes 4096", "--stack-bytes requires a process: -p PID"},
		{"resume --core x --commit", "--commit requires a process that runs: -p PID"},
		{"trace --core x", "trace requires a running process, not a core: -p PID or -- COMMAND; frames, resume and explain take --core"},
		{"verify --core x", "verify requires a running process"},
	} {
		t.Run(c.args, func(t *testing.T) {
			clitest.Run(t, strings.Fields(c.args)...).FailsEmpty(t, 64, c.want)
		})
	}
}

// TestResumeRefuses requires that the errors of resume say what it cannot do, and what would help.
func TestResumeRefuses(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "--ir"},
		{[]string{"--ir", p.IR}, "--layout"},
		{[]string{"--ir", p.IR, "-f", "0"}, "frame #0, pause, of thread "},
		{[]string{"--ir", p.IR, "-f", "999"}, "there is no frame 999"},
		{[]string{"--ir", p.IR, "--function", "nosuch"}, "nosuch"},
		{[]string{"--ir", p.IR, "--function", "main"}, "main"},
		{[]string{"--ir", p.IR, "-t", "1"}, "no thread 1"},
	} {
		clitest.Run(t, append([]string{"resume", "-p", clitest.PID(p)}, c.args...)...).FailsEmpty(t, 2, c.want)
	}
	clitest.RequireUnharmed(t, p)
}

func TestHelp(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	root := clitest.Run(t, "--help")
	require.Equal(t, 0, root.Code)
	require.Empty(t, root.Stderr)
	require.Equal(t, root, clitest.Run(t, "help"))
	require.Contains(t, root.Stdout, "\nExamples:\n  reframe ")
	for _, verb := range verbs() {
		require.Contains(t, root.Stdout, "\n  "+verb+" ")
		r := clitest.Run(t, verb, "--help")
		require.Equal(t, 0, r.Code)
		require.Empty(t, r.Stderr)
		require.Contains(t, r.Stdout, "\nExamples:\n  reframe "+verb)
		require.Equal(t, r, clitest.Run(t, "help", verb))
		require.NotContains(t, r.Stdout, "default -1", "a number that stands for nothing")
	}
	for _, verb := range []string{"frames", "resume"} {
		for _, flag := range []string{"    --core", "    --exe", "    --sysroot", "-p, --pid", "-t, --thread", "-f, --frame", "--function", "--ir", "--layout", "--json", "--color"} {
			require.Contains(t, clitest.Run(t, verb, "--help").Stdout, "  "+flag+" ", "%s", verb)
		}
	}
}

// TestColor requires that the output has colors only on a terminal or on request.
func TestColor(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	for _, c := range []struct {
		name     string
		args     []string
		env      string
		terminal bool
		want     bool
	}{
		{"piped", nil, "", false, false},
		{"piped, auto", []string{"--color", "auto"}, "", false, false},
		{"piped, always", []string{"--color", "always"}, "", false, true},
		{"piped, never", []string{"--color", "never"}, "", false, false},
		{"terminal", nil, "", true, true},
		{"terminal, never", []string{"--color=never"}, "", true, false},
		{"terminal, NO_COLOR", nil, "NO_COLOR=1", true, false},
		// A flag takes precedence over the environment (no-color.org).
		{"terminal, NO_COLOR and always", []string{"--color=always"}, "NO_COLOR=1", true, true},
		{"dumb terminal", nil, "TERM=dumb", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := clitest.Command(t, append([]string{"frames", "-p", clitest.PID(p), "--ir", p.IR}, c.args...)...)
			run.Env = []string{"TERM=xterm"}
			if c.env != "" {
				run.Env = append(run.Env, c.env)
			}
			var out string
			if c.terminal {
				out = onTerminal(t, run)
			} else {
				out = clitest.Finish(t, run).Stdout
			}
			require.Contains(t, out, "sum_opt")
			require.Equal(t, c.want, strings.Contains(out, clitest.Escape), "%q", out)
		})
	}
	require.NotContains(t, clitest.Run(t, "frames", "-p", clitest.PID(p), "--json", "--color", "always").Stdout, clitest.Escape)
	clitest.RequireUnharmed(t, p)
}

// onTerminal runs c with a pseudo-terminal as its stdout, and returns the output.
func onTerminal(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	defer master.Close()
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	c.Stdout = slave
	require.NoError(t, c.Start())
	require.NoError(t, slave.Close())
	var out strings.Builder
	b := make([]byte, 4096)
	for {
		n, err := master.Read(b)
		out.Write(b[:n])
		if err != nil { // EIO means that the other end is closed
			break
		}
	}
	require.NoError(t, c.Wait())
	return out.String()
}
