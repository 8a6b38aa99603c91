package storetest

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// RunModel plays random programs on the stores, all at once, and on a plain map
// model, and compares every answer and, after every few steps, every job. A failure
// is shrunk and printed with its seed, and replays with -rapid.seed.
func RunModel(t *testing.T, programs int, databases ...Fresh) {
	runModel(t, &stage{}, programs, databases)
}

// RunModelOfLostAnswers is RunModel for stores that lose answers and find out by
// themselves what became of the call. They cannot for an end of a worker that was
// declared lost: somebody else may have ended its run just so. Such ends are left out.
func RunModelOfLostAnswers(t *testing.T, programs int, databases ...Fresh) {
	runModel(t, &stage{lossy: true}, programs, databases)
}

func runModel(t *testing.T, s *stage, programs int, databases []Fresh) {
	for _, fresh := range databases {
		s.openers = append(s.openers, fresh(t))
	}
	t.Cleanup(func() { s.close(t) })
	settle(t, "rapid.checks", programs)
	settle(t, "rapid.steps", programSteps)
	rapid.Check(t, s.play)
}

// programSteps is how long a program is on average: long enough for a job to
// be enqueued, lost, rescued, ended and retried.
const programSteps = 50

// compareEvery is after how many steps every job is compared; each answer is compared at once.
const compareEvery = 3

// settle gives one of rapid's flags another default for this test; what the
// command line says stays.
func settle(t *testing.T, name string, value int) {
	f := flag.Lookup(name)
	if f.Value.String() != f.DefValue {
		return
	}
	if err := f.Value.Set(strconv.Itoa(value)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}

// stage is where programs are played, one after the other. They share the
// stores, because opening them costs as much as ten programs: each has queues,
// keys and workers of its own and leaves nothing live behind. After a failure
// the stores are left, as evidence and as they are, for a new namespace.
type stage struct {
	openers []store.Opener
	stores  []store.Store
	clean   bool
	played  int
	lossy   bool
}

func (s *stage) play(t *rapid.T) {
	s.played++
	if !s.clean {
		s.close(t)
		s.open(t)
	}
	s.clean = false
	ctx := context.Background()
	p := &program{lossy: s.lossy, model: newModel(), queues: modelQueues(s.played), keyed: keyedQueues(s.played), prefix: fmt.Sprintf("program %d ", s.played)}
	p.model.limits[p.keyed[0]], p.model.limits[p.keyed[1]] = modelLimit{most: 2}, modelLimit{most: 1, ordered: true}
	for i, st := range s.stores {
		shift(t, st, 0)
		begin, err := st.Now(ctx)
		if err != nil {
			t.Fatalf("store %d: now: %v", i, err)
		}
		p.players = append(p.players, &player{store: st, ctx: ctx, begin: begin, beats: map[int]time.Time{}, told: map[int]int64{}})
	}
	for range 2 {
		p.register(t)
		p.enqueue(t)
	}
	steps, done := p.steps(), 0
	t.Repeat(map[string]func(*rapid.T){
		"step": func(t *rapid.T) {
			choose(t, "step", steps...).do(t)
			if done++; done%compareEvery == 0 {
				p.compare(t)
			}
		},
	})
	p.compare(t)
	p.conclude(t)
	p.leave(t)
	s.clean = true
}

func (s *stage) open(t *rapid.T) {
	for i, o := range s.openers {
		st, err := o.Open(context.Background(), store.Settings{Namespace: fmt.Sprintf("program-%d", s.played), MaxLost: modelMaxLost, Keep: modelKeep})
		if err != nil {
			t.Fatalf("store %d: open: %v", i, err)
		}
		s.stores = append(s.stores, st)
	}
}

func (s *stage) close(t rapid.TB) {
	for i, st := range s.stores {
		if err := st.Close(); err != nil {
			t.Errorf("store %d: close: %v", i, err)
		}
	}
	s.stores = nil
}

// leave removes what is live or archived, so that the next program sees only its own.
func (p *program) leave(t *rapid.T) {
	for w := range p.model.workers {
		p.deregisterOf(t, w)
	}
	p.rescue(t)
	var all []job.ID
	for id := range p.model.jobs {
		all = append(all, id)
	}
	for i, pl := range p.players {
		changes, err := pl.store.Delete(pl.ctx, all, store.Operator{})
		if err != nil {
			t.Fatalf("store %d: delete: %v", i, err)
		}
		for k, c := range changes {
			if c != store.Changed {
				t.Fatalf("store %d: delete of %s: answer %d", i, all[k], c)
			}
		}
		if n, err := pl.store.Count(pl.ctx, store.Filter{}, 0); n.Jobs != 0 || err != nil {
			t.Fatalf("store %d: %d jobs are left (error %v)", i, n.Jobs, err)
		}
	}
}

// step is one thing that may happen.
type step struct {
	name string
	do   func(*rapid.T)
}

func (s step) String() string { return s.name }

// steps are what a program is made of; those that should come often are there
// several times.
func (p *program) steps() []step {
	operators := map[string]func(*player, []job.ID) ([]store.Change, error){
		"cancel": func(pl *player, ids []job.ID) ([]store.Change, error) {
			return pl.store.Cancel(pl.ctx, ids, store.Operator{Name: "ann"})
		},
		"retry": func(pl *player, ids []job.ID) ([]store.Change, error) {
			return pl.store.Retry(pl.ctx, ids, store.Operator{Name: "ann"})
		},
		"delete": func(pl *player, ids []job.ID) ([]store.Change, error) {
			return pl.store.Delete(pl.ctx, ids, store.Operator{Name: "ann"})
		},
	}
	var list []step
	for _, s := range []struct {
		often int
		name  string
		do    func(*rapid.T)
	}{
		{4, "enqueue", p.enqueue},
		{2, "resend", p.resend},
		{7, "claim", p.claim},
		{4, "claim by keys", p.claimKeys},
		{1, "claim again", p.claimAgain},
		{8, "finish", p.finish},
		{2, "cancel", p.operate("cancel", (*model).cancel, operators["cancel"], job.Waiting, job.Running, job.Suspended)},
		{3, "retry", p.operate("retry", (*model).retry, operators["retry"], job.Dead, job.Cancelled, job.Suspended)},
		{1, "delete", p.operate("delete", (*model).delete, operators["delete"], job.Waiting, job.Suspended, job.Done, job.Dead, job.Cancelled)},
		{1, "register", p.register},
		{1, "beat", p.beat},
		{1, "hold", p.hold},
		{1, "deregister", p.deregister},
		{2, "crash", p.crash},
		{1, "die", p.die},
		{2, "rescue", p.rescue},
		{2, "expire", p.expire},
		{1, "purge", p.purge},
		{1, "pause", p.pause},
		{3, "clock", p.clock},
	} {
		for range s.often {
			list = append(list, step{s.name, s.do})
		}
	}
	return list
}

// choose draws one of the choices, each as likely as the others. (rapid's own
// ranges prefer small numbers, which leaves most of a program to its first steps.)
func choose[T any](t *rapid.T, label string, choices ...T) T {
	return rapid.Custom(func(t *rapid.T) T {
		n := 0
		for range 8 {
			n *= 2
			if rapid.Bool().Draw(t, "bit") {
				n++
			}
		}
		return choices[n*len(choices)/256]
	}).Draw(t, label)
}

// oneIn is true once in n times.
func oneIn(t *rapid.T, n int, label string) bool { return choose(t, label, upTo(n)...) == n-1 }

// upTo is 0 .. n-1.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
