package webui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// look is how everything stands, read once a second at most for all pages and viewers.
type look struct {
	Now     time.Time     // by the store's clock
	Latency time.Duration // that a small question to the store took
	Queues  []pawl.QueueState
	States  map[pawl.State]pawl.Counted
	Workers []pawl.WorkerInfo
	Frozen  *pawl.Pause
	// Operations are those that are open, and those that ended in the last seconds.
	Operations []pawl.Operation

	read time.Time // by our own clock: the look may be some seconds old
	took time.Duration
	died int // errors that many died of, when the overview was last made

	All, Ready, Held, Scheduled, Retries, Running pawl.Counted
	Slots                                         int
}

// look is the newest one. A page that comes early does not wait for the first of a server longer than its patience: its stream does,
// and brings what is missing.
func (v *view) look() (*look, error) {
	if v.page != nil && v.page.early && !v.live {
		return patiently(v, "look", time.Second, false, v.app.readLook)
	}
	return v.wholeLook()
}

// wholeLook waits for it on every page: what is kept for long must not be made without it.
func (v *view) wholeLook() (*look, error) { return cached(v, "look", time.Second, v.app.readLook) }

// hurry does what would keep the first page of a server waiting. The first look pays for connections and for what the store has to
// fetch, so what it took says nothing of the next, which comes as soon as somebody asks.
func (a *app) hurry() {
	find(&view{app: a, ctx: context.Background()}, "look", time.Second, false, func(ctx context.Context) (*look, error) {
		l, err := a.readLook(ctx)
		if err == nil {
			l.took = 0
		}
		return l, err
	})
	for _, t := range a.templates.Templates() {
		_ = t.Execute(io.Discard, nil) // they are escaped before they miss their data
	}
}

// cost is the time of all its questions, two of which are asked at the same time.
func (l *look) cost() time.Duration { return l.took }

func (a *app) readLook(ctx context.Context) (*look, error) {
	began := time.Now()
	now, err := a.e.Store().Now(ctx)
	if err != nil {
		return nil, err
	}
	l := &look{Now: now, Latency: time.Since(began), States: map[pawl.State]pawl.Counted{}, read: time.Now(),
		died: int(a.died.Load())}
	var counts []pawl.QueueCount
	var all sync.WaitGroup
	errs := make([]error, 4)
	var counted time.Duration
	all.Go(func() { // at the same time as the others: with many queues both take a while
		counts, errs[1] = a.e.Counts(ctx)
		counted = time.Since(began)
	})
	l.Queues, errs[0] = a.e.Queues(ctx)
	l.Workers, errs[2] = a.e.Workers(ctx)
	l.Operations, errs[3] = a.e.Operations(ctx)
	l.took = time.Since(began)
	all.Wait()
	l.took += counted
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, c := range counts {
		l.States[c.State] = plus(l.States[c.State], c.Counted)
		l.All = plus(l.All, c.Counted)
	}
	recent := l.Operations[:0]
	for _, o := range l.Operations {
		if o.State == pawl.OperationOpen || now.Sub(o.Ended) < 8*time.Second {
			recent = append(recent, o)
		}
	}
	l.Operations = recent
	l.add()
	a.history.note(l)
	return l, nil
}

// oldest is how long a job has been ready that could be taken, and one of a queue of which nothing starts, with that queue's state.
func (l *look) oldest() (served, held time.Duration, in string) {
	for i := range l.Queues {
		q := &l.Queues[i]
		switch {
		case q.Oldest.IsZero():
		case isHeld(q):
			if d := l.Now.Sub(q.Oldest); d > held {
				held, in = d, queueState(q, &queueFlow{})
			}
		default:
			served = max(served, l.Now.Sub(q.Oldest))
		}
	}
	return served, held, in
}

// add makes sums.
func (l *look) add() {
	seen := map[pawl.WorkerID]bool{}
	for i := range l.Queues {
		q := &l.Queues[i]
		l.Ready, l.Scheduled, l.Retries, l.Running = plus(l.Ready, q.Ready), plus(l.Scheduled, q.Scheduled), plus(l.Retries,
			q.Retries), plus(l.Running, q.Running)
		if isHeld(q) {
			l.Held = plus(l.Held, q.Ready)
		}
		if q.Pause != nil && q.Pause.Scope == job.PauseAll {
			l.Frozen = q.Pause
		}
	}
	for i := range l.Workers {
		if w := &l.Workers[i]; !w.Lost && !seen[w.ID] {
			seen[w.ID] = true
			for _, n := range w.Worker.Slots {
				l.Slots += n
			}
		}
	}
}

// isHeld reports whether nothing of a queue starts now, however many slots are free.
func isHeld(q *pawl.QueueState) bool { return q.Pause != nil || q.CoolDown != nil || q.Workers == 0 }

// needs is how many things need someone, as the overview counts them; empty for none.
func (l *look) needs() string {
	n := l.died
	if l.Frozen != nil {
		n++
	}
	for i := range l.Queues {
		q := &l.Queues[i]
		if frozen := q.Pause != nil && q.Pause.Scope == job.PauseAll; !frozen && isHeld(q) && (q.Ready.Jobs > 0 || q.CoolDown != nil) {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return count(n)
}

// Live are the workers that are not lost.
func (l *look) Live() int {
	n := 0
	for i := range l.Workers {
		if !l.Workers[i].Lost {
			n++
		}
	}
	return n
}

// storeName is what the store is, for people.
func (a *app) storeName() string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", a.e.Store()), "*")
	switch name, _, _ = strings.Cut(name, "."); name {
	case "sqlite":
		return "SQLite"
	case "postgres":
		return "Postgres"
	}
	return name
}
