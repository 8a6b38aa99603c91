package hints

import (
	"strings"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Meets is the meeting of the namespaces of a process at which they find out
// whether there are hints to remove.
type Meets struct {
	rhythm *store.Rhythm            // nil where the store is alone
	some   *pg.Meeting[int32, bool] // whether a namespace has hints
}

// NewMeets makes it; without a place to meet each namespace is alone.
func NewMeets(t *pg.Together, r *store.Rhythm) *Meets {
	kind := pg.MeetingKind{Patience: 20 * time.Millisecond, Limits: pg.SharedLimits}
	return &Meets{rhythm: r, some: pg.Meet(t, kind, pg.LookFor(anyHints))}
}

// kept is how long hints are kept: a little longer where namespaces meet then.
func (m *Meets) kept(d time.Duration) time.Duration {
	if m.rhythm == nil || d == 0 {
		return d
	}
	now := pg.Instant()
	return m.rhythm.After(now.Add(d), d/3).Sub(now)
}

// anyHints finds the namespaces that have some.
//
//   - hint_transaction: a seek for each.
const anyHints = `SELECT e.n, (
	SELECT 1
	FROM pawl.hint
	WHERE namespace = e.namespace AND transaction >= '0'::xid8
	ORDER BY transaction
	LIMIT 1
) IS NOT NULL
FROM (SELECT e.* FROM unnest($1::int[]) WITH ORDINALITY AS e (namespace, n) OFFSET 0) AS e`

// hintColumns is how many columns a look has.
const hintColumns = 6

// readHintsAll is readHints for many namespaces, each since its own last look.
//
//   - hint_transaction, as there.
var readHintsAll = `SELECT e.n, h.*
FROM (
	SELECT e.*
	FROM unnest($1::int[], $2::text[]) WITH ORDINALITY AS e (namespace, since, n)
	OFFSET 0
) AS e
CROSS JOIN LATERAL (` + strings.NewReplacer("$1", "e.namespace", "$2", "e.since").Replace(readHints) + `) AS h`

// First reports whether it is the first look, which is not like the others.
func (l *RowLook) First() bool { return l.Text == firstHints }

// LookTogether is one statement for the looks of several namespaces, none of which
// is a first one.
func LookTogether(looks []*RowLook) *pg.Statement {
	namespaces, since := make([]int32, len(looks)), make([]string, len(looks))
	for i, l := range looks {
		namespaces[i], since[i] = l.Args[0].(int32), l.Args[1].(string)
	}
	return &pg.Statement{Text: readHintsAll, Args: []any{namespaces, since, MaxRows}, Each: func(scan pg.Scan) error {
		var n int
		if err := scan(append([]any{&n}, make([]any, hintColumns)...)...); err != nil {
			return err
		}
		return looks[n-1].Each(func(dest ...any) error { return scan(append([]any{&n}, dest...)...) })
	}}
}
