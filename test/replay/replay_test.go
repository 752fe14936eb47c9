package replay_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// sameCores creates n links to one core in a new folder.
func sameCores(t *testing.T, core string, n int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		require.NoError(t, os.Symlink(core, filepath.Join(dir, fmt.Sprintf("core.%04d", i))))
	}
	return dir
}

// brokenCores writes broken cores and files that are not cores into a folder.
func brokenCores(t *testing.T, dir, core string) {
	t.Helper()
	whole, err := os.ReadFile(core)
	require.NoError(t, err)
	small := append([]byte("\x7fELF\x01\x01\x01"), make([]byte, 100)...)
	small[16] = 4 // ET_CORE
	for name, content := range map[string][]byte{
		"b-cut-header": whole[:30], "b-cut-notes": whole[:700], "b-32-bit": small, "empty": nil, "notes.md": []byte("# cores\n"), "zst": []byte("\x28\xb5\x2f\xfdnot really"),
		"program": append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 100)...),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
}

func TestReplayCores(t *testing.T) {
	t.Parallel()
	core := clitest.CoreAtExit(t)
	dir := sameCores(t, core, 3)
	brokenCores(t, dir, core)
	r := clitest.Run(t, append([]string{"replay", "--cores", dir}, clitest.ReplayNames(t)...)...)
	require.Equal(t, 1, r.Code, r.Stderr)
	r.Stdout = strings.ReplaceAll(r.Stdout, dir, "DIR")
	lines := strings.Split(r.Stdout, "\n")
	require.Len(t, lines, 10, r.Stdout)
	for n, want := range []string{
		`^failed   DIR/b-32-bit +at 0x4: a 32-bit core; only 64-bit ones can be read$`,
		`^failed   DIR/b-cut-header +not an ELF core: a broken ELF file: `,
		`^failed   DIR/b-cut-notes +`,
		`^ok       DIR/core.0000 +sum_opt\+0x[0-9a-f]+  record 2882400000, deoptimize → sum, block %loop  returns i64 332833500$`,
		`^ok       DIR/core.0001 +sum_opt`,
		`^ok       DIR/core.0002 +sum_opt`,
		`^$`,
		`^6 cores: 3 ok, 3 failed; 4 other files skipped$`,
		`^      3 at sum_opt, record 2882400000, deoptimize$`,
	} {
		require.Regexp(t, want, lines[n], r.Stdout)
	}
	require.Regexp(t, `^in [0-9.]+ s, [0-9]+/s; the slowest: `, r.Stderr)
	for _, jobs := range []string{"1", "7"} {
		again := clitest.Run(t, append([]string{"replay", "--cores", dir, "--jobs", jobs}, clitest.ReplayNames(t)...)...)
		require.Equal(t, r.Stdout, strings.ReplaceAll(again.Stdout, dir, "DIR"), "the order")
	}

	r = clitest.Run(t, "replay", "--cores", filepath.Join(dir, "notes.md"), filepath.Join(dir, "gone"))
	require.Equal(t, 2, r.Code)
	require.Regexp(t, `(?m)^failed   .*/gone +no such file or directory\nfailed   .*/notes.md +not an ELF core: no ELF file$`, r.Stdout)

	r = clitest.Run(t, "replay", core)
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Stdout, "exit.core  expected a script, got a core; --cores reads cores\n")

	// Without the module, frames at an exit have no names, and nothing is resumed.
	r = clitest.Run(t, "replay", "--cores", filepath.Join(dir, "core.0000"), "-v")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^ok       \S+  sum_opt\+0x[0-9a-f]+  record 2882400000, statepoint|deoptimize$`, r.Stdout)
	require.Regexp(t, `(?m)^    amd64, 1 thread, [0-9]+ frames$\n^    thread [0-9]+ #2  sum_opt`, r.Stdout)
}

// TestReplayCoresOfAnotherModule requires that a module which is not the compiled one gives no wrong names.
func TestReplayCoresOfAnotherModule(t *testing.T) {
	t.Parallel()
	r := clitest.Run(t, "replay", "--cores", clitest.CoreAtExit(t), "--ir", livetest.IR(t, 19, "jit_pp.ll"))
	require.Contains(t, []int{1, 2}, r.Code)
	require.NotContains(t, r.Stdout, "returns")
}

func TestReplayJSON(t *testing.T) {
	t.Parallel()
	core := clitest.CoreAtExit(t)
	dir := sameCores(t, core, 2)
	brokenCores(t, dir, core)
	script := filepath.Join(t.TempDir(), "s.txtar")
	require.NoError(t, os.WriteFile(script, []byte("stop # fails\n"), 0o644))
	for _, args := range [][]string{
		append([]string{"--cores", dir, "-v"}, clitest.ReplayNames(t)...),
		{"--cores", dir, "--each", script},
		{filepath.Dir(script)},
		{filepath.Dir(script), "-v", "--shard", "0/1"},
	} {
		r := clitest.Run(t, append([]string{"replay", "--json"}, args...)...)
		require.Contains(t, []int{0, 1, 2}, r.Code, r.Stderr)
		for line := range strings.Lines(r.Stdout) {
			clitest.RequireValid(t, "replay.schema.json", line)
		}
		require.Contains(t, r.Stdout, `{"schema":"reframe.replay.summary/v1",`)
		require.NotContains(t, r.Stderr, "slowest")
	}
	r := clitest.Run(t, append([]string{"replay", "--json", "--cores", core}, clitest.ReplayNames(t)...)...)
	require.Equal(t, 0, r.Code, r.Stdout)
	var got struct {
		Outcome string
		Found   struct {
			Arch    string
			Threads int
			Exits   []struct {
				Function, Site, Moment string
				Record                 uint64
				Slots, Unavailable     int
				Resume                 struct{ Function, Block string }
			}
			Resumed struct{ Result struct{ Type, Value string } }
		}
	}
	line, _, _ := strings.Cut(r.Stdout, "\n")
	require.NoError(t, json.Unmarshal([]byte(line), &got))
	require.Equal(t, "ok", got.Outcome)
	require.Equal(t, "amd64", got.Found.Arch)
	require.Equal(t, 1, got.Found.Threads)
	require.Len(t, got.Found.Exits, 1)
	x := got.Found.Exits[0]
	require.Equal(t, "sum_opt deoptimize in-call 2882400000 3 0 sum loop", fmt.Sprintf("%s %s %s %d %d %d %s %s", x.Function, x.Site, x.Moment, x.Record, x.Slots, x.Unavailable, x.Resume.Function, x.Resume.Block))
	require.Equal(t, "i64 332833500", got.Found.Resumed.Result.Type+" "+got.Found.Resumed.Result.Value)
}

// TestReplayEach requires that a script runs once for each core, and gets the core's path.
func TestReplayEach(t *testing.T) {
	t.Parallel()
	core := clitest.CoreAtExit(t)
	dir := sameCores(t, core, 3)
	brokenCores(t, dir, core)
	script := filepath.Join(t.TempDir(), "check.txtar")
	require.NoError(t, os.WriteFile(script, []byte(`exists $CORE
core $CORE --ir `+livetest.IR(t, 19, "deoptimize.ll")+` --layout `+clitest.DeoptimizeLayout(t)+`
expect record 2882400000
expect %n = 1000
resume
returns 332833500
`), 0o644))
	r := clitest.Run(t, "replay", "--cores", dir, "--each", script)
	require.Equal(t, 1, r.Code, r.Stderr)
	for _, want := range []string{`(?m)^failed   \S+/b-32-bit +\S*check.txtar:2: .*32-bit`, `(?m)^ok       \S+/core.0000$`, `(?m)^ok       \S+/core.0002$`, `(?m)^6 cores: 3 ok, 3 failed; 4 other files skipped$`} {
		require.Regexp(t, want, r.Stdout)
	}
}

// outcomes parses JSON lines. It returns the outcomes by path, without times, and the summary.
func outcomes(t *testing.T, stdout string) (items map[string]string, summary map[string]any) {
	t.Helper()
	items = map[string]string{}
	for line := range strings.Lines(stdout) {
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &v), line)
		if v["schema"] == "reframe.replay.summary/v1" {
			summary = v
			continue
		}
		delete(v, "ms")
		text, err := json.Marshal(v)
		require.NoError(t, err)
		path := v["path"].(string)
		require.NotContains(t, items, path)
		items[path] = string(text)
	}
	return items, summary
}

// TestReplayKilled requires that a run which was killed at any moment can be continued, and that the results are those of an uninterrupted run.
func TestReplayKilled(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	core := clitest.CoreAtExit(t)
	const cores = 150
	dir := sameCores(t, core, cores)
	brokenCores(t, dir, core)
	args := append([]string{"replay", "--json", "--cores", dir}, clitest.ReplayNames(t)...)
	whole, _ := outcomes(t, clitest.Run(t, args...).Stdout)
	require.Len(t, whole, cores+3)
	journal := filepath.Join(t.TempDir(), "journal")
	args = append(args, "--journal", journal)
	lines := func() int {
		text, _ := os.ReadFile(journal)
		return strings.Count(string(text), `"result":{"kind"`)
	}
	killed := 0
	for _, after := range []int{1, 40, 90} {
		c := exec.Command(clitest.Binary(), args...)
		require.NoError(t, c.Start())
		for deadline := time.Now().Add(livetest.Patience); lines() < after && time.Now().Before(deadline); {
			time.Sleep(200 * time.Microsecond) // kills the run at least once more, however slow the machine is
		}
		require.NoError(t, c.Process.Kill())
		_ = c.Wait()
		if !c.ProcessState.Exited() {
			killed++
		}
	}
	require.Positive(t, killed)
	had := lines()
	require.GreaterOrEqual(t, had, 90)
	r := clitest.Run(t, args...)
	require.Equal(t, 1, r.Code, r.Stderr)
	union, summary := outcomes(t, r.Stdout)
	require.Equal(t, whole, union)
	require.InDelta(t, had, summary["kept"], 1, "the last one may have been torn")
	_, summary = outcomes(t, clitest.Run(t, args...).Stdout)
	require.EqualValues(t, cores+3, summary["kept"])

	clitest.Run(t, append(args, "--steps", "5")...).FailsEmpty(t, 2, journal, `the journal belongs to a run with "--steps 100000000", but this run has "--steps 5"`)
}

// TestReplayInterrupted requires that an interrupted run reports the finished items.
func TestReplayInterrupted(t *testing.T) {
	livetest.NeedsTools(t) // for sleep(1)
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"a": "env X=1\n", "b": "exec sleep 60\n", "c": "env X=1\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".txtar"), []byte(text), 0o644))
	}
	report := filepath.Join(dir, "report.xml")
	c := clitest.Command(t, "replay", dir, "--jobs", "2", "--junit", report, "--journal", filepath.Join(dir, "journal"))
	out := &strings.Builder{}
	c.Stdout = out
	require.NoError(t, c.Start())
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "journal"))
		return strings.Count(string(text), `"result":{"kind"`) == 2
	}, livetest.Patience, 5*time.Millisecond)
	require.NoError(t, c.Process.Signal(syscall.SIGINT))
	_ = c.Wait()
	require.Equal(t, 130, c.ProcessState.ExitCode())
	require.Equal(t, "ok       a.txtar\nok       c.txtar\n\n3 scripts: 2 ok, 1 not run\n", strings.ReplaceAll(out.String(), dir+"/", ""))
	text, err := os.ReadFile(report)
	require.NoError(t, err)
	require.Contains(t, string(text), `tests="3" failures="1"`)
	require.Contains(t, string(text), `<failure type="failed" message="1 of 3 were not run">`)
}

// TestReplayScripts requires that a failing script reports the position, that a script which hangs is abandoned, and that the other scripts run.
func TestReplayScripts(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.txtar": "env X=1\n", "sub/b.txtar": "env X=1\n# a comment\nexists nothing\n", "c.txtar": "skip 'not here'\n", "d.txtar": "exec sleep 60\n", "sub/e.txtar": "! exists nothing\n",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	r := clitest.Run(t, "replay", dir+"/...", "--timeout", "10s", "--junit", filepath.Join(dir, "report.xml"))
	require.Equal(t, 1, r.Code, r.Stderr)
	text := strings.ReplaceAll(r.Stdout, dir+"/", "")
	for _, want := range []string{`^ok       a.txtar\n`, `\nskipped  c.txtar +not here\n`, `\nfailed   d.txtar +d.txtar:1: .*stopped after 10s`, `\nfailed   sub/b.txtar +sub/b.txtar:3: `, `\nok       sub/e.txtar\n`, `\n5 scripts: 2 ok, 2 failed, 1 skipped\n$`} {
		require.Regexp(t, want, text)
	}
	r = clitest.Run(t, "replay", dir+"/...", "--run", "a.txtar$|e.txtar$")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Equal(t, "ok       a.txtar\nok       sub/e.txtar\n\n2 scripts: 2 ok\n", strings.ReplaceAll(r.Stdout, dir+"/", ""))
	r = clitest.Run(t, "replay", filepath.Join(dir, "sub", "b.txtar"))
	require.Equal(t, 2, r.Code, "all that there was failed")
}

// TestReplayShards requires that the shards together are the whole list, for any number of shards, and that an empty shard succeeds.
func TestReplayShards(t *testing.T) {
	t.Parallel()
	core := clitest.CoreAtExit(t)
	dir := sameCores(t, core, 20)
	args := append([]string{"replay", "--json", "--cores", dir}, clitest.ReplayNames(t)...)
	whole, _ := outcomes(t, clitest.Run(t, args...).Stdout)
	require.Len(t, whole, 20)
	union := map[string]string{}
	for i := range 5 {
		r := clitest.Run(t, append(args, "--shard", fmt.Sprintf("%d/5", i))...)
		require.Equal(t, 0, r.Code, r.Stderr)
		part, _ := outcomes(t, r.Stdout)
		for path, text := range part {
			require.NotContains(t, union, path)
			union[path] = text
		}
	}
	require.Equal(t, whole, union)
	r := clitest.Run(t, "replay", "--cores", core, "--shard", "0/1000")
	s := clitest.Run(t, "replay", "--cores", core, "--shard", "1/1000")
	require.Equal(t, []int{0, 0}, []int{r.Code, s.Code})
}

func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := filepath.Join(dir, "other.txt")
	require.NoError(t, os.WriteFile(other, []byte("not a script\n"), 0o644))
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{nil, 64, "a script or a folder is missing"},
		{[]string{dir, "--ir", "x.ll"}, 64, "--ir requires --cores"},
		{[]string{dir, "--each", "x"}, 64, "--each requires --cores"},
		{[]string{dir, "--cores", "--each", "x", "--steps", "3"}, 64, "--steps cannot be combined with --each: use the script's core command"},
		{[]string{dir, "--cores", "-u"}, 64, "--update cannot be combined with --cores"},
		{[]string{dir, "-u", "--journal", "x"}, 64, "--update cannot be combined with --journal"},
		{[]string{dir, "--timeout", "0s"}, 64, "--timeout 0s: must be above 0"},
		{[]string{dir, "-j", "0"}, 64, "--jobs 0: must be from 1 to 4096"},
		{[]string{dir, "-j", "-1"}, 64, "--jobs -1: must be from 1 to 4096"},
		{[]string{dir, "-j", "x"}, 64, `--jobs "x": expected a whole number`},
		{[]string{dir, "--run", "("}, 64, "--run: error parsing regexp"},
		{[]string{dir, "--shard", "2/2"}, 64, "--shard 2/2: expected I/N, with I from 0 to N-1"},
		{[]string{dir, "--shard", "1"}, 64, "--shard 1: expected I/N"},
		{[]string{dir, "--shard", "-1/2"}, 64, "--shard -1/2: expected I/N"},
		{[]string{dir, "--shard", "0/0"}, 64, "--shard 0/0: expected I/N"},
		{[]string{dir}, 2, "no script (.txtar) found in " + dir},
		{[]string{"--cores", t.TempDir()}, 2, "no file found in "},
		{[]string{"--cores", dir}, 2, "no core found in " + dir},
		{[]string{"--cores", dir, "--run", "nothing"}, 2, "--run nothing: no path matches"},
		{[]string{"--cores", dir, "--ir", filepath.Join(dir, "gone.ll")}, 2, "gone.ll"},
		{[]string{"--cores", dir, "--each", filepath.Join(dir, "gone.txtar")}, 2, "gone.txtar: no such file"},
		{[]string{dir, "--cores", "--journal", other}, 2, "other.txt: line 1: not a journal of reframe replay; the file was not changed"},
		{[]string{dir, "--cores", "--junit", filepath.Join(dir, "no", "x.xml")}, 2, "no such file or directory"},
	} {
		r := clitest.Run(t, append([]string{"replay"}, c.args...)...)
		require.Equal(t, c.code, r.Code, "%v\n%s%s", c.args, r.Stdout, r.Stderr)
		require.Contains(t, r.Stderr, "reframe: ", "%v", c.args)
		require.Contains(t, r.Stderr, c.text, "%v", c.args)
	}
}

// TestReplayProgress requires that a terminal shows a progress bar during the run, and that the bar is removed afterwards.
func TestReplayProgress(t *testing.T) {
	t.Parallel()
	dir := sameCores(t, clitest.CoreAtExit(t), 60)
	master, slave := livetest.Terminal(t)
	c := clitest.Command(t, "replay", "--cores", dir, "--jobs", "1")
	c.Stderr = slave
	stdout, err := c.Output()
	require.NoError(t, err)
	require.Equal(t, 60, strings.Count(string(stdout), "ok  "))
	buffer := make([]byte, 64<<10)
	n, err := master.Read(buffer)
	require.NoError(t, err)
	require.Regexp(t, `^\r\x1b\[K[0-9]+/60  [0-9]+/s`, string(buffer[:n]))
}

// TestReplayWithoutRoom requires that a run whose journal's disk is full reports it and ends, and that the written results are kept.
func TestReplayWithoutRoom(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	cores, dir := sameCores(t, clitest.CoreAtExit(t), 400), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "full"), 0o755))
	const mount = `mount -t tmpfs -o size=64k none full && "$@" --journal full/journal; status=$?; cp full/journal kept; exit $status`
	args := append([]string{"replay", "--json", "--cores", cores}, clitest.ReplayNames(t)...)
	c := clitest.Command(t)
	c.Args = slices.Concat(livetest.OwnMounts(t), []string{"sh", "-c", mount, "sh", clitest.Binary()}, args)
	c.Path, c.Dir = c.Args[0], dir
	r := clitest.Finish(t, c)
	require.Equal(t, 2, r.Code, r.Stderr)
	require.Equal(t, "reframe: cannot write the journal: write full/journal: no space left on device\n", r.Stderr)
	part, summary := outcomes(t, r.Stdout)
	require.Positive(t, summary["not_run"])
	whole, summary := outcomes(t, clitest.Run(t, append(args, "--journal", filepath.Join(dir, "kept"))...).Stdout)
	require.Len(t, whole, 400)
	require.InDelta(t, len(part), summary["kept"], 4, "what was done when there was no room is told, and not kept")
	for path, text := range part {
		require.Equal(t, whole[path], text)
	}
}
