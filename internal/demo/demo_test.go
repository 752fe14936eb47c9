//go:build linux && amd64

package demo

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

const sumOfSquaresBelow1000 = 999 * 1000 * 1999 / 6

// TestStart requires that the program, started from memory or from a file, returns the sum that its native code computes.
func TestStart(t *testing.T) {
	ways := map[string]func(...string) (*Process, error){"memfd": startInMemory, "file": startFromFile}
	for name, start := range ways {
		t.Run(name, func(t *testing.T) {
			p, err := start()
			require.NoError(t, err)
			t.Cleanup(p.Kill)
			require.NoError(t, p.expect("ready"))
			comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.PID))
			require.NoError(t, err)
			require.Equal(t, "demo-target\n", string(comm))
			require.NoError(t, p.Wake())
			result, err := p.Result()
			require.NoError(t, err)
			require.EqualValues(t, sumOfSquaresBelow1000, result)
			if p.file != "" {
				require.NoFileExists(t, p.file)
			}

			vm, err := start(ofVM)
			require.NoError(t, err)
			t.Cleanup(vm.Kill)
			require.NoError(t, vm.expect("ready"))
			comm, err = os.ReadFile(fmt.Sprintf("/proc/%d/comm", vm.PID))
			require.NoError(t, err)
			require.Equal(t, "demo-vm\n", string(comm))
			require.NoError(t, vm.Wake())
			require.NoError(t, vm.cmd.Wait())
		})
	}
}

func TestKill(t *testing.T) {
	p, err := Start()
	require.NoError(t, err)
	p.Kill()
	p.Kill()
	require.NoDirExists(t, fmt.Sprintf("/proc/%d", p.PID))
	require.Error(t, p.Wake())
	_, err = p.Result()
	require.Error(t, err)
}

// TestGDBSeesEveryFrame requires that gdb reads the registered object, and unwinds by the CFI of the JIT code and of its host.
func TestGDBSeesEveryFrame(t *testing.T) {
	for _, target := range []struct {
		start func() (*Process, error)
		want  string
	}{
		{Start, "__llvm_deoptimize sum_opt call_optimized main_jit run _start"},
		{StartVM, "__llvm_deoptimize Shop.total#1 call_optimized run _start"},
	} {
		p, err := target.start()
		require.NoError(t, err)
		t.Cleanup(p.Kill)
		// gdb cannot find an executable that is a memfd: pass its path.
		text, err := exec.Command(livetest.Tool(t, "gdb"), "-nx", "-batch", "-ex", "bt",
			fmt.Sprintf("/proc/%d/exe", p.PID), fmt.Sprint(p.PID)).CombinedOutput()
		require.NoError(t, err)
		var functions []string
		for line := range strings.Lines(string(text)) {
			if number, rest, found := strings.Cut(line, " in "); found && strings.HasPrefix(number, "#") {
				functions = append(functions, strings.Fields(rest)[0])
			}
		}
		require.Equal(t, target.want, strings.Join(functions, " "), "%s", text)
	}
}

func TestEmbeddedFiles(t *testing.T) {
	require.Less(t, len(Target), 64<<10)
	require.True(t, json.Valid(Layout))
	require.Contains(t, string(IR), "gc.statepoint")
	f, err := elf.NewFile(bytes.NewReader(Target))
	require.NoError(t, err)
	symbols, err := f.Symbols()
	require.NoError(t, err)
	var names []string
	for _, s := range symbols {
		names = append(names, s.Name)
	}
	require.Subset(t, names, []string{"__jit_debug_descriptor", "__jit_debug_register_code", "__llvm_deoptimize"})
}

// TestRebuild requires that build.sh builds the committed program: the same bytes with the same versions of the tools, and the same behaviour with any
// versions.
func TestRebuild(t *testing.T) {
	for _, tool := range []string{"llc", "opt"} {
		livetest.LLVM(t, 19, tool)
	}
	dir := t.TempDir()
	text, err := exec.Command("./build.sh", dir).CombinedOutput()
	require.NoError(t, err, "%s", text)

	read := func(name string) []byte {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		return content
	}
	const program = "target-gcc12-llc19-amd64"
	same := bytes.Equal(read("target-versions"), read(filepath.Join(dir, "target-versions")))
	if same {
		require.True(t, bytes.Equal(Target, read(filepath.Join(dir, program))), "the program is stale: run make generate")
		require.Equal(t, string(IR), string(read(filepath.Join(dir, "target-llc19.ll"))), "the IR is stale: run make generate")
	}

	// The first run gets one byte of input, the second gets none.
	for _, input := range []io.Reader{strings.NewReader("\n"), nil} {
		cmd := exec.Command(filepath.Join(dir, program))
		cmd.Stdin = input
		out, err := cmd.Output()
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("ready\nnative %d\n", sumOfSquaresBelow1000), string(out))
	}
	out, err := exec.Command(filepath.Join(dir, program), ofVM).Output()
	require.NoError(t, err)
	require.Equal(t, "ready\n", string(out))

	// The method's IR is the one that tinyvm generates from the program.
	r := tinyvmtest.Run(t, tinyvmtest.Binary(t, 19), "--dump", dir, "target/orders.tvm")
	require.Zero(t, r.Status, "%s", r.Errors)
	require.Equal(t, strings.Repeat("284500.5\n", 4)+"4\n", r.Output)
	if same {
		const made = "Shop.total#1.ll"
		require.Equal(t, string(read(filepath.Join(dir, made))), string(read("target/orders.ll")), "stale: examples/tinyvm/tinyvm --dump DIR internal/demo/target/orders.tvm makes it")
	}
}

// A kept target ends after an hour: its first call is alarm, and it keeps the default action of SIGALRM.
func TestTargetEndsByItself(t *testing.T) {
	name := filepath.Join(t.TempDir(), "target")
	require.NoError(t, os.WriteFile(name, Target, 0o700))
	calls, _ := exec.Command(livetest.Tool(t, "qemu-x86_64"), "-strace", name).CombinedOutput() // the error is ignored: QEMU does not map memory as the target requires
	require.Contains(t, string(calls), " alarm(3600) = 0\n")

	p, err := Start()
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	require.NoError(t, syscall.Kill(p.PID, syscall.SIGALRM))
	require.ErrorContains(t, p.cmd.Wait(), "alarm clock")
}
