package arm64_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestLiveOnARM64 requires that the verbs for processes work on arm64 as on x86-64. Linux for arm64 and the target programs run in QEMU. The output
// for each process must equal the output on this machine for a core of the process, and gdb must show the same frames.
func TestLiveOnARM64(t *testing.T) {
	livetest.Slow(t)
	if !machineTurn(t) {
		return
	}
	c, head := arm64(t)
	text := strings.ReplaceAll(head+crossModule, "void @abort()", "i32 @pause()")
	text = strings.ReplaceAll(text, "call i32 @pause()", "%r = call i32 @pause()")
	module := clitest.TempFile(t, "cross.ll", text)
	object := livetest.Object(t, 19, module, "-mtriple="+crossLayouts[c.Arch].triple, "-O2")
	root := t.TempDir()
	files := map[string]string{
		"cross.ll": module,
		"work":     c.Build(t, []string{"-static"}, object),
		// The return addresses of this program are signed.
		"threads": c.Build(t, []string{"-static", "-pthread", "-O1", "-mbranch-protection=standard"}, filepath.Join(livetest.Testdata(t, "."), "threads.c")),
	}
	given := []string{"--ir", module}
	script := []string{"start work", "await work", "start threads 3 0 2 0", "await threads"}
	there := func(name string, words ...string) {
		script = append(script, "run "+name+" reframe "+strings.Join(words, " "))
	}
	there("frames-work", "frames", "--json", "-p", "@work", "--ir", "/cross.ll")
	there("held", "frames", "--json", "--hold", "-p", "@work", "--ir", "/cross.ll")
	there("frames-threads", "frames", "--json", "-p", "@threads")
	there("resume", "resume", "--json", "-p", "@work", "--function", "work", "--ir", "/cross.ll")
	there("explain", "explain", "--json", "-p", "@work", "--ir", "/cross.ll")
	there("maps", "maps", "--json", "-p", "@work")
	programs, memories := []string{"work", "threads"}, []string{"minimal", "writable", "all"}
	// Recording a core and reading it on an emulated processor takes a second, so make test covers each program and each kind of memory only once.
	var recorded []string
	var turns livetest.Turns
	for _, program := range programs {
		for _, memory := range memories {
			if turns.Out(2) {
				continue
			}
			recorded = append(recorded, program+"-"+memory)
			there("record-"+program+"-"+memory, "record", "-p", "@"+program, "--memory", memory, "--compress", "-o", "/out/"+program+"-"+memory+".core")
		}
	}
	out := onARM64(t, files, script...)
	said := func(name string) clitest.Result {
		code, err := strconv.Atoi(string(out[name+".code"]))
		require.NoError(t, err, name)
		return clitest.Result{Code: code, Stdout: string(out[name+".stdout"]), Stderr: string(out[name+".stderr"])}
	}

	for name, path := range files {
		require.NoError(t, os.Link(path, filepath.Join(root, name)))
	}
	lively := said("frames-work").Object(t)
	require.Equal(t, "process", lively["target"].(map[string]any)["kind"])
	require.Equal(t, "arm64", lively["target"].(map[string]any)["arch"])
	want := map[string]string{"%a": "120", "%n": "40", "%small": "-2", "%d": "2.5", "": "-5"}
	slots := clitest.Objects(t, clitest.FrameOf(t, lively, "work")["slots"])
	require.Len(t, slots, len(want))
	for _, s := range slots {
		name, _ := s["name"].(string)
		require.Equal(t, want[name], s["value"], "%v", s)
	}
	require.Equal(t, lively["threads"], said("held").Object(t)["threads"])

	for _, program := range programs {
		for _, memory := range memories {
			name := program + "-" + memory
			if !slices.Contains(recorded, name) {
				continue
			}
			require.Zero(t, said("record-"+name).Code, said("record-"+name).Stderr)
			core := clitest.TempFile(t, name+".zst", string(out[name+".core"]))
			here := func(verb string, more ...string) map[string]any {
				r := clitest.Run(t, append([]string{verb, "--json", "--core", core, "--sysroot", root}, more...)...)
				r.Stdout = strings.ReplaceAll(r.Stdout, module, "/cross.ll") // in QEMU the module is at another path
				return r.Object(t)
			}
			report := here("frames")
			if program == "work" {
				report = here("frames", given...)
				for verb, args := range map[string][]string{"resume": append(given, "--function", "work"), "explain": given, "maps": nil} {
					there, here := said(verb).Object(t), here(verb, args...)
					for _, key := range map[string][]string{"resume": {"function", "frames", "result", "steps"}, "maps": {"images"}}[verb] {
						require.NotNil(t, there[key])
						require.Equal(t, there[key], here[key], "%s of %s", verb, name)
					}
					if verb == "explain" { // a core has more mappings, so only the first place is compared
						there, here = clitest.Objects(t, there["places"])[0], clitest.Objects(t, here["places"])[0]
						require.NotEmpty(t, there["stack"])
						require.Equal(t, there["stack"], here["stack"], name)
						require.Equal(t, there["values"], here["values"], name)
					}
				}
			}
			require.Equal(t, said("frames-" + program).Object(t)["threads"], report["threads"], name)

			plain := filepath.Join(t.TempDir(), name)
			text, err := exec.Command(livetest.Tool(t, "zstd"), "-q", "-d", core, "-o", plain).CombinedOutput()
			require.NoError(t, err, "%s", text)
			var theirs, ours []string
			for _, stack := range framesOfGDB(t, "gdb-multiarch", files[program], plain) {
				theirs = append(theirs, pcsOf(stack))
			}
			for _, thread := range clitest.Objects(t, report["threads"]) {
				ours = append(ours, pcsOf(stackOf(t, thread)))
			}
			require.Len(t, ours, map[string]int{"work": 1, "threads": 6}[program])
			require.ElementsMatch(t, theirs, ours, name)
		}
	}
}

// arm64 returns how to build for arm64, and the head of its modules.
func arm64(t *testing.T) (c livetest.Cross, head string) {
	t.Helper()
	i := slices.IndexFunc(livetest.Crosses, func(c livetest.Cross) bool { return c.Arch == "arm64" })
	c = livetest.Crosses[i]
	l := crossLayouts[c.Arch]
	return c, fmt.Sprintf("target datalayout = %q\ntarget triple = %q\n", l.layout, l.triple)
}

// ticksOnARM64 returns tick.ll for arm64 with a loop of that many iterations, and the program of ticks.c with it.
func ticksOnARM64(t *testing.T, loop int) (module, program string) {
	t.Helper()
	c, head := arm64(t)
	text, err := os.ReadFile(livetest.IR(t, 19, "tick.ll"))
	require.NoError(t, err)
	tick := regexp.MustCompile(`(?m)^(target .*|  call void asm .*)\n`).ReplaceAllString(string(text), "")
	require.Contains(t, tick, "%i1, 1000\n")
	module = clitest.TempFile(t, "tick.ll", head+strings.Replace(tick, "%i1, 1000\n", fmt.Sprintf("%%i1, %d\n", loop), 1))
	return module, c.Build(t, []string{"-static", "-pthread", "-O1"}, "testdata/ticks.c", livetest.Object(t, 19, module, "-mtriple="+crossLayouts[c.Arch].triple, "-O2"))
}

// ticked returns the expected output of the program of ticksOnARM64, computed by its C version.
func ticked(t *testing.T, threads, rounds int) string {
	t.Helper()
	checksum, _ := livetest.CVersion(t, "tick.ll", livetest.ObjectHostOptions{Threads: threads, Rounds: rounds})
	return checksum + "\n"
}

// TestControlOnARM64 requires that breakpoints work on arm64. The values at the reported exits must follow the program's recurrence, and a traced
// program must print the same as its C version. A core that was written in QEMU at an exit must be readable on this machine.
func TestControlOnARM64(t *testing.T) {
	livetest.Slow(t)
	if !machineTurn(t) {
		return
	}
	c, head := arm64(t)
	// An exit takes 5 ms on an emulated processor, so make test reports only a few.
	loop := livetest.Times(40, 1000)
	hit := loop * 3 / 4
	at := clitest.TickAt(hit)
	module, program := ticksOnARM64(t, loop)
	results := clitest.TempFile(t, "results.ll", head+resultsModule)
	files := map[string]string{
		"tick.ll": module, "ticks": program, "results.ll": results,
		"results": c.Build(t, []string{"-static"}, livetest.Object(t, 19, results, "-mtriple="+crossLayouts[c.Arch].triple, "-O2")),
		"exit.txtar": clitest.TempFile(t, "exit.txtar", fmt.Sprintf("launch --ir /tick.ll /ticks 1 1\nuntil 1 --hit %d\nexpect site stackmap\n"+
			"expect %%i = %d\nexpect %%y = %d\nresume\nreturns i64 %d\n", hit, hit-1, int64(at.Y), at.ResultOf(loop))),
	}
	script := []string{"run plain results"}
	there := func(name string, words ...string) {
		script = append(script, "run "+name+" reframe "+strings.Join(words, " "))
	}
	there("trace", "trace --json -o /out/exits.json -- /ticks 2 1")
	there("entries", "trace --count --at entry -- /ticks 3 2")
	there("record", "record --record 1 --hit", fmt.Sprint(hit), "--ir /tick.ll -o /out/exit.core -- /ticks 1 1")
	there("verify", "verify --all --ir /tick.ll --every", fmt.Sprint(loop*3/10), "-- /ticks 1 1")
	there("results", "verify --all --ir /results.ll -- /results")
	there("stress", "stress --seed 1 --probability 0.05 --ir /tick.ll -- /ticks 2 2")
	there("floats", "stress --seed 1 --probability 1 --ir /results.ll -- /results")
	there("script", "replay -v /exit.txtar")
	out := onARM64(t, files, script...)
	ran := func(name string, code int) (stdout, stderr string) {
		stdout, stderr = string(out[name+".stdout"]), string(out[name+".stderr"])
		require.Equal(t, fmt.Sprint(code), string(out[name+".code"]), "%s\n%s\n%s", name, stdout, stderr)
		return stdout, stderr
	}
	computed := func(threads, rounds int) string {
		sum := uint64(0)
		for n := range threads * rounds {
			sum += share(uint64(n), uint64(clitest.TickState{I: 0, Acc: uint64(n), X: 12345, Y: 1}.ResultOf(loop)))
		}
		return fmt.Sprintf("checksum %d\n", sum)
	}

	stdout, stderr := ran("trace", 0)
	require.Equal(t, computed(2, 1), stdout)
	require.Contains(t, stderr, fmt.Sprint(2*loop, " exits in "))
	held := map[float64]clitest.TickState{} // the next value of each thread
	var seeds []uint64
	exits := strings.Split(strings.TrimSuffix(string(out["exits.json"]), "\n"), "\n")
	require.Len(t, exits, 2*loop+1, "and a summary")
	for _, line := range exits[:2*loop] {
		clitest.RequireValid(t, "trace.schema.json", line)
		var x struct {
			TID   float64
			Slots []struct{ Hex, Status string }
		}
		require.NoError(t, json.Unmarshal([]byte(line), &x))
		require.Len(t, x.Slots, 4)
		var got [4]uint64
		for i, slot := range x.Slots {
			require.Equal(t, "ok", slot.Status)
			var err error
			got[i], err = strconv.ParseUint(slot.Hex, 0, 64)
			require.NoError(t, err)
		}
		want, known := held[x.TID]
		if !known {
			want = clitest.TickState{I: 0, Acc: got[1], X: 12345, Y: 1}
			seeds = append(seeds, got[1])
		}
		require.Equal(t, want, clitest.TickState{I: got[0], Acc: got[1], X: got[2], Y: got[3]}, line)
		held[x.TID] = want.Next()
	}
	require.ElementsMatch(t, []uint64{0, 1}, seeds)
	for _, next := range held {
		require.Equal(t, uint64(loop), next.I)
	}

	stdout, stderr = ran("entries", 0)
	require.Equal(t, computed(3, 2), stdout)
	require.Contains(t, stderr, "6 exits in ")

	stdout, _ = ran("record", 0)
	require.Equal(t, computed(1, 1), stdout)
	core := clitest.TempFile(t, "exit.core", string(out["exit.core"]))
	given := []string{"--core", core, "--exe", program, "--ir", module}
	r := clitest.Run(t, append([]string{"frames"}, given...)...)
	require.Zero(t, r.Code, r.Stderr)
	for name, v := range map[string]uint64{"%i": uint64(hit - 1), "%acc": at.Acc, "%x": at.X, "%y": at.Y} {
		require.Regexp(t, fmt.Sprintf(`(?m)^ +%s +i64 +%d `, name, int64(v)), r.Stdout)
	}
	r = clitest.Run(t, append([]string{"resume"}, given...)...)
	require.Contains(t, r.Stdout, fmt.Sprintf("i64 %d", at.ResultOf(loop)), r.Stderr)

	stdout, stderr = ran("stress", 0)
	require.Regexp(t, `: [1-9]\d* committed, 0 left to native code\nnothing differs: exit status 0, `, stdout, stderr)
	stdout, stderr = ran("floats", 0)
	require.Contains(t, stdout, ": 8 committed, 1 left to native code\n", stderr)
	require.Contains(t, stdout, "\nnothing differs: exit status 0, ")

	stdout, stderr = ran("verify", 0)
	require.Equal(t, computed(1, 1), stdout)
	require.Contains(t, stderr, fmt.Sprintf("3 same, 0 different, 0 not comparable; %d skipped; the process exited with status 0\n", loop-3))
	_, stderr = ran("results", 1)
	require.Contains(t, stderr, "9 exits verified in ")
	require.Contains(t, stderr, "8 same, 0 different, 1 not comparable; the process exited with status 0\n")
	require.Contains(t, stderr, "not comparable: the result: cannot tell where a value of type <2 x i16> is returned\n")

	stdout, stderr = ran("script", 0)
	require.Contains(t, stdout, "1 script: 1 ok", stderr)
}

// share returns the amount that one call adds to the program's checksum, as in testdata/programs/checksum.h.
func share(argument, result uint64) uint64 {
	z := result + (argument+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// TestWatcherKilledOnARM64 requires, on arm64, that a program whose tracing reframe is killed at a random moment prints the same as its C version.
func TestWatcherKilledOnARM64(t *testing.T) {
	livetest.Slow(t)
	if !machineTurn(t) {
		return
	}
	_, program := ticksOnARM64(t, 1000)
	const threads, rounds = 2, 2000 // enough exits that the watcher is killed while it reports them
	var script, names []string
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGKILL} {
		for _, ms := range livetest.ShareOf([]int{0, 30, 100}, "killed", signal) {
			name := fmt.Sprintf("%d-%d", signal, ms)
			names = append(names, name)
			script = append(script, fmt.Sprintf("kill %s %d %d /tmp/%[1]s reframe trace --json -o /tmp/%[1]s -- /longticks %[4]d %[5]d", name, signal, ms, threads, rounds))
		}
	}
	out := onARM64(t, map[string]string{"longticks": program}, script...)
	want := ticked(t, threads, rounds)
	for _, name := range names {
		stderr := string(out[name+".stderr"])
		require.Equal(t, want, string(out[name+".stdout"]), "%s: %s", name, stderr)
		number, _, _ := strings.Cut(name, "-")
		code := string(out[name+".code"])
		if number == "3" && code == "-1" {
			// Go's signal handler prints all stacks with every signal blocked, while other threads run. If it faults meanwhile, the kernel ends the
			// program. The output shows that the handler was reached.
			require.Contains(t, stderr, "SIGQUIT: quit")
			continue
		}
		want := map[string]int{"1": 129, "2": 130, "3": 2, "9": -1, "15": 143}[number] // Go handles SIGQUIT itself and exits with 2
		require.Equal(t, fmt.Sprint(want), code, "%s: %s", name, stderr)
	}
}

// resultsModule has one function for each way in which arm64 code returns a value.
const resultsModule = `
declare void @llvm.experimental.stackmap(i64, i32, ...)
@seed = dso_local global i64 1234567890123
define { i64, i32, ptr } @fields(i64 %a) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %a)
  %b = mul i64 %a, 7
  %c = trunc i64 %a to i32
  %p = inttoptr i64 %b to ptr
  %x = insertvalue { i64, i32, ptr } undef, i64 %b, 0
  %y = insertvalue { i64, i32, ptr } %x, i32 %c, 1
  %z = insertvalue { i64, i32, ptr } %y, ptr %p, 2
  ret { i64, i32, ptr } %z
}
define { float, double, i8 } @mixed(i64 %a) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %a)
  %f = sitofp i64 %a to float
  %d = uitofp i64 %a to double
  %b = trunc i64 %a to i8
  %x = insertvalue { float, double, i8 } undef, float %f, 0
  %y = insertvalue { float, double, i8 } %x, double %d, 1
  %z = insertvalue { float, double, i8 } %y, i8 %b, 2
  ret { float, double, i8 } %z
}
define i128 @wide(i64 %a) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i64 %a)
  %w = zext i64 %a to i128
  %s = mul i128 %w, 98765432109876543210
  ret i128 %s
}
define <4 x float> @floats(i64 %a) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, i64 %a)
  %f = sitofp i64 %a to float
  %v = insertelement <4 x float> <float 1.0, float 2.0, float 3.0, float 4.0>, float %f, i64 2
  ret <4 x float> %v
}
define <2 x i32> @half_register(i64 %a) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0, i64 %a)
  %n = trunc i64 %a to i32
  %v = insertelement <2 x i32> <i32 5, i32 6>, i32 %n, i64 1
  ret <2 x i32> %v
}
define <8 x i32> @two_registers(i64 %a) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 6, i32 0, i64 %a)
  %n = trunc i64 %a to i32
  %v = insertelement <8 x i32> <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8>, i32 %n, i64 6
  ret <8 x i32> %v
}
define half @small(i64 %a) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, i64 %a)
  %b = and i64 %a, 1023
  %h = uitofp i64 %b to half
  ret half %h
}
define [3 x double] @array(i64 %a) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 8, i32 0, i64 %a)
  %d = sitofp i64 %a to double
  %e = fdiv double %d, 3.0
  %x = insertvalue [3 x double] undef, double %d, 0
  %y = insertvalue [3 x double] %x, double %e, 1
  %z = insertvalue [3 x double] %y, double 0.5, 2
  ret [3 x double] %z
}
define <2 x i16> @widened(i64 %a) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 9, i32 0, i64 %a)
  %n = trunc i64 %a to i16
  %v = insertelement <2 x i16> <i16 5, i16 6>, i16 %n, i64 1
  ret <2 x i16> %v
}
define dso_local i32 @main() {
  %a = load volatile i64, ptr @seed
  %r1 = call { i64, i32, ptr } @fields(i64 %a)
  %r2 = call { float, double, i8 } @mixed(i64 %a)
  %r3 = call i128 @wide(i64 %a)
  %r4 = call <4 x float> @floats(i64 %a)
  %r5 = call <2 x i32> @half_register(i64 %a)
  %r6 = call <8 x i32> @two_registers(i64 %a)
  %r7 = call half @small(i64 %a)
  %r8 = call [3 x double] @array(i64 %a)
  %r9 = call <2 x i16> @widened(i64 %a)
  ret i32 0
}
`
