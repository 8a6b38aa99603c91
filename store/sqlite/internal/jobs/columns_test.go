package jobs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Every column of the tables is in the table of columns, and the other way round.
func TestColumns_AreThoseOfTheSchema(t *testing.T) {
	c := openSchema(t)
	for table, in := range map[string]tables{"pawl_job": inLive, "pawl_job_archive": inArchive} {
		var stored []string
		q := c.Once("SELECT name FROM pragma_table_info(?)").Text(table)
		for q.Step() {
			stored = append(stored, q.ColText(0))
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
		var named []string
		for _, c := range choose(func(c *column) bool { return c.is(in) }) {
			named = append(named, strings.Trim(c.name, `"`))
		}
		slices.Sort(stored)
		slices.Sort(named)
		if !slices.Equal(stored, named) {
			t.Errorf("%s has %q, the table of columns %q", table, stored, named)
		}
	}
}

// A column of the archive comes from the live row or from the end, not from both.
func TestColumns_ArchiveIsWritten(t *testing.T) {
	for i := range columns {
		c := &columns[i]
		if along, ends := c.is(goesAlong), c.final != nil; along && ends || c.is(inArchive) != (along || ends) {
			t.Errorf("%s: in the archive %t, goes along %t, of the end %t", c.name, c.is(inArchive), along, ends)
		}
		if (c.is(goesAlong) || c.draft != nil) && !c.is(inLive) || c.is(comesBack) && !c.is(goesAlong) || c.given != nil && c.draft == nil {
			t.Errorf("%s: what is said of it cannot be", c.name)
		}
	}
}

// openSchema is a database in memory with the tables as they are.
func openSchema(t testing.TB) *lite.Conn {
	t.Helper()
	d := lite.Database{Name: "memory", Path: ":memory:", Memory: true, Synchronous: "off"}
	c, err := d.Connect(t.Context(), lite.SmallCache)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	files, err := filepath.Glob("../../schema/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Raw.Exec(string(text)); err != nil {
			t.Fatal(name, err)
		}
	}
	return c
}

// BenchmarkColumns is what the table of columns costs: it must stay beside the
// work of SQLite that it asks for.
func BenchmarkColumns(b *testing.B) {
	c := openSchema(b)
	var clock lite.Clock
	t := Transition{Session: lite.NewSession(c, 1, &clock)}
	d := job.Draft{ID: job.NewID(), Kind: "welcome", Queue: "default", Priority: 5, Attempts: 5, Args: []byte(`{"user_id":1234567}`)}
	if _, err := t.Enqueue([]job.Draft{d}); err != nil {
		b.Fatal(err)
	}
	b.Run("read a job", func(b *testing.B) {
		b.ReportAllocs()
		q := c.Query("SELECT " + LiveRow.Columns + " FROM pawl_job")
		if !q.Step() {
			b.Fatal(q.Done())
		}
		list := make([]job.Job, 1)
		for b.Loop() {
			list[0] = job.Job{}
			LiveRow.Read(q, &list[0])
		}
		if err := q.Done(); err != nil {
			b.Fatal(err)
		}
	})
	b.Run("find a subject", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if s, err := t.live(d.ID); s == nil || err != nil {
				b.Fatal(s, err)
			}
		}
	})
	b.Run("insert", func(b *testing.B) {
		b.ReportAllocs()
		if err := c.Exec("BEGIN"); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			d.ID = job.NewID()
			if _, err := t.insert(&d, false); err != nil {
				b.Fatal(err)
			}
		}
		if err := c.Exec("ROLLBACK"); err != nil {
			b.Fatal(err)
		}
	})
}
