package groups

import "github.com/pawlwork/pawl/store/sqlite/internal/lite"

// lastNumber is the last that was given out.
const lastNumber = `(SELECT seq FROM sqlite_sequence WHERE name = 'pawl_event')`

// CheckRules are the rules of groups. Each looks at what members have, of which there is little:
// pawl_retry_hand, pawl_hand_member, and primary keys.
var CheckRules = []lite.TableRules{
	{Table: "pawl_hand", Rules: []lite.Rule{
		{Name: "member without its group", SQL: `SELECT CAST(h.id AS TEXT)
	FROM pawl_hand AS h
	WHERE h.namespace = ?1 AND NOT EXISTS (
			SELECT 1
			FROM pawl_consumer_group AS g
			WHERE g.namespace = h.namespace AND g.id = h.consumer_group
		)`,
			Fix: lite.Fix{Does: "is removed, with what it had of a group that is gone", SQL: []string{
				`DELETE FROM pawl_acked
	WHERE namespace = ?1 AND hand = CAST(?2 AS INTEGER)`, `DELETE FROM pawl_retry
	WHERE namespace = ?1 AND hand = CAST(?2 AS INTEGER) AND hand > 0`, `DELETE FROM pawl_hand
	WHERE namespace = ?1 AND id = CAST(?2 AS INTEGER)`,
			}}},
		// Where it was nobody can tell: an operator seeks the group.
		{Name: "member without its place", SQL: `SELECT CAST(h.id AS TEXT)
	FROM pawl_hand AS h
	WHERE h.namespace = ?1 AND NOT EXISTS (
			SELECT 1
			FROM pawl_shelf AS s
			WHERE s.namespace = h.namespace AND s.id = h.shelf
		)
		AND EXISTS (
			SELECT 1
			FROM pawl_consumer_group AS g
			WHERE g.namespace = h.namespace AND g.id = h.consumer_group
		)`},
	}},
	{Table: "pawl_retry", Rules: []lite.Rule{{
		Name: "delivery of a member that is gone",
		SQL: `SELECT r.shelf || ' ' || r.seq
	FROM pawl_retry AS r
	WHERE r.namespace = ?1 AND r.hand > 0 AND NOT EXISTS (
			SELECT 1
			FROM pawl_hand AS h
			WHERE h.namespace = r.namespace AND h.id = r.hand
		)`,
		Fix: lite.Fix{Does: "waits for others", SQL: []string{`UPDATE pawl_retry
	SET hand = 0, alone = 0, due = ?3
	WHERE namespace = ?1 AND shelf || ' ' || seq = CAST(?2 AS TEXT) AND hand > 0`}}}}},
	{Table: "pawl_stripe", Rules: []lite.Rule{
		// It is read from where it was taken: what was done since comes again.
		{Name: "stripe of a member that is gone", SQL: `SELECT s.consumer_group || ' ' || s.stripe
	FROM pawl_stripe AS s
	WHERE s.namespace = ?1 AND s.hand > 0 AND NOT EXISTS (
			SELECT 1
			FROM pawl_hand AS h
			WHERE h.namespace = s.namespace AND h.id = s.hand
		)`,
			Fix: lite.Fix{Does: "is free, where it was taken", SQL: []string{`UPDATE pawl_stripe
	SET hand = 0
	WHERE namespace = ?1 AND consumer_group || ' ' || stripe = CAST(?2 AS TEXT)`}}},
		{Name: "place beyond the log", SQL: `SELECT s.consumer_group || ' ' || s.stripe
	FROM pawl_stripe AS s
	WHERE s.namespace = ?1 AND s.at > coalesce(` + lastNumber + `, 0)`,
			Fix: lite.Fix{Does: "is at the end of the log", SQL: []string{`UPDATE pawl_stripe
	SET at = coalesce(` + lastNumber + `, 0)
	WHERE namespace = ?1 AND consumer_group || ' ' || stripe = CAST(?2 AS TEXT)`}}},
	}},
	{Table: "pawl_shelf", Rules: []lite.Rule{{Name: "place beyond the log", SQL: `SELECT CAST(s.id AS TEXT)
	FROM pawl_shelf AS s
	WHERE s.namespace = ?1 AND s.upto > coalesce(` + lastNumber + `, 0)`,
		Fix: lite.Fix{Does: "is at the end of the log", SQL: []string{`UPDATE pawl_shelf
	SET upto = coalesce(` + lastNumber + `, 0)
	WHERE namespace = ?1 AND id = CAST(?2 AS INTEGER)`}}}}},
	{Table: "pawl_acked", Rules: []lite.Rule{{
		Name: "acknowledgement of a member that is gone",
		SQL: `SELECT a.hand || ' ' || a.seq
	FROM pawl_acked AS a
	WHERE a.namespace = ?1 AND NOT EXISTS (
			SELECT 1
			FROM pawl_hand AS h
			WHERE h.namespace = a.namespace AND h.id = a.hand
		)`,
		Fix: lite.Fix{Does: "is removed", SQL: []string{`DELETE FROM pawl_acked
	WHERE namespace = ?1 AND hand || ' ' || seq = CAST(?2 AS TEXT)`}}}}},
}
