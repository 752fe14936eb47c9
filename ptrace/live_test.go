package ptrace

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/test/livetest"
)

// program runs a C program of this package's testdata.
func program(t testing.TB, source string, cflags []string, args ...string) *livetest.Process {
	t.Helper()
	return livetest.C(t, filepath.Join("..", "ptrace", "testdata", source), cflags, args...)
}

// executable compiles a C program of this package's testdata, and returns the path of the result.
func executable(t testing.TB, source string, cflags ...string) string {
	t.Helper()
	return livetest.CBinary(t, filepath.Join("..", "ptrace", "testdata", source), cflags...)
}

func procFile(t testing.TB, format string, args ...any) string {
	t.Helper()
	b, err := os.ReadFile("/proc/" + fmt.Sprintf(format, args...))
	require.NoError(t, err)
	return string(b)
}

// If a timed sleep is interrupted, restart_syscall(2) continues it for the remaining time.
const (
	clockNanosleep = "230"
	restartSyscall = "219"
)

// states returns for each thread its state, its current system call with arguments, its tracer, and its pending and blocked signals.
func states(t testing.TB, pid int) string {
	t.Helper()
	tids, err := system.ThreadIDs(pid)
	require.NoError(t, err)
	slices.Sort(tids)
	var b strings.Builder
	for _, tid := range tids {
		number, rest, _ := strings.Cut(strings.TrimSpace(procFile(t, "%d/task/%d/syscall", pid, tid)), " ")
		if number == restartSyscall {
			number = clockNanosleep
		}
		fmt.Fprintf(&b, "%d %s %s\n", tid, number, rest)
		for line := range strings.Lines(procFile(t, "%d/task/%d/status", pid, tid)) {
			switch name, _, _ := strings.Cut(line, ":"); name {
			case "State", "TracerPid", "SigPnd", "ShdPnd", "SigBlk":
				b.WriteString("\t" + line)
			}
		}
	}
	return b.String()
}

// requireStates waits until the threads have their earlier states again, because an interrupted system call is restarted within microseconds.
func requireStates(t testing.TB, pid int, want string) {
	t.Helper()
	var got string
	for deadline := time.Now().Add(livetest.Patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if got = states(t, pid); got == want {
			return
		}
	}
	require.Equal(t, want, got)
}

func requireState(t testing.TB, pid int, want byte) {
	t.Helper()
	require.Eventually(t, func() bool { return system.ThreadState(pid, pid) == want }, livetest.Patience, time.Millisecond, "state %c", want)
}

// peek reads memory of a process through /proc/PID/mem.
func peek(t testing.TB, pid int, addr machine.Addr, size int) []byte {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	require.NoError(t, err)
	defer f.Close()
	b := make([]byte, size)
	_, err = f.ReadAt(b, int64(addr))
	require.NoError(t, err, "%d bytes at %v", size, addr)
	return b
}

// hashMemory returns hashes of the writable mappings of a process.
func hashMemory(t testing.TB, pid int) map[string][32]byte {
	t.Helper()
	maps, err := readMaps(pid)
	require.NoError(t, err)
	hashes := map[string][32]byte{}
	for _, r := range maps {
		if r.Write && !r.Share {
			hashes[fmt.Sprintf("%v-%v %s", r.Start, r.End, r.Path)] = sha256.Sum256(peek(t, pid, r.Start, int(r.End-r.Start)))
		}
	}
	require.NotEmpty(t, hashes)
	return hashes
}

// requireText requires that all code in memory equals that in the files.
func requireText(t testing.TB, pid int) {
	t.Helper()
	maps, err := readMaps(pid)
	require.NoError(t, err)
	compared := 0
	for _, r := range maps {
		if !r.Exec || r.Inode == 0 || r.Share {
			continue
		}
		f, err := os.Open(r.Path)
		require.NoError(t, err)
		b := make([]byte, r.End-r.Start)
		n, _ := f.ReadAt(b, int64(r.Offset)) // memory beyond the end of the file is zero
		clear(b[n:])
		f.Close()
		require.True(t, string(b) == string(peek(t, pid, r.Start, len(b))), "%s was changed", r.Path)
		compared++
	}
	require.Positive(t, compared)
}

// symbols returns the addresses of symbols, as printed by nm.
func symbols(t testing.TB, path string) map[string]machine.Addr {
	t.Helper()
	out, err := exec.Command(livetest.Tool(t, "nm"), path).Output()
	require.NoError(t, err)
	list := map[string]machine.Addr{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 {
			v, err := strconv.ParseUint(f[0], 16, 64)
			require.NoError(t, err)
			list[f[2]] = machine.Addr(v)
		}
	}
	return list
}

// capture captures a process, and closes the target when the test ends.
func capture(t testing.TB, pid int, o Options) *Target {
	t.Helper()
	target, err := Capture(pid, o)
	require.NoError(t, err)
	t.Cleanup(target.Close)
	return target
}
