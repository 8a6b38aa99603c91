package postgres

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/claims"
	"github.com/pawlwork/pawl/store/postgres/internal/groups"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/intents"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/limits"
	"github.com/pawlwork/pawl/store/postgres/internal/lists"
	"github.com/pawlwork/pawl/store/postgres/internal/log"
	"github.com/pawlwork/pawl/store/postgres/internal/metrics"
	"github.com/pawlwork/pawl/store/postgres/internal/operations"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/schedules"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// plans are those of all rooms.
var plans = slices.Concat(hints.Plans, settings.Plans, workers.Plans, jobs.Plans, jobs.TablePlans(tables, asks), claims.Plans, lists.Plans, intents.Plans,
	operations.Plans, schedules.Plans, limits.Plans, metrics.Plans, log.Plans, groups.Plans)

// large are the tables of which no transition may read a whole namespace.
var large = []string{"event", "retry", "seen", "delayed", "key_version", "job", "job_archive", "job_unique", "job_log", "tombstone", "hint", "audit", "intent"}

// Every statement finds its rows by its index, whatever the planner believes
// about the tables: they are empty and without statistics here, the moment in
// which a plan is made that is then used for a million rows.
func TestP10_EveryStatementHasItsIndex(t *testing.T) { checkPlans(t, openInternal(t)) }

// checkPlans plans every statement with what the planner knows now.
func checkPlans(t *testing.T, s *Store) {
	t.Helper()
	conn, err := s.pg.Work.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, want := range plans {
		t.Run(want.Name, func(t *testing.T) {
			plan := explainGeneric(t, s, conn.Conn(), want.Text)
			var used []string
			plan.walk(func(n *planNode) {
				if n.Index != "" {
					used = append(used, n.Index)
				}
				if !slices.Contains(large, n.Relation) || n.Type == "ModifyTable" || n.Type == "Tid Scan" {
					return
				}
				if n.Type == "Seq Scan" {
					t.Errorf("%s of %s", n.Type, n.Relation)
				}
				if n.Index != "" && wholeNamespace.MatchString(n.Cond) {
					t.Errorf("%s reads a whole namespace of %s: %s", n.Index, n.Relation, n.Cond)
				}
			})
			for _, index := range want.Indexes {
				if !slices.Contains(used, index) {
					t.Errorf("the plan uses %v, not %s", used, index)
				}
			}
		})
	}
}

// A condition on the namespace and on nothing else.
var wholeNamespace = regexp.MustCompile(`^\(\w*\.?"?namespace"? = [^()]*\)$`)

type planNode struct {
	Type     string      `json:"Node Type"`
	Relation string      `json:"Relation Name"`
	Index    string      `json:"Index Name"`
	Cond     string      `json:"Index Cond"`
	Plans    []*planNode `json:"Plans"`
}

func (n *planNode) walk(f func(*planNode)) {
	f(n)
	for _, p := range n.Plans {
		p.walk(f)
	}
}

// explainGeneric plans a statement as the store has it planned.
func explainGeneric(t *testing.T, s *Store, conn *pgx.Conn, text string) *planNode {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec := func(text string, args ...any) {
		t.Helper()
		if _, err := tx.Exec(t.Context(), text, args...); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	exec(pg.SettingsText, pg.SharedLimits.Args()...)
	defer func() {
		_ = tx.Rollback(context.WithoutCancel(t.Context()))
		_, _ = conn.Exec(context.WithoutCancel(t.Context()), "DEALLOCATE planned")
	}()
	exec("PREPARE planned AS " + s.pg.SQL(text))
	most := 0
	for _, found := range regexp.MustCompile(`\$(\d+)`).FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(found[1])
		most = max(most, n)
	}
	call := "planned"
	if most > 0 {
		call += "(" + strings.TrimSuffix(strings.Repeat("NULL,", most), ",") + ")"
	}
	var raw []byte
	if err := tx.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON) EXECUTE "+call, pgx.QueryExecModeSimpleProtocol).Scan(&raw); err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan *planNode }
	if err := json.Unmarshal(raw, &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan
}

// openInternal opens a store on a schema of the test's own.
func openInternal(t testing.TB, edit ...func(*Options)) *Store {
	t.Helper()
	db := need.Postgres(t)
	options := Options{Schema: db.Schema}
	for _, e := range edit {
		e(&options)
	}
	return openOn(t, db.URL, options, store.Settings{})
}

func openOn(t testing.TB, address string, options Options, settings store.Settings) *Store {
	t.Helper()
	opened, err := Pool(newPool(t, address), options).Open(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	s, _ := of(opened)
	return s
}

// someDraft is a valid draft with some fields changed.
func someDraft(edit ...func(*job.Draft)) job.Draft {
	d := job.Draft{ID: job.NewID(), Kind: "k", Queue: "q", Priority: 5, Attempts: 5, Args: []byte("{}")}
	for _, e := range edit {
		e(&d)
	}
	return d
}
