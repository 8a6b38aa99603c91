package hints

import (
	"strings"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

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
