package debug_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// debug runs commands, one per line, in a session that is started with args, and returns the result.
func debug(t *testing.T, commands string, args ...string) clitest.Result {
	t.Helper()
	return clitest.Run(t, append([]string{"debug", "-x", clitest.TempFile(t, "session.txt", commands)}, args...)...)
}

// said splits the output of a debug session into the output of each command.
func said(out string) (list []string) {
	for _, part := range strings.Split(out, "(reframe) ")[1:] {
		_, text, _ := strings.Cut(part, "\n")
		list = append(list, text)
	}
	return list
}

// atGuard starts a process that lli runs until it waits at the exit of deoptimize.ll. It returns the flags for that process, and its number.
func atGuard(t *testing.T) (args []string, pid string) {
	t.Helper()
	program := livetest.Testdata(t, "programs", "deoptimize.ll")
	p := livetest.Lli(t, 19, program, "mcjit")
	return []string{"--ir", program, "--layout", clitest.DeoptimizeLayout(t), "-p", fmt.Sprint(p.PID)}, fmt.Sprint(p.PID)
}

// TestDebugStepsFromAnExit requires that the interpreter runs from the exit forwards and backwards while the process stays stopped. The guard fails
// at 26, when the sum has the squares of all smaller numbers; the test computes the expected values from that.
func TestDebugStepsFromAnExit(t *testing.T) {
	t.Parallel()
	args, _ := atGuard(t)
	r := debug(t, `
# the frame
print %acc + 1
p/x acc
p i > 25 && acc == 5525
step
step 2
up
down
until loop
p %i
back
back 3
until loop
until loop
restart
finish
set %i 998
resume
output
leave
p i
`, args...)
	require.Zero(t, r.Code, r.Stderr)
	out := said(r.Stdout)
	require.Equal(t, []string{"5526\n", "i64 0x1595\n", "true\n"}, out[:3])
	require.Equal(t, `     43    %sq = mul i64 %i, %i                                  ; 676
=>   44    %acc1 = add i64 %acc, %sq
`, out[3])
	require.Equal(t, "#0   interp  @sum, block %loop, line 46\n=>   46    %c = icmp ult i64 %i1, %n\n", out[4], "two at once")
	require.Contains(t, out[5], "main+")
	require.Equal(t, out[4], out[6])
	require.Equal(t, "i64 27\n", out[8])
	require.Equal(t, "#0   interp  @sum, block %loop, line 47\n=>   47    br i1 %c, label %loop, label %done\n", out[9])
	require.Equal(t, "#0   interp  @sum, block %loop, line 44\n=>   44    %acc1 = add i64 %acc, %sq\n", out[10])
	require.Equal(t, "#0   interp  @sum, block %loop, line 43\n=>   43    %sq = mul i64 %i, %i\n", out[13])
	require.Regexp(t, `^returned i64 332833500 after \d+ instructions\n$`, out[14])
	require.Equal(t, "%i = i64 998\nthe interpreter starts again at the exit\n", out[15])
	require.Regexp(t, `^returned i64 1999530 after \d+ instructions\n$`, out[16], "5525 and the squares of 998 and 999")
	require.Contains(t, out[18], "→ sum, block %loop")
	require.Equal(t, "i64 998\n", out[19])
}

// TestDebugStopsAtBreakpoints requires that breakpoints and conditions stop null.ll at the right exits. It calls @load with 0, 1, 2 and 3, and each
// call has an exit at record 81.
func TestDebugStopsAtBreakpoints(t *testing.T) {
	t.Parallel()
	program := livetest.IR(t, 19, "null.ll")
	host := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, "null.ll", "-O2"), livetest.ObjectHostOptions{Rounds: 4})
	r := debug(t, `
tbreak 81
break load if %n & 1 == 1
b at call_optimized
breakpoints
disable 3
c
p %n
continue
p n
info break
exits
d
c
`, append([]string{"--ir", program, "--"}, host...)...)
	require.Zero(t, r.Code, r.Stderr)
	out := said(r.Stdout)
	require.Equal(t, "breakpoint 1: record 81 (pending: no such place yet)\n", out[0])
	require.Equal(t, "breakpoint 2: function load, if %n & 1 == 1 (pending: no such place yet)\n", out[1])
	require.Regexp(t, `^breakpoint 3: calls of call_optimized \(`, out[2])
	require.Equal(t, "1   record 81, once\n2   function load, if %n & 1 == 1\n3   calls of call_optimized\n", out[3])
	require.Contains(t, out[5], "breakpoint 1, record 81\n")
	require.Contains(t, out[5], "record 81, stackmap, before")
	require.Equal(t, "i64 0\n", out[6])
	require.Contains(t, out[7], "breakpoint 2, function load, if %n & 1 == 1\n")
	require.Equal(t, "i64 1\n", out[8])
	require.Equal(t, "2   function load, if %n & 1 == 1\n    stopped once, condition false once\n3   calls of call_optimized, disabled\n", out[9])
	require.Regexp(t, `^0x[0-9a-f]+  load\+0x[0-9a-f]+  record 81, stackmap\n$`, out[10])
	require.Contains(t, out[12], "the process exited with status 0\n")
}

// TestDebugShowsMemoryAsGDB requires that memory of a core is shown as by gdb, in each format and size.
func TestDebugShowsMemoryAsGDB(t *testing.T) {
	t.Parallel()
	args, _ := atGuard(t)
	core := filepath.Join(t.TempDir(), "exit.core")
	r := debug(t, "registers\nrecord "+core+"\n", args...)
	require.Zero(t, r.Code, r.Stderr)
	sp := regexp.MustCompile(`\brsp +(0x[0-9a-f]+)`).FindStringSubmatch(r.Stdout)[1]
	var ours, theirs []string
	for _, format := range []string{"x", "d", "u", "o", "c"} {
		for _, size := range []string{"b", "h", "w", "g"} {
			if format == "c" && size != "b" {
				continue
			}
			command := fmt.Sprintf("x/7%s%s %s", format, size, sp)
			ours, theirs = append(ours, command), append(theirs, "-ex", command)
		}
	}
	in := debug(t, strings.Join(ours, "\n"), "--core", core)
	require.Zero(t, in.Code, in.Stderr)
	// Remove the symbol that gdb prints before an address. gdb also spells characters differently.
	printed := livetest.Printed(t, "gdb", append([]string{"-batch", "-nx", "-ex", "set width 0", "-ex", "core " + core}, theirs...)...)
	var want, got []string
	words := func(list []string, text string) []string {
		for line := range strings.Lines(text) {
			if at, rest, ok := strings.Cut(line, ":"); ok && strings.HasPrefix(at, "0x") {
				list = append(list, strings.Fields(strings.ReplaceAll(rest, "'\\000'", `'\x00'`))...)
			}
		}
		return list
	}
	want = words(want, printed)
	for _, text := range said(in.Stdout) {
		if strings.HasPrefix(text, "0x") {
			got = words(got, text)
		}
	}
	require.Len(t, got, len(want), in.Stdout+printed)
	for n := range want {
		if strings.HasPrefix(want[n], "'") {
			continue // only the spelling of a character differs
		}
		require.Equal(t, want[n], got[n], "word %d", n)
	}
}

// TestDebugKeepsCoreAndScript requires that a script which was recorded at the prompt passes as a test.
func TestDebugKeepsCoreAndScript(t *testing.T) {
	t.Parallel()
	args, _ := atGuard(t)
	dir := t.TempDir()
	core, script := filepath.Join(dir, "exit.core"), filepath.Join(dir, "exit.txtar")
	r := debug(t, "script "+script+"\n", args...)
	r.Fails(t, 2, "a script requires a core: use record FILE first")
	r = debug(t, fmt.Sprintf("record %s\nset i 999\nresume\nscript %s\n", core, script), args...)
	require.Zero(t, r.Code, r.Stderr)
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	require.Contains(t, string(text), "set %i 999\nresume\nreturns 1003526\n")
	r = clitest.Run(t, "replay", script)
	require.Zero(t, r.Code, r.Stdout+r.Stderr)
	r = debug(t, "p i\nscript "+script+"\n", "--core", core, "--ir", livetest.Testdata(t, "programs", "deoptimize.ll"), "--layout", clitest.DeoptimizeLayout(t))
	r.Fails(t, 2, "exists")
	require.Contains(t, r.Stdout, "i64 26\n")
	again := filepath.Join(dir, "again.core")
	r = debug(t, "record "+again+"\n", "--core", core)
	require.Zero(t, r.Code, r.Stderr)
	r = debug(t, "p i\nresume\n", "--core", again, "--ir", livetest.Testdata(t, "programs", "deoptimize.ll"), "--layout", clitest.DeoptimizeLayout(t))
	require.Zero(t, r.Code, r.Stderr)
	require.Equal(t, "i64 26\n", said(r.Stdout)[0])
	require.Contains(t, said(r.Stdout)[1], "returned i64 332833500 after")
}

// TestDebugCommits requires that commit writes the interpreter's result into the process. The thread is then stopped in the caller.
func TestDebugCommits(t *testing.T) {
	t.Parallel()
	program := livetest.IR(t, 19, "guards.ll")
	host := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, "guards.ll", "-O2"), livetest.ObjectHostOptions{Rounds: 4})
	plain, err := exec.Command(host[0], host[1:]...).Output()
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "out")
	file, err := os.Create(out)
	require.NoError(t, err)
	defer file.Close()
	c := clitest.Command(t, append([]string{"debug", "-x", clitest.TempFile(t, "s", "b total_opt\nc\ncommit\nbt\nd\nc\n"), "--ir", program, "--layout", livetest.Testdata(t, "programs", "guards.layout.json"), "--"}, host...)...)
	c.Stdout = file
	var why strings.Builder
	c.Stderr = &why
	failed := c.Run()
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.NoError(t, failed, "%s%s", text, &why)
	require.Contains(t, string(text), "total returned i64 ")
	require.Contains(t, string(text), "written: ")
	require.Contains(t, string(text), "exited with status 0")
	require.Contains(t, string(text), strings.TrimSpace(string(plain)), "the program prints what it prints when nobody looks")
}

// TestDebugWrongWords requires that a wrong command gives a one-line error that names a correct one.
func TestDebugWrongWords(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	clitest.Run(t, "debug").FailsEmpty(t, 64, "usage: reframe debug PID | CORE | -- COMMAND")
	clitest.Run(t, "debug", "-p", "1", "--", "true").FailsEmpty(t, 64, "-p and a command to start cannot be combined")
	clitest.Run(t, "debug", "-p", "1", "--stdin", "x").FailsEmpty(t, 64, "--stdin requires a command to start")
	clitest.Run(t, "debug", "-x", "/nowhere", "--", "true").Fails(t, 2, "/nowhere")
	args, _ := atGuard(t)
	for line, want := range map[string]string{
		"brek 1":             `unknown command "brek"; did you mean break?`,
		"wombat":             `unknown command "wombat"; help lists the commands`,
		"st":                 `"st" may be `, // "t x" replaces this line below
		"re":                 `"re" may be `,
		"print":              "usage: print [/x] EXPR",
		"print %nothing":     "%nothing: there is no nothing",
		"print i +":          "i +: at its end: expected a slot such as",
		"x":                  "usage: x /[N][FORMAT][SIZE] EXPR",
		"x/9z 0x0":           "/z: expected a format (x d u o c a s) or a size (b h w g)",
		"x/4gx 0x10":         "0x10",
		"x/99999x $rsp":      "1 to 4096 words",
		"break at":           "at requires a name after it",
		"break 1 if i >":     "i >: at its end",
		"break 1 if %no > 3": "no selected site has a slot of that name",
		"frame 99":           "frame 99 not found; frames are 0 to ",
		"frame x":            "x: expected a number",
		"up 99\nup":          "this is the outermost frame",
		"thread 1":           "no thread 1",
		"delete 7":           "breakpoint 7 not found",
		"back":               "the interpreter has not run since the exit",
		"step\nback 9\nback": "cannot step back from the exit: before it there is only native code",
		"until nowhere":      "@sum has no block nowhere; it has %entry %loop %done",
		"set %i":             "usage: set SLOT VALUE",
		"set %i many":        "many",
		"set %no 1":          "slot %no not found; the slots are %i %acc %n",
		"explain %no":        "the record has no value %no",
		"resume\nstep":       "the run has ended; use back or restart",
		"step\nregisters":    "the interpreter has no registers; leave shows the physical frames again",
		"step\nprint $rsp":   "the interpreter has no registers",
		"record":             "usage: record FILE",
		"help wombat":        `unknown command "wombat"`,
		"print 1 /* 0":       "1 /* 0",
	} {
		if line == "st" {
			line, want = "t x", "x: expected a number"
		}
		r := debug(t, line+"\nquit\n", args...)
		r.Fails(t, 2, want)
	}
}

// TestDebugBoth requires that native code and the interpreter, run side by side, agree in each iteration of tick.ll's loop and at the return. At an
// exit whose record swaps two values they must differ until the values are set correctly.
func TestDebugBoth(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	host := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, "tick.ll", "-O2"), livetest.ObjectHostOptions{})
	r := debug(t, "diff\n", append([]string{"--ir", livetest.IR(t, 19, "tick.ll"), "--"}, host...)...)
	r.Fails(t, 2, "native code and the interpreter have not run side by side; use both")
	r = debug(t, "b 1\nc\nstep -b\ndiff\nboth 10000\nd\nc\n", append([]string{"--ir", livetest.IR(t, 19, "tick.ll"), "--"}, host...)...)
	require.Zero(t, r.Code, r.Stderr)
	out := said(r.Stdout)
	require.Regexp(t, `(?s)^tick\+0x[0-9a-f]+, after \d+ instructions\n.*\n +interpreter +native code\n +%i +i64 +1 +1\n.*\nthey agree\n$`, out[2], "the next turn of its loop")
	require.Equal(t, "they agree\n", out[3])
	require.Regexp(t, `(?s)^both have returned, after \d+ instructions\n.*they agree\n$`, out[4])
	require.NotContains(t, out[4], "differs")
	require.Contains(t, out[6], "exited with status 0")

	swapped := clitest.SwappedBundle(t)
	args := append([]string{"--ir", swapped + ".ll", "--layout", livetest.Testdata(t, "programs", "baseline.layout.json"), "--"}, livetest.ObjectHostCommand(t, swapped+".o", livetest.ObjectHostOptions{})...)
	r = debug(t, "b stackmap\nc\nlocals\nresume\nexplain %i\n", args...)
	require.Zero(t, r.Code, r.Stderr)
	i := regexp.MustCompile(`%i +(?:← \S+ +)?i64 +(-?\d+)`).FindStringSubmatch(said(r.Stdout)[2])
	acc := regexp.MustCompile(`%acc +(?:← \S+ +)?i64 +(-?\d+)`).FindStringSubmatch(said(r.Stdout)[2])
	require.NotNil(t, i, r.Stdout)
	require.NotNil(t, acc, r.Stdout)
	require.Contains(t, said(r.Stdout)[2], "%i ← %acc ", "the operand that stands in the wrong place")
	wrong := said(r.Stdout)[3]
	require.Regexp(t, `^  %acc +i64 +-?\d+  → %i\n`, said(r.Stdout)[4])
	r = debug(t, fmt.Sprintf("b stackmap\nc\nset %%i %s\nset %%acc %s\nresume\n", acc[1], i[1]), args...)
	require.Zero(t, r.Code, r.Stderr)
	require.NotEqual(t, wrong, said(r.Stdout)[4])
}

// TestDebugBisects requires that bisect finds the instruction in which a module differs from the compiled one. The loop of this module ends at 500.
func TestDebugBisects(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	wrong := clitest.EditedCopy(t, livetest.IR(t, 19, "tick.ll"), "icmp ult i64 %i1, 1000", "icmp ult i64 %i1, 500")
	host := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, "tick.ll", "-O2"), livetest.ObjectHostOptions{})
	r := debug(t, "b 1\nc\nbisect\n", append([]string{"--ir", wrong, "--"}, host...)...)
	require.Zero(t, r.Code, r.Stderr)
	out := said(r.Stdout)[2]
	require.Contains(t, out, "they are at different places\n")
	require.Contains(t, out, "the first value that differs in native code:\n")
	require.Regexp(t, `%c = icmp ult i64 %i1, 500 +; false\n +native code has true\n +%i1 = 500, not recorded at any site\n(?s:.*)  %i1 = add i64 %i, 1\n`, out)
	r = debug(t, "b 1\nc\nbisect\n", append([]string{"--ir", livetest.IR(t, 19, "tick.ll"), "--"}, host...)...)
	require.Zero(t, r.Code, r.Stderr)
	require.Contains(t, said(r.Stdout)[2], "native code and the interpreter agree from here to the return\n")
}

// TestDebugHelp requires that help lists each command in one group, and that the help of each command shows its usage.
func TestDebugHelp(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	r := debug(t, "help\n", "--", "true")
	require.Zero(t, r.Code)
	groups, words := 0, []string{}
	for line := range strings.Lines(said(r.Stdout)[0]) {
		switch word := strings.TrimRight(strings.Fields(line)[0], ","); {
		case !strings.HasPrefix(line, " "):
			groups++
		default:
			words = append(words, word)
		}
	}
	require.Equal(t, 9, groups, "eight groups of commands, and the line after them")
	for _, word := range []string{"break", "continue", "exits", "bt", "frame", "up", "down", "locals", "print", "x", "list", "disassemble", "explain",
		"step", "next", "finish", "until", "back", "set", "restart", "commit", "record", "script", "help", "quit"} {
		require.Contains(t, words, word)
	}
	for _, word := range words {
		r := debug(t, "help "+word+"\n", "--", "true")
		require.Zero(t, r.Code)
		require.True(t, strings.HasPrefix(said(r.Stdout)[0], word), r.Stdout)
	}
}

// typing is a debug prompt on a terminal.
type typing struct {
	t        *testing.T
	terminal *os.File
	seen     strings.Builder
	*exec.Cmd
}

// atTerminal starts debug on its own terminal, with its own history.
func atTerminal(t *testing.T, home string, args ...string) *typing {
	t.Helper()
	master, slave := livetest.Terminal(t)
	defer slave.Close()
	c := clitest.Command(t, append([]string{"debug"}, args...)...)
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+home, "TERM=xterm", "NO_COLOR=1")
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, c.Start())
	return &typing{t: t, terminal: master, Cmd: c}
}

// wait reads output until text appears. It starts where the previous wait ended.
func (p *typing) wait(text string) {
	p.t.Helper()
	buf := make([]byte, 4096)
	for {
		if _, behind, ok := strings.Cut(p.seen.String(), text); ok {
			p.seen.Reset()
			p.seen.WriteString(behind)
			return
		}
		n, err := p.terminal.Read(buf)
		require.NoError(p.t, err, "waiting for %q, there is %q", text, p.seen.String())
		p.seen.Write(buf[:n])
	}
}

func (p *typing) keys(text string) {
	p.t.Helper()
	_, err := p.terminal.WriteString(text)
	require.NoError(p.t, err)
}

// TestDebugAtATerminal requires that on a terminal lines can be edited, names are completed, and lines of this or an earlier session can be recalled.
// Ctrl-C discards a line, or stops a running process without sending it a signal. Ctrl-D ends the session, and an attached process continues.
func TestDebugAtATerminal(t *testing.T) {
	t.Parallel()
	args, number := atGuard(t)
	home := t.TempDir()
	p := atTerminal(t, home, args...)
	p.wait("(reframe) ")
	p.keys("prin\t")
	p.wait("print ")
	p.keys("%a\t+ 1\r")
	p.wait("5526")
	p.wait("(reframe) ")
	p.keys("nonsense\x03step\r") // Ctrl-C discards the typed line
	p.wait("=>   44")
	p.wait("(reframe) ")
	p.keys("\r") // an empty line repeats the command
	p.wait("=>   45")
	p.wait("(reframe) ")
	p.keys("until \t\t")
	p.wait("%entry  %loop  %done")
	p.keys("l\t\r")
	p.wait("=>   43")
	p.wait("(reframe) ")
	p.keys("c\r")
	var pid int
	_, err := fmt.Sscan(number, &pid)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !strings.HasPrefix(clitest.ThreadStatus(pid, pid, "State"), "t") }, livetest.Patience, time.Millisecond, "it goes on")
	p.keys("\x03")
	p.wait("interrupted")
	p.wait("(reframe) ")
	p.keys("\x04")
	require.NoError(t, p.Wait())
	require.Equal(t, "0", clitest.ThreadStatus(pid, pid, "TracerPid"))
	require.NotContains(t, clitest.ThreadStatus(pid, pid, "State"), "Z")

	p = atTerminal(t, home, args...)
	p.wait("(reframe) ")
	p.keys("\x1b[A") // the arrow up
	p.wait("c")
	p.keys("\x1b[A")
	p.wait("until %loop")
	p.keys("\x15quit\r")
	require.NoError(t, p.Wait())
	info, err := os.Stat(filepath.Join(home, "reframe", "history"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// TestDebugKilled requires that an attached process is unchanged however a session ends, and that a process which the session started is gone.
func TestDebugKilled(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	// As in TestWatcherKilled, orphaned tracers become children of this process.
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	v := clitest.Victim{Name: "one thread", Program: "tick.ll", Options: livetest.ObjectHostOptions{Rounds: 3000}}
	for n, w := range clitest.Endings {
		if w.Args != nil || w.Writes || strings.HasPrefix(w.Name, "SIGINT") { // SIGINT only cancels the running command
			continue
		}
		for _, state := range []string{"b 1\nc\nc\nstep 5\n", "b 99\nc\n"} { // in the first state the process is stopped, in the second it runs
			t.Run(fmt.Sprintf("%s, %q", w.Name, state), func(t *testing.T) {
				p, begin := livetest.ObjectHost(t, livetest.PICObject(t, 19, v.Program, "-O2"), v.Options)
				code := clitest.ExecutableMemory(t, p.PID)
				c := clitest.Watch(t, nil, "debug", "--ir", livetest.IR(t, 19, v.Program), "-p", clitest.PID(p))
				_, err := c.Terminal.WriteString(strings.ReplaceAll(state, "\n", "\r"))
				require.NoError(t, err)
				clitest.WaitTraced(t, p)
				tracing := clitest.TracerOf(p.PID)
				begin()
				if err := w.End(c); err != nil {
					require.ErrorIs(t, err, os.ErrProcessDone)
				}
				_ = unix.Kill(p.PID, unix.SIGSTOP) // an error means that it has ended
				c.Over(t, tracing)
				clitest.RequireRestored(t, p.PID, code)
				_ = unix.Kill(p.PID, unix.SIGCONT)
				require.NoError(t, p.Wait(), p.Output())
				clitest.RequireFinished(t, v, p.Output())
			})
		}
		if n%2 == 1 {
			continue
		}
		t.Run(w.Name+", started", func(t *testing.T) {
			host := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, v.Program, "-O2"), livetest.ObjectHostOptions{Rounds: 1 << 30})
			c := clitest.Watch(t, nil, append([]string{"debug", "--ir", livetest.IR(t, 19, v.Program), "--"}, host...)...)
			_, err := c.Terminal.WriteString("c\r")
			require.NoError(t, err)
			tracing, process := clitest.TracedHost(t, c.Process.Pid)
			require.NotZero(t, process)
			if err := w.End(c); err != nil {
				require.ErrorIs(t, err, os.ErrProcessDone)
			}
			c.Over(t, tracing)
			require.Eventually(t, func() bool {
				var ws unix.WaitStatus
				_, _ = unix.Wait4(process, &ws, unix.WNOHANG, nil)
				return clitest.Ended(process)
			}, livetest.Patience, livetest.Patience/1000, "what it has started runs on")
		})
	}
}
