package replay_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/reframe/replay"
	"example.com/reframe/test/livetest"
)

// TestScriptFailures requires that a failing script reports the position and the actual value.
func TestScriptFailures(t *testing.T) {
	livetest.Slow(t)
	env := programs(t)
	const tick = "launch --ir $TICK_IR -- $HOST $TICK 1 1\nuntil 1\n"
	for _, c := range []struct{ script, want string }{
		{"# a comment\n\nfrobnicate", `3: unknown command "frobnicate"`},
		{"untl 1", `1: unknown command "untl" (did you mean "until"?)`},
		{"expect 'x", "1: unterminated quoted argument"},
		{"exec false", "1: unexpected command failure"},
		{"[nonsense] exec true", `1: unknown condition "nonsense"`},
		{"! exec true", "1: unexpected command success"},
		{"exec echo a\n\nstdout b", "3: no match for `b` found in stdout"},
		{"exec echo a\ncmp stdout b.txt\n-- b.txt --\nb\n", "2: stdout and b.txt differ"},
		{"exec true\nstop 77\nexec false", "2: stop ends the script, which then passes; to run to a record, use until 77"},
		{"[linux] stop --at f", "1: stop ends the script, which then passes; to run to a record, use until --at f"},

		// These scripts have no checks.
		{"", " it has no commands"},
		{"# a comment\n\n\t# and another\r\n", " it has no commands"},
		{"-- a.txt --\nfoo\n", " it has no commands"},

		// These commands are used wrongly.
		{"until", "1: usage: until {RECORD [--function RE] | --at SYMBOL} [--stop-at COND] [--hit N]"},
		{"! until x", "1: until: x: expected the number of a record\nusage: until {RECORD [--function RE] | --at SYMBOL} [--stop-at COND] [--hit N]"},
		{"until 1 --stop-at '%i = 3'", `1: until: --stop-at: %i = 3: at "= 3": a comparison is written ==` + "\nusage: until {RECORD [--function RE] | --at SYMBOL} [--stop-at COND] [--hit N]"},
		{"launch --ir $TICK_IR -- $HOST $TICK 1 1\nuntil 1 --stop-at 'ii > 3'", `2: until: --stop-at: ii > 3: at "ii > 3": no selected site has a slot of that name; the names are %i, %x, %y, %acc` + "\nusage: until {RECORD [--function RE] | --at SYMBOL} [--stop-at COND] [--hit N]"},
		{"launch --ir $TICK_IR -- $HOST $TICK 1 1\nuntil 1 --stop-at '%i > 998' --hit 2", "2: record 1: the program exited with status 0 before hit 2: it was there 1000 times, and %i > 998 was true 1 times"},
		{"until 1 --hit 0", "1: until: --hit 0: must be above 0\nusage: until {RECORD [--function RE] | --at SYMBOL} [--stop-at COND] [--hit N]"},
		{"until 1 --hit -1", `1: until: invalid argument "-1" for "--hit" flag: strconv.ParseUint: parsing "-1": invalid syntax` + "\nusage: until {RECORD [--function RE] | --at SYMBOL} [--stop-at COND] [--hit N]"},
		{"prints", "1: usage: prints TEXT"},
		{"continue now", "1: usage: continue"},
		{"exits SIGFOO", "1: exits: SIGFOO: expected a status, or a signal such as SIGSEGV\nusage: exits STATUS | SIGNAL"},
		{"frames --stable --json", "1: frames: --stable and --json cannot be combined\nusage: frames [-t TID] [-f N] [--function NAME] [--stable | --json]"},
		{"record --memory some x", "1: record: --memory some: expected minimal, writable or all\nusage: record FILE [--memory minimal|writable|all] [--compress]"},

		// These commands are in the wrong order.
		{"until 1", "1: no program runs; use launch first"},
		{"continue", "1: no program runs; use launch first"},
		{"expect %i = 1", "1: no target: use core or launch first"},
		{"resume", "1: no target: use core or launch first"},
		{"returns 1", "1: nothing was resumed; use resume first"},
		{"prints x", "1: no program has ended; use continue or resume first"},
		{"exits 0", "1: no program has ended; use continue or resume first"},
		{"launch true\ncontinue\nuntil 1", "3: the program has ended"},
		{"launch true\ncontinue\nexpect %i = 1", "3: the program has ended"},
		{tick + "returns 1", "3: nothing was resumed; use resume first"},
		{tick + "resume\nexits 0", "4: it did not exit: the function returned"},

		// These files do not exist, or have the wrong content.
		{"launch no-such-program", `1: exec: "no-such-program": executable file not found in $PATH`},
		{"launch --ir no.ll true", "1: open $WORK/no.ll: no such file or directory"},
		{"launch --ir bad.ll true\n-- bad.ll --\ndefine i64 @f(", "1: $WORK/bad.ll:2:1: expected a type"},
		{"core no.core", "1: $WORK/no.core: no such file or directory: give the path of a core file"},
		{"! core no.core", "1: $WORK/no.core: no such file or directory: give the path of a core file"},
		{"core a.txt\n-- a.txt --\nhello\n", "1: $WORK/a.txt: not an ELF core: no ELF file"},

		// These expectations are not met.
		{"launch --ir $IR/jit_pp.ll -- $LLI -jit-kind=mcjit $IR/jit_pp.ll\nuntil --at pause\nrecord x\ncore x --ir $IR/jit_pp.ll\n! expect %v3 = 5",
			"5: %v3 is unavailable (rax is caller-saved and frame #1 does not preserve it), and cannot be compared with 5, in frame #2, work at record 2001"},
		{tick + "expect %i = 1", "3: %i is 0 (0x0), not 1, in frame #0, tick at record 1"},
		{tick + "! expect %i = 0", "3: unexpected success of expect %i = 0"},
		{tick + "expect %i type i32", "3: %i is of type i64, not i32, in frame #0, tick at record 1"},
		{tick + "expect %x hex 0x3038", "3: %x is 12345 (0x3039), not 0x3038, in frame #0, tick at record 1"},
		{tick + "expect %i undef", "3: %i is 0 (0x0), not undef, in frame #0, tick at record 1"},
		{tick + "expect %i unavailable", "3: %i is 0 (0x0), not unavailable, in frame #0, tick at record 1"},
		{tick + "expect record 2", "3: record 1, not 2, in frame #0, tick"},
		{tick + "expect site patchpoint", "3: site stackmap, not patchpoint, in frame #0, tick at record 1"},
		{tick + "expect function entry", "3: frame #0, tick is not in entry"},
		{tick + "expect resume tick done", "3: it resumes in tick loop, not tick done, in frame #0, tick at record 1"},
		{tick + "! expect %z = 1", "3: slot %z not found in frame #0, tick at record 1; the slots are %i %acc %x %y"},
		{tick + "! expect %i = one", `3: %i of frame #0, tick at record 1: "one" is not a value of type i64`},
		{tick + "! expect %i = 0x10000000000000000", `3: %i of frame #0, tick at record 1: "0x10000000000000000" is not a value of type i64`},
		{tick + "set %z 1", "3: slot %z not found in frame #0, tick at record 1; the slots are %i %acc %x %y"},
		{tick + "! set %z 1", "3: slot %z not found in frame #0, tick at record 1; the slots are %i %acc %x %y"},
		{tick + "! set %i x", `3: %i of frame #0, tick at record 1: "x" is not a value of type i64`},
		{tick + "frame 99", "3: there is no frame 99"},
		{tick + "frame nosuch", "3: no frame of nosuch found"},
		{tick + "frame entry\nexpect record 1", "4: frame #1, entry has no record"},
		{tick + "frame entry\nresume", "4: no frame to resume: frame #1, entry, of thread "},
		{tick + "frame -t 1 0", "3: thread 1 not found"},
		{tick + "resume --steps 10", "3: @tick, block %loop, line 25: br: not finished after 10 steps"},
		{tick + "resume\nset %i 5\nreturns -8174294060519224516", "5: nothing was resumed; use resume first"},
		{tick + "resume\nset %i 5\nprints ''", "5: no program has ended; use continue or resume first"},
		{tick + "resume\n! resume -f 99\nreturns -8174294060519224516", "5: nothing was resumed; use resume first"},
		{tick + "resume\nuntil 1\nreturns -8174294060519224516", "5: nothing was resumed; use resume first"},
		{tick + "resume\ncontinue\nreturns -8174294060519224516", "5: nothing was resumed; use resume first"},
		{tick + "resume\nreturns i32 1", "4: it returned i64 -8174294060519224516, not i32 1"},
		{tick + "resume\nreturns nothing", "4: it returned i64 -8174294060519224516, not nothing"},
		{tick + "resume\nprints x", `4: it printed "", not "x"`},
		{"launch sh -c 'echo a; exit 3'\ncontinue\nprints b", `3: it printed "a\n", not "b"`},
		{"launch sh -c 'exit 3'\ncontinue\nexits 0", "3: it exited with status 3, not 0"},
		{"launch sh -c 'kill -9 $$'\ncontinue\nexits 9", "3: it was killed by SIGKILL, not 9"},
		{"launch sh -c 'exit 3'\nuntil 1", "2: record 1: the program exited with status 3 before hit 1: it was there 0 times; "},
		{"launch --ir $TICK_IR -- $HOST $TICK 1 2\nuntil 1 --hit 2001", "2: record 1: the program exited with status 0 before hit 2001: it was there 2000 times"},
		{"launch sh -c 'kill -9 $$'\nuntil --at f", "2: calls of f: the program was killed by signal 9 before hit 1: it was there 0 times; "},
		{"verify --ir $TICK_IR --limit 5 -- $HOST $WRONG 1 1", "1: interpreter and native code differ at 5 of 5 exits"},
		{"verify --ir $TICK_IR true", "1: no exit occurred"},
		{"! verify --ir $TICK_IR true", "1: no exit occurred"},
		{"! verify --ir $TICK_IR no-such-program", `1: exec: "no-such-program": executable file not found in $PATH`},
		{"verify true", "1: verify: verify requires the compiled module, --ir FILE.ll, or --with\nusage: verify "},
	} {
		path, r := script(t, &replay.Scripts{Env: env}, c.script)
		require.Equal(t, replay.Failed, r.Outcome, c.script)
		require.True(t, strings.HasPrefix(r.Message, path+":"+c.want), "%s\ngot:  %s\nwant: %s:%s", c.script, r.Message, path, c.want)
		if !strings.HasSuffix(c.want, " ") {
			require.Equal(t, path+":"+c.want, r.Message)
		}
	}
}

// TestScriptFailuresOfOddPaths requires that the position is reported for any path of a script.
func TestScriptFailuresOfOddPaths(t *testing.T) {
	livetest.NeedsTools(t)
	dir := t.TempDir()
	for _, name := range []string{"a b", "(x)[1-2]*", "$HOME", "new\nline", "in\xffvalid", "FAIL: a:1: b"} {
		path := filepath.Join(dir, name+replay.ScriptSuffix)
		require.NoError(t, os.WriteFile(path, []byte("exec echo FAIL: x\nexec false\n"), 0o644))
		require.Equal(t, path+":2: unexpected command failure", within(t, &replay.Scripts{}, path).Message)
	}
}

// TestScriptFilesStayInside requires that a file name in an archive cannot lead out of the script's folder.
func TestScriptFilesStayInside(t *testing.T) {
	outside := filepath.Join(os.TempDir(), "reframe-outside")
	for _, name := range []string{"../x", "a/../../x", outside, "$HOME/x", "${WORK}x", "..", "/"} {
		path, r := script(t, &replay.Scripts{}, "exec true\n-- fine.txt --\n-- "+name+" --\nhello\n")
		require.Equal(t, replay.Failed, r.Outcome)
		require.Contains(t, r.Message, fmt.Sprintf("%s:3: the file %q: ", path, name))
		require.NoFileExists(t, outside)
	}
	path, r := script(t, &replay.Scripts{}, "exec true\n-- a --\n-- b/c --\n-- b//./c --\n")
	require.Equal(t, path+`:4: the file "b//./c": an earlier file has the same name`, r.Message)
	path, r = script(t, &replay.Scripts{}, "exists b/c a\n-- b/c --\n-- a --\n")
	require.Equal(t, replay.Result{Kind: replay.Script, Path: path, Outcome: replay.OK}, r)

	r = within(t, &replay.Scripts{}, filepath.Join(t.TempDir(), "no.txtar"))
	require.Contains(t, r.Message, "no.txtar: no such file or directory")
	dir := t.TempDir()
	r = within(t, &replay.Scripts{}, dir)
	require.Equal(t, dir+": a script must be a regular file of at most 64 MiB", r.Message)
}

func TestScriptSkips(t *testing.T) {
	_, r := script(t, &replay.Scripts{}, "skip 'it needs a GPU'\nexec false")
	require.Equal(t, replay.Skipped, r.Outcome)
	require.Equal(t, "it needs a GPU", r.Message)
	_, r = script(t, &replay.Scripts{}, "stop\nexec false")
	require.Equal(t, replay.OK, r.Outcome)
}

// TestScriptUpdate requires that an update rewrites only the files that cmp compares, and that the script then passes.
func TestScriptUpdate(t *testing.T) {
	livetest.NeedsTools(t)
	const text = "# A comment.\nexec echo new\ncmp stdout want.txt\n\n-- other.txt --\nold\n-- want.txt --\n"
	path, r := script(t, &replay.Scripts{}, text+"old\n")
	require.Equal(t, replay.Failed, r.Outcome)
	require.Equal(t, path+":3: stdout and want.txt differ", r.Message)
	require.Contains(t, r.Log, "-new\n+old\n")
	r = within(t, &replay.Scripts{Update: true}, path)
	require.Equal(t, replay.Result{Kind: replay.Script, Path: path, Outcome: replay.OK, Message: "updated"}, r)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text+"new\n", string(got))
	require.Equal(t, replay.Result{Kind: replay.Script, Path: path, Outcome: replay.OK}, within(t, &replay.Scripts{Update: true}, path))
	require.Equal(t, replay.Result{Kind: replay.Script, Path: path, Outcome: replay.OK}, within(t, &replay.Scripts{}, path))
}

// TestScriptUpdateThatDoesNotPass requires that a script which still fails after an update is reported as failed.
func TestScriptUpdateThatDoesNotPass(t *testing.T) {
	livetest.NeedsTools(t)
	for name, command := range map[string]string{
		"a line that looks like the head of a file": "exec echo '-- a.txt --'",
		"no newline at the end":                     "exec printf hello",
		"never the same":                            "exec date +%N",
	} {
		path, r := script(t, &replay.Scripts{Update: true}, command+"\ncmp stdout want.txt\n-- want.txt --\nold\n")
		require.Equal(t, replay.Failed, r.Outcome, name)
		require.Equal(t, path+":2: stdout and want.txt differ, after it was updated", r.Message, name)
	}
}

// TestScriptTimeout requires that endless scripts are ended at their timeout, with all processes that they started.
func TestScriptTimeout(t *testing.T) {
	livetest.Slow(t)
	env := programs(t)
	// The scripts run at the same time, with any number of processors.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for text, want := range map[string]string{
		"exec sleep 1000":                      ":1: ",
		"exec sh -c 'sleep 1000 & sleep 1000'": ":1: ",
		"exec sh -c 'trap \"\" INT QUIT TERM; while :; do sleep 1000; done'": ":1: ",
		"exec sleep 1000 &\nwait": ":2: ",
		"exec sh -c 'trap \"\" INT QUIT; touch ready; while :; do sleep 1000; done' &\nexec sh -c 'until test -e ready; do sleep 0.01; done'": ": it did not end in time",
		"exec true\nlaunch sleep 1000\ncontinue":                  ":3: continue: ",
		"launch sh -c 'while :; do sleep 1; done'\nuntil 1":       ":2: until: ",
		"launch sh -c 'sleep 1000 & sleep 1000'\n! until 1":       ":2: until: ",
		"launch setsid sh -c 'sleep 1000 & sleep 1000'\ncontinue": ":2: continue: ",
		"verify --ir $TICK_IR sleep 1000":                         ":1: verify: ",
	} {
		path := filepath.Join(t.TempDir(), "test.txtar")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		mark := "MARK=" + path
		all.Go(func() {
			r := (&replay.Scripts{Env: append(env[:len(env):len(env)], mark)}).Run(ctx, path)
			assert.Equal(t, replay.Failed, r.Outcome, text)
			assert.Contains(t, r.Message, path+want, text)
			assert.Empty(t, marked(t, mark), text)
		})
	}
	all.Wait()
}

// marked lists the processes whose initial environment has a variable.
func marked(t *testing.T, variable string) (list []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	assert.NoError(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path) // an error means that the process has ended
		if err == nil && strings.Contains("\x00"+string(text), "\x00"+variable+"\x00") {
			list = append(list, path)
		}
	}
	return list
}

// TestScriptLeavesNothing requires that processes which a script leaves running are killed, and that its folder is deleted.
func TestScriptLeavesNothing(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	mark := "MARK=" + tmp // the same test may run in another checkout at this moment
	env := append(programs(t), mark)
	for _, text := range []string{
		"exec sleep 1000 &",
		"exec sh -c 'sleep 1000 >/dev/null 2>&1 &'",
		"exec setsid sh -c 'sleep 1000 >/dev/null 2>&1 &'",
		"launch sleep 1000",
		"launch --ir $TICK_IR -- $HOST $TICK 1 1\nuntil 1\nrecord x.core\ncore x.core",
		"launch sh -c 'sleep 1000 & exit 0'\ncontinue\nexits 0",
		"launch sleep 1000\nlaunch sleep 1000\nlaunch true",
	} {
		_, r := script(t, &replay.Scripts{Env: env}, text)
		require.Equal(t, replay.OK, r.Outcome, r.Message)
		require.Empty(t, marked(t, mark), text)
		left, err := filepath.Glob(filepath.Join(os.TempDir(), "go-test-script*"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// TestScriptsAtOnce requires that scripts with the same name that run at the same time do not affect each other.
func TestScriptsAtOnce(t *testing.T) {
	livetest.Slow(t)
	env := append(programs(t), "SUM="+sum(t, "guards.ll", 40))
	s := &replay.Scripts{Env: env}
	var wait sync.WaitGroup
	for n := range 24 {
		wait.Go(func() {
			path := "testdata/guards.txtar"
			want := ""
			if n%3 == 0 {
				path = filepath.Join(t.TempDir(), "guards.txtar")
				text := fmt.Sprintf("launch --ir $TICK_IR -- $HOST $TICK 1 1\nuntil 1 --hit %d\nexpect %%i = -1\n", n+1)
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Error(err)
				}
				want = fmt.Sprintf("%s:3: %%i is %d (%#x), not -1, in frame #0, tick at record 1", path, n, n)
			}
			if r := s.Run(context.Background(), path); r.Message != want {
				t.Errorf("%s\n%s", r.Message, r.Log)
			}
		})
	}
	wait.Wait()
}
