package replay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"
	"unicode/utf8"
)

// Run processes many items concurrently.
type Run struct {
	Items   []Item
	Job     Job
	Workers int           // number of items at once; 0 for the number of processors
	Timeout time.Duration // timeout of each item; 0 for none
	Journal *Journal      // nil for none
	// Report is called with each result, in the order of Items, except for skipped files. An error ends the run. Calls do not overlap.
	Report func(Result) error
	// Ended is called when an item has ended, in any order. Calls do not overlap.
	Ended func(Outcome)
}

// ahead bounds, for each worker, the number of results that wait for earlier ones.
const ahead = 64

// ended is an item with its result.
type ended struct {
	n      int
	result Result
	kept   bool  // the result is from the journal
	given  bool  // the item was given up because the run ended
	err    error // error of the journal
}

// Do processes all items. When ctx ends, it abandons the running items, reports the finished ones, and returns the cause. The [Summary] is never nil.
func (r *Run) Do(ctx context.Context) (*Summary, error) {
	began := time.Now()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	workers := cmp.Or(r.Workers, runtime.GOMAXPROCS(0))
	room := make(chan struct{}, workers*ahead)
	work, done := make(chan int), make(chan ended)
	go func() {
		defer close(work)
		for n := range r.Items {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return
			}
			select {
			case work <- n:
			case <-ctx.Done():
				return
			}
		}
	}()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for n := range work {
				done <- r.one(ctx, n)
			}
		})
	}
	go func() { group.Wait(); close(done) }()

	o := &order{run: r, sum: newSummary(r.Items), waiting: map[int]ended{}}
	for e := range done {
		told, err := o.add(e)
		if err != nil {
			stop(err)
		}
		for range told {
			<-room
		}
	}
	err := context.Cause(ctx)
	if r.Journal != nil {
		err = cmp.Or(err, r.Journal.end())
	}
	if late := o.rest(); err == nil {
		err = late
	}
	o.sum.finish(time.Since(began))
	return o.sum, err
}

// one processes the n-th item.
func (r *Run) one(ctx context.Context, n int) ended {
	item := &r.Items[n]
	if item.err != nil {
		return ended{n: n, result: Result{Kind: item.Kind, Path: item.Path, Outcome: Failed, Message: reason(item.err)}}
	}
	if r.Journal != nil && utf8.ValidString(item.Path) { // a path that is not UTF-8 would be changed in the journal's JSON
		return r.journaled(ctx, n)
	}
	result := attempt(ctx, r.Timeout, r.Job, *item)
	if ctx.Err() != nil {
		return ended{n: n, given: true} // the interruption may have changed the result of the item
	}
	return ended{n: n, result: result}
}

// journaled processes the n-th item, unless the journal has its result.
func (r *Run) journaled(ctx context.Context, n int) ended {
	item := &r.Items[n]
	file := stateOf(item.Path)
	if result, ok := r.Journal.find(item.Path, file); ok {
		return ended{n: n, result: *result, kept: true}
	}
	kills, err := r.Journal.begin(item.Path, file)
	if err != nil {
		return ended{n: n, given: true, err: err}
	}
	e, used := ended{n: n}, &uses{}
	if kills >= maxKills {
		e.result = Result{Kind: item.Kind, Path: item.Path, Outcome: Failed, Message: fmt.Sprintf("reframe was killed %d times while it ran this item, and does not run it again", kills)}
	} else if e.result = attempt(withUses(ctx, used), r.Timeout, r.Job, *item); ctx.Err() != nil {
		return ended{n: n, given: true}
	}
	if e.result.Outcome != PassedOver {
		e.err = r.Journal.add(&e.result, file, used)
	}
	return e
}

// order reports results in the order of the items.
type order struct {
	run     *Run
	sum     *Summary
	waiting map[int]ended // results that wait for earlier ones
	at      int           // the next item to report
	broken  bool          // Report has failed
}

// add takes a result, reports all results that do not wait for an earlier one, and returns their number. The error is that of the journal or of
// Report.
func (o *order) add(e ended) (told int, err error) {
	o.waiting[e.n] = e
	if !e.given && o.run.Ended != nil {
		o.run.Ended(e.result.Outcome)
	}
	err = e.err
	for {
		next, ok := o.waiting[o.at]
		if !ok {
			return told, err
		}
		delete(o.waiting, o.at)
		o.at++
		told++
		err = cmp.Or(err, o.tell(next))
	}
}

// rest reports the results that wait for abandoned items.
func (o *order) rest() (err error) {
	for _, n := range slices.Sorted(maps.Keys(o.waiting)) {
		err = cmp.Or(err, o.tell(o.waiting[n]))
	}
	return err
}

// tell reports a result, unless the item was abandoned or Report has failed.
func (o *order) tell(e ended) error {
	if e.given || o.broken {
		return nil
	}
	o.sum.add(&e.result, e.kept)
	if e.result.Outcome == PassedOver || o.run.Report == nil {
		return nil
	}
	err := o.run.Report(e.result)
	o.broken = err != nil
	return err
}
