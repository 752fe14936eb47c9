package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestHints requires that each suggested command works in the state in which it was printed.
func TestHints(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "it's `here` $HOME;\x01")
	require.NoError(t, os.Mkdir(dir, 0o755))
	in := func(name string) string { return filepath.Join(dir, name) }
	keep := func(from, name string) string { clitest.CopyFile(t, from, in(name)); return in(name) }

	exit := livetest.Lli(t, 19, "deoptimize.ll", "orc")
	exitIR, exitLayout := keep(exit.IR, "exit.ll"), keep(clitest.DeoptimizeLayout(t), "exit.json")
	exitFiles := []string{"--ir", exitIR, "--layout", exitLayout}
	call := livetest.Lli(t, 19, "jit_pp.ll", "mcjit")
	patch := livetest.Host(t, 19, "mcjit", "block")
	chain := livetest.Lli(t, 16, "chain.ll", "mcjit")
	field := livetest.Program(t, livetest.CBinary(t, filepath.Join("..", "deopt", "testdata", "gdbstack", "field.c")), "overflow")
	field.Quiet(t, 0)
	core := keep(livetest.Gcore(t, exit), "big.core")
	sysroot := clitest.SysrootOf(t, core)
	lli := livetest.LLVM(t, 19, "lli")
	object, tick := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Threads: 3})
	wrong, wrongIR := clitest.WrongTick(t)
	wrongHost := livetest.ObjectHostCommand(t, wrong, livetest.ObjectHostOptions{Rounds: 2})
	ticks := filepath.Join(t.TempDir(), "tick.core") // the core is of a thread that is not the first
	args := func(lists ...any) (all []string) {
		for _, l := range lists {
			switch l := l.(type) {
			case string:
				all = append(all, l)
			case []string:
				all = append(all, l...)
			}
		}
		return all
	}

	for _, c := range []struct {
		name  string
		args  []string
		code  int    // exit status of the command that prints the hint
		hint  string // pattern for the suggested command
		words string // text that surrounds the hint
		again int    // exit status of the suggested command
		shows string // pattern for its output
	}{
		{"process", args("frames", "-p", clitest.PID(exit), exitFiles), 0, `^reframe resume -p \d+ --ir .* --layout .* -f 2$`, "", 0, `sum returned i64 332833500 `},
		{"process, filtered", args("frames", "-p", clitest.PID(exit), exitFiles, "--function", "sum_opt", "-t", clitest.PID(exit)), 0, `-t \d+ -f 2$`, "", 0, `sum returned i64 332833500 `},
		{"process, held", args("frames", "-p", clitest.PID(exit), exitFiles, "--hold", "--stack-bytes", "65536"), 0, `--stack-bytes 65536 .*-f 2$`, "", 0, `sum returned i64 332833500 `},
		{"core", args("frames", "--core", core, exitFiles), 0, `^reframe resume --core .* --ir .* --layout .* -f 2$`, "", 0, `sum returned i64 332833500 `},
		{"core, its files elsewhere", args("frames", "--core", core, "--sysroot", sysroot, "--exe", lli, "--debug-dir", dir, exitFiles), 0,
			`^reframe resume --core .* --exe .* --sysroot .* --debug-dir .* --ir .* --layout .* -f 2$`, "", 0, `sum returned i64 332833500 `},
		{"no module", args("frames", "-p", clitest.PID(exit)), 0, "", `^\nfor names and types of values give the module that the JIT compiled, --ir FILE.ll\n$`, 0, ""},
		{"no layout", args("frames", "-p", clitest.PID(exit), "--ir", exitIR), 0, "", `^\nframe #2, sum_opt: a deoptimize never returns; --layout FILE.json says where the interpreter resumes\n$`, 0, ""},
		{"another module", args("frames", "-p", clitest.PID(exit), "--ir", tick), 0, "", `^\nfor names and types of the values of frame #2, sum_opt, give the module that it was compiled from, --ir FILE.ll\n$`, 0, ""},
		{"no module, a layout", args("frames", "-p", clitest.PID(exit), "--layout", exitLayout), 0, "", `^\nframe #2, sum_opt, resumes in @sum: give the module that defines it, --ir FILE.ll\n$`, 0, ""},
		{"a call that returns", args("frames", "-p", clitest.PID(chain), "--ir", chain.IR), 0, ` --result 0$`, `(?m)^frame #\d+, f, waits for a call: use --result for its result, of type i32$`, 0, `f returned i64 `},
		{"a patchpoint that returns", args("frames", "-p", clitest.PID(patch), "--ir", patch.IR), 1, ` --result 0$`, `waits for a call: use --result for its result, of type i64\n`, 0, `jf returned i64 8007 `},
		{"a value that is lost", args("frames", "-p", clitest.PID(call), "--ir", call.IR), 1, `^reframe explain .* -f 2$`, "", 1, `caller-saved`},
		{"a stack that was cut", args("frames", "-p", clitest.PID(field), "--stack-bytes", "524288"), 1, `^reframe frames -p \d+ --stack-bytes 524288 --hold$`, "", 0, `_start`},
		{"record", args("record", "-p", clitest.PID(exit), "-o", in("exit.core"), exitFiles), 0, `^reframe frames --core .* --ir .* --layout `, "", 0, `→ sum, block %loop`},
		{"record of a core", args("record", "--core", core, "--sysroot", sysroot, "--debug-dir", dir, "-o", in("small.core"), exitFiles), 0,
			`^reframe frames --core .* --sysroot .* --debug-dir .* --ir `, "", 0, `→ sum, block %loop`},
		{"record, a script", args("record", "-p", clitest.PID(exit), "-o", in("s.core"), exitFiles, "--script", in("s.txtar")), 0, `^reframe replay `, "", 0, `(?m)^ok `},
		{"record of a command", args("record", "--ir", tick, "--hit", "3", "-o", ticks, "--", host), 0, `^reframe frames --core `, "", 0, `tick\+0x`},
		{"another thread", args("frames", "--core", ticks, "--ir", tick), 0, ` -t \d+ -f 0$`, "", 0, `tick returned i64 `},
		{"verify", args("verify", "--ir", keep(wrongIR, "wrong.ll"), "--skip", "4", "--limit", "1", "--", wrongHost), 3, `^reframe verify .* --skip 4 --limit 1 -- `, "", 3, ``},
		{"no such flag", args("frames", "--nosuch"), 64, `^reframe frames --help$`, "", 0, `^frames stops the process`},
		{"no such verb", args("nosuch"), 64, `^reframe --help$`, "", 0, `^Reframe inspects`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := clitest.Run(t, c.args...)
			require.Equal(t, c.code, r.Code, "%s%s", r.Stdout, r.Stderr)
			require.Regexp(t, c.words, r.Stderr)
			proposed := clitest.Suggestions(r.Stdout + r.Stderr)
			if c.hint == "" {
				require.Empty(t, proposed)
				return
			}
			require.Len(t, proposed, 1, r.Stderr)
			require.Regexp(t, c.hint, proposed[0])
			again := clitest.RunInShell(t, proposed[0])
			require.Equal(t, c.again, again.Code, "%s\n%s%s", proposed[0], again.Stdout, again.Stderr)
			require.Regexp(t, c.shows, again.Stdout)
		})
	}
	for _, p := range []*livetest.Process{exit, call, chain} {
		clitest.RequireUnharmed(t, p)
	}
}

// TestQuoted requires that a quoted word passes unchanged through a shell, and is safe for the terminal that shows it.
func TestQuoted(t *testing.T) {
	t.Parallel()
	p := livetest.C(t, "nojit.c", nil)
	for _, name := range []string{"plain.ll", "a b", "it's", `"$HOME" \n`, "`id`", "~", "100%s\x07%d", "\xff\xfe", "naïve", "\x1b[31m", "a\nb", "end\n\n", "-x", "*", "#", "a;b&c|d"} {
		module := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(module, []byte("define void @f() {\n  ret void\n}\n"), 0o600))
		core := filepath.Join(t.TempDir(), "core")
		r := clitest.Run(t, "record", "-p", clitest.PID(p), "-o", core, "--ir", module)
		require.Equal(t, 0, r.Code, r.Stderr)
		_, line, found := strings.Cut(r.Stderr, "try: reframe ")
		require.True(t, found, r.Stderr)
		require.NotRegexp(t, `[\x00-\x09\x0b-\x1f\x7f-\x{9f}]`, line)
		out, err := exec.Command("sh", "-c", `printf '%s\0' `+line).Output()
		require.NoError(t, err, line)
		require.Equal(t, []string{"frames", "--core", core, "--ir", module, ""}, strings.Split(string(out), "\x00"))
	}
}

// TestTraceSaysWhatNames requires that trace prints once, and not for each exit, which flag would name the values.
func TestTraceSaysWhatNames(t *testing.T) {
	t.Parallel()
	object, module := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{})
	const hint = "for names and types of values give the module that the JIT compiled, --ir FILE.ll\n"
	r := clitest.Run(t, append([]string{"trace", "--limit", "20", "--"}, host...)...)
	require.Equal(t, 20, strings.Count(r.Stderr, "loc0="), r.Stderr)
	require.Equal(t, 1, strings.Count(r.Stderr, hint))
	require.True(t, strings.HasSuffix(r.Stderr, hint))
	for _, args := range [][]string{{"--ir", module}, {"--json"}, {"--count"}} {
		r := clitest.Run(t, append(append([]string{"trace", "--limit", "20"}, args...), append([]string{"--"}, host...)...)...)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.NotContains(t, r.Stderr, "--ir FILE.ll")
	}
}
