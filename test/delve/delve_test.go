package delve

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m)) }

// screen holds the output of a command, without the name of its target and without the line that describes it.
type screen struct {
	code           int
	stdout, stderr string
}

func screenOf(r clitest.Result, target string) screen {
	first, rest, _ := strings.Cut(r.Stdout, "\n")
	if !strings.Contains(first, target) { // maps --json and errors do not name the target
		rest = r.Stdout
	}
	named := strings.NewReplacer(" at "+target, "", "-p "+target, "TARGET", "--delve "+target, "TARGET", "--core "+target, "TARGET",
		"core "+target, "process "+strings.TrimPrefix(filepath.Base(target), "core."))
	if i := strings.Index(r.Stderr, " was stopped for "); i >= 0 { // only -p stops the process
		_, r.Stderr, _ = strings.Cut(r.Stderr, "\n")
	}
	return screen{r.Code, named.Replace(rest), named.Replace(r.Stderr)}
}

// verbs lists the command lines that are compared.
func verbs(ir string) [][]string {
	if ir == "" {
		return [][]string{{"frames"}, {"frames", "--json"}, {"explain"}, {"maps"}}
	}
	return [][]string{{"frames", "--ir", ir}, {"frames", "--json", "--ir", ir}, {"explain", "--ir", ir}, {"resume", "--ir", ir, "--result", "7"}, {"maps"}}
}

// requireSame requires that each verb prints the same for a stopped process before and after dlv attaches to it.
func requireSame(t *testing.T, p *livetest.Process) {
	t.Helper()
	want := map[string]any{}
	show := func(args, target []string) any {
		r := clitest.Run(t, append(args, target...)...)
		if slices.Contains(args, "--json") {
			clitest.RequireValid(t, "frames.schema.json", r.Stdout)
			report := r.Object(t)
			delete(report, "target")
			return report
		}
		return screenOf(r, target[1])
	}
	for _, args := range verbs(p.IR) {
		want[strings.Join(args, " ")] = show(args, []string{"-p", clitest.PID(p)})
	}
	dlv := livetest.Headless(t, "attach", clitest.PID(p), "--accept-multiclient")
	for _, args := range verbs(p.IR) {
		require.Equal(t, want[strings.Join(args, " ")], show(args, []string{"--delve", dlv.Addr}), "%v", args)
	}
	core := filepath.Join(t.TempDir(), "core."+clitest.PID(p))
	r := clitest.Run(t, "record", "--delve", dlv.Addr, "-o", core)
	require.Zero(t, r.Code, r.Stderr)
	for _, args := range verbs(p.IR)[:2] {
		require.Equal(t, want[strings.Join(args, " ")], show(args, []string{"--core", core}), "%v", args)
	}
	require.Equal(t, "t", clitest.ThreadStatus(p.PID, p.PID, "State")[:1])
}

func TestHostsInC(t *testing.T) {
	livetest.Slow(t)
	for _, mode := range []string{"mcjit", "orc"} {
		t.Run(mode, func(t *testing.T) { requireSame(t, livetest.Host(t, 19, mode, "block")) })
	}
	t.Run("threads", func(t *testing.T) { requireSame(t, livetest.C(t, "threads.c", nil)) })
}

func TestHostInGo(t *testing.T) {
	livetest.Slow(t)
	exe := livetest.CgoBinary(t, filepath.Join("..", "gohost", "testdata", "host"), "-gcflags=-l")
	for _, way := range []string{"plain", "signal"} {
		t.Run(way, func(t *testing.T) {
			p := livetest.Program(t, exe, way)
			p.Quiet(t, 0)
			requireSame(t, p)
		})
	}
}

// TestRefusals requires one-line errors that name an alternative, for targets and flags that are not supported with Delve.
func TestRefusals(t *testing.T) {
	exe := livetest.CBinary(t, "nojit.c")
	clitest.Run(t, "frames", "--delve", "unix:/no/such").Fails(t, 2, "unix:/no/such: cannot connect: no such file or directory: start the server: dlv attach PID --headless --accept-multiclient --listen ADDR")
	clitest.Run(t, "frames", "--delve", "1234").Fails(t, 2, "1234: not an address: expected HOST:PORT or unix:PATH")
	for verb, want := range map[string]string{
		"trace": "trace controls the process, which --delve does not", "verify": "verify controls the process, which --delve does not",
		"record": "--delve: cannot wait for an exit while a debugger holds the process",
	} {
		args := []string{verb, "--delve", "unix:/no/such"}
		if verb == "record" {
			args = append(args, "-o", "x", "--record", "1")
		}
		clitest.Run(t, args...).Fails(t, 64, want)
	}
	clitest.Run(t, "frames", "--delve", "x", "--hold").Fails(t, 64, "--hold requires a process that runs: -p PID")
	clitest.Run(t, "resume", "--delve", "x", "--commit").Fails(t, 64, "--commit requires a process that runs: -p PID")
	clitest.Run(t, "frames", "--delve", "").Fails(t, 64, "--delve requires an address: HOST:PORT or unix:PATH")
	clitest.Run(t, "frames", "--delve", "x", "-p", "1").Fails(t, 64, "-p and --delve cannot be combined")

	p := livetest.C(t, "nojit.c", nil)
	dlv := livetest.Headless(t, "attach", clitest.PID(p), "--accept-multiclient", "--continue")
	var r clitest.Result
	require.Eventually(t, func() bool { // dlv listens before it continues the process
		r = clitest.Run(t, "frames", "--delve", dlv.Addr, "--timeout", "3s")
		return r.Code != 0 && !strings.Contains(r.Stderr, "no reply")
	}, livetest.Patience, time.Millisecond)
	r.Fails(t, 2, dlv.Addr+": the process runs, and is not stopped by this command: halt it in dlv first, with Ctrl-C or the command halt")

	core := livetest.Gcore(t, livetest.C(t, "nojit.c", nil))
	dlv = livetest.Headless(t, "core", exe, core, "--accept-multiclient")
	clitest.Run(t, "frames", "--delve", dlv.Addr).Fails(t, 2, dlv.Addr+": dlv holds a core, and takes memory that a core omits from the wrong files: read the core itself: --core FILE")
}

// TestStartedByDLV requires that a process that dlv has started can be read over TCP.
func TestStartedByDLV(t *testing.T) {
	exe := livetest.CgoBinary(t, filepath.Join("..", "gohost", "testdata", "host"), "-gcflags=-l")
	dlv := livetest.HeadlessAt(t, "127.0.0.1:0", "exec", exe)
	r := clitest.Run(t, "frames", "--delve", dlv.Addr)
	require.Contains(t, []int{0, 1}, r.Code, r.Stderr)
	require.Contains(t, r.Stdout, "this dlv was started without --accept-multiclient: after this command it ends, and kills the process, which it started\n")
	require.Contains(t, r.Stdout, "  #0   native  ")
}

// TestThroughLLDBServer requires that a process that Delve holds through lldb-server can be read. Its memory is available only through requests to
// Delve.
func TestThroughLLDBServer(t *testing.T) {
	p := livetest.Host(t, 19, "mcjit", "block")
	report := func(target ...string) map[string]any {
		o := clitest.Run(t, append([]string{"frames", "--json", "--ir", p.IR}, target...)...).Object(t)
		delete(o, "target")
		for _, thread := range clitest.Objects(t, o["threads"]) {
			delete(thread, "name")
			for _, f := range clitest.Objects(t, thread["frames"]) {
				f["module"] = filepath.Base(fmt.Sprint(f["module"])) // lldb-server has another path of the dynamic linker
			}
		}
		return o
	}
	want := report("-p", clitest.PID(p))
	bin := t.TempDir()
	require.NoError(t, os.Symlink(livetest.LLVM(t, 19, "lldb-server"), filepath.Join(bin, "lldb-server")))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	dlv := livetest.Headless(t, "--backend=lldb", "attach", clitest.PID(p), "--accept-multiclient")
	require.Equal(t, want, report("--delve", dlv.Addr))
}
