package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// program is one random run: the model, the stores that play along, and what
// has happened that later steps may repeat.
type program struct {
	model   *model
	players []*player
	sent    []modelDraft // every draft, in the order of sending
	runs    []pastRun    // every run that was ever claimed
	claims  []pastClaim
	offset  int // ticks
}

type pastRun struct {
	worker int
	queue  string
	store.RunRef
}

type pastClaim struct {
	worker int
	seq    int64
	queues []store.QueueClaim
	offer  job.Offer
}

// play makes one step in the model and in each store, and compares the answers.
func play[A any](t *rapid.T, p *program, what string, expect func(*model) (A, error), step func(*player) (A, error)) A {
	t.Helper()
	p.model.now.operation++
	want, wantErr := expect(p.model)
	for i, pl := range p.players {
		got, err := step(pl)
		if !errors.Is(err, wantErr) || wantErr == nil && err != nil {
			t.Fatalf("%s: store %d: error %v, the model says %v", what, i, err, wantErr)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s: store %d differs from the model (-model +store):\n%s", what, i, diff)
		}
	}
	return want
}

// compare holds the whole state of every store against the model.
func (p *program) compare(t *rapid.T) {
	t.Helper()
	var all []job.ID
	for _, d := range p.sent {
		if !slices.Contains(all, d.id) {
			all = append(all, d.id)
		}
	}
	want := map[job.ID]seen{}
	for id, j := range p.model.jobs {
		want[id] = j.see()
	}
	for i, pl := range p.players {
		jobs, err := pl.store.Get(pl.ctx, all)
		if err != nil {
			t.Fatalf("get: %v", err)
		}
		got := map[job.ID]seen{}
		for k := range jobs {
			s := pl.see(&jobs[k])
			if w, ok := want[jobs[k].ID]; ok && (w.Reason == "" || s.Reason == "") == (w.Reason == s.Reason) {
				s.Reason = w.Reason // stores word the reasons of their own; there is one or there is none
			}
			got[jobs[k].ID] = s
			if string(jobs[k].Args) != string(jobs[k].ID[:]) {
				t.Fatalf("store %d: arguments of %s are not its own", i, jobs[k].ID)
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("store %d differs from the model (-model +store):\n%s", i, diff)
		}
	}
}

// conclude ends a program: counts agree with a recount and the rules of P6 hold.
func (p *program) conclude(t *rapid.T) {
	t.Helper()
	count := map[job.State]int{}
	for _, j := range p.model.jobs {
		count[j.state]++
	}
	for i, pl := range p.players {
		for _, s := range job.States() {
			n, err := pl.store.Count(pl.ctx, store.Filter{States: []job.State{s}}, 0)
			if err != nil || n != count[s] {
				t.Fatalf("store %d counts %d jobs that are %s (error %v), the model has %d", i, n, s, err, count[s])
			}
		}
		report, err := pl.store.Check(pl.ctx, store.Check{Grace: 10_000 * time.Hour, Step: 3})
		if err != nil {
			t.Fatalf("check: %v", err)
		}
		for _, f := range report.Faults {
			t.Errorf("store %d: check: %s: job %s: %s", i, f.Rule, f.ID, f.Detail)
		}
	}
}

// pick draws one of a list; draws are by place, so that a program replays although its ids differ.
func pick[T any](t *rapid.T, list []T, label string) T {
	if len(list) == 0 {
		t.Skip("nothing to pick from")
	}
	return list[len(list)-1-rapid.IntRange(0, len(list)-1).Draw(t, label)]
}

// worker draws a worker; the last ones are the likely ones.
func (p *program) worker(t *rapid.T, fits func(modelWorker) bool) int {
	var list []int
	for i, w := range p.model.workers {
		if fits(w) {
			list = append(list, i)
		}
	}
	return pick(t, list, "worker")
}

func anyWorker(modelWorker) bool    { return true }
func liveWorker(w modelWorker) bool { return w.live() }

// ids draws some ids, known ones mostly.
func (p *program) ids(t *rapid.T) []job.ID {
	var list []job.ID
	for range rapid.IntRange(0, 3).Draw(t, "ids") {
		if rapid.IntRange(0, 9).Draw(t, "unknown") == 9 {
			list = append(list, job.NewID())
			continue
		}
		list = append(list, pick(t, p.sent, "job").id)
	}
	return list
}

// held lists the runs of a worker in the order of their claims.
func (p *program) held(w int) []store.RunRef {
	var list []store.RunRef
	for _, r := range p.runs {
		if p.model.holds(w, r.ID, r.Run) != nil && !slices.Contains(list, r.RunRef) && r.worker == w {
			list = append(list, r.RunRef)
		}
	}
	return list
}

// some draws a part of a list.
func some[T any](t *rapid.T, list []T, label string) []T {
	var part []T
	for _, v := range list {
		if rapid.Bool().Draw(t, label) {
			part = append(part, v)
		}
	}
	return part
}
