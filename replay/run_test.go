package replay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/replay"
	"example.com/reframe/test/livetest"
)

// files creates n files in a folder and returns them as items.
func files(t *testing.T, n int) []replay.Item {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d%s", i, replay.ScriptSuffix)), []byte("x"), 0o644))
	}
	items := replay.Find(replay.Script, []string{dir})
	require.Len(t, items, n)
	return items
}

// ok returns a successful result for an item.
func ok(i replay.Item) replay.Result {
	return replay.Result{Kind: i.Kind, Path: i.Path, Outcome: replay.OK}
}

// collected runs items and returns the reported results, in order.
func collected(t *testing.T, ctx context.Context, r *replay.Run) ([]replay.Result, *replay.Summary, error) {
	t.Helper()
	var all []replay.Result
	r.Report = func(result replay.Result) error { all = append(all, result); return nil }
	sum, err := r.Do(ctx)
	return all, sum, err
}

func paths(results []replay.Result) (all []string) {
	for _, r := range results {
		all = append(all, filepath.Base(r.Path)+" "+string(r.Outcome))
	}
	return all
}

// TestOrder requires that results are reported in the order of the items, for any number of workers and any duration of the items.
func TestOrder(t *testing.T) {
	livetest.Slow(t)
	items := files(t, 500)
	var want []string
	for i := range items {
		want = append(want, fmt.Sprintf("%04d.txtar ok", i))
	}
	for _, workers := range []int{0, 1, 2, 16} {
		all, sum, err := collected(t, context.Background(), &replay.Run{Items: items, Workers: workers, Job: func(_ context.Context, i replay.Item) replay.Result {
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond) // completes the items in random order
			return ok(i)
		}})
		require.NoError(t, err)
		require.Equal(t, want, paths(all))
		require.Equal(t, 500, sum.OK)
		require.Equal(t, 500, sum.Items)
		require.Zero(t, sum.NotRun)
		require.Len(t, sum.Slowest, 5)
	}
}

// TestWindow requires a bound on the number of results that wait in memory for a slow item.
func TestWindow(t *testing.T) {
	var begun atomic.Int64
	first := make(chan struct{})
	r := &replay.Run{Items: files(t, 1000), Workers: 2, Job: func(_ context.Context, i replay.Item) replay.Result {
		if begun.Add(1); strings.HasSuffix(i.Path, "0000.txtar") {
			<-first
		}
		return ok(i)
	}}
	done := make(chan error, 1)
	go func() { _, err := r.Do(context.Background()); done <- err }()
	require.Eventually(t, func() bool { return begun.Load() == 128 }, livetest.Patience, time.Millisecond)
	time.Sleep(20 * time.Millisecond) // by now all workers wait; on a slow machine the test can only miss a failure
	require.EqualValues(t, 128, begun.Load())
	close(first)
	require.NoError(t, <-done)
	require.EqualValues(t, 1000, begun.Load())
}

// TestOneStopsNoOther requires that a failure of one item affects only that item.
func TestOneStopsNoOther(t *testing.T) {
	livetest.Slow(t)
	items := files(t, 6)
	stuck := make(chan struct{})
	defer close(stuck)
	const limit = time.Second // other items take microseconds, even on slow machines
	r := &replay.Run{Items: items, Workers: 2, Timeout: limit, Job: func(ctx context.Context, i replay.Item) replay.Result {
		out := ok(i)
		switch filepath.Base(i.Path) {
		case "0001.txtar":
			var none []int
			_ = none[i.Path[0]]
		case "0002.txtar":
			<-stuck // the job ignores its context
		case "0003.txtar":
			<-ctx.Done()
			out.Outcome, out.Message = replay.Failed, "0003.txtar:7: "+ctx.Err().Error()
		case "0004.txtar":
			<-ctx.Done()
			out.Outcome, out.Message = replay.Partial, "it came to nothing"
		case "0005.txtar":
			out.Outcome, out.Message = replay.Failed, strings.Repeat("ä", 10000)+"\xff"
		}
		return out
	}}
	all, sum, err := collected(t, context.Background(), r)
	require.NoError(t, err)
	require.Equal(t, []string{"0000.txtar ok", "0001.txtar failed", "0002.txtar failed", "0003.txtar failed", "0004.txtar failed", "0005.txtar failed"}, paths(all))
	require.Contains(t, all[1].Message, "reframe is at fault: panic: runtime error: index out of range")
	require.Contains(t, all[1].Log, "run_test.go:")
	require.Equal(t, "it was stopped after 1s", all[2].Message)
	require.Equal(t, "0003.txtar:7: context deadline exceeded; it was stopped after 1s", all[3].Message)
	require.Equal(t, "it came to nothing; it was stopped after 1s", all[4].Message)
	require.Equal(t, strings.Repeat("ä", 2048)+"…", all[5].Message)
	require.Equal(t, 1, sum.OK)
	require.Equal(t, 5, sum.Failed)
}

// TestInterrupted requires that an interrupted run reports the finished items, also those after an abandoned one.
func TestInterrupted(t *testing.T) {
	why := errors.New("somebody pressed a key")
	ctx, cancel := context.WithCancelCause(context.Background())
	var done atomic.Int64
	r := &replay.Run{Items: files(t, 100), Workers: 2, Job: func(ctx context.Context, i replay.Item) replay.Result {
		if strings.HasSuffix(i.Path, "0003.txtar") {
			<-ctx.Done()
			return replay.Result{Kind: i.Kind, Path: i.Path, Outcome: replay.Failed, Message: "interrupted"}
		}
		if done.Add(1) == 20 {
			cancel(why)
			<-ctx.Done()
		}
		return ok(i)
	}}
	all, sum, err := collected(t, ctx, r)
	require.ErrorIs(t, err, why)
	require.Equal(t, []string{"0000.txtar ok", "0001.txtar ok", "0002.txtar ok", "0004.txtar ok"}, paths(all)[:4])
	require.Len(t, all, 19)
	require.Equal(t, 19, sum.OK)
	require.Equal(t, 81, sum.NotRun)
	require.Zero(t, sum.Failed)
}

// TestReportFails requires that an error of Report ends the run.
func TestReportFails(t *testing.T) {
	full, told := errors.New("no space left"), 0
	r := &replay.Run{Items: files(t, 1000), Job: func(_ context.Context, i replay.Item) replay.Result { return ok(i) }}
	r.Report = func(replay.Result) error {
		if told++; told == 3 {
			return full
		}
		return nil
	}
	sum, err := r.Do(context.Background())
	require.ErrorIs(t, err, full)
	require.Equal(t, 3, told)
	require.Equal(t, 3, sum.OK)
}

// TestPassedOver requires that items which are passed over are counted but not reported, and that Ended is called for them.
func TestPassedOver(t *testing.T) {
	var ended []replay.Outcome
	r := &replay.Run{Items: files(t, 4), Workers: 1, Ended: func(o replay.Outcome) { ended = append(ended, o) }, Job: func(_ context.Context, i replay.Item) replay.Result {
		out := ok(i)
		if strings.HasSuffix(i.Path, "1.txtar") || strings.HasSuffix(i.Path, "2.txtar") {
			out.Outcome = replay.PassedOver
		}
		return out
	}}
	all, sum, err := collected(t, context.Background(), r)
	require.NoError(t, err)
	require.Equal(t, []string{"0000.txtar ok", "0003.txtar ok"}, paths(all))
	require.Equal(t, 2, sum.PassedOver)
	require.Equal(t, []replay.Outcome{replay.OK, replay.PassedOver, replay.PassedOver, replay.OK}, ended)
}
