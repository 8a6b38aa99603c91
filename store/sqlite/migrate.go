package sqlite

import (
	"embed"
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Migration is one step of the schema, for teams that apply SQL with a tool of
// their own and open with store.MigrateCheck.
type Migration struct {
	// Version is the schema's number after the step.
	Version int
	// Oldest is the oldest build that can use the schema after the step, as the
	// number of the newest step it knows. It lets two builds run side by side.
	Oldest int
	// Name says what the step is about.
	Name string
	// SQL is the whole step, including the note of its version.
	SQL string
}

//go:embed schema/*.sql
var schemaFiles embed.FS

// Steps are only ever added. A step that an older build cannot live with raises
// Oldest; that build then refuses the file with ErrSchemaNewer.
var steps = []Migration{
	{Version: 1, Oldest: 1, Name: "jobs"},
	{Version: 2, Oldest: 1, Name: "streams"},
}

const versionTable = `CREATE TABLE IF NOT EXISTS pawl_schema (
    only    INTEGER PRIMARY KEY CHECK (only = 1),
    version INTEGER NOT NULL,
    oldest  INTEGER NOT NULL -- the oldest build, by the newest step it knows, that may use this file
) STRICT;
`

const noteVersion = `
INSERT OR REPLACE INTO pawl_schema (only, version, oldest)
VALUES (1, %d, %d);
`

// Migrations returns every step in order.
func Migrations() []Migration {
	list := make([]Migration, len(steps))
	for i, m := range steps {
		text, err := schemaFiles.ReadFile(fmt.Sprintf("schema/%04d_%s.sql", m.Version, m.Name))
		if err != nil { // embedded: a step without its file does not pass the tests
			panic("sqlite: " + err.Error())
		}
		m.SQL = string(text) + fmt.Sprintf(noteVersion, m.Version, m.Oldest)
		if i == 0 {
			m.SQL = versionTable + "\n" + m.SQL
		}
		list[i] = m
	}
	return list
}

// What reads the numbers of a file: both tables have a row or a few.
const (
	findVersion = `SELECT 1
	FROM sqlite_schema
	WHERE type = 'table' AND name = 'pawl_schema'`

	readVersion = `SELECT version, oldest
	FROM pawl_schema`
)

// schemaVersion reads the numbers of the file; zeros when it is not ours yet.
func schemaVersion(c *lite.Conn) (version, oldest int, err error) {
	ok, err := c.Query(findVersion).Found()
	if err != nil || !ok {
		return 0, 0, err
	}
	q := c.Query(readVersion)
	if q.Step() {
		version, oldest = int(q.ColInt(0)), int(q.ColInt(1))
	}
	return version, oldest, q.Done()
}

// migrate checks the schema and brings it up to date where that is allowed.
// Two processes that open a new file at once do it one after the other: the
// version is read again under the write lock.
func migrate(file *lite.Database, c *lite.Conn, mode store.Migrate) error {
	list := Migrations()
	newest := list[len(list)-1].Version
	if mode == store.MigrateOff {
		return file.UseWAL(c)
	}
	version, oldest, err := schemaVersion(c)
	if err != nil {
		return err
	}
	if version > newest && oldest > newest {
		return fmt.Errorf("open %s: %w: it has schema %d, which needs a build that knows %d; this one knows %d",
			file.Name, store.ErrSchemaNewer, version, oldest, newest)
	}
	if version < newest && mode == store.MigrateCheck {
		return fmt.Errorf("open %s: %w: it has schema %d, this build needs %d", file.Name, store.ErrSchemaOlder, version, newest)
	}
	if err := file.UseWAL(c); err != nil {
		return err
	}
	if version >= newest {
		return nil
	}
	if err := c.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := apply(c, list); err != nil {
		if !c.Raw.GetAutocommit() {
			err = errors.Join(err, c.Exec("ROLLBACK"))
		}
		return err
	}
	return c.Exec("COMMIT")
}

func apply(c *lite.Conn, list []Migration) error {
	version, _, err := schemaVersion(c)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.Version <= version {
			continue
		}
		if err := c.Raw.Exec(m.SQL); err != nil {
			if errors.Is(err, sqlite3.ERROR) && strings.Contains(err.Error(), "already exists") {
				return fmt.Errorf("%w: schema step %d: %w", store.ErrForeign, m.Version, err)
			}
			return fmt.Errorf("schema step %d: %w", m.Version, err)
		}
	}
	return nil
}
