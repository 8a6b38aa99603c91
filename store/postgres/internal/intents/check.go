package intents

import (
	"fmt"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// CheckRules are the rules of the table of intents.
//
//   - intent_pkey gives the stretch, intent_subject those before each in its subject.
var CheckRules = []pg.TableRules{{Table: "intent", Key: "id", Rules: []pg.Rule{
	row("intent out of bounds", fmt.Sprintf("p.kind < 1 OR p.failures < 0 OR octet_length(p.subject) > %d OR octet_length(p.payload) > %d",
		store.MaxIntentSubject, store.MaxIntentPayload), "has failed 0 times", "failures = greatest(failures, 0)"),
	row("intent put off for nothing", `p.due > {now} AND p.failures = 0 AND NOT EXISTS (
		SELECT
		FROM pawl.intent AS b
		WHERE b.namespace = p.namespace
			AND b.kind = p.kind
			AND b.kind > 0
			AND b.subject = p.subject
			AND (b.transaction, b.number) < (p.transaction, p.number)
			AND b.failures > 0
	)`, "can be applied now", "due = NULL"),
}}}

// checkIntents is the statement that looks.
var checkIntents = CheckRules[0].Text()

// row is a rule of one intent: broken is the condition that it must not meet.
func row(name, broken, does, set string) pg.Rule {
	return pg.Rule{Name: name, Find: `SELECT p.id, 'kind ' || p.kind || ', ' || p.failures || ' failures'
	FROM part AS p
	WHERE ` + broken, Fix: pg.Fix{Does: does, SQL: []string{`UPDATE pawl.intent
SET ` + set + `
WHERE namespace = $1 AND id = $2`}}}
}
