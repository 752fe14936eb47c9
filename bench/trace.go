package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// The number of exits in one round of the program, and the number of rounds for each tool. Slow tools run fewer rounds, and rates are compared.
const (
	exitsOfRound   = 1000
	traceRuns      = 5
	quickRounds    = 100
	gdbTraceRounds = 10
	delveRounds    = 1
	threadRounds   = 6 // for each of 16 threads
)

// traces measures how many exits each tool reports in a second.
func (b *bench) traces() {
	b.section("Exits reported a second (tick.ll, four slots: two registers, two on the stack; 100,000 exits, of gdb 10,000, of Delve 1,000), %d runs", traceRuns)
	object, module := livetest.PICObject(b, 19, "tick.ll", "-O2"), livetest.IR(b, 19, "tick.ll")
	stepper := filepath.Join(b.TempDir(), "stepper")
	text, err := exec.CommandContext(b.ctx, livetest.Tool(b, "gcc"), "-O2", "-Wall", "-o", stepper, filepath.Join("bench", "testdata", "stepper.c")).CombinedOutput()
	require.NoError(b, err, "%s", text)
	stepped := livetest.PICObject(b, 19, b.steppedTick(), "-O2")
	var ours, counted, threads, notEmulated, gdb, bare, delve times
	run := func(series *times, rounds int, w func(tickProcess) watcher) func() {
		return func() { series.add(b.exitTime(object, 1, rounds, w)) }
	}
	trace := func(p tickProcess) watcher { return b.reframeTrace(p, "--ir", module) }
	interleave(traceRuns,
		run(&ours, quickRounds, trace),
		run(&counted, quickRounds, func(p tickProcess) watcher { return b.reframeTrace(p, "--count") }),
		func() { threads.add(b.exitTime(object, 16, threadRounds, trace)) },
		func() { notEmulated.add(b.exitTime(stepped, 1, quickRounds, trace)) },
		run(&gdb, gdbTraceRounds, b.gdbTrace),
		run(&bare, quickRounds, func(p tickProcess) watcher { return b.stepperTrace(stepper, p) }),
		run(&delve, delveRounds, b.delveTrace),
	)
	debugged := rates("trace", "gdb's commands", gdb, ours)
	debugged.target = "at least 3: " + verdict(3*ours.median() <= gdb.median())
	limit := rates("", "only stepped over, in C", bare, ours)
	limit.target = "at least 0.5: " + verdict(ours.median() <= 2*bare.median())
	// Most instructions at a site are emulated. To execute one that is not, the other thread, which waits, is stopped.
	stepping := rates("trace, not emulated", "only stepped over, in C", bare, notEmulated)
	stepping.target = "at least 0.5: " + verdict(notEmulated.median() <= 2*bare.median())
	b.print(debugged, limit,
		rates("", "Delve's continue", delve, ours),
		rates("trace --count", "only stepped over, in C", bare, counted),
		rates("trace of 16 threads", "only stepped over, one thread", bare, threads),
		stepping)
}

// steppedTick returns tick.ll with an instruction at the stackmap's address. reframe does not emulate this instruction, which has no effect, because
// the direction flag is already clear.
func (b *bench) steppedTick() string {
	text, err := os.ReadFile(livetest.Testdata(b, "programs", "tick.ll"))
	require.NoError(b, err)
	before, behind, found := strings.Cut(string(text), "@llvm.experimental.stackmap(i64 1,")
	require.True(b, found)
	behind = strings.Replace(behind, `asm sideeffect ""`, `asm sideeffect "cld"`, 1)
	path := filepath.Join(b.TempDir(), "tick.ll")
	require.NoError(b, os.WriteFile(path, []byte(before+"@llvm.experimental.stackmap(i64 1,"+behind), 0o644))
	return path
}

// vmTraces measures the additional time for the frames of a virtual machine at each exit, compared with the same exits without these frames.
func (b *bench) vmTraces() {
	b.section("Exits reported a second with VM frames (tick.ll with 20 values in the convention simple; 100,000 exits), %d runs", traceRuns)
	module := b.vmTick(0)
	object := livetest.PICObject(b, 19, module, "-O2")
	otherModule := b.vmTick(1)
	other := livetest.PICObject(b, 19, otherModule, "-O2")
	var with, without, boxed traceTimes
	run := func(series *traceTimes, object string, args ...string) func() {
		return func() {
			series.wall.add(b.exitTime(object, 1, quickRounds, func(p tickProcess) watcher { return b.reframeTrace(p, args...) }))
			series.cpu.add(b.traceCPU / (quickRounds * exitsOfRound))
		}
	}
	interleave(traceRuns,
		run(&without, object, "--ir", module),
		run(&with, object, "--ir", module, "--layout", "simple"),
		run(&boxed, other, "--ir", otherModule, "--layout", "simple"),
	)
	row := func(what, peer string, without, with times) row {
		r := rates(what, peer, without, with)
		r.target = "at least 0.8: " + verdict(0.8*float64(with.median()) <= float64(without.median()))
		return r
	}
	b.print(row("trace --layout simple", "trace", without.wall, with.wall), row("", "trace, all boxed", without.wall, boxed.wall),
		row("exits of its CPU time", "trace", without.cpu, with.cpu), row("", "trace, all boxed", without.cpu, boxed.cpu))
}

// traceTimes are the times of one exit: by the clock, and of reframe's own processor time.
type traceTimes struct{ wall, cpu times }

// vmTick returns tick.ll with a VM frame of 20 locals at its stackmap, in the format of the layout simple. how is the encoding of values: 0 plain, 1
// boxed.
func (b *bench) vmTick(how int) string {
	text, err := os.ReadFile(livetest.Testdata(b, "programs", "tick.ll"))
	require.NoError(b, err)
	operands := fmt.Sprintf("i64 %d, i64 0, i32 7", int64(1)<<32)
	for n := range 20 {
		operands += fmt.Sprintf(", i64 %d, i64 %s", 2<<32|int64(how)<<24|int64(n), []string{"%i", "%acc", "%x", "%y"}[n%4])
	}
	before, behind, found := strings.Cut(string(text), "i64 %i, i64 %acc, i64 %x, i64 %y)")
	require.True(b, found)
	path := filepath.Join(b.TempDir(), "tick.ll")
	require.NoError(b, os.WriteFile(path, []byte(before+operands+")"+behind), 0o644))
	return path
}

// rates compares rates of exits, given the time of each exit.
func rates(what, peer string, theirs, ours times) row {
	return row{what: what, peer: peer, theirs: rate(theirs), ours: rate(ours), ratio: ratio(theirs.median(), ours.median())}
}

// rate formats a series as exits per second: "median (smallest to largest)".
func rate(each times) string {
	per := func(d time.Duration) int { return int(time.Second / d) }
	return fmt.Sprintf("%d/s (%d to %d)", per(each.median()), per(slices.Max(each)), per(slices.Min(each)))
}

// tickProcess is tick.ll in a host that waits before its first exit.
type tickProcess struct {
	*livetest.Process
	exits  int
	at     machine.Addr
	values []string // the four values as gdb prints them
}

// watcher waits until an attached tool has ended. It is called after the process has ended, and returns the number of exits that the tool reported.
type watcher func() (told int)

// exitTime returns the time of one exit. It measures from the start of the process's run until the tool has reported all exits and has ended. It
// excludes the time before, in which the tool attaches.
func (b *bench) exitTime(object string, threads, rounds int, attach func(tickProcess) watcher) time.Duration {
	o := livetest.ObjectHostOptions{Threads: threads, Rounds: rounds}
	process, begin := livetest.ObjectHost(b, object, o)
	p := tickProcess{Process: process, exits: threads * rounds * exitsOfRound}
	b.locate(&p)
	end := attach(p)
	began := time.Now()
	begin()
	told := end()
	took := time.Since(began)
	require.Equal(b, p.exits, told)
	require.NoError(b, p.Wait())
	checksum, _ := livetest.CVersion(b, "tick.ll", o)
	require.Contains(b, p.Output(), checksum)
	return took / time.Duration(told)
}

// locate finds the only record of tick.ll in the process.
func (b *bench) locate(p *tickProcess) {
	o, text := b.start(b.reframe, "maps", "-p", fmt.Sprint(p.PID), "--json")
	var report struct {
		Images []struct {
			Functions []struct {
				Records []struct {
					Address   string
					Locations []struct {
						Kind, Register string
						Offset         int
					}
				}
			}
		}
	}
	require.NoError(b, json.Unmarshal(o.output, &report), text)
	record := report.Images[0].Functions[0].Records[0]
	at, err := strconv.ParseUint(record.Address, 0, 64)
	require.NoError(b, err, text)
	p.at = machine.Addr(at)
	for _, l := range record.Locations {
		switch l.Kind {
		case "Register":
			p.values = append(p.values, "$"+l.Register)
		case "Indirect":
			p.values = append(p.values, fmt.Sprintf("*(long*)($%s%+d)", l.Register, l.Offset))
		}
	}
	require.NotEmpty(b, p.values, text)
}

// command starts a tool and reads its output up to a line which shows that it has attached. rest reads the remaining output.
func (b *bench) command(ready string, tool string, args ...string) (rest func() []byte) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	cmd := exec.CommandContext(ctx, tool, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		require.NoError(b, err, "%s\n%s", cmd, &stderr)
		if strings.TrimSpace(line) == ready {
			break
		}
	}
	return func() []byte {
		defer cancel()
		output, err := io.ReadAll(lines)
		require.NoError(b, err, "%s", cmd)
		require.NoError(b, cmd.Wait(), "%s\n%s", cmd, &stderr)
		return output
	}
}

// reframeTrace runs reframe, which writes the exits to a file, or with --count writes no exits.
func (b *bench) reframeTrace(p tickProcess, args ...string) watcher {
	file := filepath.Join(b.TempDir(), "exits")
	var summary bytes.Buffer
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	cmd := exec.CommandContext(ctx, b.reframe, append([]string{"trace", "-p", fmt.Sprint(p.PID), "-o", file}, args...)...)
	cmd.Stderr = &summary
	require.NoError(b, cmd.Start())
	b.awaitBreakpoint(p)
	return func() int {
		defer cancel()
		defer os.Remove(file)
		require.NoError(b, cmd.Wait(), "%s\n%s", cmd, &summary)
		b.traceCPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		require.Contains(b, summary.String(), fmt.Sprintf("%d exits in ", p.exits))
		if args[0] == "--count" {
			return p.exits
		}
		text, err := os.ReadFile(file)
		require.NoError(b, err)
		return bytes.Count(text, []byte("  record 1 stackmap  "))
	}
}

// awaitBreakpoint returns when a breakpoint has been set and the process runs, or waits in the kernel, again.
func (b *bench) awaitBreakpoint(p tickProcess) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.PID))
	require.NoError(b, err)
	defer memory.Close()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		var code [1]byte
		_, err := memory.ReadAt(code[:], int64(p.at))
		require.NoError(b, err)
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
		require.NoError(b, err)
		if code[0] == 0xcc && bytes.Contains(status, []byte("State:\tS")) {
			return
		}
		require.True(b, time.Now().Before(deadline), "no breakpoint was set:\n%s", status)
	}
}

// gdbTrace runs gdb, which prints the same values with the commands of a breakpoint.
func (b *bench) gdbTrace(p tickProcess) watcher {
	script := filepath.Join(b.TempDir(), "trace.gdb")
	require.NoError(b, os.WriteFile(script, fmt.Appendf(nil, `set pagination off
set confirm off
break *%v
commands
silent
printf "%%ld %%ld %%ld %%ld\n", %s
continue
end
echo ready\n
continue
`, p.at, strings.Join(p.values, ", ")), 0o644))
	rest := b.command("ready", b.gdb, "-nx", "-batch", "-iex", "set auto-load off", "-p", fmt.Sprint(p.PID), "-x", script)
	b.awaitBreakpoint(p)
	return func() (told int) {
		for line := range bytes.Lines(rest()) {
			if bytes.Count(line, []byte(" ")) == 3 && line[0] >= '0' && line[0] <= '9' {
				told++
			}
		}
		return told
	}
}

// stepperTrace runs the loop of testdata/stepper.c.
func (b *bench) stepperTrace(path string, p tickProcess) watcher {
	rest := b.command("ready", path, fmt.Sprint(p.PID), fmt.Sprintf("%x", uint64(p.at)))
	return func() int {
		told, err := strconv.Atoi(strings.TrimSpace(string(rest())))
		require.NoError(b, err)
		return told
	}
}
