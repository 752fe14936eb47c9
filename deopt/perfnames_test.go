package deopt_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/perfmap"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// seen captures a process and makes its frames.
func seen(t *testing.T, pid int) *deopt.View {
	t.Helper()
	target, err := ptrace.Capture(pid, ptrace.Options{})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	v, err := deopt.Frames(target, deopt.Options{Thread: pid})
	require.NoError(t, err)
	return v
}

// TestNamesOfJitdump covers a JIT that registers nothing and writes the names of its functions for perf. The host prints the address of the
// function.
func TestNamesOfJitdump(t *testing.T) {
	t.Parallel()
	for _, version := range []int{14, 19} {
		p := livetest.Host(t, version, "orcperf", "block")
		match := regexp.MustCompile(`jf @(0x[0-9a-f]+)`).FindStringSubmatch(p.Output())
		require.NotNil(t, match, p.Output())
		start, err := strconv.ParseUint(match[1], 0, 64)
		require.NoError(t, err)
		v := seen(t, p.PID)
		jit := 0
		for _, f := range v.Threads[0].Frames {
			if f.Function != "jf" {
				require.Empty(t, f.NamedBy)
				continue
			}
			jit++
			require.Equal(t, frame.JIT, f.Kind)
			require.Equal(t, "jitdump", f.NamedBy)
			require.Equal(t, uint64(f.Physical().PC)-start, *f.Offset)
		}
		require.Equal(t, 1, jit, "LLVM %d: %v", version, v.Notes())
		require.Empty(t, v.Notes())
	}
}

// TestJitdumpAgainstSymbols requires that the names in a jitdump are those of the symbols. lli registers its code and also writes a jitdump.
func TestJitdumpAgainstSymbols(t *testing.T) {
	t.Parallel()
	for _, version := range []int{14, 16, 19, 22} {
		v := seen(t, livetest.Lli(t, version, "chain.ll", "mcjit").PID)
		n := 0
		for _, f := range v.Threads[0].Frames {
			if f.Code() == nil || !f.Code().JIT {
				continue
			}
			n++
			within := f.Physical().PC
			if f.Physical().Return {
				within--
			}
			named, by, ok := v.Target().PerfName(within)
			require.True(t, ok, "LLVM %d: %s", version, f.Title())
			require.Equal(t, perfmap.Jitdump, by)
			require.Equal(t, f.Function, named.Name)
			require.Equal(t, *f.Offset, uint64(f.Physical().PC-named.Start))
			require.Empty(t, f.NamedBy, "a symbol names it")
		}
		require.Greater(t, n, 1, "LLVM %d", version)
	}
}

// perfProgram runs perfmap.c, and returns the address of its code.
func perfProgram(t *testing.T, how string) (p *livetest.Process, code uint64) {
	t.Helper()
	p = livetest.C(t, "perfmap.c", nil, how)
	t.Cleanup(func() {
		for _, ending := range []string{"", ".real"} {
			os.Remove(fmt.Sprintf("/tmp/perf-%d.map%s", p.PID, ending))
		}
		os.Remove(fmt.Sprintf("/tmp/jit-%d.dump", p.PID))
	})
	match := regexp.MustCompile(`code at (0x[0-9a-f]+)`).FindStringSubmatch(p.Output())
	require.NotNil(t, match, p.Output())
	code, err := strconv.ParseUint(match[1], 0, 64)
	require.NoError(t, err)
	return p, code
}

// TestNamesOfPerfMap requires that code in memory without a file is shown as JIT code with the name from the process's perf file, if that file is
// credible.
func TestNamesOfPerfMap(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for how, note := range map[string]string{
		"map": "", "memfd": "", "deleted": "", "none": "", "dump": "", "late": "",
		"other":   "it belongs to process ",
		"link":    "symbolic link",
		"fifo":    "not a regular file",
		"foreign": "it belongs to user 12345",
		"old":     "it is older than the process",
	} {
		p, code := perfProgram(t, how)
		v := seen(t, p.PID)
		var found *deopt.Frame
		for _, f := range v.Threads[0].Frames {
			if pc := uint64(f.Physical().PC); pc > code && pc < code+8 {
				found = f
			} else {
				require.Equal(t, frame.Native, f.Kind, "%s: %s", how, f.Function)
			}
		}
		require.NotNil(t, found, how)
		require.Equal(t, frame.JIT, found.Kind, how)
		if note != "" || how == "none" || how == "late" {
			require.Empty(t, found.Function)
			require.Nil(t, found.Offset)
			require.Empty(t, found.NamedBy)
		} else {
			require.Equal(t, "_ZN2ns8compiledEi", found.Function, how)
			require.Equal(t, uint64(6), *found.Offset)
			require.Equal(t, map[bool]string{true: "jitdump", false: "perf-map"}[how == "dump"], found.NamedBy)
		}
		if note == "" {
			require.Empty(t, v.Notes())
		} else {
			require.Len(t, v.Notes(), 1)
			require.Regexp(t, `^/tmp/(perf-\d+\.map|jit-\d+\.dump) is not used: .*`+note, v.Notes()[0])
		}
	}
}

// TestNamesInNamespaces requires the names of a process in a container, where the process has another number and another /tmp.
func TestNamesInNamespaces(t *testing.T) {
	t.Parallel()
	p, _ := perfProgram(t, "space")
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.PID, p.PID))
	require.NoError(t, err)
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, exec.Command("kill", "-KILL", fmt.Sprint(child)).Run()) })
	named := 0
	for deadline := time.Now().Add(livetest.Patience); named == 0; time.Sleep(time.Millisecond) { // wait until a frame is in that code
		require.True(t, time.Now().Before(deadline), "it never came to its code")
		for _, f := range seen(t, child).Threads[0].Frames {
			if f.NamedBy == "perf-map" {
				require.Equal(t, "_ZN2ns8compiledEi", f.Function)
				named++
			}
		}
	}
	_, err = os.Stat("/tmp/perf-1.map")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestNamesOfNode requires that V8's text file and its jitdump have the same name for each address. Each frame of V8's code must have the name in the
// last line of the file for its address.
func TestNamesOfNode(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	script := filepath.Join(t.TempDir(), "spin.js")
	require.NoError(t, os.WriteFile(script, []byte(`
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) % 7; return s; }
function outer() { return hot(1e6); }
for (let i = 0; i < 200; i++) outer();
process.stdout.write("ready\n");
for (;;) outer();
`), 0o644))
	p := livetest.Program(t, livetest.Tool(t, "node"), "--perf-basic-prof", "--perf-prof", script)
	text := fmt.Sprintf("/tmp/perf-%d.map", p.PID)
	t.Cleanup(func() { os.Remove(text) })
	named := 0
	for range 5 {
		v := seen(t, p.PID)
		lines, err := os.ReadFile(text)
		require.NoError(t, err)
		for _, f := range v.Threads[0].Frames {
			if f.NamedBy == "" {
				continue
			}
			named++
			require.Equal(t, frame.JIT, f.Kind)
			within := uint64(f.Physical().PC)
			if f.Physical().Return {
				within--
			}
			want := ""
			for line := range strings.Lines(string(lines)) {
				var start, size uint64
				if n, _ := fmt.Sscanf(line, "%x %x", &start, &size); n == 2 && start <= within && within < start+size {
					want = strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)[2]
				}
			}
			require.Equal(t, want, f.Function)
			require.Contains(t, f.Function, "spin.js")
		}
	}
	require.Positive(t, named)
}

// TestFilesOfNode compares the text file and the jitdump of one run of V8 that has ended: V8 completes its jitdump when it exits.
func TestFilesOfNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "run.js")
	require.NoError(t, os.WriteFile(script, []byte(`function f(n) { let s = 0; for (let i = 0; i < n; i++) s += i % 7; return s; } for (let i = 0; i < 1000; i++) f(1e4); console.log(process.pid)`), 0o644))
	c := exec.Command(livetest.Tool(t, "node"), "--perf-basic-prof", "--perf-prof", script)
	c.Dir = dir
	out, err := c.Output()
	require.NoError(t, err)
	pid := strings.TrimSpace(string(out))
	t.Cleanup(func() { os.Remove("/tmp/perf-" + pid + ".map") })
	read := func(path string, format perfmap.Format) *perfmap.Map {
		f, err := os.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { f.Close() })
		info, err := f.Stat()
		require.NoError(t, err)
		m := perfmap.New(format)
		require.NoError(t, m.Read(f, info.Size()))
		return m
	}
	lines, err := os.ReadFile("/tmp/perf-" + pid + ".map")
	require.NoError(t, err)
	text, dump := read("/tmp/perf-"+pid+".map", perfmap.Text), read(filepath.Join(dir, "jit-"+pid+".dump"), perfmap.Jitdump)
	h, ok := dump.Header()
	require.True(t, ok)
	require.Equal(t, pid, fmt.Sprint(h.PID))
	same := 0
	for line := range strings.Lines(string(lines)) {
		var start uint64
		_, err := fmt.Sscanf(line, "%x", &start)
		require.NoError(t, err, line)
		one, ok := text.At(machine.Addr(start))
		other, also := dump.At(machine.Addr(start))
		require.True(t, ok)
		if !also {
			require.NotContains(t, line, "JS:*", "it is told of machine code, and not of all bytecode")
			continue
		}
		require.Equal(t, one.Name, other.Name)
		require.Equal(t, one.Start, other.Start)
		require.Equal(t, one.Size, other.Size)
		same++
	}
	require.Greater(t, same, 100)
}
