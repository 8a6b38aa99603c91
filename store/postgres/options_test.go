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
)

// Connections is all of them: what listens and what is reserved is part of it.
func TestP10_ConnectionsAreDivided(t *testing.T) {
	for _, c := range []struct {
		options           Options
		working, reserved int
		listens           bool
	}{
		{Options{}, 6, 3, true},
		{Options{PollOnly: true}, 7, 3, false},
		{Options{Connections: 2}, 1, 1, false},
		{Options{Connections: 3}, 1, 1, true},
		{Options{Connections: 6}, 3, 2, true},
		{Options{Connections: 40}, 36, 3, true},
		{Options{Connections: 40, Reserved: 10}, 29, 10, true},
		{Options{OnlyPool: true}, 7, 3, false},
	} {
		o := c.options.withDefaults(0)
		if err := o.check(0); err != nil {
			t.Errorf("%+v: %v", c.options, err)
		}
		if o.working() != c.working || o.Reserved != c.reserved || o.listens() != c.listens {
			t.Errorf("%+v: %d work, %d are reserved, listens is %v; want %d, %d, %v", c.options, o.working(), o.Reserved, o.listens(), c.working, c.reserved, c.listens)
		}
		if all := o.working() + o.Reserved + map[bool]int{true: 1}[o.listens()]; all != o.Connections {
			t.Errorf("%+v: %d connections, want %d", c.options, all, o.Connections)
		}
	}
	for _, c := range []struct {
		options Options
		want    []string
	}{
		{Options{Connections: 1}, []string{"connections", "1", "2..200"}},
		{Options{Connections: 201}, []string{"connections", "201", "2..200"}},
		{Options{Connections: 2, Reserved: 2}, []string{"reserved", "2", "one of 2 connections"}},
		{Options{Reserved: 9}, []string{"reserved", "9", "one of 10 connections"}},
		{Options{Reserved: -1}, []string{"reserved", "-1", "one of 10 connections"}},
	} {
		faulty(t, c.options.withDefaults(0).check(0), c.want)
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
		{Options{OnlyPool: true, Reserved: 2}, 0, []string{"Options.Reserved 2", "must be 0 with Options.OnlyPool"}},
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
