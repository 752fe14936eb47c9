package debug_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// plugin writes the output of reframe gdb or reframe lldb to a file, and returns its path.
func plugin(t *testing.T, debugger string) string {
	t.Helper()
	r := clitest.Run(t, debugger)
	require.Zero(t, r.Code, r.Stderr)
	path := filepath.Join(t.TempDir(), "reframe_"+debugger+".py")
	require.NoError(t, os.WriteFile(path, []byte(r.Stdout), 0o644))
	return path
}

// inGDB runs commands in a gdb with the plugin, and returns the output. target holds gdb's arguments for the process or core.
func inGDB(t *testing.T, target []string, commands ...string) string {
	t.Helper()
	args := append([]string{"-nx", "-batch", "-iex", "set debuginfod enabled off"}, target...)
	args = append(args, "-x", plugin(t, "gdb"), "-ex", "set reframe program "+clitest.Binary(), "-ex", "set backtrace past-main on", "-ex", "set width 0")
	for _, c := range commands {
		args = append(args, "-ex", c)
	}
	out, err := exec.Command(livetest.Tool(t, "gdb"), args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// inLLDB runs commands in an lldb with the plugin, and returns the output. target is as in inGDB.
func inLLDB(t *testing.T, target []string, commands ...string) string {
	t.Helper()
	args := append([]string{"--no-lldbinit", "-b"}, target...)
	args = append(args, "-o", "command script import "+plugin(t, "lldb"), "-o", "reframe program "+clitest.Binary())
	for _, c := range commands {
		args = append(args, "-o", c)
	}
	out, err := exec.Command(livetest.Tool(t, "lldb-19"), args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// backtrace runs commands in a gdb with the plugin, and returns what gdb then prints for backtrace without frame filters.
func backtrace(t *testing.T, target []string, commands ...string) string {
	t.Helper()
	_, frames, found := strings.Cut(inGDB(t, target, append(commands, "python print('begin')", "bt -no-filters")...), "begin\n")
	require.True(t, found)
	return frames
}

// object returns the only JSON object in an output, without the member that describes the target.
func object(t *testing.T, output string) string {
	t.Helper()
	_, rest, found := strings.Cut("\n"+output, "\n{\n")
	require.True(t, found, output)
	text, _, found := strings.Cut(rest, "\n}\n")
	require.True(t, found, output)
	return regexp.MustCompile(`(?m)^  "target": .*\n`).ReplaceAllString(text, "")
}

// stopped returns processes, each with the flags that describe it to reframe.
func stopped(t *testing.T) map[string]struct {
	process *livetest.Process
	flags   string
} {
	t.Helper()
	deoptimize := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	unregistered := livetest.C(t, "unregistered.c", []string{"-I" + filepath.Join("..", "..", "internal", "demo", "target")}, livetest.Object(t, 19, "host_mod.ll"))
	vm := livetest.Lli(t, 19, "vmsimple.ll", "orc-jitlink")
	return map[string]struct {
		process *livetest.Process
		flags   string
	}{
		"with names":     {deoptimize, " --ir " + deoptimize.IR + " --layout " + livetest.Testdata(t, "programs", "deoptimize.layout.json")},
		"not registered": {unregistered, ""},
		"with VM frames": {vm, " --layout simple"},
		"with a name":    {livetest.C(t, "perfmap.c", nil, "map"), ""},
		"with threads":   {livetest.C(t, "threads.c", nil, "3", "0", "2", "0"), ""},
	}
}

// TestFramesInsideDebuggers requires that frames inside gdb and lldb, for a process and for its core, equal those of frames -p.
func TestFramesInsideDebuggers(t *testing.T) {
	t.Parallel()
	for name, c := range stopped(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pid := []string{"-p", clitest.PID(c.process)}
			direct := object(t, clitest.Run(t, append([]string{"frames", "--json", "--hold", pid[0], pid[1]}, strings.Fields(c.flags)...)...).Stdout)
			for debugger, inside := range map[string]func(*testing.T, []string, ...string) string{"gdb": inGDB, "lldb": inLLDB} {
				output := inside(t, pid, "reframe frames --json"+c.flags)
				require.Equal(t, direct, object(t, output))
				require.Contains(t, output, `"provider": "`+debugger+`"`)
			}
		})
	}
}

// gdbFrame matches a frame in gdb's backtrace. The address is absent at the start of a source line.
var gdbFrame = regexp.MustCompile(`(?m)^#(\d+) +(0x[0-9a-f]+)?`)

// noCFI starts a process with a deep stack of JIT-compiled code without CFI.
func noCFI(t *testing.T, version int, kind string) *livetest.Process {
	t.Helper()
	text, err := os.ReadFile("../../bench/testdata/deep.ll")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "deep.ll")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "{ uwtable }", "{ nounwind }")), 0o644))
	return livetest.Lli(t, version, path, kind)
}

// TestBacktraceWithoutCFI requires that gdb's backtrace unwinds registered JIT-compiled code without CFI, in a process, a core and a remote target.
// Its frames must equal those of reframe frames. In unregistered code callers are guesses, and gdb shows only its own frames.
func TestBacktraceWithoutCFI(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version int
		kind    string
	}{{19, "mcjit"}, {14, "orc-jitlink"}} {
		t.Run(fmt.Sprint(c.version, c.kind), func(t *testing.T) {
			t.Parallel()
			p := noCFI(t, c.version, c.kind)
			var report struct {
				Threads []struct{ Frames []struct{ PC, Guess string } }
			}
			require.NoError(t, json.Unmarshal([]byte(clitest.Run(t, "frames", clitest.PID(p), "--json").Stdout), &report))
			frames := report.Threads[0].Frames
			require.Greater(t, len(frames), 90)

			core := filepath.Join(t.TempDir(), "core")
			alone := inGDB(t, []string{"-p", clitest.PID(p)}, "disable unwinder global reframe", "bt -no-filters", "generate-core-file "+core)
			require.Less(t, len(gdbFrame.FindAllString(alone, -1)), 10, "gdb needs no help")
			exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
			require.NoError(t, err)
			remote := fmt.Sprintf("target remote | %s --attach - %d", livetest.Tool(t, "gdbserver"), p.PID)
			for _, target := range [][]string{{"-p", clitest.PID(p)}, {exe, core}, {"-iex", "set sysroot /", "-ex", remote}} {
				if c.version == 14 {
					require.NotEmpty(t, frames[2].Guess)
					require.Equal(t, backtrace(t, target, "disable unwinder global reframe"), backtrace(t, target))
					continue
				}
				require.Empty(t, frames[len(frames)-1].Guess)
				for _, command := range []string{"bt", "bt -no-filters"} {
					out := inGDB(t, target, "python print('begin')", command)
					_, out, _ = strings.Cut(out, "begin\n")
					found := gdbFrame.FindAllStringSubmatch(out, -1)
					require.Len(t, found, len(frames), out)
					for i, f := range found {
						require.Equal(t, fmt.Sprint(i), f[1])
						if f[2] != "" {
							require.Equal(t, strings.TrimLeft(frames[i].PC, "0x"), strings.TrimLeft(f[2], "0x"), "frame %d", i)
						}
					}
				}
			}
		})
	}
}

// TestOuterFramesInGDB requires that gdb has the registers of outer frames that reframe recovers, and that a command keeps the selected frame.
func TestOuterFramesInGDB(t *testing.T) {
	t.Parallel()
	p := noCFI(t, 19, "mcjit")
	out := inGDB(t, []string{"-p", clitest.PID(p)}, "frame 50", "p/x $rbx", "p $rax", "up", "reframe frames", "frame")
	require.Contains(t, out, "\n$2 = <not saved>\n")
	require.Regexp(t, `(?m)^#51 .*\n\[Inferior`, out)
}

// TestBacktraceShowsValues requires that gdb's backtrace shows recorded values, frames of a virtual machine, and names from a perf map.
func TestBacktraceShowsValues(t *testing.T) {
	t.Parallel()
	processes := stopped(t)
	for name, lines := range map[string][]string{
		"with names":     {"in sum_opt -> sum, block %loop (%i=26, %acc=5525, %n=1000)\n"},
		"with VM frames": {"in compiled ()\n", "\n    Foo.bar at 17 (local[0]=3.5, local[1]=", "\n    Foo.main at 9 (local[0]="},
		"with a name":    {"in ns::compiled(int) ()"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := processes[name]
			out := inGDB(t, []string{"-p", clitest.PID(c.process)}, "set reframe options"+c.flags, "bt")
			for _, line := range lines {
				require.Contains(t, out, line)
			}
		})
	}
}

// TestBacktraceMarksGuesses requires that gdb's backtrace marks guesses, and that the unwinder declines a frame whose caller is a guess.
func TestBacktraceMarksGuesses(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "guessedcaller.c", nil)
	target := []string{"-p", clitest.PID(p)}
	require.Equal(t, backtrace(t, target, "disable unwinder global reframe"), backtrace(t, target))
	out := inGDB(t, target, "source "+guessesToo(t, p, "main"), "bt")
	require.Regexp(t, `(?m)^#2 +0x[0-9a-f]+ in \?\? \(\)\n#3 +0x[0-9a-f]+ in main \[a guess\] \(\)`, out)
}

// guessesToo returns a script for gdb with an unwinder that, in guessedcaller.c, finds the same frames as reframe. caller is the function of the
// guessed frame.
func guessesToo(t *testing.T, p *livetest.Process, caller string) string {
	t.Helper()
	frames := clitest.Frames(t, clitest.Run(t, "frames", clitest.PID(p), "--json", "--registers").Object(t))
	require.Equal(t, caller, frames[3]["function"])
	require.Contains(t, frames[3], "guess")
	unwinder := filepath.Join(t.TempDir(), "unwinder.py")
	require.NoError(t, os.WriteFile(unwinder, fmt.Appendf(nil, `
import gdb.unwinder
class Finds(gdb.unwinder.Unwinder):
    def __call__(self, pending):
        if int(pending.read_register("pc")) != %s:
            return None
        sp = pending.read_register("sp")
        info = pending.create_unwind_info(FrameId(sp, pending.read_register("pc")))
        info.add_saved_register("rip", gdb.Value(%s).cast(pending.read_register("rip").type))
        info.add_saved_register("rsp", gdb.Value(%s).cast(sp.type))
        return info
gdb.unwinder.register_unwinder(None, Finds("finds"))
`, frames[2]["pc"], frames[3]["pc"], frames[3]["registers"].(map[string]any)["rsp"]), 0o644))
	return unwinder
}

// TestBacktraceEscapesSymbols requires that the plugin escapes control characters in the names of gdb's own symbols.
func TestBacktraceEscapesSymbols(t *testing.T) {
	t.Parallel()
	const name = "red\x1b[31m\nline"
	exe := filepath.Join(t.TempDir(), "guessedcaller")
	text, err := exec.Command(livetest.Tool(t, "objcopy"), "--redefine-sym", "main="+name, livetest.CBinary(t, "guessedcaller.c"), exe).CombinedOutput()
	require.NoError(t, err, "%s", text)
	p := livetest.Program(t, exe)
	out := inGDB(t, []string{"-p", clitest.PID(p)}, "source "+guessesToo(t, p, name), "bt",
		"frame 3", "python print('abstract', Abstract(FrameDecorator(gdb.selected_frame()), {}).function())")
	const escaped = `red\x1b[31m\x0aline`
	require.Contains(t, out, " in "+escaped+" [a guess] ()")
	require.Contains(t, out, "\nabstract "+escaped+"\n")
}

// TestRecordToPipeInGDB requires that reframe record inside gdb does not replace a named pipe, and does not wait for a reader of the pipe.
func TestRecordToPipeInGDB(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "nojit.c", nil)
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	out := inGDB(t, []string{"-p", clitest.PID(p)}, "reframe record -o "+pipe, "python print('pipe', 'end')")
	require.Contains(t, out, pipe+": the file exists and is not a regular file")
	require.Contains(t, out, "\npipe end\n")
	info, err := os.Lstat(pipe)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe, info.Mode().Type())
}

// history is a script for gdb, for a process in the function inner of history.c. At each moment of the recorded history it prints the program
// counters of the stack, as found by gdb and by reframe frames.
const history = `
import json
def moment(name):
    gdbs, frame = [], gdb.newest_frame()
    while frame is not None:
        gdbs.append(frame.pc())
        frame = frame.older()
    text = gdb.execute("reframe frames --json", to_string=True)
    ours = [int(f["pc"], 16) for f in json.JSONDecoder().raw_decode(text[text.index("{"):])[0]["threads"][0]["frames"]]
    print("moment", name, gdbs, ours)
gdb.execute("record full")
moment("inner")
gdb.execute("break after")
gdb.execute("continue")
moment("after")
gdb.execute("record goto begin")
moment("again")
gdb.execute("kill")
`

// TestRecordedHistoryInGDB requires that after record goto the commands and the backtrace show the same moment of the history as gdb.
func TestRecordedHistoryInGDB(t *testing.T) {
	t.Parallel()
	exe := livetest.CBinary(t, "history.c", "-O0", "-fno-omit-frame-pointer")
	script := filepath.Join(t.TempDir(), "history.py")
	require.NoError(t, os.WriteFile(script, []byte(history), 0o644))
	out := inGDB(t, []string{exe}, "break inner", "run", "source "+script)
	moments := regexp.MustCompile(`(?m)^moment (\w+) (\[.*?\]) (\[.*\])$`).FindAllStringSubmatch(out, -1)
	require.Len(t, moments, 3, out)
	for _, m := range moments {
		require.Equal(t, m[2], m[3], m[1])
	}
	require.Equal(t, moments[0][2], moments[2][2])
	require.NotEqual(t, moments[0][2], moments[1][2])
}

// TestBacktraceEscapesNames requires that control characters in a name are escaped.
func TestBacktraceEscapesNames(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "perfmap.c", nil, "map")
	path := "/tmp/perf-" + clitest.PID(p) + ".map"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "_ZN2ns8compiledEi", "red\x1b[31m")), 0o644))
	out := inGDB(t, []string{"-p", clitest.PID(p)}, "bt")
	require.Contains(t, out, `in red\x1b[31m ()`)
	require.NotContains(t, out, "\x1b")
}
