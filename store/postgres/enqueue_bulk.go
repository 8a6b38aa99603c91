package postgres

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
)

// enqueueBulk takes many drafts of one caller in, in one transaction of their
// own. Where nothing can conflict they go straight into the table by COPY.
// Otherwise keys and ids are settled first and the rest goes in by a few large
// inserts: a staging table was not faster than arrays, and needs the right to
// make temporary tables (docs/adr/0008-postgres-bulk.md).
func (s *Store) enqueueBulk(ctx context.Context, c *enqueueCall, plain bool) error {
	if !plain || c.again {
		return s.acceptAlone(ctx, c, sharedLimits)
	}
	drafts := c.drafts
	var now time.Time
	unknown := false
	err := s.retryWithin(ctx, s.tryTimeout+loading(c.weight), "enqueue", unlessUnknown, func(ctx context.Context, _ bool) error {
		err := s.transact(ctx, s.work, upkeepLimits, func(t *transaction) error { return s.copyIn(ctx, t, drafts, &now) })
		unknown = unknown || faultOf(err).unknown
		return err
	})
	switch {
	case err == nil:
		c.receipts = make([]job.Receipt, len(drafts))
		for i := range drafts {
			c.receipts[i].ID = drafts[i].ID
		}
		s.accepted(drafts, now)
		return nil
	case ctx.Err() == nil && (unknown || hasCode(err, uniqueViolation)):
		c.again = unknown
		return s.acceptAlone(ctx, c, sharedLimits)
	}
	return err
}

// copyIn copies plain drafts into the table. COPY computes nothing, so the
// store's time is asked first.
func (s *Store) copyIn(ctx context.Context, t *transaction, drafts []job.Draft, now *time.Time) error {
	err := t.run(ctx, &statement{text: "SELECT {now}", each: func(scan scan) error { return scan(now) }})
	if err != nil {
		return err
	}
	used := usedColumns(drafts)
	r := &copyReader{namespace: s.namespace, drafts: drafts, now: *now}
	names := []string{"namespace", "state", "due", "created"}
	for n, c := range draftColumns {
		if used&(1<<n) != 0 && c.copied != nil {
			names, r.columns = append(names, c.name), append(r.columns, c)
		}
	}
	r.rest = append(r.rest, copySignature...)
	text := "COPY pawl.job (" + strings.Join(names, ", ") + ") FROM STDIN (FORMAT binary)"
	if _, err = t.conn.Conn().PgConn().CopyFrom(ctx, r, s.sql(text)); err != nil {
		f := sent(err)
		f.unknown = false
		return &faulted{f}
	}
	return nil
}

// copyReader writes drafts as the server reads them from COPY. (Value by value
// through pgx, a row costs eight times as much.)
type copyReader struct {
	namespace int32
	now       time.Time
	drafts    []job.Draft
	columns   []draftColumn
	rest      []byte // what is written and not read yet
	at        int    // the next draft
	ended     bool
}

func (r *copyReader) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.ended {
			return 0, io.EOF
		}
		r.fill(len(b))
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// fill writes rows until there is enough for one read.
func (r *copyReader) fill(enough int) {
	buffer := r.rest[:0]
	for ; r.at < len(r.drafts) && len(buffer) < enough; r.at++ {
		d := &r.drafts[r.at]
		buffer = appendInt2(buffer, int16(4+len(r.columns)))
		buffer = copyInt4(buffer, r.namespace)
		buffer = copyInt2(buffer, int16(job.Waiting))
		buffer = copyTime(buffer, dueOf(d, r.now))
		buffer = copyTime(buffer, r.now)
		for n := range r.columns {
			buffer = r.columns[n].copied(buffer, d)
		}
	}
	if r.at == len(r.drafts) {
		buffer = appendInt2(buffer, -1)
		r.ended = true
	}
	r.rest = buffer
}
