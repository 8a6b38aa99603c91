package postgres

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Connections is all of them: what listens is part of it.
func TestP10_ConnectionsAreDivided(t *testing.T) {
	for _, c := range []struct {
		options Options
		shared  int
		listens bool
	}{
		{Options{}, 9, true},
		{Options{PollOnly: true}, 10, false},
		{Options{Connections: 2}, 2, false},
		{Options{Connections: 3}, 2, true},
		{Options{Connections: 40}, 39, true},
		{Options{OnlyPool: true}, 4, false},
	} {
		o := c.options.withDefaults(0)
		if err := o.check(0); err != nil {
			t.Errorf("%+v: %v", c.options, err)
		}
		if n := o.shared(&pgxpool.Config{MaxConns: 4}); n != c.shared || o.listens() != c.listens {
			t.Errorf("%+v: %d are shared, listens is %v; want %d, %v", c.options, n, o.listens(), c.shared, c.listens)
		}
	}
	for _, c := range []struct {
		options Options
		want    []string
	}{
		{Options{Connections: 1}, []string{"connections", "1", "2..200"}},
		{Options{Connections: 201}, []string{"connections", "201", "2..200"}},
		{Options{ReadLimit: time.Millisecond}, []string{"read limit", "1ms", "100ms..10m"}},
	} {
		faulty(t, c.options.withDefaults(0).check(0), c.want)
	}
}

// What roles may have of n connections: no two of different groups take each other's last one.
func TestP10_ConnectionsAreSharedByRoles(t *testing.T) {
	for n, want := range map[int]struct{ reserved, finish, upkeep, claim, work, reading int }{
		2:  {1, 1, 1, 1, 1, 1},
		3:  {1, 1, 1, 1, 1, 1},
		6:  {1, 1, 1, 1, 1, 1},
		7:  {2, 2, 1, 2, 2, 1},
		9:  {3, 4, 2, 3, 3, 1},
		16: {10, 11, 4, 10, 10, 2},
		39: {33, 34, 9, 33, 33, 4},
	} {
		r := pg.Share(nil, n)
		got := [...]int{r.Reserved.Size(), r.Finish.Size(), r.Upkeep.Size(), r.Claim.Size(), r.Work.Size(), r.Reading.Size()}
		if got != [...]int{want.reserved, want.finish, want.upkeep, want.claim, want.work, want.reading} {
			t.Errorf("of %d connections the roles may have %v, want %v", n, got, want)
		}
	}
}

func faulty(t *testing.T, err error, want []string) {
	t.Helper()
	if !errors.Is(err, job.ErrInvalid) {
		t.Fatalf("%v, want ErrInvalid that says %v", err, want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

// A pool that cannot carry the store's own work is refused before anything is done.
func TestP10_OnlyPoolNeedsAPoolThatCanCarryIt(t *testing.T) {
	config, err := pgxpool.ParseConfig("postgres://nobody@127.0.0.1/nothing?pool_max_conns=1")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{OnlyPool: true}
	faulty(t, o.checkPool(config), []string{"pool size", "1", "2 or more"})
	config.MaxConns = 2
	if err := o.checkPool(config); err != nil {
		t.Error(err)
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	faulty(t, o.checkPool(config), []string{"query mode", "exec", "cache_describe"})
	if err := (Options{}).checkPool(config); err != nil {
		t.Error(err)
	}
}

func TestP10_ConnectionsByAddress(t *testing.T) {
	opener, err := parse("postgres://nobody@127.0.0.1/nothing?pawl_connections=2")
	if err != nil {
		t.Fatal(err)
	}
	if by := opener.(byAddress); by.options.Connections != 2 || by.config.ConnConfig.RuntimeParams["pawl_connections"] != "" {
		t.Errorf("%+v", by.options)
	}
	for _, text := range []string{"0", "two", "2.5"} {
		_, err := parse("postgres://nobody@127.0.0.1/nothing?pawl_connections=" + text)
		faulty(t, err, []string{"pawl_connections", text, "2 to 200"})
	}
}

// Settings that contradict one another are refused, not passed over.
func TestP10_OptionsThatContradictAreRefused(t *testing.T) {
	config, err := pgxpool.ParseConfig("postgres://nobody@127.0.0.1/nothing")
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, c := range []struct {
		options   Options
		lostAfter time.Duration
		want      []string // nothing: it is fine
	}{
		{Options{OnlyPool: true}, 0, nil},
		{Options{OnlyPool: true, Connections: 5}, 0, []string{"Options.Connections 5", "must be 0 with Options.OnlyPool"}},
		{Options{}, 30 * time.Second, nil},
		{Options{}, 6 * time.Second, nil}, // the default goes below
		{Options{TxIdle: 29 * time.Second}, 30 * time.Second, nil},
		{Options{TxIdle: 30 * time.Second}, 30 * time.Second, []string{"Options.TxIdle 30s", "below Config.LostAfter, 30s"}},
		{Options{TxIdle: time.Hour}, 0, nil}, // a store without a worker
	} {
		s, err := NewSpaces(pool, c.options).prepare(store.Settings{LostAfter: c.lostAfter})
		if c.want != nil {
			faulty(t, err, c.want)
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c.options, err)
			continue
		}
		if c.lostAfter > 0 && s.options.TxIdle >= c.lostAfter {
			t.Errorf("%+v: idle for %v, lost after %v", c.options, s.options.TxIdle, c.lostAfter)
		}
		s.pg.End()
	}
}

// A misspelt parameter is told by its name; what it is set to stays unsaid.
func TestP10_UnknownParametersOfAnAddressAreRefused(t *testing.T) {
	for query, want := range map[string][]string{
		"pawl_conections=secret":          {`"pawl_conections"`, "pawl_connections"},
		"PAWL_SCHEMA=secret":              {`"PAWL_SCHEMA"`, "pawl_schema"},
		"pawl_tx_idle=1s":                 {`"pawl_tx_idle"`, "postgres.Options"},
		"pawl_schema=a&pawl_schema=b":     {`"pawl_schema"`, "once"},
		"pawl_a=1&sslmode=disable&pawl_b": {`"pawl_a"`, `"pawl_b"`},
	} {
		_, err := parse("postgres://nobody@127.0.0.1/nothing?" + query)
		faulty(t, err, want)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: its value is repeated: %v", query, err)
		}
	}
	if _, err := parse("postgres://nobody@127.0.0.1/nothing?pawl_schema=a&sslmode=disable&application_name=pawl_x"); err != nil {
		t.Error(err)
	}
}
