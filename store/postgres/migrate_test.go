package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres"
	"github.com/pawlwork/pawl/store/storetest"
)

func openWith(t *testing.T, db need.Database, m store.Migrate) error {
	t.Helper()
	s, err := postgres.Pool(pool(t, db), postgres.Options{Schema: db.Schema}).Open(t.Context(), store.Settings{Migrate: m})
	if err != nil {
		return err
	}
	_, err = s.Enqueue(t.Context(), []job.Draft{{ID: job.NewID(), Queue: "q", Kind: "k", Priority: 5, Attempts: 1}})
	if e := s.Close(); e != nil {
		t.Error(e)
	}
	return err
}

func execute(t *testing.T, address, statement string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	mode := []any{}
	if len(args) == 0 {
		mode = append(mode, pgx.QueryExecModeSimpleProtocol) // several statements in one text
	}
	if _, err := conn.Exec(t.Context(), statement, append(mode, args...)...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func TestMigrate_CheckDoesNotMakeATable(t *testing.T) {
	db := need.Postgres(t)
	wantErr(t, "check on an empty schema", openWith(t, db, store.MigrateCheck), store.ErrSchemaOlder)
	wantErr(t, "check once more", openWith(t, db, store.MigrateCheck), store.ErrSchemaOlder)
	if err := openWith(t, db, store.MigrateAuto); err != nil {
		t.Fatal(err)
	}
	for _, m := range []store.Migrate{store.MigrateAuto, store.MigrateCheck, store.MigrateOff} {
		if err := openWith(t, db, m); err != nil {
			t.Errorf("mode %d on a schema that is up to date: %v", m, err)
		}
	}
}

// A deploy starts all its processes at once.
func TestMigrate_ManyAtOnce(t *testing.T) {
	db := need.Postgres(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := openWith(t, db, store.MigrateAuto); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestMigrate_TablesOfSomebodyElseAreLeftAlone(t *testing.T) {
	db := need.Postgres(t)
	execute(t, db.URL, "CREATE TABLE job (mine int); INSERT INTO job VALUES (1)")
	wantErr(t, "a schema with a table of that name", openWith(t, db, store.MigrateAuto), store.ErrForeign)
	execute(t, db.URL, "DROP TABLE job") // it is still there
	if err := openWith(t, db, store.MigrateAuto); err != nil {
		t.Errorf("half of the schema was left behind: %v", err)
	}
}

// "version" is a name that others use, too.
func TestMigrate_AVersionTableOfSomebodyElse(t *testing.T) {
	db := need.Postgres(t)
	execute(t, db.URL, "CREATE TABLE version (name text)")
	for _, m := range []store.Migrate{store.MigrateAuto, store.MigrateCheck} {
		wantErr(t, "a schema with a version table of another program", openWith(t, db, m), store.ErrForeign)
	}
}

// A schema's name is quoted everywhere, and what would break out of a line of the
// exported SQL is refused.
func TestMigrate_AnyNameOfASchema(t *testing.T) {
	db := need.Postgres(t)
	server := db
	for _, name := range []string{"UPPER", `Q"uo"te`, "a'b; --", "pawl.job", "{now}", "$1 %s", "größe 日本", "select"} {
		db.Schema = name + server.Schema[len(server.Schema)-8:]
		if err := openWith(t, db, store.MigrateAuto); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		execute(t, db.URL, "DROP SCHEMA "+pgx.Identifier{db.Schema}.Sanitize()+" CASCADE")
	}
	for _, name := range []string{"a\nb", "a\x00b", "a\xffb", "pg_pawl", strings.Repeat("x", 64)} {
		db.Schema = name
		wantErr(t, name, openWith(t, db, store.MigrateAuto), job.ErrInvalid)
	}
}

// The next build's schema can be used by this one as long as it says so: a
// rollback of a deploy works.
func TestMigrate_ANewerSchemaThatThisBuildMayUse(t *testing.T) {
	newest := len(postgres.Migrations("x"))
	for _, c := range []struct {
		version, oldest int
		want            error
	}{
		{newest + 1, newest, nil},
		{newest + 3, newest + 1, store.ErrSchemaNewer},
	} {
		db := need.Postgres(t)
		if err := openWith(t, db, store.MigrateAuto); err != nil {
			t.Fatal(err)
		}
		execute(t, db.URL, "UPDATE version SET version = $1, oldest = $2", c.version, c.oldest)
		for _, m := range []store.Migrate{store.MigrateAuto, store.MigrateCheck} {
			wantErr(t, fmt.Sprintf("schema %d that build %d may use, mode %d", c.version, c.oldest, m), openWith(t, db, m), c.want)
		}
	}
}

func TestMigrate_StepsAreInOrder(t *testing.T) {
	for i, m := range postgres.Migrations("x") {
		if m.Version != i+1 || m.Oldest < 1 || m.Oldest > m.Version || m.Name == "" {
			t.Errorf("step %d is %d, oldest %d, %q", i+1, m.Version, m.Oldest, m.Name)
		}
	}
}

// grants is what docs/postgres.md tells an operator to give the role.
const grants = `GRANT USAGE ON SCHEMA %[1]s TO %[2]s;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[1]s TO %[2]s;
GRANT SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA %[1]s TO %[2]s;`

// checked opens stores the way a role without rights on the schema must.
type checked struct{ store.Opener }

func (c checked) Open(ctx context.Context, s store.Settings) (store.Store, error) {
	s.Migrate = store.MigrateCheck
	return c.Opener.Open(ctx, s)
}

// A team applies the exported SQL with its own tool, as its own owner, and Pawl
// connects as a role that may make no table there, not even a temporary one. And it is a
// small service with two connections: everything works, and nothing waits for a second
// connection while it holds the first.
func TestConformance_RoleWithTwoConnections(t *testing.T) {
	t.Parallel()
	owner := need.PostgresServer(t).URL()
	execute(t, owner, "CREATE ROLE worker LOGIN; REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC")
	var schemas shelf
	storetest.Run(t, storetest.Declared("postgres two connections"), func(t *testing.T) store.Opener {
		names := func(n int) (pawl, own string) { return fmt.Sprintf("pawl_%d", n), fmt.Sprintf("own_%d", n) }
		pawl, own := names(schemas.take(t, func(n int) error {
			pawl, own := names(n)
			for _, m := range postgres.Migrations(pawl) {
				execute(t, owner, m.SQL)
			}
			execute(t, owner, fmt.Sprintf(grants, pawl, "worker"))
			execute(t, owner, fmt.Sprintf("CREATE SCHEMA %s AUTHORIZATION worker", own)) // for the user's rows of the suite
			return nil
		}, func(n int) error {
			pawl, own := names(n)
			conn, err := pgx.Connect(context.Background(), owner)
			if err != nil {
				return err
			}
			_, err = conn.Exec(context.Background(), fmt.Sprintf("SET search_path = %s, %s; ", pawl, own)+postgres.Emptying)
			return errors.Join(err, conn.Close(context.Background()))
		}))
		address, err := url.Parse(owner)
		if err != nil {
			t.Fatal(err)
		}
		address.User = url.User("worker")
		query := address.Query()
		query.Set("search_path", own)
		address.RawQuery = query.Encode()
		p := connect(t, address.String())
		for _, statement := range []string{"CREATE TABLE " + pawl + ".x ()", "CREATE TEMPORARY TABLE x ()", "CREATE SCHEMA x"} {
			if _, err := p.Exec(t.Context(), statement); err == nil {
				t.Fatalf("the role may %s", statement)
			}
		}
		return checked{postgres.Pool(p, postgres.Options{Schema: pawl, Connections: 2})}
	})
}
