package storetest

import (
	"errors"
	"maps"
	"reflect"
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
	queues  []string
	keyed   []string // queues with a limit for each key: a bound that changes, and order
	prefix  string   // of its unique keys
	lossy   bool     // some store loses answers
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
	rules  *job.GateRules // nil: it asks for queues without a limit
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
		if reflect.DeepEqual(want, got) {
			continue // the usual case, and cmp is slow
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
		if !maps.Equal(want, got) {
			t.Fatalf("store %d differs from the model (-model +store):\n%s", i, cmp.Diff(want, got))
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
			if err != nil || n != (store.Counted{Jobs: count[s]}) {
				t.Fatalf("store %d counts %+v jobs that are %s (error %v), the model has %d", i, n, s, err, count[s])
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
	return list[choose(t, label, upTo(len(list))...)]
}

// worker draws a worker.
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

// mostlyLive draws a worker that is not lost, save once in eight times.
func (p *program) mostlyLive(t *rapid.T) int {
	if oneIn(t, 8, "lost worker") {
		return p.worker(t, anyWorker)
	}
	return p.worker(t, liveWorker)
}

// ids draws some ids: of jobs that a verb is meant for, of any job there was, and unknown ones.
func (p *program) ids(t *rapid.T, meant ...job.State) []job.ID {
	var fit []modelDraft
	for _, d := range p.sent {
		if j := p.model.jobs[d.id]; j != nil && slices.Contains(meant, j.state) {
			fit = append(fit, d)
		}
	}
	var list []job.ID
	for range choose(t, "ids", 0, 1, 1, 1, 2, 3) {
		switch choose(t, "from", "meant", "meant", "any", "any", "meant", "meant", "any", "unknown") {
		case "meant":
			list = append(list, pick(t, fit, "job").id)
		case "any":
			list = append(list, pick(t, p.sent, "job").id)
		default:
			list = append(list, job.NewID())
		}
	}
	return list
}

// running lists the runs that go on: of a worker, or of all when it is -1. A
// claim that was repeated has noted its runs twice.
func (p *program) running(w int) []pastRun {
	var list []pastRun
	for _, r := range p.runs {
		if (w < 0 || r.worker == w) && p.model.holds(r.worker, r.ID, r.Run) != nil && !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

// held lists the runs of a worker in the order of their claims.
func (p *program) held(w int) []store.RunRef {
	var list []store.RunRef
	for _, r := range p.running(w) {
		list = append(list, r.RunRef)
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
