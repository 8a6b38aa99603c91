package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/internal/feed/feedtest"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// A server that crashed may have forgotten events that were read ahead, and given their numbers
// to others.
func TestE14_WhatWasReadBeforeACrashIsNotTaken(t *testing.T) {
	t.Parallel()
	g := newGroupLab(t)
	g.publish("a", "1", "2", "3", "4")
	match, err := stream.Filter{Topic: "a"}.Matcher()
	if err != nil {
		t.Fatal(err)
	}
	w, err := g.s.Register(t.Context(), store.Worker{Label: "m", LostAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	h, err := g.s.JoinGroup(t.Context(), store.GroupJoin{Group: "g", Member: "m", Filter: match.Filter, Worker: w})
	if err != nil {
		t.Fatal(err)
	}
	first, err := g.s.Turn(t.Context(), &store.Turn{Hand: h, Match: &match, Want: stream.Want{N: 2}})
	if err != nil || len(first.Given) != 2 {
		t.Fatalf("%d come, %v", len(first.Given), err)
	}
	a, err := g.s.ReadAhead(t.Context(), &match, first.Upto, []*store.Given{{}, {}})
	if err != nil || len(a.Given) != 2 {
		t.Fatalf("%d are read ahead, %v", len(a.Given), err)
	}
	crash := g.begin()
	g.run(crash, "DELETE FROM pawl.log_life")
	g.run(crash, "DELETE FROM pawl.event WHERE seq > $1", first.Upto)
	g.run(crash, "SELECT setval('pawl.event_seq', (SELECT max(seq) FROM pawl.event))")
	g.commit(crash)
	other := feedtest.New(t, g.open())
	if _, err := other.Publish(t.Context(), []stream.Publication{eventOf("5", "", "a"), eventOf("6", "", "a")}); err != nil {
		t.Fatal(err)
	}
	open := []int64{first.Given[0].Event.Position.Seq(), first.Given[1].Event.Position.Seq()}
	r, err := g.s.Turn(t.Context(), &store.Turn{Hand: first.Hand, Match: &match, Want: stream.Want{N: 2}, Open: open, Ahead: &a})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range r.Given {
		got = append(got, r.Given[i].Event.ID)
	}
	if r.Taken > 0 || fmt.Sprint(got) != "[5 6]" {
		t.Errorf("%d are taken of what was read before the crash, and %v come; want 5 and 6", r.Taken, got)
	}
}

// headAsks counts statements that ask for the head.
type headAsks struct{ n atomic.Int64 }

func (h *headAsks) note(text string) {
	if strings.Contains(text, "pg_locks") {
		h.n.Add(1)
	}
}

func (h *headAsks) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	h.note(d.SQL)
	return ctx
}
func (h *headAsks) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (h *headAsks) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (h *headAsks) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	h.note(d.SQL)
}
func (h *headAsks) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// Whoever waits was told of an event by a look at the head. The turn that fetches it does not
// look again: its handler would wait for that.
func TestE10_AnIdleTurnAsksForNoHead(t *testing.T) {
	t.Parallel()
	db := need.Postgres(t)
	config, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	asks := &headAsks{}
	config.ConnConfig.Tracer = asks
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	opened, err := Pool(pool, Options{Schema: db.Schema}).Open(t.Context(), store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	s, _ := of(opened)
	p := joinOn(t, feedtest.New(t, s), memberOf("g", "a", "m", stream.Competing))
	p.want()
	for _, id := range []string{"1", "2"} {
		if _, err := s.Append(t.Context(), []stream.Publication{eventOf(id, "", "a")}); err != nil {
			t.Fatal(err)
		}
		before := asks.n.Load()
		if _, err := s.Head(t.Context()); err != nil {
			t.Fatal(err)
		}
		looked := asks.n.Load()
		p.want(id)
		if looked == before || asks.n.Load() != looked {
			t.Errorf("%s: %d looks at the head by who waits, and %d more by the turn", id, looked-before, asks.n.Load()-looked)
		}
	}
	if _, err := s.Append(t.Context(), []stream.Publication{eventOf("3", "", "a")}); err != nil {
		t.Fatal(err)
	}
	p.want("3") // nobody has looked since
}
