package postgres_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres"
	"github.com/pawlwork/pawl/store/sqlite"
	"github.com/pawlwork/pawl/store/storetest"
)

func TestMain(m *testing.M) {
	// More at once than there are processors: these tests wait for the disk more
	// than they compute. The command line may say otherwise.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := need.DropReused(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}))
}

// pool connects to a schema of the test's own.
func pool(t testing.TB, db need.Database) *pgxpool.Pool {
	t.Helper()
	return connect(t, db.URL)
}

func connect(t testing.TB, address string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// fresh makes an empty database.
func fresh(t *testing.T) store.Opener {
	db := need.ReusedPostgres(t, postgres.Emptying)
	return spoiler{postgres.Pool(pool(t, db), postgres.Options{Schema: db.Schema})}
}

// spoiler damages rows through the store's own transactions. The tests'
// connections have the schema as their search_path.
type spoiler struct{ store.Opener }

var spoiling = map[storetest.Part]string{
	storetest.Failures:         "UPDATE job SET failures = 'not frames' WHERE id = $1",
	storetest.ArchivedFailures: "UPDATE job_archive SET failures = 'not frames' WHERE id = $1",
	storetest.Tags:             "UPDATE job SET tags = '{{b},{c}}' WHERE id = $1",
	storetest.Capabilities:     "UPDATE job SET capabilities = '{NULL}' WHERE id = $1",
	storetest.State:            "UPDATE job SET state = 99 WHERE id = $1",
	storetest.Due:              "UPDATE job SET due = 'infinity' WHERE id = $1",
	storetest.Offer:            "UPDATE worker SET offer = 'not JSON', beat = 'infinity' WHERE id = $1",
	storetest.WorkerQueues:     "UPDATE worker SET queues = '{NULL}' WHERE id = $1",
	storetest.Totals:           "UPDATE worker SET totals = '{\"not\": \"a list\"}' WHERE id = $1",
}

func (spoiler) Spoil(ctx context.Context, s store.Store, part storetest.Part, id any) error {
	return storetest.SpoilBySQL(ctx, s, spoiling, part, id)
}

func (spoiler) Words() storetest.Words {
	return storetest.Words{
		Replacer: strings.NewReplacer("<", "", ">", "", "@true", "true", "@past", "timestamptz '2001-01-01'",
			"@future", "timestamptz '2100-01-01'", "@never", "'infinity'", "@junk", "'[]'::bytea", "@names", "'{a,NULL}'::text[]",
			"@place", "shelf_at", "@order", "transaction", "@first", "'1'::xid8"),
		ID: func(id job.ID) string { return fmt.Sprintf("'%s'::uuid", id) },
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Declared("postgres"), fresh)
}

// Postgres, SQLite and the model play the same programs: where they differ, one
// of three is wrong.
func TestConformance_Model(t *testing.T) {
	t.Parallel()
	storetest.RunModel(t, 100, fresh, func(*testing.T) store.Opener { return sqlite.Memory() })
}

// Deploys, rollbacks, crashes and operators: Postgres, SQLite and a model that knows
// neither tables nor rules of ours agree on what holds.
func TestJ30_DeploysAgreeWithAModel(t *testing.T) {
	t.Parallel()
	storetest.RunControlModel(t, 40, fresh, func(*testing.T) store.Opener { return sqlite.Memory() })
}

func TestConformance_Linear(t *testing.T) {
	t.Parallel()
	storetest.RunLinear(t, fresh)
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// Everything goes through the user's pool, which is as small as it may be.
func TestConformance_OnlyTheUsersPool(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Declared("postgres only the user's pool"), onlyPool)
}
