package workers

import "github.com/pawlwork/pawl/store/sqlite/internal/lite"

// CheckRules are the rules of the registry, which is looked at whole: a namespace has
// few workers.
var CheckRules = []lite.TableRules{
	{Table: "pawl_worker", Rules: []lite.Rule{{
		Name: "worker that left and is not lost",
		SQL: `SELECT 'worker ' || id
	FROM pawl_worker
	WHERE namespace = ? AND gone <> 0 AND lost IS NULL`,
		Fix: lite.Fix{Does: "is lost, and what it holds is rescued", SQL: []string{`UPDATE pawl_worker
	SET lost = ?3
	WHERE namespace = ?1 AND 'worker ' || id = ?2 AND gone <> 0 AND lost IS NULL`}},
	}}},
	// A number that comes again would renew the lease of another (P2).
	{Table: "pawl_namespace", Rules: []lite.Rule{{
		Name: "worker numbers go backwards",
		SQL: `SELECT 'worker ' || w.id || ' after ' || n.last_worker
	FROM pawl_namespace AS n
	JOIN (SELECT max(id) AS id FROM pawl_worker WHERE namespace = ?1) AS w
	WHERE n.id = ?1 AND w.id > n.last_worker`,
		Fix: lite.Fix{Does: "numbers go on above it", SQL: []string{`UPDATE pawl_namespace
	SET last_worker = max(last_worker, (SELECT max(id) FROM pawl_worker WHERE namespace = ?1))
	WHERE id = ?1`}},
	}}},
}
