package intents

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// Plans are the statements of transitions, with the indexes that must serve them.
var Plans = []pg.Plan{
	{Name: "takeIntents", Text: takeIntents, Indexes: []string{"intent_fresh", "intent_due"}},
	{Name: "takeNamed", Text: takeNamed, Indexes: []string{"intent_pkey"}},
	{Name: "firstIntents", Text: firstIntents, Indexes: []string{"intent_subject"}},
	{Name: "putBehind", Text: putBehind, Indexes: []string{"intent_pkey"}},
	{Name: "putOffIntent", Text: putOffIntent, Indexes: []string{"intent_pkey"}},
	{Name: "removeIntents", Text: removeIntents, Indexes: []string{"intent_pkey"}},
	{Name: "lookIntents", Text: lookIntents, Indexes: []string{"intent_fresh", "intent_due"}},
	{Name: "listIntents", Text: listIntents, Indexes: []string{"intent_pkey"}},
	{Name: "checkIntents", Text: checkIntents, Indexes: []string{"intent_pkey", "intent_subject"}},
}
