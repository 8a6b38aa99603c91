package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/internal/feed/feedtest"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres"
	"github.com/pawlwork/pawl/stream/streamtest"
)

func spoilNewest(t testing.TB, s store.Store) {
	t.Helper()
	feedtest.Exec(t, s, "UPDATE event SET rest = '\\x01' WHERE seq = (SELECT max(seq) FROM event)")
}

func TestStreams(t *testing.T) {
	t.Parallel()
	streamtest.Run(t, func(t *testing.T) streamtest.Fixture { return feedtest.Fixture(t, fresh(t), spoilNewest) })
}

func TestStreams_BehindAPooler(t *testing.T) {
	t.Parallel()
	p := startPooler(t)
	streamtest.Run(t, func(t *testing.T) streamtest.Fixture { return feedtest.Fixture(t, p.fresh(t), spoilNewest) })
}

func TestStreams_OnlyTheUsersPool(t *testing.T) {
	t.Parallel()
	streamtest.Run(t, func(t *testing.T) streamtest.Fixture { return feedtest.Fixture(t, onlyPool(t), spoilNewest) })
}

// onlyPool is a store that has nothing but the user's pool, which is as small as it may be.
func onlyPool(t *testing.T) store.Opener {
	t.Helper()
	db := need.ReusedPostgres(t, postgres.Emptying)
	config, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 2
	p, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return postgres.Pool(p, postgres.Options{Schema: db.Schema, OnlyPool: true})
}

func TestStreams_Spaces(t *testing.T) {
	t.Parallel()
	streamtest.Run(t, func(t *testing.T) streamtest.Fixture {
		spaces, _, _ := spacesOn(t, need.ReusedPostgres(t, postgres.Emptying))
		return feedtest.Fixture(t, within{spaces, "one-of-many"}, spoilNewest)
	})
}

// within opens one namespace of those that share an opener.
type within struct {
	store.Opener
	namespace string
}

func (w within) Open(ctx context.Context, s store.Settings) (store.Store, error) {
	s.Namespace = w.namespace
	return w.Opener.Open(ctx, s)
}

func TestE8_GroupsAgreeWithAModel(t *testing.T) {
	t.Parallel()
	feedtest.RunModel(t, 12, fresh, func(t *testing.T, program func(*testing.T)) { t.Run("program", program) })
}

func TestReadAhead(t *testing.T) {
	t.Parallel()
	feedtest.RunAhead(t, func(t *testing.T) (one, other store.Opener) {
		o := fresh(t)
		return o, o
	})
}
