package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// Defaults of a check.
const (
	checkGrace = time.Minute
	checkStep  = 10_000
	// maxFaults bounds a report: who has a thousand faults needs no more of them.
	maxFaults = 1000
)

// rule is one sentence of P6. Its names are those of every store. Its SQL finds
// what breaks it in one stretch of a table, part: columns are the job and a detail.
type rule struct{ name, find string }

// checkedTable is walked by its key, which follows the namespace.
type checkedTable struct {
	table, key string
	rules      []rule
}

var checkedTables = []checkedTable{
	{"job", "id", []rule{
		{"live job in a final state", `SELECT p.id, 'state ' || p.state
	FROM part AS p
	WHERE p.state NOT BETWEEN 1 AND 4`},
		{"job in two places", `SELECT p.id, 'live and archived'
	FROM part AS p
	JOIN pawl.job_archive AS a ON a.namespace = p.namespace AND a.id = p.id`},
		{"running without a worker", `SELECT p.id, 'run ' || p.run
	FROM part AS p
	WHERE p.state = 3 AND (p.worker IS NULL OR p.claim IS NULL OR p.run < 1)`},
		{"worker of a job that does not run", `SELECT p.id, 'worker ' || coalesce(p.worker::text, 'none')
	FROM part AS p
	WHERE p.state <> 3 AND (p.worker IS NOT NULL OR p.claim IS NOT NULL OR p.begun OR p.cancel)`},
		// Never registered counts from the claim, lost or gone from when it was.
		{"running without a live worker", `SELECT p.id, 'run ' || p.run || ' of worker ' || p.worker
		|| CASE WHEN w.id IS NULL THEN ', which is not registered' ELSE ', lost since ' || w.lost END
	FROM part AS p
	LEFT JOIN pawl.worker AS w ON w.namespace = p.namespace AND w.id = p.worker
	WHERE p.state = 3 AND p.worker IS NOT NULL AND (
		w.id IS NULL AND p.started < {now} - $4 * interval '1 microsecond'
		OR w.lost < {now} - $4 * interval '1 microsecond'
	)`},
		{"unique key not held", `SELECT p.id,
		CASE WHEN u.job IS NULL THEN 'its key has no row' ELSE 'its key is held by ' || u.job END
	FROM part AS p
	LEFT JOIN pawl.job_unique AS u ON u.namespace = p.namespace AND u.hash = p.unique_hash
	WHERE p.unique_hash IS NOT NULL AND (u.job IS NULL OR u.job <> p.id OR u.until IS NOT NULL)`},
		{"attempts out of bounds", `SELECT p.id, p.used || ' of ' || p.max_attempts
	FROM part AS p
	WHERE p.used < 0 OR p.max_attempts < 1`},
		{"priority out of bounds", `SELECT p.id, p.priority::text
	FROM part AS p
	WHERE p.priority NOT BETWEEN 1 AND 9`},
		{"wait of a job that is not suspended", `SELECT p.id, 'state ' || p.state || ', wait ' || p.wait
	FROM part AS p
	WHERE p.wait IS NOT NULL AND p.state <> 4`},
		{"failures cannot be read", brokenFailures},
		{"names cannot be read", brokenNames},
	}},
	{"job_archive", "id", []rule{
		{"failures cannot be read", brokenFailures},
		{"names cannot be read", brokenNames},
		{"archived job in a live state", `SELECT p.id, 'state ' || p.state
	FROM part AS p
	WHERE p.state NOT BETWEEN 5 AND 8`},
		{"archived without an end", `SELECT p.id, 'finished ' || p.finished || ', expires ' || p.expires
	FROM part AS p
	WHERE p.expires < p.finished`},
	}},
	{"job_unique", "hash", []rule{
		{"unique key without its job", `SELECT p.job, 'held by a job that is not live or has another key'
	FROM part AS p
	LEFT JOIN pawl.job AS j ON j.namespace = p.namespace AND j.id = p.job
	WHERE p.until IS NULL AND (j.id IS NULL OR j.unique_hash IS DISTINCT FROM p.hash)`},
	}},
}

// CheckRules lists the names of the rules that Check knows.
func CheckRules() []string {
	var names []string
	for _, w := range checkedTables {
		for _, r := range w.rules {
			names = append(names, r.name)
		}
	}
	return append(names, settings.CheckRules()...)
}

// Each look covers one stretch of a table in one statement, which is one
// snapshot: what it finds broken was broken at that moment, in all tables at
// once.
//
//   - job_pkey, job_archive_pkey and job_unique_pkey give the stretches and what
//     the rules join; worker_pkey the workers.
var checkLive, checkArchived, checkUnique = checkedTables[0].text(), checkedTables[1].text(), checkedTables[2].text()

// text is the statement: of the namespace ($1), rows after a key ($2), so many
// ($3); a run may stay with a lost worker for so long ($4). The first row says how
// many there were and which was the last, the others what is broken.
func (w checkedTable) text() string {
	last := "(SELECT " + w.key + " FROM part ORDER BY " + w.key + " DESC LIMIT 1)"
	if w.key == "id" {
		last = "uuid_send(" + last + ")"
	}
	text := "WITH part AS MATERIALIZED (\n" +
		"\tSELECT *\n\tFROM pawl." + w.table + "\n" +
		"\tWHERE namespace = $1 AND " + w.key + " > $2\n" +
		"\tORDER BY " + w.key + "\n\tLIMIT $3\n)\n" +
		"SELECT NULL::text, NULL::uuid, (SELECT count(*) FROM part)::text, " + last + "\n" +
		"WHERE $4::bigint IS NOT NULL"
	for _, r := range w.rules {
		text += "\nUNION ALL\nSELECT '" + r.name + "', f.id, f.detail, NULL::bytea\n" +
			"FROM (" + r.find + ") AS f (id, detail)"
	}
	return text
}

// brokenFailures finds failures that job.AppendFailure did not write, by their
// first byte. Frames inside are opaque here.
const brokenFailures = `SELECT p.id, length(p.failures) || ' bytes'
	FROM part AS p
	WHERE substr(p.failures, 1, 1) <> '\x01'::bytea`

// brokenNames finds lists that RowReader.list cannot read. (array_position
// refuses arrays of more dimensions.)
var brokenNames = `SELECT p.id, ''
	FROM part AS p
	WHERE CASE
		WHEN ` + joined(" OR ", func(c column) string { return c.ifList("array_ndims(p.%) > 1") }) + ` THEN true
		ELSE ` + joined(" OR ", func(c column) string { return c.ifList("array_position(p.%, NULL) IS NOT NULL") }) + `
	END`

// ifList is as, of a list of names.
func (c column) ifList(way string) string {
	if c.kind != "text[]" {
		return ""
	}
	return c.as(way)
}

// Check looks for broken rules (P6) in short snapshots and changes nothing.
func (r *Room) Check(ctx context.Context, c store.Check) (store.CheckReport, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return store.CheckReport{}, err
	}
	defer r.pg.Leave()
	if c.Grace == 0 {
		c.Grace = checkGrace
	}
	if c.Step == 0 {
		c.Step = checkStep
	}
	var report store.CheckReport
	for _, table := range []struct {
		text  string
		key   func(last []byte) any
		count *int64
	}{
		{checkLive, idOf, &report.Live},
		{checkArchived, idOf, &report.Archived},
		{checkUnique, func(last []byte) any { return last }, new(int64)},
	} {
		for last := []byte{}; last != nil; {
			var seen look
			err := r.pg.Retry(ctx, "check", pg.Reading, func(ctx context.Context, _ bool) error {
				seen = look{}
				return r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, &pg.Statement{
					Text: table.text, Args: []any{r.pg.Namespace, table.key(last), c.Step, c.Grace.Microseconds()}, Each: seen.read,
				})
			})
			if err != nil {
				return store.CheckReport{}, err
			}
			*table.count += seen.rows
			report.Faults = append(report.Faults, seen.faults[:min(len(seen.faults), maxFaults-len(report.Faults))]...)
			if last = seen.last; seen.rows < int64(c.Step) {
				last = nil
			}
		}
	}
	faults, err := r.settings.Check(ctx)
	if err != nil {
		return store.CheckReport{}, err
	}
	report.Faults = append(report.Faults, faults[:min(len(faults), maxFaults-len(report.Faults))]...)
	return report, nil
}

// idOf reads an id from where a stretch ended; before the first it is zero.
func idOf(last []byte) any {
	var id [16]byte
	copy(id[:], last)
	return id
}

// look is what was seen of one stretch.
type look struct {
	rows   int64
	last   []byte // key; nil when there was nothing
	faults []store.Fault
}

func (l *look) read(scan pg.Scan) error {
	var rule pgtype.Text
	var id pgtype.UUID
	var detail pgtype.Text
	var last []byte
	if err := scan(&rule, &id, &detail, &last); err != nil {
		return err
	}
	if !rule.Valid {
		l.last = last
		_, err := fmt.Sscan(detail.String, &l.rows)
		return err
	}
	l.faults = append(l.faults, store.Fault{Rule: rule.String, ID: job.ID(id.Bytes), Detail: detail.String})
	return nil
}
