package pawl_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// town is one file that several engines open as processes do, in virtual time.
type town struct {
	t    *testing.T
	file store.Opener
	log  *logbook
	open []*resident
}

// resident is one engine there.
type resident struct {
	*pawl.Engine
	town *town
	way  *way
	stop func()
}

// way is an engine's way to the store.
type way struct {
	store.Store
	reads   atomic.Int64          // of the settings
	takes   atomic.Int64          // of tokens
	loses   atomic.Int64          // every so many answers about tokens
	refused atomic.Pointer[error] // what they are answered with
	cutOff  atomic.Bool           // from its cursors and groups
	silent  atomic.Bool           // it does not beat
	turns   atomic.Int64          // of groups, that were made
	heads   atomic.Int64          // of the log, that were read
	dues    atomic.Int64          // looks for delayed events
	panics  atomic.Bool           // where jobs are accepted
}

// opening makes the way when the engine opens the store.
type opening struct {
	store.Opener
	way *way
}

func (o opening) Open(ctx context.Context, s store.Settings) (st store.Store, err error) {
	o.way.Store, err = o.Opener.Open(ctx, s)
	return o.way, err
}

func (w *way) Settings(ctx context.Context) (store.SettingsReply, error) {
	w.reads.Add(1)
	if err := w.refused.Load(); err != nil {
		return store.SettingsReply{}, *err
	}
	return w.Store.Settings(ctx)
}

func (w *way) Enqueue(ctx context.Context, drafts []job.Draft) ([]job.Receipt, error) {
	if w.panics.Load() {
		panic("the store is broken")
	}
	return w.Store.Enqueue(ctx, drafts)
}

func (w *way) Listen(ctx context.Context, hear func(store.Hint)) error {
	return w.Store.(store.Listener).Listen(ctx, hear)
}

func (w *way) WaitingQueues(ctx context.Context, after string, limit int) ([]string, error) {
	return w.Store.(store.QueueLister).WaitingQueues(ctx, after, limit)
}

func (w *way) Queues(ctx context.Context, names []string) ([]store.QueueState, error) {
	return w.Store.(store.QueueReader).Queues(ctx, names)
}

func (w *way) Take(ctx context.Context, of store.BucketName, q job.TakeRequest) (job.TakeReply, error) {
	n := w.takes.Add(1)
	reply, err := w.Store.(store.Limits).Take(ctx, of, q)
	if every := w.loses.Load(); every > 0 && n%every == 0 {
		return job.TakeReply{}, job.ErrOutcomeUnknown
	}
	return reply, err
}

func (w *way) Drain(ctx context.Context, of store.BucketName, q job.TakeRequest, op *store.Operator) error {
	return w.Store.(store.Limits).Drain(ctx, of, q, op)
}

func (w *way) Buckets(ctx context.Context, limits []string, after string, n int) ([]store.BucketInfo, error) {
	return w.Store.(store.Limits).Buckets(ctx, limits, after, n)
}

// logbook keeps what is logged.
type logbook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logbook) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func inTown(t *testing.T, test func(t *testing.T, at *town)) {
	t.Helper()
	file := sqlite.File(filepath.Join(t.TempDir(), "town.db"))
	synctest.Test(t, func(t *testing.T) {
		at := &town{t: t, file: file, log: &logbook{}}
		test(t, at)
		for _, r := range slices.Backward(at.open) {
			r.leave()
		}
		st, err := file.Open(context.Background(), store.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		if report, err := st.Check(t.Context(), store.Check{}); err != nil || len(report.Faults) > 0 {
			t.Errorf("check: %+v, %v", report.Faults, err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
}

// settle opens an engine that does not run.
func (at *town) settle(cfg pawl.Config) *resident {
	at.t.Helper()
	r := &resident{town: at, way: &way{}, stop: func() {}}
	cfg.Logger = slog.New(slog.NewTextHandler(at.log, nil))
	e, err := pawl.New(opening{at.file, r.way}, cfg)
	if err != nil {
		at.t.Fatal(err)
	}
	r.Engine = e
	at.open = append(at.open, r)
	return r
}

// work opens one that runs, with the handlers that register makes.
func (at *town) work(cfg pawl.Config, register func(*pawl.Engine)) *resident {
	at.t.Helper()
	cfg.Grace = time.Second
	r := at.settle(cfg)
	register(r.Engine)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, pawl.ErrNoHandlers) {
			at.t.Error("run:", err)
		}
	}
	soon()
	return r
}

// leave ends an engine.
func (r *resident) leave() {
	r.stop()
	r.stop = func() {}
	if err := r.Close(); err != nil {
		r.town.t.Error("close:", err)
	}
}

// add enqueues jobs.
func (r *resident) add(n int, opts ...pawl.EnqueueOption) (ids []pawl.ID) {
	r.town.t.Helper()
	items := make([]pawl.Item, n)
	for i := range items {
		items[i] = pawl.NewItem(Welcome{UserID: int64(i)}, opts...)
	}
	receipts, err := r.EnqueueMany(r.town.t.Context(), items...)
	r.must(err)
	for _, receipt := range receipts {
		ids = append(ids, receipt.ID)
	}
	return ids
}

func (r *resident) must(err error) {
	r.town.t.Helper()
	if err != nil {
		r.town.t.Fatal(err)
	}
}

// state is where a job stands.
func (r *resident) state(id pawl.ID) pawl.State {
	r.town.t.Helper()
	j, err := r.Get(r.town.t.Context(), id)
	r.must(err)
	return j.State
}

// soon is long enough for everybody to hear of something, and shorter than a beat or a poll.
func soon() { pass(time.Second) }

func pass(d time.Duration) {
	time.Sleep(d) // virtual
	synctest.Wait()
}

func ignoring(e *pawl.Engine) { ignore[Welcome](e) }

func waiting(e *pawl.Engine) {
	pawl.Handle(e, func(ctx context.Context, _ *pawl.Job[Welcome]) error { <-ctx.Done(); return ctx.Err() })
}
