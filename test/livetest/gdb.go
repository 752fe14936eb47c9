package livetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Freeze stops all threads of a process with SIGSTOP and returns when they are stopped, so that every tool sees the same state. Only SIGCONT or the
// end of the test resumes the process.
func (p *Process) Freeze(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGSTOP)
	p.await(t, "all its threads have stopped", func() bool { return p.others(t, 'T') == 0 })
}

// Quiet returns when all threads of a process, except at most busy of them, wait in the kernel.
func (p *Process) Quiet(t testing.TB, busy int) {
	t.Helper()
	calm := 0 // number of consecutive successful checks: one is not enough, because a thread may be between two waits
	p.await(t, "its threads are quiet", func() bool {
		if calm++; p.others(t, 'S') > busy {
			calm = 0
		}
		return calm == 20
	})
}

// others returns the number of threads in /proc/PID/task that are not in a state (proc(5)).
func (p *Process) others(t testing.TB, state byte) int {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.PID))
	require.NoError(t, err)
	n := 0
	for _, name := range tasks {
		text, err := os.ReadFile(name)
		// The field follows the command's name, which is in parentheses and may contain anything.
		rest := text[bytes.LastIndexByte(text, ')')+1:]
		if err == nil && len(rest) > 1 && rest[1] != state { // an error means that the thread has ended
			n++
		}
	}
	return n
}

// StoppedAt returns the program counter of the main thread of a frozen process, from /proc/PID/syscall.
func (p *Process) StoppedAt(t testing.TB) (pc uint64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", p.PID))
	require.NoError(t, err)
	// The line contains -1 or a number; after a number its six arguments; then the stack pointer and the program counter.
	fields := bytes.Fields(text)
	require.GreaterOrEqual(t, len(fields), 3, "%s", text)
	_, err = fmt.Sscanf(string(fields[len(fields)-1]), "0x%x", &pc)
	require.NoError(t, err, "%s", text)
	return pc
}

// GDBScript attaches gdb to a process, runs a Python script and detaches, and returns the script's output. gdb ignores user settings, scripts beside
// libraries, and debug information servers. Symbols and debug information are those of the executable, or of the file in symbols.
func GDBScript(t testing.TB, p *Process, script string, symbols ...string) []byte {
	t.Helper()
	args := []string{"-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off",
		"-iex", "set exec-file-mismatch off", "-p", fmt.Sprint(p.PID), "-x", script}
	cmd := exec.Command(Tool(t, "gdb"), append(args, symbols...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s", cmd, stderr.String())
	return out
}

// GDB runs gdb commands on a live process.
func GDB(t testing.TB, pid int, commands ...string) string {
	t.Helper()
	args := []string{"-nx", "-batch", "-p", fmt.Sprint(pid), "-ex", "set backtrace past-main on"}
	for _, c := range commands {
		args = append(args, "-ex", c)
	}
	out, err := exec.Command(Tool(t, "gdb"), args...).Output()
	require.NoError(t, err)
	return string(out)
}
