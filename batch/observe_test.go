package batch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// diary is an observer that writes down what it is told.
type diary struct {
	mu       sync.Mutex
	lines    []string
	reports  []Report
	inFlight int
}

func (d *diary) write(format string, values ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, values...))
}

func (d *diary) Received(items int) { d.write("received %d", items) }
func (d *diary) Left(items int)     { d.write("left %d", items) }
func (d *diary) Rejected(items int, err error) {
	var full *QueueFullError
	if errors.As(err, &full) {
		d.write("rejected %d: %s", items, full.Limit)
		return
	}
	d.write("rejected %d: %v", items, err)
}

func (d *diary) Started() {
	d.write("started")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inFlight++
}

func (d *diary) Finished(report Report) {
	d.write("finished")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inFlight--
	d.reports = append(d.reports, report)
}

func TestB9_ObserversAreToldEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		var d diary
		b := NewWork(s.work(), Options{MaxBatch: 2, Concurrency: 1, MaxWaiting: 1, Observer: &d})
		answers := askAll(b, "k", 1, 2, 3)
		gone := ask(b, "k", 4)
		refused := ask(b, "k", 5)
		gone.cancel()
		bad(t, context.Canceled, gone)
		pass(3 * time.Millisecond)
		s.acquiring()[0].succeed()
		if d.inFlight != 1 {
			t.Fatalf("%d in flight, want 1", d.inFlight)
		}
		pass(5 * time.Millisecond)
		s.only(t, 1, 2).end(func() ([]int, error) { return []int{10, 20}, Errors{nil, errBroken} })
		pass(2 * time.Millisecond)
		s.acquiring()[0].fail(errBroken)
		bad(t, ErrQueueFull, refused)
		good(t, answers[0])
		bad(t, errBroken, answers[1], answers[2])
		mustClose(t, b)
		bad(t, ErrClosed, ask(b, "k", 6))

		lines := []string{
			"received 1", "started", "received 1", "received 1", "received 1", "rejected 1: MaxWaiting", "left 1",
			"finished", "started", "finished", "rejected 1: batch: closed",
		}
		slices.Sort(lines[:2]) // the caller and the batch race to tell
		slices.Sort(d.lines[:2])
		if !slices.Equal(d.lines, lines) {
			t.Errorf("told\n%v\nwant\n%v", d.lines, lines)
		}
		reports := []Report{
			{Items: 2, Failed: 1, Acquire: 3 * time.Millisecond, Process: 5 * time.Millisecond},
			{Items: 1, Failed: 1, Queued: 8 * time.Millisecond, Acquire: 2 * time.Millisecond, Err: errBroken},
		}
		if !slices.Equal(d.reports, reports) {
			t.Errorf("reports\n%+v\nwant\n%+v", d.reports, reports)
		}
		if d.inFlight != 0 {
			t.Errorf("%d in flight at the end", d.inFlight)
		}
	})
}

// spans is an observer that traces: a batch's span gets the names of its callers' spans.
type spans struct {
	diary
	links  [][]string
	ended  []Report
	inside []any
}

type spanKey struct{}

func (s *spans) Trace(ctx context.Context, callers iter.Seq[context.Context]) (context.Context, func(Report)) {
	var links []string
	for caller := range callers {
		links = append(links, caller.Value(spanKey{}).(string))
	}
	s.links = append(s.links, links)
	return context.WithValue(ctx, spanKey{}, "batch"), func(r Report) { s.ended = append(s.ended, r) }
}

func TestB9_SpansOfBatchAndCallersAreLinked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen spans
		b := New(func(ctx context.Context, _ string, in []int) ([]int, error) {
			seen.inside = append(seen.inside, ctx.Value(spanKey{}))
			return tenfold(in), nil
		}, Options{Policy: Size(), MaxBatch: 3, Observer: &seen})
		defer mustClose(t, b)
		var group sync.WaitGroup
		for i, name := range []string{"one", "two", "three"} {
			ctx := context.WithValue(t.Context(), spanKey{}, name)
			group.Go(func() {
				if _, err := b.Do(ctx, "k", i); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		group.Wait()
		if len(seen.links) != 1 || !slices.Equal(seen.links[0], []string{"one", "two", "three"}) {
			t.Errorf("links %v", seen.links)
		}
		if !slices.Equal(seen.inside, []any{"batch"}) {
			t.Errorf("process ran in the span %v", seen.inside)
		}
		if len(seen.ended) != 1 || seen.ended[0].Items != 3 {
			t.Errorf("ended %v", seen.ended)
		}
	})
}

// What an observer is told does not grow with what is in the queue: two calls per batch and one per call of Do or DoMany.
func TestB9_ObserversCostTheSameHoweverManyItemsThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int{1, 1000} {
			var d diary
			b := New(func(_ context.Context, _ string, in []int) ([]int, error) { return tenfold(in), nil },
				Options{MaxBatch: 1000, Observer: &d})
			if _, err := b.DoMany(t.Context(), "k", make([]int, n)); err != nil {
				t.Fatal(err)
			}
			mustClose(t, b)
			if len(d.lines) != 3 {
				t.Fatalf("%d items: told %v", n, d.lines)
			}
		}
	})
}
