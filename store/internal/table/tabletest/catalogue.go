package tabletest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlwork/pawl/store/internal/table"
)

// Found is a table as the database describes it.
type Found struct {
	Name    string
	Key     []string // the primary key, in its order; empty where there is none
	Columns []Column
	Indexes map[string][]string // name → columns
}

// Column is a column as the database describes it.
type Column struct {
	Name  string
	Text  bool // it can hold text or bytes
	Given bool // a row needs a value for it
	Type  string
}

// Compare finds where a list and a database differ. Each finding says what to write
// in which file: at is where the rooms of the store have their lists.
func Compare(list []table.Table, found []Found, at string) (findings []string) {
	say := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	listed := map[string]bool{}
	for _, t := range list {
		if listed[t.Name] {
			say("%s is listed twice, see %s", t.Name, at)
		}
		listed[t.Name] = true
		i := slices.IndexFunc(found, func(f Found) bool { return f.Name == t.Name })
		if i < 0 {
			say("%s is listed, and the database has no such table: remove its entry, see %s", t.Name, at)
			continue
		}
		compare(t, found[i], list, at, say)
	}
	for _, f := range found {
		if !listed[f.Name] {
			say("%s is not listed: add to Tables of the room that owns it, in %s,\n\t%s", f.Name, at, entry(f))
		}
	}
	return findings
}

// compare is about one table.
func compare(t table.Table, f Found, list []table.Table, at string, say func(string, ...any)) {
	has := func(name string) bool {
		return slices.ContainsFunc(f.Columns, func(c Column) bool { return c.Name == name })
	}
	named := map[string][]string{"Key": t.Key, "Users": t.Users, "Ours": t.Ours}
	if t.Parent.Column != "" {
		named["Parent.Column"] = []string{t.Parent.Column}
	}
	if t.Expiry.Column != "" {
		named["Expiry.Column"] = []string{t.Expiry.Column}
	}
	for _, field := range []string{"Key", "Users", "Ours", "Parent.Column", "Expiry.Column"} {
		for _, name := range named[field] {
			if !has(name) {
				say("%s has no column %s, which %s of its entry names, see %s", t.Name, name, field, at)
			}
		}
	}
	regular := slices.Equal(t.Key, f.Key) && (t.Shared || len(t.Key) > 0 && t.Key[0] == "namespace")
	switch {
	case !regular && t.Except == "":
		say("%s has the primary key %v and its entry the key %v: write Key: %s in its entry in %s, beginning with the namespace, "+
			"or say in Except why it is something else",
			t.Name, f.Key, t.Key, quoted(f.Key), at)
	case regular && t.Except != "":
		say("%s has a primary key that begins with the namespace: remove Except (%q) from its entry in %s", t.Name, t.Except, at)
	}
	if !t.Shared && !has("namespace") {
		say("%s has no column namespace: its rows cannot be told apart by tenant; or write Shared: true in its entry in %s", t.Name, at)
	}
	for _, c := range f.Columns {
		places := 0
		for _, names := range [][]string{t.Key, t.Users, t.Ours} {
			if slices.Contains(names, c.Name) {
				places++
			}
		}
		switch {
		case c.Text && places == 0:
			say("%s.%s holds text or bytes and is not listed: add %q in the entry of %s in %s, to Users if users' code or people wrote it "+
				"and Pawl only keeps it, else to Ours",
				t.Name, c.Name, c.Name, t.Name, at)
		case places > 1:
			say("%s.%s is listed %d times: leave it in one of Key, Users and Ours of its entry in %s", t.Name, c.Name, places, at)
		case !c.Text && (slices.Contains(t.Users, c.Name) || slices.Contains(t.Ours, c.Name)):
			say("%s.%s holds neither text nor bytes: remove it from Users or Ours of its entry in %s", t.Name, c.Name, at)
		}
	}
	for _, parent := range t.Parent.Tables {
		if !slices.ContainsFunc(list, func(p table.Table) bool { return p.Name == parent }) {
			say("%s belongs to %s, which is not listed, see %s", t.Name, parent, at)
		}
	}
	if e := t.Expiry; e.Column != "" && e.Own == "" || e.Index != "" {
		if columns := f.Indexes[e.Index]; len(columns) == 0 || columns[0] != "namespace" || !slices.Contains(columns, e.Column) {
			say("%s expires by %s, and its index %q is on %v: name one in Expiry.Index of its entry in %s that begins with the namespace "+
				"and has the column", t.Name, e.Column, e.Index, columns, at)
		}
	}
}

// entry is one to begin with, for a table that is not listed.
func entry(f Found) string {
	var text []string
	for _, c := range f.Columns {
		if c.Text && !slices.Contains(f.Key, c.Name) {
			text = append(text, c.Name)
		}
	}
	list := fmt.Sprintf("{Name: %q, Key: %s", f.Name, quoted(f.Key))
	if len(text) > 0 {
		list += ", Ours: " + quoted(text) + " /* or Users: what users wrote and Pawl only keeps */"
	}
	return list + "}, with Parent if its rows belong to a job, and Expiry if they go by themselves"
}

func quoted(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = fmt.Sprintf("%q", name)
	}
	return "[]string{" + strings.Join(list, ", ") + "}"
}
