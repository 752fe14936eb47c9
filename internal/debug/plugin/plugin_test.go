package plugin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/debug/plugin"
	"example.com/reframe/test/livetest"
)

// asClient is the environment variable that makes the test program a client of the stub. The plugin then starts it instead of reframe.
const asClient = "REFRAME_TEST_CLIENT"

func TestMain(m *testing.M) {
	if os.Getenv(asClient) != "" {
		os.Exit(client(os.Args[len(os.Args)-1]))
	}
	os.Exit(m.Run())
}

// client sends the packets in the environment variable asClient to the stub and prints the replies.
func client(address string) int {
	conn, err := net.Dial("unix", strings.TrimPrefix(address, "unix:"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var packets []string
	if err := json.Unmarshal([]byte(os.Getenv(asClient)), &packets); err != nil {
		fmt.Println(err)
		return 1
	}
	for _, packet := range packets {
		sum := byte(0)
		for _, b := range []byte(packet) {
			sum += b
		}
		if raw, ok := strings.CutPrefix(packet, "raw "); ok {
			fmt.Fprint(conn, raw)
		} else {
			fmt.Fprintf(conn, "$%s#%02x", packet, sum)
		}
		b := make([]byte, 1<<19)
		n := 0
		for n < 1 || (b[0] != '-' && (n < 4 || b[n-3] != '#')) { // read up to the checksum, or a negative acknowledgement
			more, err := conn.Read(b[n:])
			if err != nil {
				fmt.Println("closed")
				return 0
			}
			n += more
		}
		reply, _, _ := strings.Cut(strings.TrimPrefix(string(b[:n]), "+"), "#")
		fmt.Printf("reply %q\n", reply)
	}
	return 0
}

// inside returns the command that starts gdb with the plugin. args select the target. The plugin starts program instead of reframe.
func inside(t *testing.T, gdb, program string, args ...string) *exec.Cmd {
	t.Helper()
	file := filepath.Join(t.TempDir(), "reframe.py")
	require.NoError(t, os.WriteFile(file, []byte(plugin.GDB()), 0o644))
	all := []string{"-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off", "-iex", "set sysroot"}
	all = append(all, args...)
	for i, arg := range all {
		if arg == "PLUGIN" {
			all[i] = file
		}
	}
	cmd := exec.Command(livetest.Tool(t, gdb), all...)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	for i, arg := range cmd.Args {
		cmd.Args[i] = strings.ReplaceAll(arg, "PROGRAM", program)
	}
	return cmd
}

// gdbClient returns a program that the plugin starts instead of reframe. It prints the facts about the process that a second gdb reads from the stub.
func gdbClient(t *testing.T, gdb, facts string, more ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "client")
	text := fmt.Sprintf("#!/bin/sh\nfor last; do :; done\nexec %s -nx -batch -iex 'set auto-load off' -iex 'set debuginfod enabled off' -iex 'set sysroot' %s -ex \"target remote ${last#unix:}\" -x %s\n",
		livetest.Tool(t, gdb), strings.Join(more, " "), facts)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

func factsScript(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("testdata/facts.py")
	require.NoError(t, err)
	return path
}

// thread holds the facts that facts.py prints about a thread.
type thread struct {
	Registers map[string]string
	Calls     []string
	Memory    string
}

// facts returns the threads in each line of JSON in an output.
func facts(t *testing.T, output string) (list []map[string]thread) {
	t.Helper()
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, `{"`) {
			var threads map[string]thread
			require.NoError(t, json.Unmarshal([]byte(line), &threads), line)
			list = append(list, threads)
		}
	}
	return list
}

// requireSame requires that two gdbs show the same facts about a process: the one that provides the stub, and the one that reads from it. Registers that the stub's description
// lacks are ignored.
func requireSame(t *testing.T, output string, threads, registers int) {
	t.Helper()
	both := facts(t, output)
	require.Len(t, both, 2, output)
	require.Len(t, both[0], threads, output)
	require.Len(t, both[1], threads, output)
	for id, is := range both[0] {
		require.GreaterOrEqual(t, len(is.Registers), registers, output)
		require.Equal(t, is, both[1][id], "thread %s", id)
	}
}

// TestStubServesProcess requires that a second gdb, which reads a process from the stub, shows the same threads, registers, memory and backtraces as
// the gdb that traces the process.
func TestStubServesProcess(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "threads.c", nil, "3", "0", "2", "0")
	script := factsScript(t)
	cmd := inside(t, "gdb", gdbClient(t, "gdb", script), "-p", fmt.Sprint(p.PID), "-x", "PLUGIN", "-x", script,
		"-ex", "set reframe program PROGRAM", "-ex", "reframe frames")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	requireSame(t, string(out), 6, 60)
	left, err := os.ReadDir(strings.TrimPrefix(cmd.Env[len(cmd.Env)-1], "TMPDIR="))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestStubServesCore requires the same facts from the stub of a gdb that reads a core. That gdb knows only a part of the mappings.
func TestStubServesCore(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "threads.c", nil, "3", "0", "2", "0")
	core := filepath.Join(t.TempDir(), "core")
	livetest.GDB(t, p.PID, "generate-core-file "+core)
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
	require.NoError(t, err)
	script := factsScript(t)
	out, err := inside(t, "gdb", gdbClient(t, "gdb", script), "-x", "PLUGIN", "-ex", "file "+exe, "-ex", "core-file "+core, "-x", script,
		"-ex", "set reframe program PROGRAM", "-ex", "reframe frames").CombinedOutput()
	require.NoError(t, err, "%s", out)
	requireSame(t, string(out), 6, 60)
}

// TestStubServesRemote requires the same facts about a remote target, through two stubs.
func TestStubServesRemote(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "threads.c", nil, "1", "0", "1", "0")
	script := factsScript(t)
	file := filepath.Join(t.TempDir(), "reframe.py")
	require.NoError(t, os.WriteFile(file, []byte(plugin.GDB()), 0o644))
	second := gdbClient(t, "gdb", file, "-ex 'set height 0'")
	text, err := os.ReadFile(second)
	require.NoError(t, err)
	more := fmt.Sprintf(" -x %s -ex 'set reframe program %s' -ex 'reframe frames'\n", script, gdbClient(t, "gdb", script))
	require.NoError(t, os.WriteFile(second, append([]byte(strings.TrimSuffix(string(text), "\n")), more...), 0o755))
	out, err := inside(t, "gdb", second, "-p", fmt.Sprint(p.PID), "-x", "PLUGIN",
		"-ex", "set reframe program PROGRAM", "-ex", "reframe frames").CombinedOutput()
	require.NoError(t, err, "%s", out)
	requireSame(t, string(out), 3, 60)
}

// TestStubServesOtherProcessors requires the same facts about programs for other processors, in gdb-multiarch and through QEMU's stub.
func TestStubServesOtherProcessors(t *testing.T) {
	t.Parallel()
	script := factsScript(t)
	for _, c := range livetest.Crosses {
		t.Run(c.Arch, func(t *testing.T) {
			t.Parallel()
			program := c.Build(t, []string{"-static", "-O1", "-pthread"}, livetest.Testdata(t, "threads.c"))
			file := filepath.Join(t.TempDir(), "reframe.py")
			require.NoError(t, os.WriteFile(file, []byte(plugin.GDB()+"\n"+`
gdb.execute("source `+script+`")
gdb.execute("set reframe program `+gdbClient(t, "gdb-multiarch", script, program)+`")
gdb.execute("reframe frames")
`), 0o644))
			requireSame(t, string(c.GDB(t, file, nil, program)), 1, 30)
		})
	}
}

// TestInterrupt requires that Ctrl-C ends a program that hangs, even if the program ignores SIGINT, and that gdb continues.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "nojit.c", nil)
	started := filepath.Join(t.TempDir(), "started")
	program := filepath.Join(t.TempDir(), "hangs")
	require.NoError(t, os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\ntrap '' INT\necho $$ > %s\nwhile :; do sleep 1; done\n", started), 0o755))
	cmd := inside(t, "gdb", program, "-p", fmt.Sprint(p.PID), "-x", "PLUGIN", "-ex", "set reframe program PROGRAM",
		"-ex", "python\ntry:\n  gdb.execute('reframe frames')\nexcept KeyboardInterrupt:\n  print('interrupted')\nend", "-ex", "info threads")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	var child int
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(started)
		_, scanned := fmt.Sscan(string(text), &child)
		return err == nil && scanned == nil
	}, livetest.Patience, 10*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait(), "%s", &out)
	require.Contains(t, out.String(), "\n* 1 ")
	require.ErrorIs(t, syscall.Kill(child, 0), syscall.ESRCH)
}

// TestDescendantKeepsOutput requires that a command ends with its program, even if a process that the program started keeps its output open.
func TestDescendantKeepsOutput(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "nojit.c", nil)
	program := filepath.Join(t.TempDir(), "leaves")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nsleep 60 &\necho $! > $0.child\necho done\n"), 0o755))
	out, err := inside(t, "gdb", program, "-p", fmt.Sprint(p.PID), "-x", "PLUGIN", "-ex", "set reframe program PROGRAM", "-ex", "reframe frames",
		"-ex", "shell kill $(cat "+program+".child) && echo still open").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "\ndone\n")
	require.Contains(t, string(out), "\nstill open\n")
}

// TestFactsOfNextCore requires that facts about a core are not used for a core that is opened later, even if both have the same PID.
func TestFactsOfNextCore(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "nojit.c", nil)
	core := filepath.Join(t.TempDir(), "core")
	livetest.GDB(t, p.PID, "generate-core-file "+core)
	out, err := inside(t, "gdb", "none", "-ex", "core-file "+core, "-x", "PLUGIN", "-ex", "python print('first', Facts.before() is None)",
		"-ex", "core-file "+core, "-ex", "python print('next', Facts.before() is None)").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "\nfirst False\n")
	require.Contains(t, string(out), "\nnext True\n")
}

// TestNonStop requires that a command is refused while any thread runs.
func TestNonStop(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "threads.c", nil, "1", "0", "1", "0")
	out, err := inside(t, "gdb", "none", "-iex", "set non-stop on", "-p", fmt.Sprint(p.PID), "-x", "PLUGIN", "-ex", "reframe frames", "-ex", "echo end").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `Thread \d+ is running: interrupt all threads first\.`, string(out))
}

// TestStubInLLDB requires that a gdb that reads a process from the stub in lldb shows the same facts as a gdb that traces the process itself.
func TestStubInLLDB(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "threads.c", nil, "3", "0", "2", "0")
	script := factsScript(t)
	file := filepath.Join(t.TempDir(), "reframe_lldb.py")
	require.NoError(t, os.WriteFile(file, []byte(plugin.LLDB()), 0o644))
	cmd := exec.Command(livetest.Tool(t, "lldb-19"), "--no-lldbinit", "-b", "-p", fmt.Sprint(p.PID), "-o", "command script import "+file,
		"-o", "reframe program "+gdbClient(t, "gdb", script), "-o", "reframe frames")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	here := facts(t, string(out))
	require.Len(t, here, 1, "%s", out)
	there := facts(t, string(livetest.GDBScript(t, p, script)))
	require.Len(t, there, 1)
	require.Len(t, here[0], 6, "%s", out)
	for id, is := range here[0] {
		expected := there[0][id]
		require.GreaterOrEqual(t, len(is.Registers), 60)
		for name, value := range is.Registers {
			require.Equal(t, expected.Registers[name], value, "%s of thread %s", name, id)
		}
		require.Equal(t, expected.Calls, is.Calls)
		require.Equal(t, expected.Memory, is.Memory)
	}
}

// packets returns the stub's replies to packets.
func packets(t *testing.T, p *livetest.Process, list ...string) []string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := inside(t, "gdb", self, "-p", fmt.Sprint(p.PID), "-x", "PLUGIN", "-ex", "set reframe program PROGRAM", "-ex", "reframe frames")
	text, err := json.Marshal(list)
	require.NoError(t, err)
	cmd.Env = append(cmd.Env, asClient+"="+string(text))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	var replies []string
	for line := range strings.Lines(string(out)) {
		if quoted, ok := strings.CutPrefix(line, "reply "); ok {
			var reply string
			_, err := fmt.Sscanf(quoted, "%q", &reply)
			require.NoError(t, err, line)
			replies = append(replies, strings.TrimPrefix(reply, "$"))
		} else if strings.HasPrefix(line, "closed") {
			replies = append(replies, "closed")
		}
	}
	require.Len(t, replies, len(list), "%s", out)
	return replies
}

// TestStubIsReadOnly requires that the stub never changes the process, and returns memory up to the first unreadable byte.
func TestStubIsReadOnly(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "nojit.c", nil)
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.PID))
	require.NoError(t, err)
	var end uint64 // of the stack; the memory after it is not mapped
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "[stack]") {
			_, err := fmt.Sscanf(line[strings.IndexByte(line, '-')+1:], "%x", &end)
			require.NoError(t, err)
		}
	}
	require.NotZero(t, end)
	path := func(name string) string { return fmt.Sprintf("vFile:open:%x", name) }
	created := filepath.Join(t.TempDir(), "created")
	cases := []struct{ packet, reply string }{
		{"?", fmt.Sprintf("T05thread:%x;", p.PID)},
		{fmt.Sprintf("M%x,8:0000000000000001", end-64), ""},
		{fmt.Sprintf("X%x,1:a", end-64), ""},
		{"G00", ""}, {"P0=00", ""}, {"Z0,400000,1", ""}, {"c", ""}, {"s", ""}, {"k", ""}, {"vCont;c", ""}, {"vKill;1", ""},
		{"vFile:unlink:2f746d70", ""}, {"vFile:pwrite:3,0,a", ""},
		{path(created) + ",601,1b6", "F-1,1e"}, {path("/nonexistent") + ",0,0", "F-1,2"}, {path("/proc") + ",0,0", "F-1,15"},
		{path("/dev/null") + ",0,0", "F-1,d"}, {"vFile:setfs:0", "F0"}, {fmt.Sprintf("vFile:setfs:%x", p.PID), "F0"}, {"vFile:setfs:1", "F-1,1"},
		{"vFile:pread:3,10,0", "F-1,9"}, {"vFile:pread:x,10,0", "E01"},
		{"m0,8", "E01"}, {"x0,8", "E01"}, {"m", "E01"}, {"mffffffffffffffff,8", "E01"}, {"m0,ffffffffffffffffffff", "E01"},
		{"pffff", "E01"}, {"Hgffff", "E01"}, {"Tffff", "E01"}, {fmt.Sprintf("T%x", p.PID), "OK"},
		{"qXfer:features:write:target.xml:0,10", "E00"}, {"qXfer:nothing:read::0,10", "E00"}, {"qXfer", ""}, {"qXfer:features:read", "E01"},
		{"qSearch:memory:0", ""}, {"nonsense", ""}, {"raw $m0,8#00", "-"},
	}
	before := fmt.Sprintf("m%x,100", end-64)
	list := []string{before}
	for _, c := range cases {
		list = append(list, c.packet)
	}
	replies := packets(t, p, append(list, before)...)
	for i, c := range cases {
		require.Equal(t, c.reply, replies[i+1], c.packet)
	}
	require.Len(t, replies[0], 2*64)
	require.Equal(t, replies[0], replies[len(replies)-1])
	require.NoFileExists(t, created)
}
