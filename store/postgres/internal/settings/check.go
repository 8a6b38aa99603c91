package settings

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// checkRules are the rules of what is declared and set, by their names, which are
// those of every store. The tables are small: each is looked at whole.
var checkRules = []struct{ name, find string }{
	// declaration_pkey, and code_version_pkey for each row
	{"declaration without its version", `SELECT d.kind || ' ' || d.name || ' of ' || d.owner || ' ' || d.version
	FROM pawl.declaration AS d
	LEFT JOIN pawl.code_version AS v ON v.namespace = d.namespace AND v.owner = d.owner AND v.version = d.version
	WHERE d.namespace = $1 AND v.version IS NULL`},
	// pause_pkey
	{"pause of an unknown scope", `SELECT 'scope ' || p.scope || ' ' || p.name
	FROM pawl.pause AS p
	WHERE p.namespace = $1 AND (p.scope NOT BETWEEN 1 AND 3 OR (p.scope = 3) <> (p.name = ''))`},
	// cool_down_pkey
	{"cool-down of no length", `SELECT 'queue ' || c.queue
	FROM pawl.cool_down AS c
	WHERE c.namespace = $1 AND (c.until <= c.since OR c.throttles < 1)`},
}

// checkAll finds what breaks the rules, in one snapshot.
var checkAll = func() (text string) {
	for _, r := range checkRules {
		if text != "" {
			text += "\nUNION ALL\n"
		}
		text += "SELECT '" + r.name + "', f.detail\nFROM (" + r.find + ") AS f (detail)"
	}
	return text
}()

// CheckRules lists the names of the rules.
func CheckRules() (names []string) {
	for _, r := range checkRules {
		names = append(names, r.name)
	}
	return names
}

// Check finds what breaks the rules. Its caller has entered the store.
func (r *Room) Check(ctx context.Context) (faults []store.Fault, err error) {
	err = r.pg.Retry(ctx, "check", pg.Reading, func(ctx context.Context, _ bool) error {
		faults = nil
		return r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, &pg.Statement{Text: checkAll, Args: []any{r.pg.Namespace}, Each: func(scan pg.Scan) error {
			var f store.Fault
			err := scan(&f.Rule, &f.Detail)
			faults = append(faults, f)
			return err
		}})
	})
	return faults, err
}
