package clitest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// Shell is an interactive bash. A test types into it, so $! and cd work as for a user.
type Shell struct {
	T     *testing.T
	Input io.WriteCloser
	Lines chan string
	Count int
}

// NewShell starts bash in a directory, with the tested program and Debian's tools in PATH. The shell and its children are killed when the test ends.
func NewShell(t *testing.T, dir string) *Shell {
	t.Helper()
	// bash reads its commands from a file other than standard input, so that the commands themselves have no input.
	script, typed, err := os.Pipe()
	require.NoError(t, err)
	out, screen, err := os.Pipe()
	require.NoError(t, err)
	c := exec.Command(livetest.Tool(t, "bash"), "--norc", "--noprofile", "/dev/fd/3")
	c.Dir, c.Stdout, c.Stderr, c.ExtraFiles = dir, screen, screen, []*os.File{script}
	c.Env = append(os.Environ(), "PATH="+filepath.Dir(Binary())+":/usr/bin:"+os.Getenv("PATH"), "NO_COLOR=1", "LC_ALL=C", "MAKEFLAGS=", "NUMBA_CPU_NAME=generic")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	require.NoError(t, c.Start())
	script.Close()
	screen.Close()
	s := &Shell{T: t, Input: typed, Lines: make(chan string)}
	go func() {
		defer close(s.Lines)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			s.Lines <- scanner.Text() + "\n"
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // kills the process group; an error means that it has ended
		typed.Close()
		for range s.Lines { // until the last process of the group has ended
		}
		_ = c.Wait() // an error means that it has ended
		out.Close()
	})
	return s
}

// WaitingLine matches the line that an example prints in the background before it sleeps until it is inspected.
var WaitingLine = regexp.MustCompile(`^pid (\d+) `)

// WaitSleeping waits until a process is in clock_nanosleep(2), which it recognizes by the system call's number on x86-64.
func WaitSleeping(t *testing.T, pid string) {
	t.Helper()
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile("/proc/" + pid + "/syscall") // an error counts as not sleeping
		return strings.HasPrefix(string(text), "230 ")
	}, livetest.Patience, time.Millisecond)
}

// TypeLine types a line and returns the resulting output.
func (s *Shell) TypeLine(line string) string {
	s.T.Helper()
	s.Count++
	mark := fmt.Sprintf("the end of line %d", s.Count)
	_, err := fmt.Fprintf(s.Input, "%s\nprintf '\\n%%s\\n' '%s'\n", line, mark)
	require.NoError(s.T, err)
	var screen strings.Builder
	waits, ended := strings.HasSuffix(line, "&"), false
	hung := time.After(livetest.Patience)
	for !ended || waits {
		select {
		case text, more := <-s.Lines:
			require.True(s.T, more, "%s: the shell ended\n%s", line, &screen)
			if text == mark+"\n" {
				ended = true
				continue
			}
			if pid := WaitingLine.FindStringSubmatch(text); waits && pid != nil {
				WaitSleeping(s.T, pid[1])
				waits = false
			}
			screen.WriteString(text)
		case <-hung:
			require.FailNow(s.T, "hung", "%s\n%s", line, &screen)
		}
	}
	// The mark is on a line of its own, even if the last line of the command's output has no newline.
	if text, had := strings.CutSuffix(screen.String(), "\n\n"); had && !strings.HasSuffix(line, "&") {
		return text + "\n"
	}
	return strings.TrimPrefix(screen.String(), "\n")
}

// ScreenVariations lists the parts of screens that vary between runs, versions of Debian's packages, and processors: process numbers, times, offsets
// of frames in functions, and registers or stack slots of values.
var ScreenVariations = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b(pid|process|thread) \d+`), "$1 N"},
	{regexp.MustCompile(`-p \d+`), "-p N"},
	{regexp.MustCompile(`(?m)^\d+\.\d{6}  \d+ `), "N  N "},
	{regexp.MustCompile(`\b\d+\.\d+ (ms|s)\b`), "N $1"},
	{regexp.MustCompile(`\b\d+ (KiB|ms)\b`), "N $1"},
	{regexp.MustCompile(`\d+/s\b`), "N/s"},
	{regexp.MustCompile(`(?m)( (?:native|jit) +\S+)\+0x[0-9a-f]+`), "$1+N"},
	{regexp.MustCompile(`( at |\b(?:compiled|work|program))\+0x[0-9a-f]+`), "$1+N"},
	{regexp.MustCompile(`(?m)^( {8}\S+ .*\S) +(\[\w+[+-]\d+\]|r\w+)$`), "$1 AT"},
	{regexp.MustCompile(`\b0x[0-9a-f]{9,}\b`), "0xN"},
}

// WithoutVariations replaces the parts of a screen that vary.
func WithoutVariations(screen string) string {
	for _, d := range ScreenVariations {
		screen = d.what.ReplaceAllString(screen, d.with)
	}
	return screen
}

// BuiltExamples holds an archive of examples/ as built by its Makefile.
var BuiltExamples struct {
	sync.Once
	archive string
	err     error
}

// Examples returns a directory with a copy of examples/ that make has built.
func Examples(t *testing.T) string {
	t.Helper()
	livetest.NeedsTools(t)
	b := &BuiltExamples
	b.Do(func() {
		b.err = errors.New("another test failed to build them")
		copied := filepath.Join(t.TempDir(), "examples")
		require.NoError(t, RunAll(exec.Command("cp", "-r", "../../examples", copied), exec.Command("make", "-s", "-C", copied, "clean")))
		// Only files are in the part of the cache key that is the same in each run.
		var files, names []string
		require.NoError(t, filepath.WalkDir(copied, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			name, err := filepath.Rel(copied, path)
			files, names = append(files, path), append(names, name)
			return err
		}))
		// The cache key of the built files covers all sources and the compilers. The last argument is the path of the output.
		const script = `MAKEFLAGS= make -s -C "$(dirname "$1")" && for last; do :; done && tar -C "$(dirname "$1")/.." -cf "$last" examples`
		args := append([]string{"-c", script, strings.Join(names, " "), filepath.Join(copied, "Makefile")}, files...)
		for _, tool := range []string{"gcc", "g++", "clang-19", "llvm-config-19", "opt-19", "llc-19"} {
			args = append(args, livetest.Tool(t, tool))
		}
		b.archive = livetest.Made(t, "sh", "examples.tar", args...)
		b.err = nil
	})
	require.NoError(t, b.err)
	dir := t.TempDir()
	require.NoError(t, RunAll(exec.Command("tar", "-C", dir, "-xf", b.archive)))
	return dir
}

// RunAll runs commands up to the first that fails.
func RunAll(commands ...*exec.Cmd) error {
	for _, c := range commands {
		c.Env = append(os.Environ(), "MAKEFLAGS=")
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", c, err, out)
		}
	}
	return nil
}

// CompareScreen compares the screen in a document with the actual screen, after same has removed the parts that vary. It returns the screen for the
// document: the old one, or the actual one if they differ and README=update is in the environment.
func CompareScreen(t *testing.T, shown, screen string, same func(string) string) string {
	t.Helper()
	if os.Getenv("README") != "update" {
		require.Equal(t, same(shown), same(screen))
	} else if same(shown) != same(screen) {
		return screen
	}
	return shown
}

// TypeDocument types each line that begins with "$ " in a document's console blocks into one shell, and compares the screens with the document. With
// README=update in the environment it replaces screens that differ. It returns the typed lines.
func TypeDocument(t *testing.T, path, dir string) (typed []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	s := NewShell(t, dir)
	var out strings.Builder
	at := 0
	for _, block := range regexp.MustCompile("(?sm)^```console\n(.*?)^```\n").FindAllStringSubmatchIndex(string(text), -1) {
		shown, screen := string(text[block[2]:block[3]]), ""
		for line := range strings.Lines(shown) {
			if command, isCommand := strings.CutPrefix(line, "$ "); isCommand {
				command = strings.TrimSuffix(command, "\n")
				typed = append(typed, command)
				screen += line + s.TypeLine(command)
			}
		}
		out.Write(text[at:block[2]])
		out.WriteString(CompareScreen(t, shown, screen, WithoutVariations))
		at = block[3]
	}
	out.Write(text[at:])
	require.NotEmpty(t, typed)
	if os.Getenv("README") == "update" {
		require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o644))
	}
	return typed
}

// These patterns match numbers that vary between runs: process numbers, times and sizes.
var (
	ProcessNumber = regexp.MustCompile(`(process|pid|thread) \d+`)
	PausedFor     = regexp.MustCompile(`paused \d+\.\d\d ms`)
	ExitTime      = regexp.MustCompile(`(?m)^\d+\.\d{6}  \d+ `)
	TookSeconds   = regexp.MustCompile(`in \d+\.\d{3} s`)
	StoppedFor    = regexp.MustCompile(`stopped for \d+\.\d\d ms`)
	HoldingKiB    = regexp.MustCompile(`\d+ KiB of memory`)
	ExitRate      = regexp.MustCompile(`(?m)^in [\d.]+ s, \d+/s; the slowest: (\S+) \d+ ms$`)
)

// WithoutTimes replaces process numbers, times and sizes in a screen.
func WithoutTimes(screen string) string {
	screen = ExitTime.ReplaceAllString(screen, "N  N ")
	screen = PausedFor.ReplaceAllString(ProcessNumber.ReplaceAllString(screen, "$1 N"), "paused N ms")
	screen = HoldingKiB.ReplaceAllString(StoppedFor.ReplaceAllString(screen, "stopped for N ms"), "N KiB of memory")
	screen = ExitRate.ReplaceAllString(screen, "in N s, N/s; the slowest: $1 N ms")
	return TookSeconds.ReplaceAllString(screen, "in N s")
}

// CopyFile copies a file.
func CopyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, b, 0o644))
}

// SwappedBundle compiles baseline.ll with a mistake that a JIT author could make: its site swaps two values. It returns the path of the module and
// the object without the suffixes .ll and .o.
func SwappedBundle(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "baseline.ll"))
	require.NoError(t, err)
	changed := strings.ReplaceAll(string(text), "i64 %n, i64 %i, i64 %acc)", "i64 %n, i64 %acc, i64 %i)") // in the site, and in the runtime's call
	require.NotEqual(t, changed, string(text))
	path := filepath.Join(t.TempDir(), "swapped")
	require.NoError(t, os.WriteFile(path+".ll", []byte(changed), 0o600))
	out, err := exec.Command(livetest.LLVM(t, 19, "llc"), "-O2", "-relocation-model=pic", "-filetype=obj", path+".ll", "-o", path+".o").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}
