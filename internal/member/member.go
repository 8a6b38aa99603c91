package member

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Host is what runs under the lease.
type Host interface {
	// Begun lists the runs that have begun and that the store does not know of.
	Begun() []store.RunRef
	// Serves is which queues are served now, by name or pattern; another pointer
	// after each change.
	Serves() *store.Serves
	// Queues lists those that are claimed from, by name.
	Queues() []string
	// Beaten tells of a beat that succeeded.
	Beaten(r Renewal)
	// BeatFailed tells of one that did not.
	BeatFailed(err error)
	// Expired tells that the lease is over because no beat has succeeded.
	Expired(l Lease)
	// Lost tells that the worker was declared lost: it has no lease and no portions.
	Lost(w job.WorkerID)
	// Redated tells that jobs are ready again after the store's clock was set back.
	Redated()
}

// Store is what a member needs of the store.
type Store interface {
	Register(ctx context.Context, w store.Worker) (job.WorkerID, error)
	Beat(ctx context.Context, b store.Beat) (store.BeatReply, error)
	Deregister(ctx context.Context, w job.WorkerID) error
	ReportRuns(ctx context.Context, w job.WorkerID, owned []store.RunRef) (store.ReportReply, error)
	Registry(ctx context.Context) ([]store.WorkerInfo, error)
	MakeDueAgain(ctx context.Context, s store.ClockStep, limit int) (int, error)
}

// Config says who registers. All of it must be given, but for Rhythm and Registered.
type Config struct {
	Store  Store
	Host   Host
	Logger *slog.Logger
	Worker store.Worker  // as what it registers, but for what the host serves
	Beat   time.Duration // between beats
	// Rhythm is that of the store, nil where beats come by their own clock.
	Rhythm *store.Rhythm
	// Registered is called after the first beat of each registration. It must not block.
	Registered func()
	// Called is told how long a beat took, whatever was answered.
	Called func(took time.Duration)
}

// Lease is a worker's right to its runs.
type Lease struct {
	Worker  job.WorkerID // 0 while not registered
	Healthy bool         // registered and beaten recently: handlers may run
	Beaten  time.Time    // when the last successful beat was sent
}

// Renewal is what a beat that succeeded leaves to do.
type Renewal struct {
	Lease
	Begun  []store.RunRef  // runs that the store now knows to have begun
	Answer store.BeatReply // with the runs to cancel
	// Over says that the answer took as long as a lease lasts: nothing may start by
	// it, nor portions change.
	Over bool
}

// Member is this process among the workers of its namespace.
type Member struct {
	config Config
	store  Store
	host   Host
	log    *slog.Logger
	told   *store.Serves // what the store knows to be served; of BeatOnce, which runs once at a time

	mu         sync.Mutex
	lease      Lease
	registered uint64 // times
	leaving    bool   // it does not register any more
	timer      *time.Timer
	steady     time.Time // since when beats have succeeded without a gap
	leads      bool      // as the answer to the last beat said
	storeBeat  time.Time // what the store's clock showed at the last beat
	heard      reading   // of the store's clock, the last one
	setback    *setback  // it was set back, and jobs are to be redated
	looked     bool      // for a setback from before this process began
	split      split     // of the totals
}

// New makes a member that is not registered yet: its first BeatOnce does that.
func New(c Config) *Member {
	return &Member{config: c, store: c.Store, host: c.Host, log: c.Logger}
}

// LeastLostAfter is the shortest lease for a time between beats: three beats, or
// one late beat would lose it, and time for handlers to return (margin) after two.
func LeastLostAfter(beat time.Duration) time.Duration {
	return max(3*beat, 2*beat+maxMargin)
}

const maxMargin = 5 * time.Second

// Lasts is how long after a beat was sent handlers may run: a margin less than the
// fleet waits, so that they can return before a new run begins.
func Lasts(lostAfter time.Duration) time.Duration {
	return lostAfter - min(maxMargin, lostAfter/3)
}

// Lease is the lease as it is now.
func (m *Member) Lease() Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lease
}

// Worker is the registered worker, 0 when there is none.
func (m *Member) Worker() job.WorkerID { return m.Lease().Worker }

// Registered is how often it has registered.
func (m *Member) Registered() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.registered
}

// Steady is the registered worker, the store's time at its last beat, and how
// long its beats have succeeded without a gap, 0 when the last one is overdue.
// Only who has been steady for longer than the lost-after period may declare
// others lost.
func (m *Member) Steady() (worker job.WorkerID, beat time.Time, steady time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.steady.IsZero() || m.lease.Worker == 0 || time.Since(m.lease.Beaten) > 2*m.config.Beat {
		return m.lease.Worker, m.storeBeat, 0
	}
	return m.lease.Worker, m.storeBeat, time.Since(m.steady)
}

// Leads says whether this is the leader: the live worker with the lowest number, as
// the last beat told while its lease lasts. It only saves work: for a moment there
// may be two, or none, so nothing may depend on it. Who leaves resigns by that.
func (m *Member) Leads() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leads && m.lease.Healthy
}

// Lost takes note that the store does not know the worker any more.
func (m *Member) Lost(worker job.WorkerID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lease.Worker != worker {
		return // known already
	}
	m.lease.Worker, m.lease.Healthy, m.leads, m.steady = 0, false, false, time.Time{}
	m.split.forget()
	m.host.Lost(worker)
}
