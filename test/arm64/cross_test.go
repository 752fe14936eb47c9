package arm64_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// emulators are the programs that run the offline verbs for other machines. A 386 build runs natively, because QEMU's user mode does not run Go's
// threads on that processor. It is skipped if the kernel does not support 386 programs.
var emulators = map[string]string{"386": "", "arm": "qemu-arm", "arm64": "qemu-aarch64", "s390x": "qemu-s390x"}

// hosts returns the tested machines: one has 32-bit words, one has a processor that fuses a product with a sum and has its own NaNs, and one has the
// other byte order. make test uses one of them, chosen by its selection, because building for one takes longer than most tests.
func hosts(t *testing.T) []string {
	t.Helper()
	narrow := "386"
	if !livetest.Runs32Bit(t) {
		narrow = "arm"
	}
	return livetest.ShareOf([]string{narrow, "arm64", "s390x"}, "hosts")
}

// emulation limits the time of a run on another host.
const emulation = 5 * time.Minute

// onHost prepares a run of a program that was built for a host.
func onHost(t *testing.T, arch, program string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), emulation)
	t.Cleanup(cancel)
	if qemu := emulators[arch]; qemu != "" {
		return exec.CommandContext(ctx, livetest.Tool(t, qemu), append([]string{program}, args...)...)
	}
	return exec.CommandContext(ctx, program, args...)
}

// goFor runs the go command for a host. Without DWARF, which these tests do not read, linking takes half the time.
func goFor(t *testing.T, arch string, args ...string) {
	t.Helper()
	c := exec.Command("go", slices.Insert(slices.Clone(args), 1, "-ldflags=-w")...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s\n%s", c, out)
}

// builds holds one sync.Once for each other host. Linking takes two seconds, so each reframe is built once for all tests.
var builds = map[string]*sync.Once{"386": {}, "arm": {}, "arm64": {}, "s390x": {}}

// buildFor builds reframe for a host.
func buildFor(t *testing.T, arch string) string {
	t.Helper()
	path := clitest.Binary() + "-" + arch
	builds[arch].Do(func() { goFor(t, arch, "build", "-o", path, "example.com/reframe/cmd/reframe") })
	require.FileExists(t, path, "another test failed to build it")
	return path
}

// TestOtherHostsSayTheSame requires that each verb for files and cores prints the same bytes on every tested kind of host.
func TestOtherHostsSayTheSame(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	var commands [][]string
	add := func(args ...string) { commands = append(commands, args) }
	for _, version := range []int{14, 22} {
		for _, program := range []string{"jit_pp.ll", "jit_sp.ll"} {
			object := livetest.Object(t, version, program)
			add("maps", object)
			add("maps", "--json", "--ir", livetest.IR(t, version, program), object)
			add("maps", "--check", object)
		}
	}
	programs, err := filepath.Glob(filepath.Join(livetest.Testdata(t, "programs"), "*.ll"))
	require.NoError(t, err)
	for _, program := range programs {
		add("lint", program)
		add("instrument", "--at", "blocks,calls,sites", program)
		add("run", "--steps", "100000", program)
	}
	add("run", "--profile", livetest.CModule(t, 19, []string{"-O1"}, "testdata/hosts.c"))

	exit, names := clitest.CoreAtExit(t), clitest.ReplayNames(t)
	program := livetest.Lli(t, 19, "jit_sp.ll", "orc")
	for core, given := range map[string][]string{exit: names, livetest.Gcore(t, program): {"--ir", program.IR}} {
		add("maps", "--core", core)
		for _, verb := range []string{"frames", "explain", "resume"} {
			add(append([]string{verb, "--core", core}, given...)...)
			add(append([]string{verb, "--json", "--core", core}, given...)...)
		}
		add(append([]string{"replay", "--cores", core}, given...)...)
	}
	script := filepath.Join(t.TempDir(), "exit.txtar")
	r := clitest.Run(t, append([]string{"record", "--core", exit, "-o", script + ".core", "--script", script}, names...)...)
	require.Zero(t, r.Code, r.Stderr)
	add("replay", script)
	add("frames", "--core", program.IR)
	add("maps", filepath.Join(t.TempDir(), "none"))

	said := func(c *exec.Cmd, verb string) clitest.Result {
		r := clitest.Finish(t, c)
		if verb == "replay" {
			r.Stderr = "" // it contains the duration
		}
		return r
	}
	for _, arch := range hosts(t) {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			program := buildFor(t, arch)
			seen := map[string]bool{}
			for _, args := range commands {
				// Emulation is slow: each verb is run once, and a ninth of the further command lines.
				verb := args[0]
				if emulators[arch] != "" && seen[verb] && !livetest.Share(9, arch, verb, filepath.Base(args[len(args)-1])) {
					continue
				}
				seen[verb] = true
				native := said(exec.Command(clitest.Binary(), args...), verb)
				require.Equal(t, native, said(onHost(t, arch, program, args...), verb), "%q", args)
			}
		})
	}
}

// TestOtherHosts requires that record writes the same reduced core on each host, and that the error of a verb for live processes names the required
// systems and the flag --core.
func TestOtherHosts(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	core, names := clitest.CoreAtExit(t), clitest.ReplayNames(t)
	smaller := func(c func(args ...string) clitest.Result, dir string) string {
		out := filepath.Join(dir, "small.core")
		r := c(append([]string{"record", "--core", core, "-o", out}, names...)...)
		require.Zero(t, r.Code, r.Stderr)
		content, err := os.ReadFile(out)
		require.NoError(t, err)
		return string(content)
	}
	want := smaller(func(args ...string) clitest.Result { return clitest.Run(t, args...) }, t.TempDir())
	for _, arch := range hosts(t) {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			program := buildFor(t, arch)
			run := func(args ...string) clitest.Result { return clitest.Finish(t, onHost(t, arch, program, args...)) }
			require.True(t, want == smaller(run, t.TempDir()))

			live := [][]string{{"frames", "-p", "1"}, {"maps", "-p", "1"}, {"resume", "-p", "1"}, {"explain", "-p", "1"},
				{"record", "-p", "1", "-o", filepath.Join(t.TempDir(), "core")},
				{"trace", "-p", "1"}, {"trace", "--", "/bin/true"}, append(append([]string{"verify"}, names...), "--", "/bin/true"), append(append([]string{"stress"}, names...), "--", "/bin/true")}
			if arch == "arm64" {
				live = nil // these verbs work on arm64: see TestLiveOnARM64 and TestControlOnARM64
			}
			for _, args := range live {
				r := run(args...)
				require.Equal(t, 2, r.Code, "%q", args)
				require.Empty(t, r.Stdout)
				require.Contains(t, r.Stderr, "requires Linux on amd64 or arm64, and this reframe is built for linux/"+arch, "%q", args)
				require.Contains(t, r.Stderr, "with --core", "%q", args)
			}
			r := run("demo")
			require.Equal(t, 2, r.Code)
			require.Contains(t, r.Stderr, "demo: the target runs on Linux on amd64, and this reframe is built for linux/"+arch)
		})
	}
}

// TestOtherHostsCompute runs, on every host, tests that need no other process. It omits tests of the interpreter that require LLVM.
func TestOtherHostsCompute(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	packages := map[string]string{
		"deopt/frame": ".", "deopt/interp/internal/softfloat": ".", "deopt/interp": "NaN|OfBytes|Shift|Value|Poison|Resume",
		"internal/machine/object": "TestEveryWordLarge", "ptrace": "TestHostileCores", "ptrace/files": "TestSysroot", "ptrace/system": "TestParseMaps",
	}
	for _, arch := range hosts(t) {
		for _, dir := range slices.Sorted(maps.Keys(packages)) {
			if !livetest.Share(3, arch, dir) {
				continue // building these tests takes longer than running them
			}
			tests := packages[dir]
			t.Run(arch+"/"+dir, func(t *testing.T) {
				t.Parallel()
				program := filepath.Join(t.TempDir(), "test")
				goFor(t, arch, "test", "-c", "-o", program, "example.com/reframe/"+dir)
				c := onHost(t, arch, program, "-test.run", tests, "-test.short")
				c.Dir = filepath.Join("..", "..", dir)
				out, err := c.CombinedOutput()
				require.NoError(t, err, "%s", out)
				require.True(t, strings.HasSuffix(string(out), "PASS\n"), "%s", out)
				require.NotContains(t, string(out), "no tests to run")
			})
		}
	}
}
