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
	interleave(1, once...) // their files come into the page cache
	process, gdb, remote, gdbRemote, delve = nil, nil, nil, nil, nil
	interleave(providerRounds, once...)
	b.print(
		against("-p", "gdb -p, bt", gdb, process),
		against("--remote, gdbserver", "gdb, target remote, bt", gdbRemote, remote),
		against("", "reframe -p", process, remote),
		against("--delve, on the same machine", "reframe -p", process, delve),
	)
	free.Kill() // the others are killed after the debuggers that hold them, which are ended later
}

// gdbserver makes gdbserver hold a process, and returns its address.
func (b *bench) gdbserver(pid int) string {
	c := exec.CommandContext(b.ctx, livetest.Tool(b, "gdbserver"), "--attach", "127.0.0.1:0", fmt.Sprint(pid))
	out, err := c.StderrPipe()
	require.NoError(b, err)
	require.NoError(b, c.Start())
	b.Cleanup(func() {
		_ = c.Process.Kill() // an error: it has ended
		_ = c.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }() // it ends with gdbserver
			return "127.0.0.1:" + m[1]
		}
	}
	require.Fail(b, "gdbserver does not listen")
	return ""
}
