package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

const (
	streamTopic = "bench"
	streamGroup = "bench"
	// How many events a member fetches at once: what suits each store. On SQLite it is as many as the raw loop. Its
	// handlers may have twice as many, so that the next are on their way while these are handled.
	fetchPostgres, fetchSQLite = 512, 256
	// pawlPublish is how many events one PublishMany hands in.
	pawlPublish = 1000
)

// pawlStream is Pawl's log through its public face. To publish is to enqueue here, and to consume and acknowledge by
// one group is to work.
type pawlStream struct {
	table  string // of the events
	engine *pawl.Engine
	group  *pawl.Subscription
	fetch  int
	total  int // of events, when the work began
}

func openPawlStream(table string, fetch int, opener store.Opener) (queue, error) {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	engine, err := pawl.New(opener, pawl.Config{Logger: logger})
	return &pawlStream{table: table, fetch: fetch, engine: engine}, err
}

func pawlPostgresStream(_ context.Context, at place) (queue, error) {
	opener, err := store.Parse(at.Postgres)
	if err != nil {
		return nil, err
	}
	return openPawlStream("pawl.event", fetchPostgres, opener)
}

func pawlSQLiteStream(_ context.Context, at place) (queue, error) {
	return openPawlStream("pawl_event", fetchSQLite, sqlite.File(at.file()))
}

func (s *pawlStream) Enqueue(ctx context.Context, p payload) error {
	_, err := s.engine.Publish(ctx, streamTopic, p)
	return err
}

func (s *pawlStream) Fill(ctx context.Context, ps []payload) error {
	for len(ps) > 0 {
		items := make([]pawl.EventItem, min(len(ps), pawlPublish))
		for i := range items {
			items[i] = pawl.NewEvent(streamTopic, ps[i])
		}
		if _, err := s.engine.PublishMany(ctx, items...); err != nil {
			return err
		}
		ps = ps[len(items):]
	}
	return nil
}

// Work is one member of a group. However many workers are asked for, it has as many as suit it.
func (s *pawlStream) Work(ctx context.Context, _ int, handle func(payload)) (func() error, error) {
	s.group = pawl.Subscribe(s.engine, streamGroup, streamTopic, func(_ context.Context, m *pawl.Message[payload]) error {
		handle(m.Data)
		return nil
	}, pawl.InFlight(2*s.fetch), pawl.Fetch(s.fetch))
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.engine.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

// acked is how many acknowledgements are stored.
func (s *pawlStream) acked() int {
	if s.group == nil {
		return 0
	}
	return int(s.group.Stats().Acked)
}

// Left counts events whose acknowledgement is not stored: the log keeps all of them, and counting them takes a while.
func (s *pawlStream) Left(ctx context.Context) (int, error) {
	if s.group != nil {
		return s.total - s.acked(), nil
	}
	err := s.engine.DB().QueryRowContext(ctx, "SELECT count(*) FROM "+s.table).Scan(&s.total)
	return s.total, err
}

func (s *pawlStream) Close() error {
	if s.engine == nil {
		return errors.New("pawl: not open")
	}
	return s.engine.Close()
}
