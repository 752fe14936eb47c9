package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

const providerRounds = 11

var listening = regexp.MustCompile(`Listening on port (\d+)`)

// providers measures frames of the same stack through each debugger that can hold its process.
func (b *bench) providers() {
	b.section("Frames of a deep stack by the debugger that holds the process, start to end of the tool, %d runs", providerRounds)
	path := filepath.Join(b.TempDir(), "deep.ll")
	require.NoError(b, os.WriteFile(path, []byte(deepProgram), 0o644))
	start := func() *livetest.Process { return livetest.Lli(b, 19, path, "mcjit") }
	free, stubbed, delved := start(), start(), start()
	stub := b.gdbserver(stubbed.PID)
	dlv := livetest.Headless(b, "attach", fmt.Sprint(delved.PID), "--accept-multiclient").Addr
	var process, gdb, remote, gdbRemote, delve times
	frames := func(s *times, target ...string) func() {
		return func() {
			o, text := b.start(b.reframe, append([]string{"frames"}, target...)...)
			require.GreaterOrEqual(b, bytes.Count(o.output, []byte("  jit  ")), 3, text)
			s.add(o.wall)
		}
	}
	once := []func(){
		frames(&process, "-p", fmt.Sprint(free.PID)),
		frames(&remote, "--remote", stub),
		frames(&delve, "--delve", dlv),
		func() { gdb.add(b.runGDB(free.PID, need{threads: 1, function: "main"}).wall) },
		func() {
			o, text := b.start(b.gdb, "-nx", "-batch", "-ex", "target remote "+stub, "-ex", "bt", "-ex", "disconnect")
			require.Contains(b, string(o.output), " main ", text)
			gdbRemote.add(o.wall)
		},
	}
	interleave(1, once...) // loads the files into the page cache
	process, gdb, remote, gdbRemote, delve = nil, nil, nil, nil, nil
	interleave(providerRounds, once...)
	b.print(
		against("-p", "gdb -p, bt", gdb, process),
		against("--remote, gdbserver", "gdb, target remote, bt", gdbRemote, remote),
		against("", "reframe -p", process, remote),
		against("--delve, on the same machine", "reframe -p", process, delve),
	)
	free.Kill() // the other processes must be killed after the debuggers that hold them, so they are killed later
	b.goProvider()
	b.insideGDB()
}

// Limits of the comparison with dlv.
const (
	manyGoroutines = 10_000
	delveFactor    = 3 // frames may take at most 1/delveFactor of dlv's time
)

// goProvider measures frames of a Go program with many goroutines beside dlv, which attaches to the process, prints the same stacks and detaches.
func (b *bench) goProvider() {
	b.section("Stacks of a Go program with %d goroutines, start to end of the tool, %d runs", manyGoroutines, providerRounds)
	p := livetest.Program(b, livetest.CgoBinary(b, "test/gohost/testdata/many"), fmt.Sprint(manyGoroutines))
	p.Quiet(b, 0)
	pid := fmt.Sprint(p.PID)
	frames := func(s *times, needed string, least int, flags ...string) func() {
		return func() {
			o, text := b.start(b.reframe, append([]string{"frames", "-p", pid}, flags...)...)
			require.GreaterOrEqual(b, bytes.Count(o.output, []byte(needed)), least, text)
			s.add(o.wall)
		}
	}
	dlv := func(s *times, needed string, least int, command string) func() {
		script := filepath.Join(b.TempDir(), "commands")
		require.NoError(b, os.WriteFile(script, []byte(command+"\nexit\n"), 0o644))
		args := []string{"TERM=dumb", "NO_COLOR=1", "XDG_CONFIG_HOME=" + b.TempDir(), livetest.DLV(b), "attach", pid, "--check-go-version=false", "--allow-non-terminal-interactive=true", "--init", script}
		return func() {
			var output bytes.Buffer
			o, text := b.startFed(strings.NewReader("n\n"), &output, "env", args...) // "n": do not kill the process
			require.GreaterOrEqual(b, bytes.Count(output.Bytes(), []byte(needed)), least, "%s\n%s", text, output.Bytes())
			s.add(o.wall)
		}
	}
	var one, all, inJSON, delveOne, delveAll times
	once := []func(){
		frames(&one, "runtime.asmcgocall", 1),
		frames(&all, fmt.Sprintf("and %d more goroutines with the same stack: ", manyGoroutines/10-1), 10, "--goroutines"), // receive is at 10 different depths
		frames(&inJSON, "main.receive", manyGoroutines, "--goroutines", "--json"),
		dlv(&delveOne, "  0x", 3, "stack"),
		dlv(&delveAll, "in main.receive", manyGoroutines, "goroutines -exec stack"),
	}
	interleave(1, once...)
	one, all, inJSON, delveOne, delveAll = nil, nil, nil, nil, nil
	interleave(providerRounds, once...)
	b.print(
		against("frames", "dlv attach, stack", delveOne, one).fraction(one, delveOne, delveFactor),
		against("frames --goroutines", "dlv attach, goroutines -exec stack", delveAll, all).fraction(all, delveAll, delveFactor),
		against("frames --goroutines --json", "", delveAll, inJSON).fraction(inJSON, delveAll, delveFactor),
	)
	p.Kill()
}

// insideGDB measures gdb's backtrace of JIT-compiled code with reframe's unwinder and frame filter, compared with gdb's own, which ends early without
// CFI.
func (b *bench) insideGDB() {
	b.section("gdb's backtrace of a deep stack with the plugin of reframe, start to end of gdb, %d runs", providerRounds)
	o, text := b.start(b.reframe, "gdb")
	require.Zero(b, o.code, text)
	plugin := filepath.Join(b.TempDir(), "reframe_gdb.py")
	require.NoError(b, os.WriteFile(plugin, o.output, 0o644))
	var rows []row
	for _, c := range []struct {
		what, program string
		alone         int // the least number of frames that gdb finds without reframe
	}{{"JIT code with CFI", deepProgram, deepest}, {"JIT code without CFI", withoutTables.Replace(deepProgram), 1}} {
		path := filepath.Join(b.TempDir(), "deep.ll")
		require.NoError(b, os.WriteFile(path, []byte(c.program), 0o644))
		p := livetest.Lli(b, 19, path, "mcjit")
		run := func(s *times, found *int, least int, args ...string) func() {
			args = append([]string{"-nx", "-batch", "-p", fmt.Sprint(p.PID)}, append(args, "-ex", "bt")...)
			return func() {
				o, text := b.start(b.gdb, args...)
				*found = len(framesIn(o.output))
				require.GreaterOrEqual(b, *found, least, text)
				s.add(o.wall)
			}
		}
		var ours, alone times
		var found, foundAlone int
		once := []func(){
			run(&ours, &found, deepest, "-x", plugin, "-ex", "set reframe program "+b.reframe),
			run(&alone, &foundAlone, c.alone),
		}
		interleave(1, once...)
		ours, alone = nil, nil
		interleave(providerRounds, once...)
		rows = append(rows, against(c.what, "gdb alone, bt", alone, ours))
		b.note("%s: %d frames with the plugin, %d without", c.what, found, foundAlone)
		p.Kill()
	}
	b.print(rows...)
}

// gdbserver makes gdbserver hold a process, and returns its address.
func (b *bench) gdbserver(pid int) string {
	c := exec.CommandContext(b.ctx, livetest.Tool(b, "gdbserver"), "--attach", "127.0.0.1:0", fmt.Sprint(pid))
	out, err := c.StderrPipe()
	require.NoError(b, err)
	require.NoError(b, c.Start())
	b.Cleanup(func() {
		_ = c.Process.Kill() // an error means that it has ended
		_ = c.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with gdbserver
			return "127.0.0.1:" + m[1]
		}
	}
	require.Fail(b, "gdbserver does not listen")
	return ""
}
