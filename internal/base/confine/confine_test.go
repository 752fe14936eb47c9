package confine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// output returns the standard output of a confined program.
func output(t *testing.T, path string, args ...string) string {
	t.Helper()
	cmd := Command(context.Background(), path, 1<<30, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	return string(out)
}

// TestAttacks requires that a confined program can read files, and that its attempts to change the machine fail. Without confinement, most of these
// attempts succeed.
func TestAttacks(t *testing.T) {
	program := filepath.Join(publicDir(t), "attacks")
	livetest.Make(t, livetest.Tool(t, "gcc"), "-w", "-O1", "-pthread", filepath.Join("testdata", "attacks.c"), "-o", program)
	file := filepath.Join(filepath.Dir(program), "file")
	require.NoError(t, os.WriteFile(file, []byte("data"), 0o666))
	require.NoError(t, os.Chmod(file, 0o666))
	made := filepath.Join(filepath.Dir(program), "made")
	permitted := map[string]bool{"read a file": true, "make a thread": true, "signal itself": true}
	lines := strings.Split(strings.TrimSpace(output(t, program, file, made)), "\n")
	for _, line := range lines {
		about, result, _ := strings.Cut(line, ": ")
		switch {
		case permitted[about]:
			require.Equal(t, "done", result, about)
		case about == "take 4 GiB":
			require.Equal(t, "Cannot allocate memory", result)
		default:
			require.Equal(t, "Operation not permitted", result, about)
		}
	}
	require.Len(t, lines, 26)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "data", string(data))
	require.NoFileExists(t, made)

	free, err := exec.Command(program, file, made).Output()
	require.NoError(t, err)
	require.Greater(t, strings.Count(string(free), ": done\n"), 12)
}

// publicDir returns a directory that every user can enter.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "confine")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

// TestPrivileges requires that a confined program has no capability, cannot gain one, and has a filter. Started by root, it runs as an unprivileged user.
func TestPrivileges(t *testing.T) {
	uid := os.Geteuid()
	if uid == 0 {
		uid = unprivileged
	}
	status := output(t, livetest.Tool(t, "cat"), "/proc/self/status")
	for _, want := range []string{
		fmt.Sprintf("Uid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", uid), "CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n",
	} {
		require.Contains(t, status, "\n"+want)
	}
}

// TestPrivateProgram requires that a program that the unprivileged user cannot run keeps the user that starts it, but has no capabilities.
func TestPrivateProgram(t *testing.T) {
	livetest.NeedsTools(t)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	program := filepath.Join(dir, "status")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nexec cat /proc/self/status\n"), 0o700))
	status := output(t, program)
	require.Contains(t, status, fmt.Sprintf("\nUid:\t%d\t%[1]d\t", os.Geteuid()))
	require.Contains(t, status, "\nCapEff:\t0000000000000000\n")
}

func TestMissingProgram(t *testing.T) {
	out, err := Command(context.Background(), "/nowhere/llvm-dis", 1<<30).CombinedOutput()
	require.EqualError(t, err, "exit status 126")
	require.Equal(t, "/nowhere/llvm-dis: no such file or directory\n", string(out))
}
