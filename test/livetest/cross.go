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
)

// Cross is an architecture whose programs run under QEMU's user mode, with the names of its tools in Debian.
type Cross struct {
	Arch   string // Go's name
	tools  string // prefix of gcc and the others
	qemu   string // the program that runs it
	cpu    string // the processor of QEMU; "" for the default
	noCore bool   // QEMU 7.2 cannot write cores for it
}

// Crosses lists the supported architectures.
var Crosses = []Cross{
	// gdb 13 does not understand the signal frames that QEMU 7.2 writes for a processor with SVE.
	{Arch: "arm64", tools: "aarch64-linux-gnu", qemu: "qemu-aarch64", cpu: "max,sve=off"},
	{Arch: "ppc64le", tools: "powerpc64le-linux-gnu", qemu: "qemu-ppc64le"},
	{Arch: "ppc64", tools: "powerpc64-linux-gnu", qemu: "qemu-ppc64"},
	{Arch: "riscv64", tools: "riscv64-linux-gnu", qemu: "qemu-riscv64", noCore: true},
	{Arch: "s390x", tools: "s390x-linux-gnu", qemu: "qemu-s390x"},
}

// WritesCores reports whether QEMU writes cores of programs of the architecture.
func (c *Cross) WritesCores() bool { return !c.noCore }

// Build compiles and links C sources, given by their paths, with the given flags.
func (c *Cross) Build(t testing.TB, cflags []string, sources ...string) string {
	t.Helper()
	return build(t, recipe{
		output: strings.TrimSuffix(filepath.Base(sources[0]), ".c") + "-" + c.Arch,
		tool:   Tool(t, c.tools+"-gcc"),
		args:   append(append([]string{}, cflags...), sources...),
		inputs: sources,
	})
}

// command returns the command that runs a program under QEMU.
func (c *Cross) command(t testing.TB, flags []string, program string, args ...string) *exec.Cmd {
	t.Helper()
	if c.cpu != "" {
		flags = append(flags, "-cpu", c.cpu)
	}
	cmd := exec.Command(Tool(t, c.qemu), append(append(flags, program), args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Dir = t.TempDir()
	return cmd
}

// Core runs a program that a signal ends, and returns the path of the core that QEMU writes.
func (c *Cross) Core(t testing.TB, program string, args ...string) string {
	t.Helper()
	cmd := c.command(t, nil, program, args...)
	// QEMU needs this limit to write a core of the program. It prevents the kernel from writing a core of QEMU itself.
	cmd.Args = append([]string{Tool(t, "prlimit"), "--core=unlimited"}, cmd.Args...)
	cmd.Path = cmd.Args[0]
	text, err := cmd.CombinedOutput()
	require.Error(t, err, "%s\n%s", cmd, text)
	cores, err := filepath.Glob(filepath.Join(cmd.Dir, "qemu_*.core"))
	require.NoError(t, err)
	require.Len(t, cores, 1, "%s\n%s", cmd, text)
	return cores[0]
}

// GDB starts a program under QEMU, and runs a Python script in gdb at its first instruction, through QEMU's stub. It returns the output of the
// script. settings are gdb commands that run first.
func (c *Cross) GDB(t testing.TB, script string, settings []string, program string, args ...string) []byte {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "gdb")
	cmd := c.command(t, []string{"-g", socket}, program, args...)
	require.NoError(t, startFromLastingThread(cmd))
	defer func() {
		cmd.Process.Kill() // an error means that it has ended
		cmd.Wait()
	}()
	for deadline := time.Now().Add(Patience); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		require.True(t, time.Now().Before(deadline), "%s opens no socket", cmd)
	}
	line := []string{"-nx", "-batch", "-ex", "set pagination off", "-ex", "set confirm off"}
	for _, s := range settings {
		line = append(line, "-ex", s)
	}
	line = append(line, "-ex", "target remote "+socket, "-x", script, program)
	gdb := exec.Command(Tool(t, "gdb-multiarch"), line...)
	var stderr strings.Builder
	gdb.Stderr = &stderr
	out, err := gdb.Output()
	require.NoError(t, err, "%s\n%s%s", gdb, out, stderr.String())
	require.NotEmpty(t, out, "%s", fmt.Sprint(gdb, "\n", stderr.String()))
	return out
}
