package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/job"
)

// enqueueBulk takes many drafts of one caller in, in one transaction of their
// own. Where nothing can conflict they go straight into the table by COPY.
// Otherwise keys and ids are settled first and the rest goes in by a few large
// inserts: a staging table was not faster than arrays, and needs the right to
// make temporary tables (docs/adr/0008-postgres-bulk.md).
func (s *Store) enqueueBulk(ctx context.Context, drafts []job.Draft, plain bool) ([]job.Receipt, error) {
	if !plain {
		return s.enqueueAlone(ctx, drafts, false)
	}
	var now time.Time
	unknown := false
	err := s.retry(ctx, "enqueue", unlessUnknown, func(ctx context.Context, _ bool) error {
		err := s.transact(ctx, s.work, upkeepLimits, func(t *transaction) error { return s.copyIn(ctx, t, drafts, &now) })
		unknown = unknown || faultOf(err).unknown
		return err
	})
	switch {
	case err == nil:
		receipts := make([]job.Receipt, len(drafts))
		for i := range drafts {
			receipts[i].ID = drafts[i].ID
		}
		s.accepted(drafts, now)
		return receipts, nil
	case ctx.Err() == nil && (unknown || hasCode(err, uniqueViolation)):
		return s.enqueueAlone(ctx, drafts, unknown)
	}
	return nil, err
}

// copyIn copies plain drafts into the table. COPY computes nothing, so the
// store's time is asked first.
func (s *Store) copyIn(ctx context.Context, t *transaction, drafts []job.Draft, now *time.Time) error {
	err := t.run(ctx, &step{text: "SELECT {now}", each: func(scan scan) error { return scan(now) }})
	if err != nil {
		return err
	}
	used := usedColumns(drafts)
	names := []string{"namespace", "state", "due", "created"}
	var columns []draftColumn
	for n, c := range draftColumns {
		if used&(1<<n) != 0 && c.copied != nil {
			names, columns = append(names, c.name), append(columns, c)
		}
	}
	row := make([]any, len(names))
	i := -1
	source := pgx.CopyFromFunc(func() ([]any, error) {
		if i++; i == len(drafts) {
			return nil, nil
		}
		d := &drafts[i]
		row[0], row[1], row[2], row[3] = s.namespace, int16(job.Waiting), dueOf(d, *now), *now
		for n := range columns {
			row[4+n] = columns[n].copied(d, *now)
		}
		return row, nil
	})
	_, err = t.conn.CopyFrom(ctx, pgx.Identifier{s.options.Schema, "job"}, names, source)
	if err != nil {
		f := sent(err)
		f.unknown = false
		return &faulted{f}
	}
	return nil
}
