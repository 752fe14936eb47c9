package replay_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/replay"
	"example.com/reframe/test/livetest"
)

var belongs = []string{"reframe v1", "scripts", "--timeout 1m0s"}

// journaled runs items with a journal. It returns the reported results, and the number of items that were processed.
func journaled(t *testing.T, journal string, items []replay.Item) (all []replay.Result, ran int) {
	t.Helper()
	j, err := replay.OpenJournal(journal, belongs)
	require.NoError(t, err)
	info, err := os.Stat(journal)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode(), "results hold values of the target")
	defer j.Close()
	var n atomic.Int64
	all, sum, err := collected(t, context.Background(), &replay.Run{Items: items, Journal: j, Workers: 1, Job: func(_ context.Context, i replay.Item) replay.Result {
		n.Add(1)
		out := ok(i)
		if strings.HasSuffix(i.Path, "1.txtar") {
			out.Outcome, out.Message = replay.Failed, "a \"line\"\nand <another>"
		}
		return out
	}})
	require.NoError(t, err)
	require.EqualValues(t, len(items)-sum.Kept, n.Load())
	return all, int(n.Load())
}

func TestJournal(t *testing.T) {
	items, journal := files(t, 12), filepath.Join(t.TempDir(), "journal")
	whole, ran := journaled(t, journal, items)
	require.Equal(t, 12, ran)
	again, ran := journaled(t, journal, items)
	require.Zero(t, ran)
	require.Equal(t, whole, again, "the times too")

	// An item whose file has changed is processed again, and the journal keeps its new result.
	require.NoError(t, os.WriteFile(items[3].Path, []byte("other"), 0o644))
	again, ran = journaled(t, journal, items)
	require.Equal(t, 1, ran)
	require.Equal(t, paths(whole), paths(again))
	_, ran = journaled(t, journal, items)
	require.Zero(t, ran)
}

// TestJournalIsTorn requires that, if a process is killed at any byte of a line, complete lines are used and the other items are processed again.
func TestJournalIsTorn(t *testing.T) {
	livetest.Slow(t)
	items, journal := files(t, 3), filepath.Join(t.TempDir(), "journal")
	whole, _ := journaled(t, journal, items)
	text, err := os.ReadFile(journal)
	require.NoError(t, err)
	require.Equal(t, 7, strings.Count(string(text), "\n"), "the head, and of each what is begun and its result")
	for n := range len(text) + 1 {
		require.NoError(t, os.WriteFile(journal, text[:n], 0o644))
		again, ran := journaled(t, journal, items)
		had := strings.Count(string(text[:strings.LastIndexByte(string(text[:n]), '\n')+1]), `"result"`)
		require.Equal(t, 3-had, ran, "%d bytes", n)
		require.Equal(t, paths(whole), paths(again))
		now, err := os.ReadFile(journal)
		require.NoError(t, err)
		require.Equal(t, 3, strings.Count(string(now), `"result"`), "%s", now)
	}
}

// TestJournalOfKills requires that an item that kills the process each time is not retried for ever, and that an item that was only interrupted is
// retried.
func TestJournalOfKills(t *testing.T) {
	items, journal := files(t, 3), filepath.Join(t.TempDir(), "journal")
	one := func(ctx context.Context, job replay.Job) ([]replay.Result, *replay.Summary) {
		j, err := replay.OpenJournal(journal, belongs)
		require.NoError(t, err)
		defer j.Close()
		all, sum, _ := collected(t, ctx, &replay.Run{Items: items, Journal: j, Workers: 1, Job: job})
		return all, sum
	}
	for range 5 { // each run is interrupted at the second item
		ctx, cancel := context.WithCancel(context.Background())
		_, sum := one(ctx, func(_ context.Context, i replay.Item) replay.Result {
			if i.Path == items[1].Path {
				cancel()
			}
			return ok(i)
		})
		require.Equal(t, 2, sum.NotRun)
	}
	killed := func() {
		text, err := os.ReadFile(journal)
		require.NoError(t, err)
		_, _ = one(context.Background(), func(_ context.Context, i replay.Item) replay.Result {
			begun, err := os.ReadFile(journal)
			require.NoError(t, err)
			text = begun // the journal when the run is killed
			return ok(i)
		})
		require.NoError(t, os.WriteFile(journal, text, 0o644))
	}
	first, err := os.ReadFile(journal)
	require.NoError(t, err)
	killed() // the run is killed at the last item; the second is done
	killed()
	killed()
	all, _ := one(context.Background(), func(_ context.Context, i replay.Item) replay.Result { return ok(i) })
	require.Equal(t, []string{"0000.txtar ok", "0001.txtar ok", "0002.txtar failed"}, paths(all))
	require.Equal(t, "reframe was killed 3 times while it ran this item, and does not run it again", all[2].Message)
	again, _ := one(context.Background(), nil)
	require.Equal(t, all, again)

	require.NoError(t, os.WriteFile(journal, first, 0o644))
	killed()
	killed()
	all, _ = one(context.Background(), func(_ context.Context, i replay.Item) replay.Result { return ok(i) })
	require.Equal(t, []string{"0000.txtar ok", "0001.txtar ok", "0002.txtar ok"}, paths(all), "two are not enough")
}

// TestJournalOfAnother requires that a run rejects the journal of a run with other inputs, and a file that is not a journal, and leaves them
// unchanged.
func TestJournalOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := replay.OpenJournal(path, belongs)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	for _, c := range []struct {
		belongs []string
		want    string
	}{
		{[]string{"reframe v2", "scripts", "--timeout 1m0s"}, `line 1: the journal belongs to a run with "reframe v1", but this run has "reframe v2"; use another journal, or remove this one`},
		{slices.Concat(belongs, []string{"--verbose"}), `line 1: the journal belongs to a run with "nothing more", but this run has "--verbose"; use another journal, or remove this one`},
		{belongs[:2], `line 1: the journal belongs to a run with "--timeout 1m0s", but this run has "nothing more"; use another journal, or remove this one`},
	} {
		_, err := replay.OpenJournal(path, c.belongs)
		require.EqualError(t, err, path+": "+c.want)
	}
	for text, want := range map[string]string{
		"a letter\nto somebody\n":   "line 1: not a journal of reframe replay; the file was not changed",
		"a letter":                  "not a journal of reframe replay; the file was not changed",
		`{"schema":"other"}` + "\n": "line 1: not a journal of reframe replay; the file was not changed",
		`{"schema":"reframe.replay.journal/v1","of":["reframe v1","scripts","--timeout 1m0s"]}` + "\n" + `{"size":` + "\n": "line 2: unexpected end of JSON input",
		strings.Repeat("x", 5<<20): "line 1: too long for a journal",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		_, err := replay.OpenJournal(path, belongs)
		require.EqualError(t, err, path+": "+want)
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(left))
	}
	_, err = replay.OpenJournal(t.TempDir(), belongs)
	require.ErrorContains(t, err, "is a directory")
}

// FuzzJournal requires that a journal with any content is either rejected and left unchanged, or used with one result for each item.
func FuzzJournal(f *testing.F) {
	const head = `{"schema":"reframe.replay.journal/v1","of":["reframe v1","scripts","--timeout 1m0s"]}` + "\n"
	for _, text := range []string{"", head, head[:20], head + `{"begun":{"path":"a","size":1,"mtime_ns":2}}` + "\n" + `{"ended":true}` + "\n",
		head + `{"file":{"size":0,"mtime_ns":0},"result":{"kind":"script","path":"no such file","outcome":"ok","ms":1}}` + "\n{\"fi", "x\n", head + "{}\nnull\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "journal")
		require.NoError(t, os.WriteFile(path, text, 0o644))
		j, err := replay.OpenJournal(path, belongs)
		if err != nil {
			left, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, text, left)
			return
		}
		defer j.Close()
		items := []replay.Item{{Kind: replay.Script, Path: "a"}, {Kind: replay.Script, Path: "no such file"}}
		all, sum, err := collected(t, context.Background(), &replay.Run{Items: items, Journal: j, Job: func(_ context.Context, i replay.Item) replay.Result { return ok(i) }})
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Zero(t, sum.NotRun)
	})
}

// TestJournalKnowsWhatScriptsUse requires that a stored result becomes invalid if the script, or a file that it opens or launches, changes.
func TestJournalKnowsWhatScriptsUse(t *testing.T) {
	dir, journal := t.TempDir(), filepath.Join(t.TempDir(), "journal")
	file := filepath.Join(dir, "file")
	for name, text := range map[string]string{
		"core": "! core $SCRIPTDIR/file", "launch": "! launch $SCRIPTDIR/file", "argument": "cd $SCRIPTDIR\nlaunch true file\ncontinue\nexits 0",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+replay.ScriptSuffix), []byte(text), 0o644))
	}
	items := replay.Find(replay.Script, []string{dir})
	require.Len(t, items, 3)
	ran := func() int {
		j, err := replay.OpenJournal(journal, belongs)
		require.NoError(t, err)
		defer j.Close()
		s := &replay.Scripts{}
		_, sum, err := collected(t, context.Background(), &replay.Run{Items: items, Journal: j, Job: func(ctx context.Context, i replay.Item) replay.Result { return s.Run(ctx, i.Path) }})
		require.NoError(t, err)
		return sum.Items - sum.Kept
	}
	require.Equal(t, 3, ran())
	require.Zero(t, ran(), "it is still not there")
	require.NoError(t, os.WriteFile(file, []byte("no core"), 0o644))
	require.Equal(t, 3, ran(), "it is there")
	require.Zero(t, ran())
	require.NoError(t, os.WriteFile(file, []byte("no core, and no program"), 0o644))
	require.Equal(t, 3, ran(), "it is another")
	require.Zero(t, ran())
}

// TestJournalIsOfOneRun requires that a second run at the same time is refused, because each would take the other's begun items for the cause of a
// kill.
func TestJournalIsOfOneRun(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	j, err := replay.OpenJournal(journal, belongs)
	require.NoError(t, err)
	_, err = replay.OpenJournal(journal, belongs)
	require.EqualError(t, err, journal+": another run writes its results there")
	require.NoError(t, j.Close())
	j, err = replay.OpenJournal(journal, belongs)
	require.NoError(t, err)
	require.NoError(t, j.Close())
}

// TestJournalOfOddNames requires that a name which is not valid UTF-8 is not confused with the name of its escaped form.
func TestJournalOfOddNames(t *testing.T) {
	dir, journal, when := t.TempDir(), filepath.Join(t.TempDir(), "journal"), time.Unix(1e9, 0)
	for _, name := range []string{"a\xff.txtar", "a\ufffd.txtar"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		require.NoError(t, os.Chtimes(path, when, when))
		_, ran := journaled(t, journal, []replay.Item{{Kind: replay.Script, Path: path}})
		require.Equal(t, 1, ran)
	}
}
