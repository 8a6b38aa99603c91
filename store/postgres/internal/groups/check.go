package groups

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// CheckRules are the rules of groups. Each looks at what members have, of which there is little:
// retry_hand, hand_pkey, stripe_pkey, shelf_pkey, acked_pkey.
var CheckRules = []pg.TableRules{
	{Table: "hand", Rules: []pg.Rule{
		{Name: "member without its group", Find: `SELECT h.id::text
	FROM pawl.hand AS h
	WHERE h.namespace = $1 AND NOT EXISTS (
			SELECT
			FROM pawl.consumer_group AS g
			WHERE g.namespace = h.namespace AND g.id = h.consumer_group
		)`,
			Fix: pg.Fix{Does: "is removed, with what it had of a group that is gone", SQL: []string{
				`DELETE FROM pawl.hand_at
WHERE namespace = $1 AND hand = $2::bigint`, `DELETE FROM pawl.acked
WHERE namespace = $1 AND hand = $2::bigint`, `DELETE FROM pawl.retry
WHERE namespace = $1 AND hand = $2::bigint AND hand > 0`, `DELETE FROM pawl.hand
WHERE namespace = $1 AND id = $2::bigint`,
			}}},
		// Where it was nobody can tell: an operator seeks the group.
		{Name: "member without its place", Find: `SELECT h.id::text
	FROM pawl.hand AS h
	WHERE h.namespace = $1 AND NOT EXISTS (
			SELECT
			FROM pawl.shelf AS s
			WHERE s.namespace = h.namespace AND s.id = h.shelf
		)
		AND EXISTS (
			SELECT
			FROM pawl.consumer_group AS g
			WHERE g.namespace = h.namespace AND g.id = h.consumer_group
		)`},
	}},
	{Table: "retry", Rules: []pg.Rule{{
		Name: "delivery of a member that is gone",
		Find: `SELECT r.shelf || ' ' || r.seq
	FROM pawl.retry AS r
	WHERE r.namespace = $1 AND r.hand > 0 AND NOT EXISTS (
			SELECT
			FROM pawl.hand AS h
			WHERE h.namespace = r.namespace AND h.id = r.hand
		)`,
		Fix: pg.Fix{Does: "waits for others", SQL: []string{`UPDATE pawl.retry
SET hand = 0, alone = false, due = {now}
WHERE namespace = $1 AND shelf = split_part($2, ' ', 1)::bigint AND seq = split_part($2, ' ', 2)::bigint`}}}}},
	{Table: "stripe", Rules: []pg.Rule{
		// It is read from where it was taken: what was done since comes again.
		{Name: "stripe of a member that is gone", Find: `SELECT s.consumer_group || ' ' || s.stripe
	FROM pawl.stripe AS s
	WHERE s.namespace = $1 AND s.hand > 0 AND NOT EXISTS (
			SELECT
			FROM pawl.hand AS h
			WHERE h.namespace = s.namespace AND h.id = s.hand
		)`,
			Fix: pg.Fix{Does: "is free, where it was taken", SQL: []string{`UPDATE pawl.stripe
SET hand = 0
WHERE namespace = $1 AND consumer_group = split_part($2, ' ', 1)::bigint AND stripe = split_part($2, ' ', 2)::smallint`}}},
		{Name: "place beyond the log", Find: `SELECT s.consumer_group || ' ' || s.stripe
	FROM pawl.stripe AS s
	WHERE s.namespace = $1 AND s.at > (SELECT last_value FROM pawl.event_seq)`,
			Fix: pg.Fix{Does: "is at the end of the log", SQL: []string{`UPDATE pawl.stripe
SET at = (SELECT last_value FROM pawl.event_seq)
WHERE namespace = $1 AND consumer_group = split_part($2, ' ', 1)::bigint AND stripe = split_part($2, ' ', 2)::smallint`}}},
	}},
	{Table: "shelf", Rules: []pg.Rule{{Name: "place beyond the log", Find: `SELECT s.id::text
	FROM pawl.shelf AS s
	JOIN pawl.shelf_at AS a ON a.namespace = s.namespace AND a.shelf = s.id
	WHERE s.namespace = $1 AND a.upto > (SELECT last_value FROM pawl.event_seq)`,
		Fix: pg.Fix{Does: "is at the end of the log", SQL: []string{`UPDATE pawl.shelf_at
SET turn = turn + 1, upto = (SELECT last_value FROM pawl.event_seq)
WHERE namespace = $1 AND shelf = $2::bigint`}}}}},
	{Table: "acked", Rules: []pg.Rule{{
		Name: "acknowledgement of a member that is gone",
		Find: `SELECT a.hand || ' ' || a.seq
	FROM pawl.acked AS a
	WHERE a.namespace = $1 AND NOT EXISTS (
			SELECT
			FROM pawl.hand AS h
			WHERE h.namespace = a.namespace AND h.id = a.hand
		)`,
		Fix: pg.Fix{Does: "is removed", SQL: []string{`DELETE FROM pawl.acked
WHERE namespace = $1 AND hand = split_part($2, ' ', 1)::bigint AND seq = split_part($2, ' ', 2)::bigint`}}}}},
}
