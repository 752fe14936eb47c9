package patches_test

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// built is a compiled program.
type built struct {
	*program
	path    string
	symbols map[string]uint64
	sites   map[int]uint64 // addresses of the records, by the numbers of their functions
	modules []*ir.Module
}

var tools = map[string]string{"amd64": "gcc", "arm64": "aarch64-linux-gnu-gcc"}

// build compiles a program.
func (p *program) build(t testing.TB) *built {
	t.Helper()
	dir := t.TempDir()
	if kept := os.Getenv("KEEP"); kept != "" {
		dir = kept
	}
	file := func(name string) string {
		return filepath.Join(dir, fmt.Sprintf("p%d-%d-%s%s", p.seed, p.version, p.machine, name))
	}
	b := &built{program: p, path: file(""), symbols: map[string]uint64{}, sites: map[int]uint64{}}
	require.NoError(t, os.WriteFile(file(".ll"), []byte(p.IR()), 0o600))
	require.NoError(t, os.WriteFile(file(".s"), []byte(p.assembly()), 0o600))
	llc := append([]string{"-filetype=obj"}, p.flags...)
	out, err := exec.Command(livetest.LLVM(t, p.version, "llc"), append(llc, file(".ll"), "-o", file(".o"))...).CombinedOutput()
	require.NoError(t, err, "%s\n%s", p, out)
	host := []string{"-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-pie", "-c"}
	link := []string{"-no-pie", "-z", "noexecstack"}
	if p.machine == "amd64" {
		host = append(host, "-mgeneral-regs-only") // the stack at the call of a stub is aligned only as code without vector registers requires
	} else {
		link = []string{"-static", "-Wl,-z,separate-code"}
	}
	gcc := tools[p.machine]
	object := livetest.Compiled(t, gcc, "testdata/host.c", host...)
	out, err = exec.Command(livetest.Tool(t, gcc), append(link, object, file(".s"), file(".o"), "-o", b.path)...).CombinedOutput()
	require.NoError(t, err, "%s\n%s", p, out)
	m, err := ir.ParseFile(file(".ll"))
	require.NoError(t, err)
	b.modules = []*ir.Module{m}
	b.read(t)
	return b
}

// read reads the symbols and the stack map records.
func (b *built) read(t testing.TB) {
	t.Helper()
	f, err := elf.Open(b.path)
	require.NoError(t, err)
	defer f.Close()
	symbols, err := f.Symbols()
	require.NoError(t, err)
	for _, s := range symbols {
		b.symbols[s.Name] = s.Value
	}
	data, err := f.Section(".llvm_stackmaps").Data()
	require.NoError(t, err)
	list, err := stackmap.Parse(data, stackmap.Options{Order: binary.LittleEndian})
	require.NoError(t, err)
	numbers := map[uint64]int{}
	for _, fn := range b.funcs {
		numbers[fn.id] = fn.number
	}
	for _, m := range list.Maps {
		for n := range m.Functions {
			for r := range m.Records(&m.Functions[n]) {
				b.sites[numbers[uint64(r.ID)]] = uint64(m.Functions[n].Addr) + uint64(r.Offset)
			}
		}
	}
}

// String returns the environment variables that reproduce the program.
func (p *program) String() string {
	return fmt.Sprintf("SEED=%d VERSION=%d MACHINE=%s (%s)", p.seed, p.version, p.machine, strings.Join(p.flags, " "))
}

// arguments returns the arguments of the host.
func (p *program) arguments() []string {
	if p.altstack {
		return []string{"altstack"}
	}
	return nil
}

// moments returns the first n moments of the program.
func (b *built) moments(n int) (list []*moment) {
	r := rand.New(rand.NewPCG(b.seed, 12345))
	for range n {
		list = append(list, b.moment(rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))))
	}
	return list
}

// live runs the moments in one process, and compares the frames at each.
func (c *comparer) live(t testing.TB, list []*moment) {
	t.Helper()
	cmd := exec.Command(c.path, c.arguments()...)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr // the host ends when its standard input is closed
	require.NoError(t, cmd.Start())
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	lines := bufio.NewReader(stdout)
	for n, m := range list {
		_, err := io.WriteString(stdin, m.commands())
		require.NoError(t, err)
		if _, err = lines.ReadString('\n'); err != nil {
			require.NoError(t, err, "%s, moment %d: %v: %s", c.program, n, cmd.Wait(), m)
		}
		if c.alone < 0 || n == c.alone {
			c.capture(t, cmd.Process.Pid, n, m)
		}
		_, err = io.WriteString(stdin, "\n")
		require.NoError(t, err)
	}
}

// capture captures the stopped process and compares it.
func (c *comparer) capture(t testing.TB, pid, n int, m *moment) {
	t.Helper()
	target, err := ptrace.Capture(pid, ptrace.Options{Hold: true})
	require.NoError(t, err)
	defer target.Close()
	c.target(t, target, n, m)
}

// target compares the frames of a target with the program's log.
func (c *comparer) target(t testing.TB, target *ptrace.Target, n int, m *moment) {
	t.Helper()
	view, err := deopt.Frames(target, deopt.Options{Modules: c.modules})
	require.NoError(t, err, "%s", m)
	require.Len(t, view.Threads, 1)
	c.moment(n, m, view.Threads[0], c.log(t, target))
}

// cores runs each moment under QEMU, in a process that aborts, and compares the cores.
func (c *comparer) cores(t testing.TB, list []*moment) {
	t.Helper()
	dir := t.TempDir()
	var input strings.Builder
	for _, m := range list {
		input.WriteString(m.commands())
	}
	// The limit is for the emulated process. It also keeps the kernel from writing a core of QEMU itself.
	args := append([]string{"--core=unlimited", livetest.Tool(t, "qemu-aarch64"), "-cpu", "max,sve=off", c.path}, c.arguments()...)
	cmd := exec.Command(livetest.Tool(t, "prlimit"), args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input.String())
	out, err := cmd.Output()
	require.NoError(t, err)
	pids := strings.Fields(string(out))
	require.Len(t, pids, len(list))
	for n, pid := range pids {
		found, err := filepath.Glob(filepath.Join(dir, "qemu_*_"+pid+".core"))
		require.NoError(t, err)
		require.NotEmpty(t, found, "%s, moment %d: %s", c.program, n, list[n])
		slices.Sort(found) // sort by the time in the name, because the kernel may reuse a pid for a later process
		target, err := ptrace.OpenCore(found[0], ptrace.CoreOptions{Exe: c.path})
		require.NoError(t, err)
		c.target(t, target, n, list[n])
		target.Close()
		require.NoError(t, os.Remove(found[0]))
	}
}

// log reads the entries of the log, innermost first.
func (c *comparer) log(t testing.TB, memory machine.Memory) (list []entry) {
	t.Helper()
	top := make([]byte, 8)
	require.NoError(t, memory.ReadMemory(top, machine.Addr(c.symbols["logtop"])))
	for at := binary.LittleEndian.Uint64(top); at > c.symbols["log_"]; at -= entrySize {
		data := make([]byte, entrySize)
		require.NoError(t, memory.ReadMemory(data, machine.Addr(at)))
		list = append(list, entry{int(binary.LittleEndian.Uint64(data)), data[8:]})
	}
	return list
}
