package livetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Gcore writes a core of a process with gdb and returns the core's path. The process continues afterwards. settings are settings of gdb, such as
// "use-coredump-filter off".
func Gcore(t testing.TB, p *Process, settings ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "core")
	// The content of a core does not depend on symbols, and gdb takes seconds to read those of libLLVM.
	args := []string{"-nx", "-batch", "-ex", "set auto-solib-add off"}
	for _, s := range settings {
		args = append(args, "-ex", "set "+s)
	}
	cmd := exec.Command(Tool(t, "gdb"), append(args, "-p", fmt.Sprint(p.PID), "-ex", "gcore "+path)...)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", cmd, text)
	require.FileExists(t, path, "%s", text)
	return path
}

// KernelCore ends a process with SIGABRT and returns the path of the core that the kernel wrote. It returns false and leaves the process alone if the
// kernel passes cores to a program, keeps them in a common directory (core_pattern of core(5)), or may not write any.
func KernelCore(t testing.TB, p *Process) (path string, can bool) {
	t.Helper()
	if !kernelWritesCores(t) {
		return "", false
	}
	const unlimited = 1<<64 - 1
	if unix.Prlimit(p.PID, unix.RLIMIT_CORE, &unix.Rlimit{Cur: unlimited, Max: unlimited}, nil) != nil {
		return "", false // a limit of 0 cannot be raised without privileges
	}
	// LLVM catches the first SIGABRT, and continues after it has printed the backtrace.
	for deadline := time.Now().Add(Patience); p.Alive(); time.Sleep(20 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "SIGABRT does not end it")
		_ = p.cmd.Process.Signal(syscall.SIGABRT) // an error means that it has ended
	}
	<-p.exited // do not wait for the end of the output: LLVM has started a program that still writes to it
	return onlyFile(t, p.cmd), true
}

// DiedCore runs a command that a signal kills. It returns the output and the path of the core that the kernel wrote, or false if the kernel does not
// write cores into the working directory of a process.
func DiedCore(t testing.TB, name string, args ...string) (output, path string, can bool) {
	t.Helper()
	if !kernelWritesCores(t) {
		return "", "", false
	}
	cmd := exec.Command(Tool(t, "prlimit"), append([]string{"--core=unlimited", name}, args...)...)
	cmd.Dir = t.TempDir()
	text, err := cmd.Output()
	require.Error(t, err, "it did not die")
	return string(text), onlyFile(t, cmd), true
}

// kernelWritesCores reports whether the kernel writes a core into the working directory of the process.
func kernelWritesCores(t testing.TB) bool {
	t.Helper()
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	require.NoError(t, err)
	return !strings.ContainsAny(string(pattern), "|/")
}

// onlyFile returns the path of the core in the working directory of a command.
func onlyFile(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	files, err := os.ReadDir(cmd.Dir)
	require.NoError(t, err)
	for _, f := range files {
		if f.Type().IsRegular() {
			return filepath.Join(cmd.Dir, f.Name())
		}
	}
	require.FailNow(t, "the kernel wrote no core", "%s", cmd)
	return ""
}
