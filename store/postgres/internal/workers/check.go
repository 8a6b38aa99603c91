package workers

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// CheckRules are the rules of the registry, which is looked at whole (worker_pkey).
var CheckRules = []pg.TableRules{{Table: "worker", Rules: []pg.Rule{{
	Name: "worker that left and is not lost",
	Find: `SELECT 'worker ' || id
	FROM pawl.worker
	WHERE namespace = $1 AND gone AND lost IS NULL`,
	Fix: pg.Fix{Does: "is lost, and what it holds is rescued", SQL: []string{`UPDATE pawl.worker
SET lost = {now}
WHERE namespace = $1 AND 'worker ' || id = $2 AND gone AND lost IS NULL`}},
}}}}
