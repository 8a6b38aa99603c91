package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/internal/feed"
	"github.com/pawlwork/pawl/internal/feed/feedtest"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// groupLab is a store with members that a test plays.
type groupLab struct {
	t    *testing.T
	s    *Store
	b    *feedtest.Backend
	pool *pgxpool.Pool // of a user
	name string        // of the store's connections
	url  string
	db   need.Database
}

func newGroupLab(t *testing.T) *groupLab {
	t.Helper()
	db := need.Postgres(t)
	g := &groupLab{t: t, pool: newPool(t, db.URL), name: db.Schema[len(db.Schema)-16:], db: db}
	g.url = db.URL + "&application_name=" + g.name
	g.s = g.open()
	g.b = feedtest.New(t, g.s)
	t.Cleanup(func() { feedtest.Check(t, g.s) })
	return g
}

// open opens the store once more, as another process does.
func (g *groupLab) open() *Store {
	return openOn(g.t, g.url, Options{Schema: g.db.Schema}, store.Settings{LostAfter: time.Hour})
}

func (g *groupLab) publish(topic string, ids ...string) {
	g.t.Helper()
	list := make([]stream.Publication, len(ids))
	for i, id := range ids {
		list[i] = eventOf(id, "", topic)
	}
	if _, err := g.b.Publish(g.t.Context(), list); err != nil {
		g.t.Fatal(err)
	}
}

// player is a member, and what it has open.
type player struct {
	t    *testing.T
	feed *feed.Feed
	open map[string]stream.Delivery
}

func memberOf(group, pattern, name string, mode stream.Mode) stream.Membership {
	match, err := stream.Filter{Topic: pattern}.Matcher()
	if err != nil {
		panic(err)
	}
	return stream.Membership{Group: group, Member: name, Match: match, Mode: mode}
}

func (g *groupLab) join(group, pattern, name string, mode stream.Mode) *player {
	g.t.Helper()
	return joinOn(g.t, g.b, memberOf(group, pattern, name, mode))
}

func joinOn(t *testing.T, b *feedtest.Backend, m stream.Membership) *player {
	t.Helper()
	f, err := b.Join(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return &player{t, f.(*feed.Feed), map[string]stream.Delivery{}}
}

// try settles and fetches. It is idle when nothing stays open.
func (p *player) try(n int, settled ...stream.Settlement) ([]string, error) {
	p.t.Helper()
	closed := map[int64]bool{}
	for _, s := range settled {
		closed[s.Ref] = s.Verdict != stream.Kept
	}
	idle := true
	for _, d := range p.open {
		idle = idle && closed[d.Ref]
	}
	got, err := p.feed.Next(p.t.Context(), settled, stream.Want{N: n, Idle: idle})
	if err != nil {
		return nil, err
	}
	for id, d := range p.open {
		if closed[d.Ref] {
			delete(p.open, id)
		}
	}
	var ids []string
	for _, d := range got {
		if _, twice := p.open[d.Event.ID]; twice {
			p.t.Errorf("%s is given while it is open", d.Event.ID)
		}
		p.open[d.Event.ID] = d
		ids = append(ids, d.Event.ID)
	}
	return ids, nil
}

func (p *player) next(n int, settled ...stream.Settlement) []string {
	p.t.Helper()
	ids, err := p.try(n, settled...)
	if err != nil {
		p.t.Fatal(err)
	}
	return ids
}

func (p *player) want(ids ...string) {
	p.t.Helper()
	got := p.next(100)
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		p.t.Fatalf("%v come, want %v", got, ids)
	}
}

func (p *player) say(id string, v stream.Verdict) stream.Settlement {
	p.t.Helper()
	d, ok := p.open[id]
	if !ok {
		p.t.Fatalf("%s is not open", id)
	}
	return stream.Settlement{Ref: d.Ref, Verdict: v}
}

func (p *player) all() (list []stream.Settlement) {
	for _, d := range p.open {
		list = append(list, stream.Settlement{Ref: d.Ref})
	}
	return list
}

// drain gives and acks all that comes.
func (p *player) drain() (ids []string) {
	p.t.Helper()
	for {
		got := p.next(7, p.all()...)
		if ids = append(ids, got...); len(got) == 0 {
			return ids
		}
	}
}

func (p *player) lost(what string, err error) {
	p.t.Helper()
	if !errors.Is(err, stream.ErrFeedLost) {
		p.t.Errorf("%s: %v, want ErrFeedLost", what, err)
	}
}

// begin is a user's transaction.
func (g *groupLab) begin() pgx.Tx {
	g.t.Helper()
	tx, err := g.pool.Begin(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func (g *groupLab) run(tx pgx.Tx, text string, args ...any) {
	g.t.Helper()
	if _, err := tx.Exec(g.t.Context(), g.s.pg.SQL(text), args...); err != nil {
		g.t.Fatal(err)
	}
}

func (g *groupLab) commit(tx pgx.Tx) {
	g.t.Helper()
	if err := tx.Commit(g.t.Context()); err != nil {
		g.t.Fatal(err)
	}
}

// waiting returns when n connections of the store wait for a lock, or with one that ends.
func (g *groupLab) waiting(n int, ended ...<-chan struct{}) {
	g.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		for _, e := range ended {
			select {
			case <-e:
				return
			default:
			}
		}
		some := 0
		err := g.pool.QueryRow(g.t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'", g.name).Scan(&some)
		if err != nil {
			g.t.Fatal(err)
		}
		if some >= n {
			return
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("%d connections wait, want %d", some, n)
		}
	}
}

// later makes a call that does not return yet.
func later[T any](f func() (T, error)) func() (T, error) {
	type answer struct {
		value T
		err   error
	}
	came := make(chan answer, 1)
	go func() {
		v, err := f()
		came <- answer{v, err}
	}()
	return func() (T, error) { a := <-came; return a.value, a.err }
}

func (g *groupLab) lose(p *player) (int, error) {
	return g.s.LoseMembers(g.t.Context(), store.LoseMembers{Hands: []int64{p.feed.Hand().ID}})
}

// kill takes a member for dead.
func (g *groupLab) kill(p *player) {
	g.t.Helper()
	if n, err := g.lose(p); n != 1 || err != nil {
		g.t.Fatalf("%d members are lost, %v", n, err)
	}
}

// suspect publishes an event and loses it twice.
func (g *groupLab) suspect(group, topic, id string) {
	g.t.Helper()
	g.publish(topic, id)
	for range 2 {
		m := g.join(group, topic, "dies", stream.Competing)
		m.want(id)
		g.kill(m)
	}
}
