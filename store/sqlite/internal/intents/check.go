package intents

import (
	"fmt"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// CheckRules are the rules of the table of intents.
//   - It is walked by its primary key; pawl_intent_subject finds those before one.
var CheckRules = []lite.TableRules{
	{Table: "pawl_intent", Key: "id", Rules: []lite.Rule{
		broken("intent out of bounds", fmt.Sprintf("kind < 1 OR failures < 0 OR octet_length(subject) > %d OR length(payload) > %d",
			store.MaxIntentSubject, store.MaxIntentPayload), "has failed 0 times", "failures = max(failures, 0)"),
		broken("intent put off for nothing", `due > ?4 AND failures = 0 AND NOT EXISTS (
			SELECT 1
			FROM pawl_intent AS b
			WHERE b.namespace = i.namespace AND b.kind = i.kind AND b.subject = i.subject
				AND b.number < i.number AND b.failures > 0)`, "can be applied now", "due = NULL"),
	}},
}

func broken(name, condition, does, set string) lite.Rule {
	return lite.Rule{Name: name, SQL: `SELECT id, 'kind ' || kind || ', ' || failures || ' failures'
	FROM pawl_intent AS i
	WHERE namespace = ?1 AND id > ?2 AND id <= ?3 AND (` + condition + `)`,
		Fix: lite.Fix{Does: does, SQL: []string{`UPDATE pawl_intent
	SET ` + set + `
	WHERE namespace = ?1 AND id = ?2`}}}
}
