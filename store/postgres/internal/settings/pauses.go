package settings

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// pausedQueues lists paused queues, some ($2) or all of them.
//
//   - queue_pkey lists them.
const pausedQueues = `SELECT name, since
FROM pawl.queue
WHERE namespace = $1 AND paused AND ($2::text[] IS NULL OR name = ANY ($2))
ORDER BY name
LIMIT $3`

// PausesStep reads the pauses of queues; of all of them where none is named.
func (r *Room) PausesStep(names []string, pauses *[]store.Pause) *pg.Statement {
	return &pg.Statement{Text: pausedQueues, Args: []any{r.pg.Namespace, names, store.MaxQueues + 1}, Each: func(scan pg.Scan) error {
		p := store.Pause{Scope: store.PauseQueue}
		err := scan(&p.Name, &p.Since)
		p.Since = p.Since.UTC()
		*pauses = append(*pauses, p)
		return err
	}}
}
