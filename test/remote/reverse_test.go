package remote_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/check/trace"
	debugging "example.com/reframe/internal/debug/session"
	"example.com/reframe/ptrace"
	"example.com/reframe/ptrace/remote"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// bareModule is a program for QEMU's machine virt without an operating system. It ends by SYSTEM_OFF of PSCI. Its function work calls itself four times, and
// has a record with values in registers, and the address of a variable that another function has written last. The patchpoint calls bump by its address,
// which follows _start: LLVM 19 loads a wrong address for a symbol on arm64.
const bareModule = `
target datalayout = "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32"
target triple = "aarch64-none-elf"

module asm ".globl _start"
module asm "_start:"
module asm "  adrp x9, stack_top"
module asm "  add x9, x9, :lo12:stack_top"
module asm "  mov sp, x9"
module asm "  mov x29, xzr"
module asm "  mov x30, xzr"
module asm "  bl main"
module asm "  mov w0, #8"
module asm "  movk w0, #0x8400, lsl #16"
module asm "  hvc #0"
module asm "hang: b hang"
module asm ".bss"
module asm ".balign 16"
module asm ".skip 65536"
module asm "stack_top:"
module asm ".text"

declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
@sink = dso_local global i64 0

define dso_local void @bump(ptr %p, i64 %by) noinline {
  %v = load volatile i64, ptr %p
  %w = add i64 %v, %by
  store volatile i64 %w, ptr %p
  ret void
}

define dso_local i64 @work(i64 %n, i64 %acc) noinline {
entry:
  %total = alloca i64
  store volatile i64 %acc, ptr %total
  %end = icmp eq i64 %n, 0
  br i1 %end, label %leaf, label %deeper
deeper:
  %m = sub i64 %n, 1
  %a = mul i64 %acc, 3
  %inner = call i64 @work(i64 %m, i64 %a)
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 8, i32 20, ptr inttoptr (i64 1074266152 to ptr), i32 2, ptr %total, i64 %n, i64 %n, i64 %inner)
  %x = xor i64 %inner, %n
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, i64 %n, i64 %x, i64 %inner, ptr %total)
  %t = load volatile i64, ptr %total
  %r = add i64 %t, %x
  store volatile i64 %r, ptr @sink
  ret i64 %r
leaf:
  ret i64 5
}

define dso_local i32 @main() {
  %r = call i64 @work(i64 4, i64 2)
  %t = trunc i64 %r to i32
  ret i32 %t
}
`

// recording is a run of a program that QEMU has recorded. Each replay is a new process.
type recording struct{ program, module, replay string }

// record builds bareModule and records a run of it.
func record(t *testing.T) recording {
	dir := t.TempDir()
	r := recording{module: filepath.Join(dir, "bare.ll"), program: filepath.Join(dir, "bare")}
	require.NoError(t, os.WriteFile(r.module, []byte(bareModule), 0o600))
	clitest.RunTool(t, livetest.Tool(t, "aarch64-linux-gnu-ld"), "-Ttext=0x40080000", "-o", r.program, livetest.Object(t, 19, r.module, "-mtriple=aarch64-none-elf", "-O2"))
	log := filepath.Join(dir, "log")
	command := func(mode string) []string {
		return []string{livetest.Tool(t, "qemu-system-aarch64"), "-M", "virt", "-cpu", "cortex-a53", "-m", "64", "-nodefaults", "-display", "none", "-serial", "none",
			"-monitor", "none", "-net", "none", "-kernel", r.program, "-icount", "shift=0,rr=" + mode + ",rrfile=" + log}
	}
	c := command("record")
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, c[0], c[1:]...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	// QEMU keeps the snapshots for going back in the image of a drive.
	r.replay = "| exec " + strings.Join(append(command("replay"), "-drive", "driver=null-co,size=16M,snapshot=on,if=none,id=rr", "-S", "-gdb", "stdio", "2>/dev/null"), " ")
	return r
}

// debug runs commands in a session with a replay of the recording.
func (r recording) debug(t *testing.T, commands ...string) clitest.Result {
	script := clitest.TempFile(t, "session.txt", strings.Join(commands, "\n")+"\n")
	return clitest.Run(t, "debug", "--remote", r.replay, "--exe", r.program, "--ir", r.module, "-x", script)
}

// answering starts a replay of the recording, and returns the address of a stub that passes packets to QEMU, except those to which answer returns a reply.
func (r recording) answering(t *testing.T, answer func(packet string) (reply string)) string {
	address := filepath.Join(t.TempDir(), "stub")
	l, err := net.Listen("unix", address)
	require.NoError(t, err)
	c := exec.Command("sh", "-c", strings.TrimPrefix(r.replay, "|"))
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		l.Close()
		_ = c.Process.Kill() // an error means that it has ended
		_ = c.Wait()
	})
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		go func() { _, _ = io.Copy(conn, out) }() // ends with QEMU
		for from := bufio.NewReader(conn); err == nil; {
			var b byte
			if b, err = from.ReadByte(); err != nil {
				return
			}
			packet := string(b)
			if b == '$' {
				text, _ := from.ReadString('#')
				sum := make([]byte, 2)
				if _, err = io.ReadFull(from, sum); err != nil {
					return
				}
				if reply := answer(strings.TrimSuffix(text, "#")); reply != "" {
					check := byte(0)
					for _, b := range []byte(reply) {
						check += b
					}
					_, err = fmt.Fprintf(conn, "+$%s#%02x", reply, check)
					continue
				}
				packet += text + string(sum)
			}
			_, err = io.WriteString(in, packet)
		}
	}()
	return "unix:" + address
}

// gdb runs a Python script in gdb with a replay of the recording, and returns its output. step goes back until a value changes.
func (r recording) gdb(t *testing.T, script string) string {
	const begin = `
import gdb
def value(text): return int(gdb.parse_and_eval(text)) & (1 << 64) - 1
def do(text): gdb.execute(text, to_string=True)
def step(text):
    last = value(text)
    while value(text) == last: do("reverse-stepi")
def show(): print("at %#x sp %#x" % (value("$pc"), value("$sp")))
`
	path := clitest.TempFile(t, "back.py", begin+script+"\ndo('kill')\n")
	out := clitest.RunTool(t, livetest.Tool(t, "gdb-multiarch"), "-nx", "-batch", "-ex", "set confirm off", "-ex", "target remote "+r.replay, "-x", path, r.program)
	places := regexp.MustCompile(`(?m)^at .*$`).FindAllString(out, -1)
	require.NotEmpty(t, places, out)
	return strings.Join(places, "\n")
}

// placesOf returns the program counters and stack pointers that a session printed by "print $pc" and "print $sp".
func placesOf(text string) string {
	var list []string
	for _, m := range regexp.MustCompile(`print \$pc\n(0x[0-9a-f]+)\n\(reframe\) print \$sp\n(0x[0-9a-f]+)\n`).FindAllStringSubmatch(text, -1) {
		list = append(list, fmt.Sprintf("at %s sp %s", m[1], m[2]))
	}
	return strings.Join(list, "\n")
}

// where holds the commands that print the program counter and stack pointer of a session.
var where = []string{"print $pc", "print $sp"}

// TestReverse requires that going back in a recording stops where gdb stops. gdb finds the entry of an activation by a breakpoint with a condition on
// the argument, and the last write by single steps until the value changes.
func TestReverse(t *testing.T) {
	livetest.Slow(t)
	r := record(t)
	at := fmt.Sprintf("do('break *%d')\n", recordOf(t, r.program, 7))
	cases := []struct {
		commands []string
		forGDB   string // the same in gdb
		said     string
	}{
		{[]string{"break 7 if %n == 3", "continue", "reverse-entry"}, at + "for n in range(3): do('continue')\ndo('delete')\ndo('break *work if $x0 == 3')\ndo('reverse-continue')", "the entry of the activation"},
		{[]string{"break 7 if %n == 3", "continue", "reverse-write %total"}, at + "for n in range(3): do('continue')\nstep('*(long *)%d' % (value('$x29') - 8))", "before the last write of %total (8 bytes at 0x"},
		{[]string{"break 7 if %n == 2", "continue", "reverse-write %x"}, at + "for n in range(2): do('continue')\nstep('$x8')", "before the last write of %x (x8)"},
		{[]string{"break 7 if %n == 2", "continue", "reverse-write %inner"}, at + "for n in range(2): do('continue')\nstep('$x20')", "before the last write of %inner (x20)"},
		{[]string{"break at bump", "continue", "frame 1", "reverse-write %n"}, "do('break *bump')\ndo('continue')\nstep('$x19')", "before the last write of %n (x19)"},
		{[]string{"break 7", "continue", "reverse-stepi 3"}, at + "do('continue')\ndo('reverse-stepi 3')", ""},
		{[]string{"break 7 if %n == 4", "continue", "delete", "break 7 if %n == 2", "rc"}, at + "for n in range(4): do('continue')\nfor n in range(2): do('reverse-continue')", "breakpoint 7, record 7"},
	}
	var commands []string
	var script strings.Builder
	for _, c := range cases {
		commands = append(append(append(commands, c.commands...), where...), "delete", "reverse-continue")
		fmt.Fprintf(&script, "%s\nshow()\ndo('delete')\ndo('reverse-continue')\n", c.forGDB)
	}
	got := r.debug(t, commands...)
	require.Equal(t, 0, got.Code, got.Stderr)
	for _, c := range cases {
		require.Contains(t, got.Stdout, c.said)
	}
	want := r.gdb(t, script.String())
	require.Equal(t, len(cases), strings.Count(want, "at "))
	require.Equal(t, want, placesOf(got.Stdout), got.Stdout)
}

// TestReverseToBegin requires that the start of the recording is reported, that the session stays usable there, and that exits have the same values
// again.
func TestReverseToBegin(t *testing.T) {
	livetest.NeedsTools(t)
	r := record(t)
	got := r.debug(t, "reverse-stepi", "break 7", "continue", "reverse-continue", "reverse-continue", "reverse-stepi 2", "continue", "delete", "rc")
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Equal(t, 5, strings.Count(got.Stdout, "start of the recording: cannot go back further\n  #0   native  _start+0x0\n"), got.Stdout)
	require.Equal(t, 2, strings.Count(got.Stdout, "%n       i64    1                      x19\n        %x       i64    4 "), got.Stdout)

	refused := r.debug(t, "break 7", "continue", "reverse-write #9")
	require.Equal(t, 2, refused.Code)
	require.Contains(t, refused.Stderr, "slot #9 not found")
}

// TestReverseRefused requires an error that names the missing feature if a command that goes back is used with gdbserver, or with a process without a
// stub.
func TestReverseRefused(t *testing.T) {
	livetest.NeedsTools(t)
	object, module := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{})
	for _, command := range []string{"reverse-continue", "reverse-stepi", "reverse-entry", "reverse-write %i"} {
		script := clitest.TempFile(t, "session.txt", "break 1\ncontinue\n"+command+"\n")
		r := clitest.Run(t, append([]string{"debug", "--ir", module, "-x", script}, launches["gdbserver"](t, host)...)...)
		require.Equal(t, 2, r.Code)
		require.Contains(t, r.Stderr, "the stub does not support reverse execution; rr and QEMU with icount replay do")
		r = clitest.Run(t, append([]string{"debug", "--ir", module, "-x", script, "--"}, host...)...)
		require.Equal(t, 2, r.Code)
		require.Contains(t, r.Stderr, "reverse execution requires a stub that supports it (--remote)")
	}
}

// TestReverseByStepping requires that single steps find the last write if the stub refuses a watchpoint, and that reverse-write fails if there are
// several threads: a step executes only one of them, and another may have written.
func TestReverseByStepping(t *testing.T) {
	livetest.NeedsTools(t)
	script := clitest.TempFile(t, "session.txt", strings.Join(append([]string{"break 7 if %n == 1", "continue", "reverse-write %total"}, where...), "\n")+"\n")
	r := record(t)
	debug := func(stub string) clitest.Result {
		return clitest.Run(t, "debug", "--remote", stub, "--exe", r.program, "--ir", r.module, "-x", script)
	}
	refuses := func(packet string) string {
		if strings.HasPrefix(packet, "Z2") {
			return "E01"
		}
		return ""
	}
	want, got := debug(r.replay), debug(r.answering(t, refuses))
	require.Equal(t, 0, want.Code, want.Stderr)
	require.Contains(t, want.Stdout, "before the last write of %total (8 bytes at 0x")
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Equal(t, want.Stdout, got.Stdout)

	got = debug(r.answering(t, func(packet string) string { // QEMU replays only machines with one processor
		switch packet {
		case "qfThreadInfo":
			return "mp01.01,p01.02"
		case "Hgp1.2":
			return "E22"
		}
		return refuses(packet)
	}))
	require.Equal(t, 2, got.Code, got.Stdout)
	require.Contains(t, got.Stderr, "single steps cannot find the write, because any of the 2 threads may write")
	require.Contains(t, got.Stderr, "the stub cannot set a watchpoint: it answers E01")
}

// TestReverseFails requires that a session whose step back fails is no longer at its breakpoint, and that a running process cannot go back.
func TestReverseFails(t *testing.T) {
	livetest.NeedsTools(t)
	r := record(t)
	steps := 0
	stub := r.answering(t, func(packet string) string {
		if packet == "bs" {
			steps++
		}
		if steps > 1 && packet == "bs" {
			return "E01"
		}
		return ""
	})
	state, err := remote.Open(t.Context(), stub, remote.Options{Control: true, Program: r.program})
	require.NoError(t, err)
	process, err := ptrace.OpenSession(state, ptrace.CoreOptions{Exe: r.program})
	require.NoError(t, err)
	t.Cleanup(func() { _ = process.Kill(false) }) // QEMU may end before it replies
	s := debugging.OfProcess(process, debugging.Config{Warn: func(text string) { t.Log(text) }})
	_, err = s.Break(debugging.Breakpoint{ExitFilter: trace.ExitFilter{Records: []uint64{7}}})
	require.NoError(t, err)
	stop, err := s.Continue(t.Context())
	require.NoError(t, err)
	require.Equal(t, debugging.AtExit, stop.Why)
	_, err = s.ReverseStep(t.Context(), 2)
	require.ErrorContains(t, err, "it answers E01")
	require.Equal(t, debugging.Stop{Why: debugging.Reversed}, s.Stop())

	require.NoError(t, process.LetRun())
	require.False(t, process.Away().IsZero())
	err = process.StepBack(t.Context(), 1)
	require.ErrorContains(t, err, "cannot go back: the process runs")
	require.NotErrorIs(t, err, ptrace.ErrProcessExited)
}
