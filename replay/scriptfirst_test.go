package replay_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/replay"
	"example.com/reframe/test/livetest"
)

// TestFirstScript requires that a first script of a core passes unchanged.
func TestFirstScript(t *testing.T) {
	env := programs(t)
	dir := t.TempDir()
	for _, c := range []struct {
		name, launch, until, known string
		modules, layouts           []string
		want                       []string
	}{
		{name: "a moment", launch: "$HOST $TICK 1 1", until: "until 1 --hit 8", want: []string{"expect loc0 hex 0x7\n"}},
		{name: "tick", launch: "$HOST $TICK 1 1", until: "until 1 --hit 8", modules: []string{livetest.Testdata(t, "programs", "tick.ll")},
			want: []string{"core $SCRIPTDIR/tick.core --ir tick.ll\n", "expect %i = 7\n", fmt.Sprintf("resume\nreturns i64 %d\n", tick(0)), "\n-- tick.ll --\n; A hot loop"}},
		{name: "deoptimize", launch: "$LLI -jit-kind=mcjit $LLI_IR", until: "until --at __llvm_deoptimize",
			modules: []string{livetest.IR(t, 19, "deoptimize.ll")}, layouts: []string{livetest.Testdata(t, "programs", "deoptimize.layout.json")},
			want: []string{"expect resume sum loop\nexpect %i = 26\nexpect %acc = 5525\nexpect %n = 1000\n", "returns i64 332833500\n", "-- deoptimize.layout.json --\n"}},
		{name: "state", launch: "$HOST $STATE 1 4", until: "until 52 --hit 3", modules: []string{livetest.IR(t, 19, "state.ll")}},
		{name: "early", launch: "$HOST $TICK 1 1", until: "until --at main", want: []string{"# No expectations: "}},
	} {
		core := filepath.Join(dir, c.name+".core")
		_, r := script(t, &replay.Scripts{Env: append(env, "CORE="+core)}, "launch "+c.launch+"\n"+c.until+"\nrecord $CORE\n")
		require.Equal(t, replay.OK, r.Outcome, r.Message)
		path := filepath.Join(dir, c.name+".txtar")
		text, err := replay.FirstScript(context.Background(), replay.First{Script: path, Core: core, Modules: c.modules, Layouts: c.layouts})
		require.NoError(t, err)
		for _, want := range c.want {
			require.Contains(t, text, want)
		}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		r = within(t, &replay.Scripts{}, path)
		require.Equal(t, replay.OK, r.Outcome, "%s\n%s\n%s", r.Message, r.Log, text)
	}
}

// TestFirstScriptRefersToFiles requires that the script refers by path to a file that is large, that has a name with a meaning in scripts, or that
// would change when included in the script.
func TestFirstScriptRefersToFiles(t *testing.T) {
	env := programs(t)
	dir := filepath.Join(t.TempDir(), "it's $HOME #1")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "scripts"), 0o755))
	core := filepath.Join(dir, "a core")
	_, r := script(t, &replay.Scripts{Env: append(env, "CORE="+core)}, "launch $HOST $TICK 1 1\nuntil 1 --hit 3\nrecord $CORE\n")
	require.Equal(t, replay.OK, r.Outcome, r.Message)
	module, err := os.ReadFile(livetest.Testdata(t, "programs", "tick.ll"))
	require.NoError(t, err)
	small, large := string(module), string(module)+strings.Repeat("; much\n", 40000)
	for name, c := range map[string]struct{ text, want string }{
		"tick.ll":      {small, "core $SCRIPTDIR/'../a core' --ir tick.ll\n"},
		"large.ll":     {large, "core $SCRIPTDIR/'../a core' --ir $SCRIPTDIR/../large.ll\n"},
		"it's.ll":      {small, "core $SCRIPTDIR/'../a core' --ir $SCRIPTDIR/'../it''s.ll'\n"},
		"open.ll":      {strings.TrimSuffix(small, "\n"), "core $SCRIPTDIR/'../a core' --ir $SCRIPTDIR/../open.ll\n"},
		"archive.ll":   {"; txtar\n; \n" + small, "core $SCRIPTDIR/'../a core' --ir archive.ll\n"},
		"$variable.ll": {small, "core $SCRIPTDIR/'../a core' --ir $SCRIPTDIR/'../$variable.ll'\n"},
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o644))
		first := filepath.Join(dir, "scripts", "first.txtar")
		text, err := replay.FirstScript(context.Background(), replay.First{Script: first, Core: core, Modules: []string{path}})
		require.NoError(t, err)
		require.Contains(t, text, "\n"+c.want, name)
		require.Contains(t, text, "\nexpect %i = 2\n")
		require.NoError(t, os.WriteFile(first, []byte(text), 0o644))
		r = within(t, &replay.Scripts{}, first)
		require.Equal(t, replay.OK, r.Outcome, "%s\n%s", r.Message, text)
	}
	for _, bad := range []replay.First{
		{Script: "x.txtar", Core: filepath.Join(dir, "none")},
		{Script: "x.txtar", Core: core, Modules: []string{filepath.Join(dir, "none.ll")}},
		{Script: "x.txtar", Core: core, Layouts: []string{filepath.Join(dir, "tick.ll")}},
	} {
		_, err := replay.FirstScript(context.Background(), bad)
		require.Error(t, err)
	}
}
