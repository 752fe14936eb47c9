package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// The number of timed steps, and the number of IR instructions that are run before a step back is timed.
const (
	promptSteps = 300
	promptFar   = 1_000_000
)

// prompts measures the time that a user waits at the prompt: for a step of the interpreter, compared with gdb's step of an instruction, and for a
// step back after a million instructions.
func (b *bench) prompts() {
	b.section("A step at the prompt, of %d (deoptimize.ll in lli-19)", promptSteps)
	text, err := os.ReadFile(livetest.Testdata(b, "programs", "deoptimize.ll"))
	require.NoError(b, err)
	p := livetest.Lli(b, 19, livetest.Raw(b, strings.ReplaceAll(string(text), "i64 1000,", "i64 10000000,")), "mcjit")
	gdb := b.asks(exec.CommandContext(b.ctx, b.gdb, "-q", "-nx", "/bin/true"), "(gdb) ")
	gdb.ask("starti", "(gdb) ")
	var theirs times
	for range promptSteps {
		theirs.add(gdb.ask("stepi", "(gdb) "))
	}
	gdb.leave()
	ours := b.asks(exec.CommandContext(b.ctx, b.reframe, "debug", "-p", fmt.Sprint(p.PID), "--ir", p.IR, "--layout", livetest.Testdata(b, "programs", "deoptimize.layout.json")), "\n=> ")
	var steps, back times
	for range promptSteps {
		steps.add(ours.ask("step", "\n=> "))
	}
	far := ours.ask(fmt.Sprintf("step %d", promptFar), "\n=> ")
	for range 20 {
		back.add(ours.ask("back", "\n=> "))
	}
	ours.leave()
	b.note("%d steps in one command: %s", promptFar, duration(far))
	b.print(against("step, beside stepi", "gdb", theirs, steps).atMost(steps, 10*time.Millisecond),
		row{what: fmt.Sprintf("back, %d steps behind the exit", promptFar), ours: spread(back)})
}

// asked is a debugger that reads commands from standard input.
type asked struct {
	b   *bench
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

// asks starts a debugger, and waits until it has printed a text.
func (b *bench) asks(c *exec.Cmd, until string) *asked {
	in, err := c.StdinPipe()
	require.NoError(b, err)
	out, err := c.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, c.Start())
	a := &asked{b, in, bufio.NewReader(out), c}
	a.until(until)
	return a
}

// ask types a line, and returns the time until a text appears.
func (a *asked) ask(line, until string) time.Duration {
	began := time.Now()
	_, err := io.WriteString(a.in, line+"\n")
	require.NoError(a.b, err)
	a.until(until)
	return time.Since(began)
}

func (a *asked) until(text string) {
	var seen strings.Builder
	for !strings.HasSuffix(seen.String(), text) {
		c, err := a.out.ReadByte()
		require.NoError(a.b, err, "%s", seen.String())
		seen.WriteByte(c)
	}
}

// leave ends the debugger; the process continues.
func (a *asked) leave() {
	require.NoError(a.b, a.in.Close())
	_, _ = io.Copy(io.Discard, a.out) // the rest of the output
	_ = a.cmd.Wait()                  // gdb's exit status at the end of its input does not matter
}
