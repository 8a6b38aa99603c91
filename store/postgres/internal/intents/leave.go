package intents

import (
	"context"
	"slices"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// leaveIntents adds intents in the order given: their numbers ascend.
const leaveIntents = `INSERT INTO pawl.intent (namespace, transaction, id, kind, created, subject, payload)
SELECT $1, pg_current_xact_id(), e.id, e.kind, {now}, e.subject, e.payload
FROM unnest($2::uuid[], $3::smallint[], $4::text[], $5::bytea[]) WITH ORDINALITY
	AS e (id, kind, subject, payload, place)
ORDER BY e.place`

// Leave writes intents into a user's transaction. It locks nothing that anybody
// else could want.
func (r *Room) Leave(ctx context.Context, in pg.Session, list []store.Intent) error {
	if err := store.CheckIntents(list); err != nil || len(list) == 0 {
		return err
	}
	ids, kinds := make([][16]byte, len(list)), make([]int16, len(list))
	subjects, payloads := make([]string, len(list)), make([][]byte, len(list))
	for i := range list {
		ids[i], kinds[i] = list[i].ID, int16(list[i].Kind)
		subjects[i], payloads[i] = list[i].Subject, list[i].Payload
	}
	return in.Run(ctx, &pg.Statement{Text: leaveIntents, Args: []any{r.pg.Namespace, ids, kinds, subjects, payloads}})
}

// Foreign reports whether some are of a kind that this build leaves to others.
func (r *Room) Foreign(list []store.Intent) bool {
	known := r.Known()
	return slices.ContainsFunc(list, func(i store.Intent) bool { return !slices.Contains(known, i.Kind) })
}
