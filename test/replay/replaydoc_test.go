package replay_test

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

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// Patterns of parts that vary between runs in the screens of doc/user/replay.md, in addition to those of the README.
var (
	tookLong = regexp.MustCompile(`in \d+\.\d\d s, \d+/s; the slowest: .*`)
	stood    = regexp.MustCompile(`\d+\.\d\d ms`)
	weighs   = regexp.MustCompile(`\d+ KiB`)
	pids     = regexp.MustCompile(`-t \d+`)
	phases   = regexp.MustCompile(`\(\d+\.\d{3}s\)`)
)

// TestReplayDocument runs all commands of doc/user/replay.md in one folder and requires the output that it shows. README=update in the environment rewrites
// screens that differ.
func TestReplayDocument(t *testing.T) {
	livetest.Slow(t)
	const path = "../../doc/user/replay.md"
	dir := t.TempDir()
	commands := runDocument(t, path, dir, replayFolder(t, dir), steadier)
	require.Len(t, commands, 22)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, run := range regexp.MustCompile(`(?m)^ +- run: (.*)$`).FindAllStringSubmatch(string(text), -1) {
		require.Contains(t, commands, run[1])
	}
}

// Patterns of parts that vary between runs or processors in the screens of doc/user/debug-your-jit.md: addresses of code and values, and native
// instructions.
var (
	nativeLine  = regexp.MustCompile(`(?m)^ {8}\S+#\d+\+0x\S+ .*$`)
	nativeCount = regexp.MustCompile(`(native code, the last of )\d+`)
	inCode      = regexp.MustCompile(`(#\d+)\+0x[0-9a-f]+ *`)
	inRegister  = regexp.MustCompile(`(?m)^( {8}%.*\S) +(?:\[\w+[+-]\d+\]|[er]\w+)$`)
	farAway     = regexp.MustCompile(`\b0x[0-9a-f]{9,}\b`)
	commitID    = regexp.MustCompile(`(?m)^[0-9a-f]{7} `)
)

// TestDebugDocument requires that the sessions of doc/user/debug.md can be reproduced.
func TestDebugDocument(t *testing.T) {
	livetest.Slow(t)
	dir := filepath.Join(clitest.Examples(t), "examples")
	vm, _, _ := clitest.TinyVM(t)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "tinyvm"))) // replace the sources by the binary
	require.NoError(t, os.Symlink(vm, filepath.Join(dir, "tinyvm")))
	clitest.CopyFile(t, livetest.Testdata(t, "..", "examples", "tinyvm", "meter.tvm"), filepath.Join(dir, "meter.tvm"))
	require.Len(t, runDocument(t, "../../doc/user/debug.md", dir, documentEnv(), func(screen string) string {
		screen = inRegister.ReplaceAllString(inCode.ReplaceAllString(screen, "$1+N "), "$1  AT")
		return sessionPlace.ReplaceAllString(clitest.WithoutVariations(screen), "${1}N")
	}), 9)
}

// sessionPlace matches the location of a value in the output of explain.
var sessionPlace = regexp.MustCompile(`((?:memory at|own) )\S+|(?m)^    [er]\w+ 0xN.*$`)

// TestDebugYourJITDocument requires that the session of doc/user/debug-your-jit.md can be reproduced.
func TestDebugYourJITDocument(t *testing.T) {
	livetest.Slow(t)
	dir := t.TempDir()
	vm, _, _ := clitest.TinyVM(t)
	require.NoError(t, os.Symlink(vm, filepath.Join(dir, "tinyvm")))
	clitest.CopyFile(t, livetest.Testdata(t, "..", "examples", "tinyvm", "meter.tvm"), filepath.Join(dir, "meter.tvm"))
	commands := runDocument(t, "../../doc/user/debug-your-jit.md", dir, documentEnv(), func(screen string) string {
		screen = nativeCount.ReplaceAllString(nativeLine.ReplaceAllString(screen, "        native"), "${1}N")
		screen = inRegister.ReplaceAllString(inCode.ReplaceAllString(screen, "$1+N "), "$1  AT")
		return commitID.ReplaceAllString(farAway.ReplaceAllString(steadier(screen), "0xN"), "N ")
	})
	require.Len(t, commands, 13)
	right, err := os.ReadFile(filepath.Join(dir, "expected"))
	require.NoError(t, err)
	require.Contains(t, string(right), "\n2147530759\n", "the sum that the test of the story wants is the interpreter's")
}

// documentEnv returns the environment for the commands of a document, with reframe in PATH.
func documentEnv(more ...string) []string {
	return append(append(os.Environ(), "PATH="+filepath.Dir(clitest.Binary())+":"+os.Getenv("PATH"), "NO_COLOR=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_CONFIG_GLOBAL=/dev/null"), more...)
}

// runDocument runs each line that begins with "$ " in a document's console blocks, in a folder that contains the document's scripts as files, and
// compares the output with the document. It returns the commands.
func runDocument(t *testing.T, path, dir string, env []string, same func(string) string) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?sm)^```([^\n]*)\n(.*?)^```\n").FindAllStringSubmatchIndex(string(text), -1)
	var out strings.Builder
	at := 0
	for _, b := range blocks {
		kind, content := string(text[b[2]:b[3]]), string(text[b[4]:b[5]])
		out.Write(text[at:b[4]])
		at = b[4]
		if name, isFile := strings.CutPrefix(kind, "txtar "); isFile {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
		}
		if kind != "console" {
			continue
		}
		screen := ""
		for line := range strings.Lines(content) {
			command, isCommand := strings.CutPrefix(line, "$ ")
			if !isCommand {
				continue
			}
			command = strings.TrimSuffix(command, "\n")
			commands = append(commands, command)
			c := exec.Command("sh", "-c", command)
			c.Dir, c.Env = dir, env
			printed, _ := c.CombinedOutput() // some commands are expected to fail
			screen += line + strings.ReplaceAll(string(printed), dir, "/home/me/jit")
		}
		out.WriteString(clitest.CompareScreen(t, content, screen, same))
		at = b[5]
	}
	out.Write(text[at:])
	if os.Getenv("README") == "update" {
		require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o644))
	}
	return commands
}

func steadier(screen string) string {
	screen = weighs.ReplaceAllString(screen, "N KiB")
	screen = tookLong.ReplaceAllString(clitest.WithoutTimes(screen), "in N s, N/s")
	screen = phases.ReplaceAllString(screen, "(N s)")
	return pids.ReplaceAllString(stood.ReplaceAllString(screen, "N ms"), "-t N")
}

// replayFolder creates the files of the document in a folder, starts its process, and returns the environment of its commands.
func replayFolder(t *testing.T, dir string) []string {
	t.Helper()
	clitest.CopyFile(t, livetest.IR(t, 19, "deoptimize.ll"), filepath.Join(dir, "loop.ll"))
	right, err := os.ReadFile(clitest.DeoptimizeLayout(t))
	require.NoError(t, err)
	swapped := strings.NewReplacer(`"%i"`, `"%acc"`, `"%acc"`, `"%i"`).Replace(string(right))
	require.NotEqual(t, string(right), swapped)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "loop.layout.json"), []byte(swapped), 0o644))
	clitest.CopyFile(t, livetest.IR(t, 19, "tick.ll"), filepath.Join(dir, "tick.ll"))
	tick := livetest.PICObject(t, 19, "tick.ll", "-O2")
	clitest.CopyFile(t, tick, filepath.Join(dir, "tick.o"))
	require.NoError(t, os.Symlink(livetest.ObjectHostCommand(t, tick, livetest.ObjectHostOptions{})[0], filepath.Join(dir, "host")))
	lli := exec.Command(livetest.LLVM(t, 19, "lli"), "-jit-kind=mcjit", "loop.ll")
	lli.Env = append(os.Environ(), "JITDUMPDIR="+t.TempDir()) // otherwise lli leaves a dump in /tmp
	lli.Dir, lli.Args[0], lli.SysProcAttr = dir, "lli", &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, lli.Start())
	t.Cleanup(func() {
		_ = lli.Process.Kill()
		_ = lli.Wait() // an error means that it was killed
	})
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", lli.Process.Pid))
		return strings.HasPrefix(string(text), "34 ") // pause(2) on x86-64
	}, livetest.Patience, time.Millisecond)
	return documentEnv(fmt.Sprintf("PID=%d", lli.Process.Pid))
}
