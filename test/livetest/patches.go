package livetest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Patches runs testdata/programs/patches.c, which patches the code of patches.ll while threads execute it.
type Patches struct {
	*Process
	commands io.Writer
	answers  *bufio.Reader
}

// StartPatches runs the program with a number of threads. how is aot (ahead of time, in a position-independent executable), aot-large (the same with
// 64-bit addresses in its code), or a kind of [Lli].
func StartPatches(t testing.TB, version int, how string, threads int) *Patches {
	t.Helper()
	commands, stdin := pipe(t)
	answers, fd3 := pipe(t)
	cmd := PatchesCommand(t, version, how, fmt.Sprint(threads))
	cmd.Stdin, cmd.ExtraFiles = commands, []*os.File{fd3}
	p := &Patches{start(t, cmd, inKernel), stdin, bufio.NewReader(answers)}
	p.IR = IR(t, version, "patches.ll")
	commands.Close()
	fd3.Close()
	return p
}

// PatchesCommand returns the program's command with arguments, which patches.c documents.
func PatchesCommand(t testing.TB, version int, how string, args ...string) *exec.Cmd {
	t.Helper()
	var llc []string
	if how == "aot-large" {
		how, llc = "aot", []string{"-code-model=large"}
	}
	return patcher(t, version, how, "patches.c", "patches.ll", llc, args...)
}

// pipe returns a pipe. Both ends are closed when the test ends.
func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// Do sends commands, one per line, and returns the program's replies. It fails the test if the program refuses a command. The commands sites and wait
// are answered by the lines before "end", each other command by one line.
func (p *Patches) Do(t testing.TB, commands ...string) (lines []string) {
	t.Helper()
	return p.Begin(t, commands...)()
}

// Begin is like Do, for a test that inspects the program while it executes the commands. finish waits for the replies.
func (p *Patches) Begin(t testing.TB, commands ...string) (finish func() (lines []string)) {
	t.Helper()
	_, err := io.WriteString(p.commands, strings.Join(commands, "\n")+"\n")
	require.NoError(t, err, "%s", p.Output())
	return func() (lines []string) {
		t.Helper()
		for _, c := range commands {
			for {
				line, err := p.answers.ReadString('\n')
				require.NoError(t, err, "%s: %s", c, p.Output())
				line = strings.TrimSuffix(line, "\n")
				require.NotContains(t, line, "refused", c)
				if line == "end" {
					break
				}
				lines = append(lines, line)
				if c != "sites" && c != "wait" {
					break
				}
			}
		}
		return lines
	}
}
