package ptrace

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/test/livetest"
)

const (
	refusedPID  = "REFRAME_TEST_REFUSED"      // the process to open
	refusedRoot = "REFRAME_TEST_REFUSED_ROOT" // the folder that becomes the root of the file system, or ""
	guardKilled = "REFRAME_TEST_GUARD_KILLED" // the hexadecimal address of a breakpoint whose tracer is killed, or ""
)

// TestTry is the helper program of TestRefusedByName and TestSeccompReading. It runs under restrictions, and prints the result of each way to open a
// process.
func TestTry(t *testing.T) {
	pid, err := strconv.Atoi(os.Getenv(refusedPID))
	if err != nil {
		return
	}
	if pid == 0 {
		pid = os.Getpid()
	}
	if root := os.Getenv(refusedRoot); root != "" {
		require.NoError(t, unix.Chroot(root))
	}
	if at, err := strconv.ParseUint(os.Getenv(guardKilled), 16, 64); err == nil {
		s, err := Open(context.Background(), pid)
		require.NoError(t, err)
		require.NoError(t, s.Insert(Breakpoint{Addr: machine.Addr(at)}))
		require.NoError(t, unix.Kill(tracerPID(s), unix.SIGKILL))
		fmt.Println("killed:", s.Detach())
		return
	}
	_, err = Survey(pid, Options{})
	fmt.Println("survey:", err)
	_, err = Capture(pid, Options{})
	fmt.Println("capture:", err)
	s, err := Open(context.Background(), pid)
	if fmt.Println("open:", err); err == nil {
		require.NoError(t, s.Detach())
	}
}

// tries runs TestTry with a command prefix, and returns its output line for each way.
func tries(t *testing.T, program string, under []string, pid int, env ...string) map[string]string {
	t.Helper()
	command := append(under[:len(under):len(under)], program, "-test.run=^TestTry$")
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(append(os.Environ(), fmt.Sprintf("%s=%d", refusedPID, pid)), env...)
	cmd.Dir = "/"
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	require.NoError(t, err, "%s%s", out, &errors)
	result := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if way, text, is := strings.Cut(strings.TrimSpace(line), ": "); is && slices.Contains([]string{"survey", "capture", "open", "killed"}, way) {
			result[way] = text
		}
	}
	return result
}

// forAll copies a program to a path at which every user may execute it.
func forAll(t *testing.T, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "reframe")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	text, err := os.ReadFile(program)
	require.NoError(t, err)
	path := filepath.Join(dir, filepath.Base(program))
	require.NoError(t, os.WriteFile(path, text, 0o755))
	require.NoError(t, os.Chmod(path, 0o755)) // independently of the umask
	return path
}

// hiding returns a command prefix that runs a program as another user, for whom /proc hides the processes of others (hidepid of proc(5)), and
// additions to the program's environment. If mounting is denied, the root of the file system is a folder whose /proc contains only the process's own
// entry.
func hiding(t *testing.T) (under []string, env string) {
	t.Helper()
	mounted := []string{livetest.Tool(t, "unshare"), "-m", "sh", "-c", `mount -t proc -o hidepid=2 proc /proc && exec "$@"`, "sh"}
	if exec.Command(mounted[0], append(mounted[1:len(mounted):len(mounted)], "true")...).Run() == nil {
		return append(mounted, as(t, "65534", "")...), ""
	}
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "proc", "self"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "proc", "self", "stat"), nil, 0o644))
	return nil, refusedRoot + "=" + root
}

// as returns a command prefix that runs a program as another user with only one capability: "sys_ptrace", or "" for none.
func as(t *testing.T, user, capability string) []string {
	t.Helper()
	set := "-all"
	if capability != "" {
		set += ",+" + capability
	}
	return []string{livetest.Tool(t, "setpriv"), "--reuid", user, "--regid", user, "--clear-groups", "--bounding-set", set, "--inh-caps", set, "--ambient-caps", set}
}

// TestRefusedByName requires the correct reason for each way in which the kernel can deny reading or tracing a process. It requires root, which CI
// has.
func TestRefusedByName(t *testing.T) {
	livetest.Slow(t)
	const nobody, other, tracing = "65534", "65533", "sys_ptrace"
	p := livetest.C(t, "threads.c", nil, "1")
	undumpable := livetest.Program(t, as(t, nobody, "")[0], append(as(t, nobody, "")[1:], forAll(t, livetest.CBinary(t, "undumpable.c")))...)
	sameUser := livetest.Program(t, as(t, nobody, "")[0], append(as(t, nobody, "")[1:], forAll(t, livetest.CBinary(t, "nojit.c")))...)
	held := livetest.C(t, "threads.c", nil, "1")
	target := capture(t, held.PID, Options{Hold: true})
	defer target.Release()
	ended := exec.Command("true")
	require.NoError(t, ended.Run())
	zombie := exec.Command("true")
	require.NoError(t, zombie.Start())
	defer zombie.Wait() //nolint: its status does not matter
	requireState(t, zombie.Process.Pid, 'Z')
	bare := t.TempDir() // a root folder without /proc
	hidden, hiddenRoot := hiding(t)
	program := forAll(t, os.Args[0])
	without := func(call string) []string {
		under := livetest.Without(t, call)
		return append(append(as(t, nobody, tracing), forAll(t, under[0])), under[1:]...)
	}
	inner := []string{livetest.Tool(t, "unshare"), "--user", "--map-root-user"}

	all := []string{"survey", "capture", "open"}
	attach := all[1:]
	type way struct {
		under []string
		pid   int
		env   string
		ways  []string
		text  string
	}
	ways := map[string]way{
		"a process that ended": {nil, ended.Process.Pid, "", all, "no such process"},
		"a zombie":             {nil, zombie.Process.Pid, "", all, "it has ended, and its parent has not waited for it yet"},
		"itself":               {nil, 0, "", attach, "it is this process, which cannot trace itself"},
		"another user":         {as(t, nobody, ""), p.PID, "", all, "it belongs to another user; run as root, or with the capability CAP_SYS_PTRACE"},
		"another user of two":  {as(t, other, ""), sameUser.PID, "", all, "it belongs to another user; run as root, or with the capability CAP_SYS_PTRACE"},
		"not dumpable":         {as(t, nobody, ""), undumpable.PID, "", all, "it is not dumpable (PR_SET_DUMPABLE of prctl(2))"},
		"another tracer":       {[]string{"env"}, held.PID, "", attach, fmt.Sprintf("process %d (%s) traces it already; have it detach first", os.Getpid(), system.ThreadName(os.Getpid(), os.Getpid()))},
		"no capability": {[]string{livetest.Tool(t, "setpriv"), "--bounding-set", "-sys_ptrace"}, p.PID, "", all,
			"it has capabilities that this process lacks, and this process lacks CAP_SYS_PTRACE (in a container: --cap-add=SYS_PTRACE)"},
		"seccomp denies ptrace":       {livetest.Without(t, "ptrace=EPERM"), p.PID, "", attach, "a filter of system calls (seccomp) denies ptrace to this process"},
		"seccomp hides ptrace":        {livetest.Without(t, "ptrace"), p.PID, "", attach, "a filter of system calls (seccomp) denies ptrace to this process"},
		"seccomp, and no other file":  {without("process_vm_readv"), p.PID, "", all[:2], fmt.Sprintf("process_vm_readv: function not implemented, and open /proc/%d/mem: permission denied: user 0 alone may open that file, and this process is without the capability CAP_DAC_OVERRIDE", p.PID)},
		"seccomp, EPERM, and no file": {without("process_vm_readv=EPERM"), p.PID, "", all[:2], fmt.Sprintf("process_vm_readv: operation not permitted, and open /proc/%d/mem: permission denied: user 0 alone may open that file", p.PID)},
		"no /proc":                    {nil, p.PID, refusedRoot + "=" + bare, all, "/proc is not mounted here, and the process cannot be read without it"},
		"hidden by /proc":             {hidden, p.PID, hiddenRoot, all, "/proc hides it, as the mount option hidepid does"},
	}
	if exec.Command(inner[0], append(inner[1:len(inner):len(inner)], "true")...).Run() == nil { // if it fails, only TestDenials covers this case
		ways["another user namespace"] = way{inner, p.PID, "", all, "CAP_SYS_PTRACE of this user namespace does not permit it"}
	}
	for name, way := range ways {
		got := tries(t, program, way.under, way.pid, way.env)
		for _, try := range way.ways {
			require.Contains(t, got[try], way.text, "%s: %s", name, try)
			require.NotContains(t, got[try], "ended while", name)
		}
	}
	require.Equal(t, "ready\n", p.Output())
}

// TestSeccompReading requires that everything works if process_vm_readv(2) and process_vm_writev(2) are denied, because memory is then read from
// /proc/PID/mem.
func TestSeccompReading(t *testing.T) {
	livetest.Slow(t)
	p := livetest.C(t, "threads.c", nil, "1")
	program := forAll(t, os.Args[0])
	for _, calls := range [][]string{{"process_vm_readv"}, {"process_vm_readv=EPERM", "process_vm_writev=EPERM"}} {
		got := tries(t, program, livetest.Without(t, calls...), p.PID)
		require.Equal(t, map[string]string{"survey": "<nil>", "capture": "<nil>", "open": "<nil>"}, got, "%v", calls)
	}
	require.Equal(t, "ready\n", p.Output())
}

// TestGuardKilledWithoutTheFile requires that the code under breakpoints is restored after the tracer was killed, if /proc/PID/mem cannot be opened.
func TestGuardKilledWithoutTheFile(t *testing.T) {
	livetest.Slow(t)
	p := livetest.C(t, "nojit.c", nil)
	maps, err := readMaps(p.PID)
	require.NoError(t, err)
	at := maps[slices.IndexFunc(maps, func(m machine.Mapping) bool { return m.Exec })].Start // an address in the program that is no longer executed
	before, err := readAll(live(p.PID), at, 64)
	require.NoError(t, err)
	got := tries(t, forAll(t, os.Args[0]), as(t, "65534", "sys_ptrace"), p.PID, fmt.Sprintf("%s=%x", guardKilled, uint64(at)))
	require.Contains(t, got["killed"], "the guard process was killed: the code under 1 breakpoints was restored")
	after, err := readAll(live(p.PID), at, 64)
	require.NoError(t, err)
	require.Equal(t, before, after)
}
