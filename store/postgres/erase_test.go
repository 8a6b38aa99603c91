package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/internal/table/tabletest"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Whatever a namespace has in any table, nothing of it is left, and another one
// keeps all it has. Rows are made from the catalogue: a table that comes later is
// filled too.
func TestJ29_ErasedFromEveryTable(t *testing.T) {
	s := openInternal(t)
	const rows, other = 3, 77
	listed := table.InNamespace(tables)
	for _, f := range catalogue(t, s) {
		if !slices.ContainsFunc(listed, func(l table.Table) bool { return l.Name == f.Name }) {
			continue
		}
		for i := range rows {
			for _, namespace := range []int32{s.pg.Namespace, other} {
				text := rowOf(t, f, namespace, i)
				if _, err := s.pg.Users.Exec(t.Context(), s.pg.SQL(text)); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
			}
		}
	}
	count := func(name string, namespace int32) (n int) {
		t.Helper()
		text := s.pg.SQL("SELECT count(*) FROM pawl." + name + " WHERE namespace = $1")
		if err := s.pg.Users.QueryRow(t.Context(), text, namespace).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	had := map[string]int{}
	for _, l := range listed {
		if had[l.Name] = count(l.Name, s.pg.Namespace); had[l.Name] == 0 || count(l.Name, other) != had[l.Name] {
			t.Fatalf("%s was not filled", l.Name)
		}
	}
	for more, calls := true, 0; more; calls++ {
		n, again, err := s.Erase(t.Context(), 4)
		if err != nil || n > 4 || calls > 100 {
			t.Fatal(n, again, err)
		}
		more = again
	}
	for _, l := range listed {
		if n := count(l.Name, s.pg.Namespace); n != 0 {
			t.Errorf("%d rows of %s are left", n, l.Name)
		}
		if n := count(l.Name, other); n != had[l.Name] {
			t.Errorf("another namespace has %d rows of %s left, want %d", n, l.Name, had[l.Name])
		}
	}
	// Nobody knows that other namespace, and Check says so of every table.
	for _, step := range []int{1, 100} {
		report, err := s.Check(t.Context(), store.Check{Step: step})
		if err != nil || len(report.Faults) != len(listed) {
			t.Errorf("check in steps of %d: %+v, %v, want a fault of each of the %d tables", step, report.Faults, err, len(listed))
		}
	}
}

// rowOf makes a row that differs from others in every column it must have.
func rowOf(t *testing.T, f tabletest.Found, namespace int32, i int) string {
	t.Helper()
	var names, values []string
	for _, c := range f.Columns {
		if !c.Given {
			continue
		}
		names = append(names, `"`+c.Name+`"`)
		n := fmt.Sprint(i + 1)
		switch {
		case c.Name == "namespace":
			n = fmt.Sprint(namespace)
		case c.Type == "timestamptz":
			n = fmt.Sprintf("'2001-01-%02d'", i+1)
		case c.Type == "uuid":
			n = fmt.Sprintf("'%032x'", i+1)
		case c.Type == "bool":
			n = "false"
		case c.Type == "json", c.Type == "jsonb":
			n = "'{}'"
		case strings.HasPrefix(c.Type, "_"):
			n = "'{}'"
		case c.Text, c.Type == "xid8":
			n = "'" + n + "'"
		}
		values = append(values, n)
	}
	// alone has one row in a namespace.
	return "INSERT INTO pawl." + f.Name + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(values, ", ") + ") ON CONFLICT DO NOTHING"
}

// What an erasure removes is found by the key, whatever the planner believes: it
// does not read what other namespaces have, and sorts nothing.
func TestP10_ErasureSeeks(t *testing.T) {
	s := openInternal(t)
	conn, err := s.pg.Work.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, l := range table.InNamespace(tables) {
		index := l.Name + "_pkey"
		if l.Except != "" {
			index = l.Expiry.Index
		}
		var used []string
		explainGeneric(t, s, conn.Conn(), pg.EraseText(&l)).walk(func(n *planNode) {
			if n.Index != "" {
				used = append(used, n.Index)
			}
			if strings.Contains(n.Type, "Sort") || n.Type == "Seq Scan" {
				t.Errorf("%s: %s", l.Name, n.Type)
			}
		})
		if !slices.Equal(used, []string{index}) {
			t.Errorf("%s is erased by %v, want %s", l.Name, used, index)
		}
	}
}

// A row that somebody's open transaction holds is waited for and then named as what
// it is; the erasure goes on where it was when the row is free.
func TestJ29_AHeldRowIsLeftForTheNextTry(t *testing.T) {
	s := openInternal(t)
	d := someDraft()
	c := hire(t, s)
	c.enqueue(d)
	if err := s.Deregister(t.Context(), c.worker); err != nil {
		t.Fatal(err)
	}
	tx, err := s.pg.Users.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), s.pg.SQL("SELECT FROM pawl.job WHERE id = $1 FOR UPDATE"), [16]byte(d.ID)); err != nil {
		t.Fatal(err)
	}
	if n, more, err := s.Erase(t.Context(), 10); !errors.Is(err, store.ErrBusy) || n != 0 || more {
		t.Fatalf("%d, %v, %v; want %v", n, more, err, store.ErrBusy)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, more, err := s.Erase(t.Context(), 10); err != nil || n == 0 || !more {
		t.Fatal(n, more, err)
	}
}
