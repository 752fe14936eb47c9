package replay_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/replay"
)

// found returns the paths that patterns match, and their errors.
func found(t *testing.T, kind replay.Kind, patterns ...string) (all []string) {
	t.Helper()
	r := &replay.Run{Workers: 1, Items: replay.Find(kind, patterns), Job: func(_ context.Context, i replay.Item) replay.Result { return ok(i) }}
	results, _, err := collected(t, context.Background(), r)
	require.NoError(t, err)
	for _, r := range results {
		path := filepath.ToSlash(r.Path)
		if r.Message != "" {
			path += ": " + r.Message
		}
		all = append(all, path)
	}
	return all
}

func TestFind(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"b.txtar", "a.txtar", "notes.md", ".hidden.txtar", "sub/c.txtar", "sub/testdata/d.txtar", ".git/e.txtar", "sub2/f.txtar", "named.script", "sub.txtar/g.txtar"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o644))
	}
	require.NoError(t, os.Symlink("..", "sub/up"))              // a loop
	require.NoError(t, os.Symlink("../a.txtar", "sub/l.txtar")) // a link to a script
	require.NoError(t, os.Symlink("gone", "sub/dangling.txtar"))
	require.NoError(t, os.Symlink("sub2", "dir")) // a link to a folder
	require.NoError(t, syscall.Mkfifo("sub/pipe.txtar", 0o644))
	absolute, err := filepath.Abs("sub2")
	require.NoError(t, err)
	for _, c := range []struct {
		patterns []string
		want     []string
	}{
		{[]string{"."}, []string{"a.txtar", "b.txtar"}},
		{[]string{"b.txtar", "a.txtar", "./b.txtar"}, []string{"a.txtar", "b.txtar"}},
		{[]string{"named.script"}, []string{"named.script"}},
		{[]string{"sub"}, []string{"sub/c.txtar", "sub/l.txtar"}},
		{[]string{"./sub/..."}, []string{"sub/c.txtar", "sub/l.txtar", "sub/testdata/d.txtar"}},
		{[]string{"..."}, []string{"a.txtar", "b.txtar", "sub.txtar/g.txtar", "sub/c.txtar", "sub/l.txtar", "sub/testdata/d.txtar", "sub2/f.txtar"}},
		{[]string{"sub2", "./...", "sub/c.txtar"}, []string{"a.txtar", "b.txtar", "sub.txtar/g.txtar", "sub/c.txtar", "sub/l.txtar", "sub/testdata/d.txtar", "sub2/f.txtar"}},
		{[]string{"dir/..."}, []string{"dir/f.txtar"}},
		{[]string{absolute}, []string{absolute + "/f.txtar"}},
		{[]string{"gone", "gone/...", "a.txtar/...", "a.txtar"}, []string{"a.txtar", "a.txtar/...: not a folder", "gone: no such file or directory", "gone/...: no such file or directory"}},
		{[]string{"a.txtar/..."}, []string{"a.txtar/...: not a folder"}},
	} {
		require.Equal(t, c.want, found(t, replay.Script, c.patterns...), "%v", c.patterns)
	}
	require.Equal(t, []string{"sub2/f.txtar"}, found(t, replay.Core, "sub2"))
	require.Equal(t, []string{"a.txtar", "b.txtar", "named.script", "notes.md"}, found(t, replay.Core, "."))
}

// TestShard requires that shards are disjoint and together complete, for any path of the folder, and that additional files do not move others to
// another shard.
func TestShard(t *testing.T) {
	var items []string
	parts := func(dir string, names, n int) [][]string {
		items = nil
		for i := range names {
			path := filepath.Join(dir, fmt.Sprintf("sub%d", i%7), fmt.Sprintf("core.%d", i))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, nil, 0o644))
		}
		var all [][]string
		for k := range n {
			var part []string
			for _, i := range replay.Shard(replay.Find(replay.Core, []string{dir + "/..."}), k, n) {
				name, err := filepath.Rel(dir, i.Path)
				require.NoError(t, err)
				part = append(part, name)
				items = append(items, name)
			}
			all = append(all, part)
		}
		return all
	}
	one, other := t.TempDir(), t.TempDir()
	four := parts(one, 1000, 4)
	require.Len(t, items, 1000)
	seen := map[string]bool{}
	for _, name := range items {
		require.False(t, seen[name], name)
		seen[name] = true
	}
	for _, part := range four {
		require.InDelta(t, 250, len(part), 60)
	}
	require.Equal(t, four, parts(other, 1000, 4))
	for k, part := range parts(one, 1100, 4) {
		require.Subset(t, part, four[k])
	}
	require.Len(t, parts(one, 1100, 1)[0], 1100)
	require.Panics(t, func() { replay.Shard(nil, 4, 4) })
}

// TestIsCoreOfAPipe requires that a pipe is not read: that would block until another process writes to it.
func TestIsCoreOfAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o644))
	is, err := replay.IsCore(path)
	require.NoError(t, err)
	require.False(t, is)
}
