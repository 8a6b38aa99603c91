package pg

import (
	"cmp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// remembered is how many statements a connection keeps, prepared or described:
// more than this package has.
const remembered = 512

// Describe makes the connections of a pool ask the server for the types of every
// statement. Modes of pgx that guess do not know arrays of ours, and get text
// where rows are read in binary. Behind a transaction pooler nothing is prepared
// by name, because the next statement may meet another server connection;
// descriptions are remembered on this side.
func Describe(config *pgxpool.Config, pooled bool) {
	c := config.ConnConfig
	if pooled || Guesses(c) {
		c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	c.StatementCacheCapacity = cmp.Or(c.StatementCacheCapacity, remembered)
	c.DescriptionCacheCapacity = cmp.Or(c.DescriptionCacheCapacity, remembered)
}

func Guesses(c *pgx.ConnConfig) bool {
	return c.DefaultQueryExecMode == pgx.QueryExecModeExec || c.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol
}

// describing is what goes in front of a statement's arguments on a connection of
// the user's, so that it is described there too.
func describing(c *pgx.ConnConfig) []any {
	switch {
	case !Guesses(c):
		return nil
	case c.DescriptionCacheCapacity == 0:
		return []any{pgx.QueryExecModeDescribeExec}
	}
	return []any{pgx.QueryExecModeCacheDescribe}
}
