package livetest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestStandIns requires that the simulations of stricter kernels refuse the same operations as these kernels, and no others.
func TestStandIns(t *testing.T) {
	const inner = "LIVETEST_STANDIN"
	switch what, pid, _ := strings.Cut(os.Getenv(inner), " "); what {
	case "kcmp":
		const vm = 1 // KCMP_VM
		_, _, e := unix.Syscall6(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(os.Getppid()), vm, 0, 0, 0)
		fmt.Println("said", e)
		return
	case "trace", "child":
		n, _ := strconv.Atoi(pid)
		if what == "child" {
			c := exec.Command("sleep", "60")
			require.NoError(t, c.Start())
			defer c.Process.Kill()
			n = c.Process.Pid
		}
		runtime.LockOSThread()
		err := unix.PtraceSeize(n)
		var b [1]byte
		// Nothing is mapped at this address, so the error shows whether the access was permitted.
		_, read := unix.ProcessVMReadv(n, []unix.Iovec{{Base: &b[0], Len: 1}}, []unix.RemoteIovec{{Base: 8, Len: 1}}, 0)
		fmt.Println("said", err, "and", read)
		return
	}
	said := func(under []string, what string) string {
		line := append(under[:len(under):len(under)], os.Args[0], "-test.run=^TestStandIns$")
		c := exec.Command(line[0], line[1:]...)
		c.Env = append(os.Environ(), inner+"="+what)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		text, _, _ := strings.Cut(string(out), "\n")
		return text
	}
	require.Equal(t, "said function not implemented", said(Without(t, "userfaultfd", "kcmp"), "kcmp"))
	require.Equal(t, said([]string{"env"}, "kcmp"), said(Without(t, "userfaultfd"), "kcmp"))

	yama, plain := UnderYama(t), UnderYama(t)[:3]
	// A process without a capability cannot trace one that has it.
	other := start(t, exec.Command(plain[0], plain[1], plain[2], CBinary(t, "nojit.c")), inKernel)
	sibling := fmt.Sprint("trace ", other.PID)
	require.Equal(t, "said <nil> and bad address", said(plain, sibling))
	require.Equal(t, "said operation not permitted and operation not permitted", said(yama, sibling))
	require.Equal(t, "said <nil> and bad address", said(yama, "child"))
}
