package member_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/internal/member"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// lab is one member of a store in memory, in virtual time. It is its host as well
// and keeps what that was told. No test calls it from two goroutines at once.
type lab struct {
	*member.Member
	t     *testing.T
	store store.Store
	cut   error // of every beat
	begun []store.RunRef

	beats   []member.Renewal
	faults  []error
	expired []time.Time
	lost    []job.WorkerID
	redated int
	told    int // registrations
	serves  *store.Serves
}

func (l *lab) Serves() *store.Serves   { return l.serves }
func (l *lab) Queues() []string        { return l.serves.Queues }
func (l *lab) Begun() []store.RunRef   { return l.begun }
func (l *lab) Beaten(r member.Renewal) { l.beats = append(l.beats, r) }
func (l *lab) BeatFailed(err error)    { l.faults = append(l.faults, err) }
func (l *lab) Expired(member.Lease)    { l.expired = append(l.expired, time.Now()) }
func (l *lab) Lost(w job.WorkerID)     { l.lost = append(l.lost, w) }
func (l *lab) Redated()                { l.redated++ }

// way is the store, unless it is cut off.
type way struct {
	store.Store
	l *lab
}

func (w way) Beat(ctx context.Context, b store.Beat) (store.BeatReply, error) {
	if w.l.cut != nil {
		return store.BeatReply{}, w.l.cut
	}
	return w.Store.Beat(ctx, b)
}

func inLab(t *testing.T, test func(l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st, err := sqlite.Memory().Open(t.Context(), store.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		l := &lab{t: t, store: st, serves: &store.Serves{Queues: []string{"q"}}}
		l.Member = member.New(member.Config{
			Store: way{st, l}, Host: l, Logger: slog.New(slog.DiscardHandler), Beat: 5 * time.Second,
			Worker:     store.Worker{Label: "lab-worker", LostAfter: 30 * time.Second},
			Registered: func() { l.told++ },
		})
		defer l.Close()
		test(l)
	})
}

// beatFor beats every 5 s.
func (l *lab) beatFor(d time.Duration) {
	l.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Second) { // virtual
		if err := l.BeatOnce(l.t.Context()); err != nil && !errors.Is(err, l.cut) {
			l.t.Fatal(err)
		}
	}
}

func (l *lab) setClock(d time.Duration) {
	l.store.(interface{ SetClockOffset(time.Duration) }).SetClockOffset(d)
}

func TestJ12_TheLeaseIsOverBeforeTheFleetMayJudge(t *testing.T) {
	inLab(t, func(l *lab) {
		l.beatFor(20 * time.Second)
		last := l.Lease()
		l.cut = store.ErrUnavailable
		l.beatFor(time.Minute)
		if len(l.expired) != 1 || l.expired[0].Sub(last.Beaten) != 25*time.Second || l.Lease().Healthy {
			t.Errorf("over at %v, healthy %t; want once, 25 s after the last beat at %v", l.expired, l.Lease().Healthy, last.Beaten)
		}
		l.cut = nil
		l.beatFor(5 * time.Second)
		if now := l.Lease(); !now.Healthy || now.Worker != last.Worker {
			t.Errorf("%+v after a beat that succeeded, want the worker %d again", now, last.Worker)
		}
	})
}

func TestJ12_ALostWorkerRegistersAnew(t *testing.T) {
	inLab(t, func(l *lab) {
		l.beatFor(time.Minute)
		first := l.Worker()
		if _, err := l.store.MarkDead(l.t.Context(), []job.WorkerID{first}); err != nil {
			t.Fatal(err)
		}
		l.begun = []store.RunRef{{Run: 1}}
		l.beatFor(5 * time.Second)
		if l.Lease().Healthy || l.Worker() != 0 || !slices.Equal(l.lost, []job.WorkerID{first}) {
			t.Errorf("%+v, lost %v; want that %d is", l.Lease(), l.lost, first)
		}
		l.Member.Lost(first) // which is known already, and no news to the host
		l.beatFor(5 * time.Second)
		if len(l.lost) != 1 {
			t.Errorf("the host was told %d times that it is lost", len(l.lost))
		}
		if l.Worker() == first || !l.Lease().Healthy || l.Registered() != 2 || l.told != 2 || l.beats[len(l.beats)-1].Begun != nil {
			t.Errorf("%+v, registered %d times, told %d; want a second worker that has begun nothing", l.Lease(), l.Registered(), l.told)
		}
	})
}

func TestP7_WhoLeavesDoesNotRegisterAnew(t *testing.T) {
	inLab(t, func(l *lab) {
		l.beatFor(10 * time.Second)
		l.Leaving()
		l.beatFor(5 * time.Second) // its handlers have their grace
		if !l.Lease().Healthy || len(l.beats) != 3 {
			t.Errorf("%+v after %d beats", l.Lease(), len(l.beats))
		}
		if err := l.Leave(time.Second); err != nil {
			t.Fatal(err)
		}
		l.beatFor(10 * time.Second) // the first hears that it is gone
		if workers, err := l.store.Registry(l.t.Context()); err != nil || l.Worker() != 0 || l.Registered() != 1 {
			t.Errorf("worker %d of %v, registered %d times, %v", l.Worker(), workers, l.Registered(), err)
		}
	})
}

func TestJ30_TheFirstThatLivesLeads(t *testing.T) {
	inLab(t, func(l *lab) {
		first, err := l.store.Register(l.t.Context(), store.Worker{Label: "first", Queues: []string{"q"}, LostAfter: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		l.beatFor(10 * time.Second)
		if l.Leads() {
			t.Error("it leads, and another was there before it")
		}
		if err := l.store.Deregister(l.t.Context(), first); err != nil {
			t.Fatal(err)
		}
		l.beatFor(5 * time.Second)
		if !l.Leads() {
			t.Error("it does not lead after the leader left")
		}
		l.cut = store.ErrUnavailable
		l.beatFor(time.Minute)
		if l.Leads() {
			t.Error("it leads by a lease that is over")
		}
		l.cut = nil
		l.beatFor(5 * time.Second)
		if !l.Leads() {
			t.Error("it does not lead after the outage")
		}
		if _, err := l.store.MarkDead(l.t.Context(), []job.WorkerID{l.Worker()}); err != nil {
			t.Fatal(err)
		}
		l.beatFor(5 * time.Second)
		if l.Leads() {
			t.Error("it leads, and is lost")
		}
	})
}

func TestJ32_SteadyTimeEndsWithABeatThatFails(t *testing.T) {
	inLab(t, func(l *lab) {
		l.beatFor(time.Minute)
		if _, _, steady := l.Steady(); steady != time.Minute {
			t.Errorf("steady for %v, want a minute", steady)
		}
		l.cut = store.ErrUnavailable
		l.beatFor(5 * time.Second)
		if worker, _, steady := l.Steady(); worker == 0 || steady != 0 || len(l.faults) != 1 {
			t.Errorf("worker %d is steady for %v after %v", worker, steady, l.faults)
		}
		l.cut = nil
		l.beatFor(10 * time.Second)
		if _, _, steady := l.Steady(); steady != 10*time.Second {
			t.Errorf("steady for %v, want 10 s", steady)
		}
	})
}

func TestJ32_AClockSetForwardBeginsTheSteadyTimeAnew(t *testing.T) {
	inLab(t, func(l *lab) {
		l.beatFor(time.Minute)
		l.setClock(10 * time.Minute)
		l.beatFor(5 * time.Second)
		if _, _, steady := l.Steady(); steady != 5*time.Second {
			t.Errorf("steady for %v, want 5 s", steady)
		}
	})
}

func TestJ32_AClockSetBackIsHeardAndJobsAreRedated(t *testing.T) {
	inLab(t, func(l *lab) {
		l.beatFor(10 * time.Second)
		if _, err := l.store.Enqueue(l.t.Context(), []job.Draft{{ID: job.NewID(), Kind: "k", Queue: "q", Priority: 5, Attempts: 5}}); err != nil {
			t.Fatal(err)
		}
		if l.Heard(time.Now(), time.Now()) {
			t.Error("a clock that nobody has set was set back")
		}
		l.setClock(-10 * time.Minute)
		if !l.Heard(time.Now(), time.Now().Add(-10*time.Minute)) {
			t.Error("an answer from ten minutes ago is no step of the clock")
		}
		l.beatFor(10 * time.Second)
		if l.redated != 1 {
			t.Errorf("jobs were redated %d times, want once", l.redated)
		}
	})
}
