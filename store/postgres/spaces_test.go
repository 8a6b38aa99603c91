package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres"
	"github.com/pawlwork/pawl/store/storetest"
)

// statements counts what is sent over the connections of a pool, and of those made
// with its settings.
type statements struct {
	mu   sync.Mutex
	sent []string
}

func (s *statements) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, text)
}

// take is what was sent since the last time.
func (s *statements) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.sent
	s.sent = nil
	return sent
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	s.add(d.SQL)
	return ctx
}
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (s *statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	s.add(d.SQL)
}
func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// newSpaces is Spaces on a schema of the test's own, and what it sends.
func newSpaces(t *testing.T) (*postgres.Spaces, *pgxpool.Pool, *statements) {
	t.Helper()
	return spacesOn(t, need.Postgres(t))
}

func spacesOn(t *testing.T, db need.Database) (*postgres.Spaces, *pgxpool.Pool, *statements) {
	t.Helper()
	config, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	sent := &statements{}
	config.ConnConfig.Tracer = sent
	config.ConnConfig.RuntimeParams["application_name"] = db.Schema[len(db.Schema)-16:]
	p, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	spaces := postgres.NewSpaces(p, postgres.Options{Schema: db.Schema})
	t.Cleanup(func() {
		if err := spaces.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return spaces, p, sent
}

// space is one namespace with a worker.
type space struct {
	store.Store
	worker job.WorkerID
	mu     sync.Mutex // held for a claim
	seq    int64
}

func openSpaces(t *testing.T, spaces store.Opener, n int) []*space {
	t.Helper()
	list := make([]*space, n)
	for i := range list {
		s, err := spaces.Open(t.Context(), store.Settings{Namespace: fmt.Sprintf("tenant-%03d", i)})
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.Register(t.Context(), store.Worker{
			Label: "w", Queues: []string{"q"}, LostAfter: time.Minute, Machine: "here", Offer: job.Offer{Kinds: map[string]int{"k": 1}},
		})
		if err != nil {
			t.Fatal(err)
		}
		list[i] = &space{Store: s, worker: w}
	}
	return list
}

// claim asks for one job.
func (s *space) claim(ctx context.Context) ([]store.LeasedJob, error) {
	s.seq++
	reply, err := s.Claim(ctx, store.Claim{
		Worker: s.worker, Seq: s.seq, Queues: []store.QueueClaim{{Queue: "q", Limit: 1, Start: 1}}, Offer: job.Offer{Kinds: map[string]int{"k": 1}},
	})
	return reply.Jobs, err
}

// atOnce calls f for all of them at the same moment.
func atOnce(t *testing.T, list []*space, f func(*space) error) {
	t.Helper()
	var all sync.WaitGroup
	errs := make([]error, len(list))
	for i, s := range list {
		all.Go(func() { errs[i] = f(s) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// What a hundred idle namespaces ask at one moment is one statement. Those who come
// late, on a machine that is busy, may be one more each: the bound is far below a
// statement for each namespace.
func TestF12_ABeatAndALookOfManyNamespacesAreOneStatement(t *testing.T) {
	t.Parallel()
	const n = 100
	spaces, p, sent := newSpaces(t)
	list := openSpaces(t, spaces, n)
	var connections int
	counted := func() int {
		err := p.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = current_setting('application_name')").Scan(&connections)
		if err != nil {
			t.Fatal(err)
		}
		return connections
	}
	for range 2 { // the first claims look for themselves
		atOnce(t, list, func(s *space) error { _, err := s.claim(t.Context()); return err })
	}
	const few = n / 5
	for _, c := range []struct {
		what string
		call func(*space) error
	}{
		{"beats", func(s *space) error {
			reply, err := s.Beat(t.Context(), store.Beat{Worker: s.worker})
			if err == nil && (!reply.Leader || reply.Now.IsZero()) {
				return fmt.Errorf("the beat is answered %+v, want that it leads", reply)
			}
			return err
		}},
		{"looks for work", func(s *space) error { _, err := s.claim(t.Context()); return err }},
		{"looks for the late", func(s *space) error {
			_, err := s.MarkLost(t.Context(), store.MarkLostRequest{By: s.worker, Machine: "here", Steady: time.Minute})
			return err
		}},
		{"looks for what is due", func(s *space) error { _, err := s.Due(t.Context()); return err }},
		{"reports", func(s *space) error { _, err := s.ReportRuns(t.Context(), s.worker, nil); return err }},
		{"looks for unserved jobs", func(s *space) error { _, err := s.Unserved(t.Context(), s.worker, time.Minute); return err }},
	} {
		sent.take()
		atOnce(t, list, c.call)
		if got := sent.take(); len(got) > few {
			t.Errorf("%s of %d namespaces are %d statements, want one or a few; the last is %s", c.what, n, len(got), got[len(got)-1])
		}
	}
	if got := counted(); got > 16 {
		t.Errorf("%d namespaces have %d connections, want those of one store (10) and of the user's pool", n, got)
	}
}

// Workers with totals beat together with others while nobody comes or goes, and are
// told the same as alone.
func TestF12_BeatsOfNamespacesWithTotalsAreOneStatement(t *testing.T) {
	t.Parallel()
	const n = 30
	spaces, _, sent := newSpaces(t)
	list := openSpaces(t, spaces, n)
	versions, last := make([]int64, n), make([]store.BeatReply, n)
	register := func(s *space) (w job.WorkerID) {
		w, err := s.Register(t.Context(), store.Worker{Label: "w", Queues: []string{"q"}, LostAfter: time.Minute, Totals: []store.Total{{Queue: "q", Total: 4, Workers: 3}}})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	for _, s := range list {
		if err := s.Deregister(t.Context(), s.worker); err != nil {
			t.Fatal(err)
		}
		s.worker = register(s)
	}
	beat := func(i int) error {
		reply, err := list[i].Beat(t.Context(), store.Beat{Worker: list[i].worker, Splits: true, Version: versions[i]})
		versions[i], last[i] = reply.Version, reply
		return err
	}
	place := map[*space]int{}
	for i, s := range list {
		place[s] = i
		for range 4 { // it begins to share, hears that it does, and stores that
			if err := beat(i); err != nil {
				t.Fatal(err)
			}
		}
	}
	alone := slices.Clone(last)
	for range 2 {
		sent.take()
		atOnce(t, list, func(s *space) error { return beat(place[s]) })
		if got := sent.take(); len(got) > n/3 {
			t.Errorf("beats of %d namespaces with totals are %d statements; the last is %s", n, len(got), got[len(got)-1])
		}
		for i := range last {
			alone[i].Now = last[i].Now
			if diff := cmp.Diff(alone[i], last[i]); diff != "" {
				t.Errorf("together a beat is answered otherwise than alone (-alone +together):\n%s", diff)
			}
		}
	}

	// One that comes is heard of with the next beat, in its namespace.
	other := register(list[1])
	for range 3 {
		var v int64
		for range 3 {
			reply, err := list[1].Beat(t.Context(), store.Beat{Worker: other, Splits: true, Version: v})
			if err != nil {
				t.Fatal(err)
			}
			v = reply.Version
		}
		atOnce(t, list, func(s *space) error { return beat(place[s]) })
	}
	for i := range last {
		want := 1
		if i == 1 {
			want = 2
		}
		if got := last[i].Crews["q"].Workers; len(got) != want {
			t.Errorf("in namespace %d %v share, want %d workers", i, got, want)
		}
	}
}

// Namespaces that share everything see nothing of each other.
func TestF12_NamespacesThatShareConnectionsAreApart(t *testing.T) {
	t.Parallel()
	spaces, _, _ := newSpaces(t)
	list := openSpaces(t, spaces, 3)
	ctx, cancel := context.WithCancel(t.Context())
	var listening sync.WaitGroup
	defer listening.Wait()
	defer cancel()
	heard := make([]chan store.Hint, len(list))
	for i, s := range list {
		heard[i] = make(chan store.Hint, 100)
		listening.Go(func() {
			_ = s.Store.(store.Listener).Listen(ctx, func(h store.Hint) { heard[i] <- h })
		})
		if first := <-heard[i]; first != (store.Hint{}) {
			t.Fatalf("the first hint is %+v, want: look at everything", first)
		}
	}
	other, err := spaces.Open(t.Context(), store.Settings{Namespace: "tenant-001"}) // as another process would
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Enqueue(t.Context(), []job.Draft{{ID: job.NewID(), Kind: "k", Queue: "q", Priority: 5, Attempts: 1}}); err != nil {
		t.Fatal(err)
	}
	if h := <-heard[1]; h.Name != "q" {
		t.Errorf("the namespace hears %+v, want its queue", h)
	}
	if err := other.SetPaused(t.Context(), store.OfQueue("none"), true, store.Operator{}); err != nil { // heard after what others could have heard
		t.Fatal(err)
	}
	<-heard[1]
	for _, i := range []int{0, 2} {
		if len(heard[i]) > 0 {
			t.Errorf("another namespace hears %+v", <-heard[i])
		}
		if jobs, err := list[i].claim(t.Context()); err != nil || len(jobs) > 0 {
			t.Errorf("another namespace claims %d jobs, %v", len(jobs), err)
		}
	}
	if jobs, err := list[1].claim(t.Context()); err != nil || len(jobs) != 1 {
		t.Errorf("its own claims %d jobs, %v, want 1", len(jobs), err)
	}
}

// A worker that was declared lost hears so, and so does one whose row is locked
// get its beat; the others at the same moment do not notice.
func TestP8_OneNamespaceOfManyAtAMeetingIsInTrouble(t *testing.T) {
	t.Parallel()
	spaces, p, _ := newSpaces(t)
	list := openSpaces(t, spaces, 10)
	if err := list[3].Deregister(t.Context(), list[3].worker); err != nil {
		t.Fatal(err)
	}
	tx, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "SELECT FROM worker WHERE id = $1 FOR UPDATE", list[5].worker); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		errs := make([]error, len(list))
		var late error // of the one whose row is locked
		var others, locked sync.WaitGroup
		for i, s := range list {
			waits, answer := &others, &errs[i]
			if i == 5 {
				waits, answer = &locked, &late
			}
			waits.Go(func() { _, *answer = s.Beat(t.Context(), store.Beat{Worker: s.worker}) })
		}
		others.Wait() // while the row is locked
		for i, err := range errs {
			switch {
			case i == 3 && !errors.Is(err, job.ErrWorkerLost):
				t.Errorf("the beat of a worker that left is answered %v", err)
			case i != 3 && err != nil:
				t.Errorf("the beat of another namespace is answered %v", err)
			}
		}
		if err := tx.Rollback(t.Context()); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			t.Fatal(err)
		}
		locked.Wait()
		if late != nil {
			t.Errorf("the beat of a worker whose row was locked is answered %v", late)
		}
	}
}

func TestF12_ClosingOneNamespaceLeavesTheOthersAndClosingSpacesClosesAll(t *testing.T) {
	t.Parallel()
	spaces, _, _ := newSpaces(t)
	list := openSpaces(t, spaces, 3)
	if err := list[0].Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := list[0].Now(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a call after Close is answered %v", err)
	}
	for _, s := range list[1:] {
		if _, err := s.Enqueue(t.Context(), []job.Draft{{ID: job.NewID(), Kind: "k", Queue: "q", Priority: 5, Attempts: 1}}); err != nil {
			t.Errorf("another namespace is answered %v", err)
		}
	}
	again, err := spaces.Open(t.Context(), store.Settings{Namespace: "tenant-000"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := spaces.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []store.Store{list[1], list[2], again} {
		if _, err := s.Now(t.Context()); !errors.Is(err, store.ErrClosed) {
			t.Errorf("a call after Close of all is answered %v", err)
		}
	}
	if _, err := spaces.Open(t.Context(), store.Settings{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Open after Close is answered %v", err)
	}
}

// company is an opener whose stores meet somebody of another namespace with every
// call that can meet: the whole suite goes through what is asked together.
type company struct {
	spoiler
	other *space
}

func (c company) Open(ctx context.Context, settings store.Settings) (store.Store, error) {
	s, err := c.spoiler.Open(ctx, settings)
	if err != nil {
		return nil, err
	}
	return inCompany{s.(postgres.Listening), c.other}, nil
}

type inCompany struct {
	postgres.Listening
	other *space
}

// meet makes the other's call beside one of this store.
func (s inCompany) meet(call func(*space)) func() {
	var beside sync.WaitGroup
	beside.Go(func() { call(s.other) })
	return beside.Wait
}

func (s inCompany) Beat(ctx context.Context, b store.Beat) (store.BeatReply, error) {
	defer s.meet(func(o *space) { _, _ = o.Store.Beat(ctx, store.Beat{Worker: o.worker}) })()
	return s.Listening.Beat(ctx, b)
}

func (s inCompany) Claim(ctx context.Context, c store.Claim) (store.ClaimReply, error) {
	defer s.meet(func(o *space) {
		if o.mu.TryLock() { // one worker claims once at a time
			defer o.mu.Unlock()
			_, _ = o.claim(ctx)
		}
	})()
	return s.Listening.Claim(ctx, c)
}

func (s inCompany) MarkLost(ctx context.Context, l store.MarkLostRequest) (store.MarkLostReply, error) {
	defer s.meet(func(o *space) { _, _ = o.Store.MarkLost(ctx, store.MarkLostRequest{By: o.worker}) })()
	return s.Listening.MarkLost(ctx, l)
}

func (s inCompany) Due(ctx context.Context) (store.Due, error) {
	defer s.meet(func(o *space) { _, _ = o.Store.Due(ctx) })()
	return s.Listening.Due(ctx)
}

func (s inCompany) ReportRuns(ctx context.Context, w job.WorkerID, refs []store.RunRef) (store.ReportReply, error) {
	defer s.meet(func(o *space) { _, _ = o.Store.ReportRuns(ctx, o.worker, nil) })()
	return s.Listening.ReportRuns(ctx, w, refs)
}

func (s inCompany) Unserved(ctx context.Context, by job.WorkerID, older time.Duration) ([]store.Unserved, error) {
	defer s.meet(func(o *space) { _, _ = o.Store.Unserved(ctx, o.worker, older) })()
	return s.Listening.Unserved(ctx, by, older)
}

func TestConformance_Spaces(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Declared("postgres spaces"), func(t *testing.T) store.Opener {
		spaces, _, _ := spacesOn(t, need.ReusedPostgres(t, postgres.Emptying))
		return company{spoiler{spaces}, openSpaces(t, spaces, 1)[0]}
	})
}
