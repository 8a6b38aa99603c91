package tabletest

import (
	"strings"
	"testing"

	"github.com/pawlwork/pawl/store/internal/table"
)

// Each way in which a list and a database can differ is found, and the finding says
// what to write where.
func TestP6_EveryDifferenceIsFound(t *testing.T) {
	namespaced := []string{"namespace", "id"}
	good := table.Table{
		Name: "job", Key: namespaced, Users: []string{"args"}, Ours: []string{"queue"},
		Expiry: table.Expiry{Column: "expires", Index: "job_expires"},
	}
	found := Found{
		Name: "job", Key: namespaced, Indexes: map[string][]string{"job_expires": {"namespace", "expires"}},
		Columns: []Column{{Name: "namespace"}, {Name: "id", Text: true}, {Name: "args", Text: true}, {Name: "queue", Text: true}, {Name: "expires"}},
	}
	for _, c := range []struct {
		want  string // empty: nothing is wrong
		entry func(*table.Table)
		in    func(*Found)
	}{
		{"", nil, nil},
		{"job is listed, and the database has no such table", nil, func(f *Found) { f.Name = "work" }},
		{`work is not listed: add to Tables of the room that owns it, in here,` + "\n\t" +
			`{Name: "work", Key: []string{"namespace", "id"}, Ours: []string{"args", "queue"}`, nil, func(f *Found) { f.Name = "work" }},
		{"job.color holds text or bytes and is not listed: add \"color\" in the entry of job in here", nil, func(f *Found) {
			f.Columns = append(f.Columns, Column{Name: "color", Text: true})
		}},
		{"job has no column color, which Users", func(e *table.Table) { e.Users = append(e.Users, "color") }, nil},
		{"job has no column color, which Parent.Column", func(e *table.Table) { e.Parent.Column = "color" }, nil},
		{"job.args is listed 2 times", func(e *table.Table) { e.Ours = append(e.Ours, "args") }, nil},
		{"job.expires holds neither text nor bytes", func(e *table.Table) { e.Users = append(e.Users, "expires") }, nil},
		{"job has the primary key [id namespace]", nil, func(f *Found) { f.Key = []string{"id", "namespace"} }},
		{"job has the primary key [id]", func(e *table.Table) { e.Key = []string{"id"} }, func(f *Found) { f.Key = []string{"id"} }},
		{"", func(e *table.Table) { e.Key, e.Except = []string{"id"}, "because" }, func(f *Found) { f.Key = []string{"id"} }},
		{"remove Except", func(e *table.Table) { e.Except = "because" }, nil},
		{"job has no column namespace", func(e *table.Table) { e.Key, e.Except = []string{"id"}, "because" }, func(f *Found) { f.Columns = f.Columns[1:] }},
		{"job belongs to flow, which is not listed", func(e *table.Table) { e.Parent.Tables = []string{"flow"} }, nil},
		{`job expires by expires, and its index "" is on []`, func(e *table.Table) { e.Expiry.Index = "" }, nil},
		{`its index "job_expires" is on [namespace id]`, nil, func(f *Found) {
			f.Indexes = map[string][]string{"job_expires": {"namespace", "id"}}
		}},
	} {
		e, f := good, found
		if c.entry != nil {
			c.entry(&e)
		}
		if c.in != nil {
			c.in(&f)
		}
		got := strings.Join(Compare([]table.Table{e}, []Found{f}, "here"), "\n")
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("found %q, want %q", got, c.want)
		}
	}
	if got := Compare([]table.Table{good, good}, []Found{found}, "here"); len(got) != 1 || !strings.Contains(got[0], "listed twice") {
		t.Errorf("found %q, want that it is listed twice", got)
	}
}
