package intents

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// putOffIntent notes a failure, unless somebody else has just done so.
//
//   - intent_pkey finds the row.
const putOffIntent = `UPDATE pawl.intent
SET failures = failures + 1, due = {now} + $4::bigint * interval '1 microsecond', error = $5
WHERE namespace = $1 AND id = $2 AND failures = $3
RETURNING created, due`

// maxError bounds the text that is kept of a failure.
const maxError = 1000

// putOff puts off the one intent that a transaction held.
func (r *Room) putOff(ctx context.Context, held taken, cause error) (reply store.IntentsReply, err error) {
	in := held.list[0]
	info := store.IntentInfo{Intent: in, Failures: held.failures[in.ID] + 1, Error: short(cause.Error()), Known: true}
	pause := store.IntentPause(info.Failures)
	err = r.pg.Retry(ctx, "put an intent off", pg.Always, func(ctx context.Context, _ bool) error {
		reply.PutOff = nil
		return r.pg.Send(ctx, r.pg.Upkeep, pg.UpkeepLimits, &pg.Statement{
			Text: putOffIntent,
			Args: []any{r.pg.Namespace, [16]byte(in.ID), info.Failures - 1, pause.Microseconds(), info.Error},
			Each: func(scan pg.Scan) error {
				var created, until time.Time
				err := scan(&created, &until)
				info.Created, info.Until = created, until
				reply.PutOff = []store.IntentInfo{info}
				return err
			},
		})
	})
	return reply, err
}

// short makes an error one that the table takes.
func short(text string) string {
	if len(text) > maxError {
		text = text[:maxError]
	}
	return pg.Legible(text)
}
