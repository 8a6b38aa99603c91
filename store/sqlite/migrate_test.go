package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
)

func openWith(t *testing.T, path string, m store.Migrate) error {
	t.Helper()
	s, err := File(path).Open(t.Context(), store.Settings{Migrate: m})
	if err != nil {
		return err
	}
	_, err = s.Enqueue(t.Context(), drafts(1))
	if e := s.Close(); e != nil {
		t.Error(e)
	}
	return err
}

func TestMigrate_CheckDoesNotMakeATable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work.db")
	wantErr(t, "check on a new file", openWith(t, path, store.MigrateCheck), store.ErrSchemaOlder)
	wantErr(t, "check once more", openWith(t, path, store.MigrateCheck), store.ErrSchemaOlder)
	if err := openWith(t, path, store.MigrateAuto); err != nil {
		t.Fatal(err)
	}
	for _, m := range []store.Migrate{store.MigrateAuto, store.MigrateCheck, store.MigrateOff} {
		if err := openWith(t, path, m); err != nil {
			t.Errorf("mode %d on a schema that is up to date: %v", m, err)
		}
	}
}

func TestMigrate_OffDoesNotLook(t *testing.T) {
	if openWith(t, filepath.Join(t.TempDir(), "work.db"), store.MigrateOff) == nil {
		t.Error("a file without tables could be used")
	}
}

// Teams apply the SQL with a tool of their own.
func TestMigrate_TheExportedSQLIsEnough(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work.db")
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range Migrations() {
		if err := c.Exec(m.SQL); err != nil {
			t.Fatalf("step %d: %v", m.Version, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := openWith(t, path, store.MigrateCheck); err != nil {
		t.Error(err)
	}
}

func TestMigrate_StepsAreInOrder(t *testing.T) {
	for i, m := range Migrations() {
		if m.Version != i+1 || m.Oldest < 1 || m.Oldest > m.Version || m.Name == "" {
			t.Errorf("step %d is %d, oldest %d, %q", i+1, m.Version, m.Oldest, m.Name)
		}
	}
}

// The next build's schema can be used by this one as long as it says so: a
// rollback of a deploy works.
func TestMigrate_ANewerSchemaThatThisBuildMayUse(t *testing.T) {
	newest := len(steps)
	for _, c := range []struct {
		version, oldest int
		want            error
	}{
		{newest + 1, newest, nil},
		{newest + 3, newest + 1, store.ErrSchemaNewer},
	} {
		path := filepath.Join(t.TempDir(), "work.db")
		s := open(t, File(path))
		if err := s.write(t.Context(), 1, func(tr *jobs.Transition) error {
			return tr.Query("UPDATE pawl_schema SET version = ?, oldest = ?").Int(int64(c.version)).Int(int64(c.oldest)).Exec()
		}); err != nil {
			t.Fatal(err)
		}
		s.Close()
		for _, m := range []store.Migrate{store.MigrateAuto, store.MigrateCheck} {
			err := openWith(t, path, m)
			if c.want == nil && err != nil {
				t.Errorf("schema %d that build %d may use, mode %d: %v", c.version, c.oldest, m, err)
			}
			if c.want != nil {
				wantErr(t, "a schema that is too new", err, c.want)
			}
		}
	}
}
