package main_test

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestNothingIsOverwritten requires that a flag which names an output file overwrites an existing file, under any of its names, only with --force.
func TestNothingIsOverwritten(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 1})
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	read := func(name string) string {
		text, err := os.ReadFile(at(name))
		require.NoError(t, err)
		return string(text)
	}
	const mine = "# A script that a person edited.\n"
	require.NoError(t, os.WriteFile(at("mine"), []byte(mine), 0o600))
	require.NoError(t, os.Link(at("mine"), at("hard")))
	require.NoError(t, os.Symlink("mine", at("soft")))
	require.NoError(t, os.WriteFile(at("pass.txtar"), []byte("exec true\n"), 0o600))
	there := clitest.FilesIn(t, dir)
	launched := func(args ...string) []string { return append(append(args, "--"), host...) }
	ways := map[string][]string{
		"record -o":       launched("record", "-o", "FILE"),
		"record --script": launched("record", "-o", at("new.core"), "--script", "FILE"),
		"trace -o":        launched("trace", "-o", "FILE"),
		"verify -o":       launched("verify", "--ir", module, "-o", "FILE", "--limit", "1"),
		"instrument -o":   {"instrument", module, "-o", "FILE"},
		"replay --junit":  {"replay", at("pass.txtar"), "--junit", "FILE"},
	}
	for what, way := range ways {
		for _, name := range []string{"mine", "hard", "soft"} {
			args := strings.Split(strings.ReplaceAll(strings.Join(way, "\x00"), "FILE", at(name)), "\x00")
			_, flag, _ := strings.Cut(what, " ")
			clitest.Run(t, args...).FailsEmpty(t, 2, flag+" "+at(name)+": the file exists", "--force overwrites it")
			require.Equal(t, mine, read(name), what)
			require.Equal(t, there, clitest.FilesIn(t, dir), what)
		}
	}
	clitest.Run(t, "replay", at("pass.txtar"), "--journal", at("mine")).FailsEmpty(t, 2, "not a journal of reframe replay")
	require.Equal(t, mine, read("mine"))

	for what, way := range ways {
		verb := way[0]
		require.NoError(t, os.WriteFile(at("mine"), []byte(mine), 0o600))
		args := append([]string{verb, "--force"}, strings.Split(strings.ReplaceAll(strings.Join(way[1:], "\x00"), "FILE", at("mine")), "\x00")...)
		r := clitest.Run(t, args...)
		require.Zero(t, r.Code, "%s: %s", what, r.Stderr)
		require.NotEqual(t, mine, read("mine"), what)
	}

	// Without --force a report may replace a report, and any file may replace an empty one.
	require.NoError(t, os.WriteFile(at("empty"), nil, 0o600))
	for range 2 {
		r := clitest.Run(t, "replay", at("pass.txtar"), "--junit", at("empty"))
		require.Zero(t, r.Code, r.Stderr)
		require.Contains(t, read("empty"), "<testsuite")
	}
}

// TestInputsAreNotOverwritten requires that input files are not overwritten, with or without --force.
func TestInputsAreNotOverwritten(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for from, to := range map[string]string{object: "tick.o", module: "tick.ll"} {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(at(to), text, 0o600))
	}
	host := livetest.ObjectHostCommand(t, at("tick.o"), livetest.ObjectHostOptions{Rounds: 1})
	r := clitest.Run(t, append([]string{"record", "-o", at("og.core"), "--memory", "writable", "--"}, host...)...)
	require.Zero(t, r.Code, r.Stderr)
	require.NoError(t, os.Link(at("og.core"), at("hard.core")))
	require.NoError(t, os.Symlink("tick.ll", at("soft.ll")))
	require.NoError(t, os.WriteFile(at("pass.txtar"), []byte("exec true\n"), 0o600))
	before := map[string][]byte{}
	for _, name := range clitest.FilesIn(t, dir) {
		text, err := os.ReadFile(at(name))
		require.NoError(t, err)
		before[name] = text
	}
	for _, force := range [][]string{nil, {"--force"}} {
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"record", "--core", at("og.core"), "-o", at("og.core")}, "cannot overwrite the input of --core"},
			{[]string{"record", "--core", at("og.core"), "-o", at("hard.core")}, "cannot overwrite the input of --core"},
			{[]string{"record", "--core", at("og.core"), "-o", at("new.core"), "--script", dir + "/./og.core"}, "cannot overwrite the input of --core"},
			{[]string{"record", "--core", at("og.core"), "--ir", at("tick.ll"), "-o", at("soft.ll")}, "cannot overwrite the input of --ir"},
			{append([]string{"record", "-o", at("tick.o"), "--"}, host...), "cannot overwrite the input of the command"},
			{append([]string{"trace", "-o", at("tick.ll"), "--ir", at("soft.ll"), "--"}, host...), "cannot overwrite the input of --ir"},
			{append([]string{"verify", "-o", at("soft.ll"), "--ir", at("tick.ll"), "--"}, host...), "cannot overwrite the input of --ir"},
			{[]string{"trace", "-p", strconv.Itoa(os.Getpid()), "--object", at("tick.o") + "@0x1000", "-o", at("tick.o")}, "cannot overwrite the input of --object"},
			{[]string{"instrument", at("tick.ll"), "-o", at("soft.ll")}, "cannot overwrite the input of instrument"},
			{[]string{"replay", at("pass.txtar"), "--junit", at("pass.txtar")}, "cannot overwrite the input of replay"},
			{[]string{"replay", "--cores", dir, "--ir", at("tick.ll"), "--junit", at("soft.ll")}, "cannot overwrite the input of --ir"},
			{[]string{"replay", at("pass.txtar"), "--junit", at("new"), "--journal", at("new")}, "--journal and --junit: must be different files"},
		} {
			if c.args[0] == "replay" && strings.Contains(c.want, "by replay") && len(force) == 0 {
				continue // refused for another reason: the file is not a report or journal
			}
			args := append(append([]string{c.args[0]}, force...), c.args[1:]...)
			clitest.Run(t, args...).FailsEmpty(t, 64, c.want)
			for name, was := range before {
				is, err := os.ReadFile(at(name))
				require.NoError(t, err)
				require.True(t, bytes.Equal(was, is), "%v: %s", args, name)
			}
			require.Len(t, clitest.FilesIn(t, dir), len(before))
		}
	}
}

// TestStandardOutput requires that the file name - means standard output, for each flag that can write there.
func TestStandardOutput(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 1})
	dir := t.TempDir()
	run := func(args ...string) clitest.Result {
		c := clitest.Command(t, args...)
		c.Dir, c.Env = dir, append(os.Environ(), "TMPDIR="+dir)
		return clitest.Finish(t, c)
	}
	core := filepath.Join(t.TempDir(), "exit.core")
	r := clitest.Run(t, append([]string{"record", "-o", core, "--"}, host...)...)
	require.Zero(t, r.Code, r.Stderr)

	r = run(append([]string{"trace", "--ir", module, "--limit", "1", "-o", "-", "--"}, host...)...)
	require.Zero(t, r.Code, r.Stderr)
	require.Regexp(t, `(?m)`+clitest.TickExitLine.String(), r.Stdout) // the output of the command follows
	require.NotContains(t, r.Stderr, "%i=")
	r = run(append([]string{"verify", "--ir", module, "--limit", "1", "--all", "-o", "-", "--"}, host...)...)
	require.Zero(t, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^1  \d+ obj_host  tick\+0x[0-9a-f]+  record 1 stackmap  same`, r.Stdout)

	for _, more := range [][]string{nil, {"--json"}} {
		r = run(append([]string{"record", "--core", core, "-o", "-"}, more...)...)
		require.Zero(t, r.Code, r.Stderr)
		f, err := elf.NewFile(strings.NewReader(r.Stdout))
		require.NoError(t, err)
		require.Equal(t, elf.ET_CORE, f.Type)
		require.Contains(t, r.Stderr, map[bool]string{true: "on standard output  ", false: `"core": "-"`}[more == nil])
	}
	r = run("record", "--core", core, "-o", "small.core", "--script", "-")
	require.Zero(t, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^core \$SCRIPTDIR/small\.core`, r.Stdout)
	require.Contains(t, r.Stderr, "small.core  ")
	require.NoError(t, os.Remove(filepath.Join(dir, "small.core")))

	for text, args := range map[string][]string{
		"-o -: standard output belongs to the command":       append([]string{"record", "-o", "-", "--"}, host...),
		"--script -: standard output belongs to the command": append([]string{"record", "-o", "x.core", "--script", "-", "--"}, host...),
		"-o - cannot be combined with --script":              {"record", "--core", core, "-o", "-", "--script", "x.txtar"},
		"--junit -: must be the name of a file":              {"replay", ".", "--junit", "-"},
		"--journal -: must be the name of a file":            {"replay", ".", "--journal", "-"},
		"--keep -: expected a directory":                     append([]string{"verify", "--ir", module, "--keep", "-", "--"}, host...),
	} {
		run(args...).FailsEmpty(t, 64, text)
	}
	require.Empty(t, clitest.FilesIn(t, dir))

	master, slave := livetest.Terminal(t)
	defer master.Close()
	c := clitest.Command(t, "record", "--core", core, "-o", "-")
	var stderr strings.Builder
	c.Stdout, c.Stderr = slave, &stderr
	require.Error(t, c.Run())
	slave.Close()
	require.Equal(t, 64, c.ProcessState.ExitCode())
	require.Contains(t, stderr.String(), "cannot write a core to a terminal")
}

// TestVerifyKeepsEarlierCores requires that a core which verify keeps never replaces another one, even if a process with the same number had an exit
// with the same number. If there is no difference, older cores must stay.
func TestVerifyKeepsEarlierCores(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	p, begin := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{Rounds: 1})
	dir := t.TempDir()
	earlier := filepath.Join(dir, "verify-"+clitest.PID(p)+"-1.core")
	require.NoError(t, os.WriteFile(earlier, []byte("mine"), 0o600))
	c := clitest.Command(t, "verify", "-p", clitest.PID(p), "--ir", module, "--keep", dir, "--limit", "2")
	var stderr strings.Builder
	c.Stderr = &stderr
	require.NoError(t, c.Start())
	clitest.WaitTraced(t, p)
	begin()
	require.NoError(t, c.Wait(), stderr.String())
	text, err := os.ReadFile(earlier)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
	require.Equal(t, []string{filepath.Base(earlier)}, clitest.FilesIn(t, dir))
}
