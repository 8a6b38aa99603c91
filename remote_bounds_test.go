package pawl_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// lines are so many log lines, numbered from a number.
func lines(from, n int) (list []pawl.LogLine) {
	for i := range n {
		list = append(list, pawl.LogLine{Text: fmt.Sprint("line ", from+i)})
	}
	return list
}

// Of a run 10,000 lines are kept, as of a handler here: then one says that others were dropped, once. The next run begins anew.
func TestU3_TheLogOfARemoteRunIsBounded(t *testing.T) {
	remotely(t, pawl.Config{}, func(t *testing.T, f *far) {
		ctx := t.Context()
		id := f.enqueue()
		run := f.claim(1)[0]
		ref := pawl.RunRef{ID: id, Run: run.Run}
		note := func(of pawl.RunRef, from, n int) job.Verdict {
			t.Helper()
			v, err := f.r.Note(ctx, f.w, []pawl.RemoteNote{{RunRef: of, Logs: lines(from, n)}})
			if err != nil {
				t.Fatal(err)
			}
			return v[0]
		}
		last := func(skip int) []pawl.LogLine {
			t.Helper()
			list, err := f.e.Logs(ctx, id, skip, 1000)
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		for n := range 9 {
			note(ref, n*1000, 1000)
		}
		if v := note(pawl.RunRef{ID: id, Run: 77}, 0, 1000); v != job.Stale { // it is not kept, and does not count
			t.Fatal(v)
		}
		note(ref, 9000, 990)
		note(ref, 9990, 20)
		note(ref, 10_010, 500)
		if v := f.finish(run, pawl.RemoteFailed, func(e *pawl.RemoteEnd) { e.Logs = lines(20_000, 5) }); v != job.Applied {
			t.Fatal(v)
		}
		list := last(9995)
		if len(list) != 6 || list[4].Text != "line 9999" || !strings.Contains(list[5].Text, "more than 10000 log lines") {
			t.Fatalf("%d lines from the 9996th on: %+v", len(list), list[max(len(list)-2, 0):])
		}
		if _, err := f.e.RunNow(ctx, id); err != nil {
			t.Fatal(err)
		}
		run = f.claim(1)[0]
		if f.finish(run, pawl.RemoteDone, func(e *pawl.RemoteEnd) { e.Logs = lines(0, 3) }); len(last(10_001)) != 3 {
			t.Errorf("%d lines of the next run", len(last(10_001)))
		}
	})
}

func TestU3_ProgressIsAPartOfItsTotal(t *testing.T) {
	remotely(t, pawl.Config{}, func(t *testing.T, f *far) {
		ctx := t.Context()
		id := f.enqueue()
		run := f.claim(1)[0]
		ref := pawl.RunRef{ID: id, Run: run.Run}
		for _, c := range []struct {
			done, total int64
			field       string
		}{{-1, 10, "progress.done -1"}, {11, 10, "progress.done 11"}, {0, -1, "progress.total -1"}} {
			p := &pawl.Progress{Done: c.done, Total: c.total}
			_, noted := f.r.Note(ctx, f.w, []pawl.RemoteNote{{RunRef: ref}, {RunRef: ref, Progress: p}})
			_, ended := f.r.Finish(ctx, f.w, []pawl.RemoteEnd{{RunRef: ref, Outcome: pawl.RemoteDone, Progress: p}})
			for name, err := range map[string]error{"note 1": noted, "end 0": ended} {
				if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), c.field) {
					t.Errorf("%d of %d: %v, want %s with %s", c.done, c.total, err, name, c.field)
				}
			}
		}
		if j := f.get(id); j.State != pawl.StateRunning || j.Progress != (pawl.Progress{}) {
			t.Errorf("%v, %+v", j.State, j.Progress)
		}
		for _, p := range []pawl.Progress{{Done: 5}, {Done: 10, Total: 10}} { // the first total is not known
			if _, err := f.r.Note(ctx, f.w, []pawl.RemoteNote{{RunRef: ref, Progress: &p}}); err != nil || f.get(id).Progress != p {
				t.Errorf("%+v: %+v, %v", p, f.get(id).Progress, err)
			}
		}
	})
}

// What a worker holds and what it is given are never more than the slots it registered with.
func TestU3_SlotsBoundWhatAWorkerHolds(t *testing.T) {
	remotely(t, pawl.Config{}, func(t *testing.T, f *far) {
		ctx := t.Context()
		w, err := f.r.Register(ctx, pawl.RemoteWorker{Queues: []string{"default", "other"}, Kinds: []string{"welcome"}, Slots: 3})
		if err != nil {
			t.Fatal(err)
		}
		f.w = w
		for range 10 {
			f.enqueue()
		}
		var held []pawl.RunRef
		for _, c := range []struct{ limit, want int }{{1, 1}, {1000, 2}} {
			got := f.claim(c.limit, held...)
			if len(got) != c.want {
				t.Fatalf("limit %d: %d jobs, want %d", c.limit, len(got), c.want)
			}
			for _, j := range got {
				held = append(held, pawl.RunRef{ID: j.ID, Run: j.Run})
			}
		}
		_, err = f.r.Claim(ctx, pawl.RemoteClaim{Worker: w, Limit: 1, Held: held})
		if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "held 3") || !strings.Contains(err.Error(), "slots") {
			t.Errorf("without a free slot: %v", err)
		}
		// One that ended, as one that is not its own any more, takes no slot.
		v, err := f.r.Finish(ctx, w, []pawl.RemoteEnd{{RunRef: held[0], Outcome: pawl.RemoteDone}})
		if err != nil || v[0] != job.Applied {
			t.Fatal(v, err)
		}
		got, err := f.r.Claim(ctx, pawl.RemoteClaim{Worker: w, Limit: 5, Held: held})
		if err != nil || len(got.Jobs) != 1 || len(got.Stale) != 1 || got.Stale[0] != held[0] {
			t.Errorf("%d jobs, stale %v, %v", len(got.Jobs), got.Stale, err)
		}
	})
}
