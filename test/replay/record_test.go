package replay_test

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestRecordProcess requires that a running process is recorded and continues.
func TestRecordProcess(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Lli(t, 19, "chain.ll", "mcjit")
	dir := t.TempDir()
	core := filepath.Join(dir, "exit.core")
	live := clitest.Run(t, "frames", "-p", clitest.PID(p), "--ir", p.IR)
	holds := map[string]string{"minimal": "parts of the memory of the process, and not its environment", "writable": "all writable memory of the process, and its environment",
		"all": "all memory of the process, and its environment"}
	for _, memory := range []string{"minimal", "writable", "all"} {
		for _, more := range [][]string{nil, {"--compress"}, {"--ir", p.IR}} {
			r := clitest.Run(t, append([]string{"record", "-p", clitest.PID(p), "-o", core, "--force", "--memory", memory}, more...)...)
			require.Equal(t, 0, r.Code, r.Stderr)
			first, rest, _ := strings.Cut(r.Stdout, "\n")
			require.Regexp(t, "^"+regexp.QuoteMeta(core)+`  1 thread, \d+ (KiB|MiB) of memory \(`+memory+`\)$`, first)
			touched := ""
			if len(more) > 1 && memory == "minimal" {
				touched = `  with the pages that the interpreter read in \d runs?\n(?:  frame .*\n)*`
			}
			require.Regexp(t, "^"+touched+"  it holds "+holds[memory]+": look for secrets before you share it\n$", rest)
			require.Regexp(t, `^it was stopped for \d+\.\d\d ms and is running again\n\ntry: reframe frames --core '?`+regexp.QuoteMeta(core), r.Stderr) // quoted if TMPDIR requires it
			require.True(t, p.Alive())
			require.Equal(t, []string{"exit.core"}, clitest.FilesIn(t, dir))
			info, err := os.Stat(core)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode(), "the memory of a process is for its owner's eyes")

			again := clitest.Run(t, "frames", "--core", core, "--ir", p.IR)
			require.Equal(t, live.Code, again.Code, again.Stderr)
			_, want, _ := strings.Cut(live.Stdout, "\n")
			_, got, _ := strings.Cut(again.Stdout, "\n")
			require.Equal(t, want, got, "%s %v", memory, more)
		}
	}
	p.AwaitPause(t)
}

// TestRecordExit requires that record waits for an exit, and that the core has the values of the program's recurrence at that exit.
func TestRecordExit(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 2})
	core := filepath.Join(t.TempDir(), "exit.core")
	for flags, n := range map[string]uint64{"": 0, "--hit 3": 2, "--record 1 --hit 700": 699, "--function tick": 0, "--site stackmap --hit 2": 1,
		"--stop-at %i==345": 345, "--stop-at %i>990 --hit 5": 995} {
		args := append([]string{"record", "--ir", module, "-o", core, "--force"}, strings.Fields(flags)...)
		r := clitest.Run(t, append(append(args, "--"), host...)...)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Equal(t, clitest.OutputUntraced(t, host), r.Stdout)
		require.Regexp(t, `^`+regexp.QuoteMeta(core)+`  2 threads, \d+ KiB of memory \(minimal\)\n  at tick\+0x[0-9a-f]+, record 1, stackmap, before\n`+
			`  with the pages that the interpreter read in 1 run\n  it holds parts of the memory of the process, and not its environment: .*\nit was stopped for \d+\.\d\d ms and is running again\n\ntry: reframe frames --core `, r.Stderr)
		f := clitest.Run(t, "frames", "--core", core, "--ir", module, "--function", "tick", "--json")
		require.Contains(t, []int{0, 1}, f.Code, f.Stderr)
		var slots []map[string]any
		for _, thread := range clitest.Objects(t, f.Object(t)["threads"]) {
			for _, frame := range clitest.Objects(t, thread["frames"]) {
				slots = append(slots, clitest.Objects(t, frame["slots"])...)
			}
		}
		require.Len(t, slots, 4)
		for i, want := range clitest.TickValues(n) {
			require.Equal(t, fmt.Sprint(int64(want)), slots[i]["value"], "%s: %v", flags, slots[i]["name"])
		}
		// The interpreter must return the value that native code would compute in the rest of the loop.
		r = clitest.Run(t, "resume", "--core", core, "--ir", module, "--function", "tick", "--json")
		require.Equal(t, 0, r.Code, r.Stderr)
		end := clitest.TickValues(1000)
		require.Equal(t, map[string]any{"type": "i64", "value": fmt.Sprint(int64((end[1] + end[2]) ^ end[3]))}, r.Object(t)["result"])
	}
}

// TestRecordNoExit requires that no core is written if no such exit occurs, and that the command runs as without reframe.
func TestRecordNoExit(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 1})
	dir := t.TempDir()
	core := filepath.Join(dir, "exit.core")
	for flags, want := range map[string]string{
		"--hit 1001":         "the process exited with status 0: only 1000 such exits occurred, but --hit 1001 was given",
		"--stop-at %i>5000":  "the process exited with status 0: no such exit occurred",
		"--record 77":        "the process exited with status 0: no such exit occurred",
		"--at no_such_thing": "the process exited with status 0: no such exit occurred",
	} {
		args := append([]string{"record", "--ir", module, "-o", core}, strings.Fields(flags)...)
		r := clitest.Run(t, append(append(args, "--"), host...)...)
		require.Equal(t, 2, r.Code, r.Stderr)
		require.Contains(t, r.Stderr, want)
		require.Equal(t, clitest.OutputUntraced(t, host), r.Stdout)
		require.Empty(t, clitest.FilesIn(t, dir))
	}
}

// TestRecordWithoutRoom requires that, if the disk is full or the directory is missing or not writable, no core is written and the process continues.
func TestRecordWithoutRoom(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "chain.ll", "mcjit")
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "full"), 0o755))
	const mount = `mount -t tmpfs -o size=128k none "$1" && shift && "$@"; status=$?; ls -A full; exit $status`
	for _, more := range [][]string{nil, {"--memory", "writable"}, {"--memory", "all", "--compress"}, {"--ir", p.IR}} {
		c := clitest.Command(t)
		c.Args = slices.Concat(livetest.OwnMounts(t), []string{"sh", "-c", mount, "sh", "full", clitest.Binary(), "record", "-p", clitest.PID(p), "-o", "full/exit.core"}, more)
		c.Path, c.Dir = c.Args[0], dir
		r := clitest.Finish(t, c)
		require.Equal(t, 2, r.Code, r.Stderr)
		require.Empty(t, r.Stdout, "no file is left, under any name")
		require.Regexp(t, `^reframe: write \S*: no space left on device\n$`, r.Stderr)
		require.True(t, p.Alive())
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none", "exit.core"): "directory " + filepath.Join(dir, "none") + " not found",
		dir:                                     "file exists",
		"/proc/exit.core":                       "/proc",
	} {
		r := clitest.Run(t, "record", "-p", clitest.PID(p), "-o", path)
		require.Equal(t, 2, r.Code, r.Stderr)
		require.Contains(t, r.Stderr, want)
	}
	require.Equal(t, []string{"full"}, clitest.FilesIn(t, dir))
	p.AwaitPause(t)
}

// TestRecordInterrupted requires that an interrupted record leaves no partial core.
func TestRecordInterrupted(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "stop_at.ll", "mcjit")
	dir := t.TempDir()
	c := clitest.Command(t, "record", "-p", clitest.PID(p), "--ir", p.IR, "-o", filepath.Join(dir, "exit.core"), "--hit", "2")
	var stdout, stderr strings.Builder
	c.Stdout, c.Stderr = &stdout, &stderr
	require.NoError(t, c.Start())
	require.Eventually(t, func() bool { return clitest.ThreadStatus(p.PID, p.PID, "TracerPid") != "0" }, livetest.Patience, 10*time.Millisecond)
	p.Signal(t, syscall.SIGUSR1)      // leads to the first exit
	time.Sleep(50 * time.Millisecond) // on a slow machine the interrupt comes before that exit
	require.NoError(t, c.Process.Signal(syscall.SIGINT))
	_ = c.Wait()
	require.Equal(t, 130, c.ProcessState.ExitCode(), stderr.String())
	require.Equal(t, "reframe: interrupted; no core was written\n", stderr.String())
	require.Empty(t, stdout.String())
	require.Empty(t, clitest.FilesIn(t, dir))
	p.AwaitPause(t)
}

// TestRecordForGDB requires that gdb opens a core of an exit, and shows the backtrace and registers of the process at that place.
func TestRecordForGDB(t *testing.T) {
	t.Parallel()
	object, module := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 2})
	core := filepath.Join(t.TempDir(), "exit.core")
	r := clitest.Run(t, append([]string{"record", "--ir", module, "--hit", "3", "-o", core, "--"}, host...)...)
	require.Equal(t, 0, r.Code, r.Stderr)
	quiet := []string{"-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off", "-iex", "set confirm off"}
	gdb := func(args ...string) string {
		out, err := exec.Command(livetest.Tool(t, "gdb"), append(quiet, args...)...).Output()
		require.NoError(t, err)
		return string(out)
	}
	out := gdb(host[0], core, "-ex", "bt", "-ex", "info registers", "-ex", "info threads")
	require.Regexp(t, `(?m)^#0 +0x[0-9a-f]+ in tick \(\)\n#1 +0x[0-9a-f]+ in entry \(\)\n#2 +0x[0-9a-f]+ in call \(\)`, out)
	require.Equal(t, 2, strings.Count(out[strings.LastIndex(out, "Frame"):], "\n")-1, "threads")
}

func TestRecordUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"record":                              "record requires a process: -p PID, or -- COMMAND",
		"record -p 1":                         "record requires -o FILE, the name of the core",
		"record -p 1 -o x --memory some":      "--memory some: expected minimal, writable or all",
		"record -p 1 -o x --hit 0":            "--hit 0: must be above 0",
		"record -p 1 -o x --timeout 0s":       "--timeout 0s: must be above 0",
		"record -p 1 -o x -- true":            "-p and a command to start cannot be combined",
		"record -p 1 -o x --core y":           "-p and --core cannot be combined",
		"record --core y":                     "record requires -o FILE, the name of the core",
		"record --core y -o x --hit 2":        "--core: cannot wait for an exit in a core",
		"record --core y -o x -- true":        "--core: cannot wait for an exit in a core",
		"record --core y -o x --memory all":   "--memory all: with --core only minimal is supported",
		"record -p 1 -o x --exe y":            "--exe requires --core, --remote or --delve: the files of a process are known",
		"record -p 1 -o x --record many":      "--record many: expected a 64-bit number",
		"record -p 1 -o x --stop-at %i=":      "--stop-at",
		"record -p 1 -o x --script":           "flag needs an argument",
		"record -p 1 -o x --stack-bytes 1":    "--stack-bytes 1: must be from 4096 to",
		"record -p 1 -o x --redact 0x10-0x10": "--redact 0x10-0x10: the range is empty",
		"record -p 1 -o x --redact 0x20-0x10": "--redact 0x20-0x10: the end is before the start",
		"record -p 1 -o x --redact 0x10":      "--redact 0x10: expected START-END or START+SIZE",
		"record -o x --stack-bytes 9999 -- y": "--stack-bytes cannot be combined with waiting for an exit",
	} {
		clitest.Run(t, strings.Fields(args)...).FailsEmpty(t, 64, want)
	}
}

// TestRecordJSON requires that the JSON matches its schema, and that its numbers are those of the file.
func TestRecordJSON(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "chain.ll", "mcjit")
	core := filepath.Join(t.TempDir(), "exit.core")
	for _, more := range [][]string{nil, {"--ir", p.IR}, {"--memory", "all"}, {"--ir", p.IR, "--script", core + ".txtar"}} {
		r := clitest.Run(t, append([]string{"record", "-p", clitest.PID(p), "-o", core, "--force", "--json"}, more...)...)
		require.Equal(t, 0, r.Code, r.Stderr)
		clitest.RequireValid(t, "record.schema.json", r.Stdout)
		out := r.Object(t)
		f, err := elf.Open(core)
		require.NoError(t, err)
		held := uint64(0)
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD {
				held += p.Filesz
			}
		}
		require.NoError(t, f.Close())
		info, err := os.Stat(core)
		require.NoError(t, err)
		require.Equal(t, json.Number(fmt.Sprint(held)), out["held"])
		require.Equal(t, json.Number(fmt.Sprint(info.Size())), out["bytes"])
	}
	small := filepath.Join(t.TempDir(), "small.core")
	r := clitest.Run(t, "record", "--core", core, "-o", small, "--json")
	require.Equal(t, 0, r.Code, r.Stderr)
	clitest.RequireValid(t, "record.schema.json", r.Stdout)
	require.NotContains(t, r.Object(t), "pause_us")
}

// TestRecordRedact requires that a core without stacks shows the frame that the registers determine, and why others are missing. record must write no
// core if a flag has a misspelled name.
func TestRecordRedact(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "chain.ll", "mcjit")
	dir := t.TempDir()
	core := filepath.Join(dir, "exit.core")
	r := clitest.Run(t, "record", "-p", clitest.PID(p), "-o", core, "--redact", "[stakc]")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Stderr, "cannot redact [stakc]: no mapping has this name; did you mean [stack]?")
	require.Empty(t, clitest.FilesIn(t, dir))

	r = clitest.Run(t, "record", "-p", clitest.PID(p), "-o", core, "--redact", "[stack]")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^  redacted: 1 range, \d+ bytes$`, r.Stdout)
	require.Contains(t, r.Stdout, "it holds parts of the memory of the process without what was redacted, and not its environment")
	r = clitest.Run(t, "frames", "--core", core)
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Stdout, "#0 ")
	require.Contains(t, clitest.JoinedLines(r.Stdout), "redacted: left out of the core on request (record --redact)")

	r = clitest.Run(t, "record", "--core", core, "-o", filepath.Join(dir, "small.core"), "--json")
	require.Equal(t, 0, r.Code, r.Stderr)
	clitest.RequireValid(t, "record.schema.json", r.Stdout)
	require.Len(t, r.Object(t)["redacted"], 1)
	require.Equal(t, "left out", r.Object(t)["environment"])
}

// TestRecordOverOddFiles requires that record does not replace files that are not regular, and that for a symbolic link it replaces the link's
// target.
func TestRecordOverOddFiles(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "chain.ll", "mcjit")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, syscall.Mkfifo(at("pipe"), 0o600))
	require.NoError(t, os.Mkdir(at("folder"), 0o700))
	require.NoError(t, os.Symlink("pipe", at("to pipe")))
	require.NoError(t, os.Symlink("file", at("link")))
	require.NoError(t, os.WriteFile(at("file"), []byte("old"), 0o600))
	there := clitest.FilesIn(t, dir)
	for _, name := range []string{"pipe", "folder", "to pipe"} {
		for _, args := range [][]string{{"-o", at(name)}, {"-o", at("new"), "--script", at(name)}} {
			r := clitest.Run(t, append([]string{"record", "-p", clitest.PID(p)}, args...)...)
			require.Equal(t, 2, r.Code, r.Stderr)
			require.Contains(t, r.Stderr, at(name)+": the file exists and is not a regular file")
			require.Equal(t, there, clitest.FilesIn(t, dir))
		}
	}
	info, err := os.Lstat(at("pipe"))
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe, info.Mode().Type())
	clitest.Run(t, "record", "-p", clitest.PID(p), "-o", at("link"), "--script", at("file")).FailsEmpty(t, 64, "-o and --script: must be different files")
	clitest.Run(t, "record", "-p", clitest.PID(p), "-o", at("new"), "--script", dir+"/./new").FailsEmpty(t, 64, "-o and --script: must be different files")

	long := at(strings.Repeat("n", 255))
	for _, core := range []string{at("link"), long} {
		r := clitest.Run(t, "record", "-p", clitest.PID(p), "-o", core, "--force")
		require.Equal(t, 0, r.Code, r.Stderr)
		f, err := elf.Open(core)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	info, err = os.Lstat(at("link"))
	require.NoError(t, err)
	require.Equal(t, os.ModeSymlink, info.Mode().Type())
	f, err := elf.Open(at("file"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}
