package serve_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
)

// open is an engine on a store.
func open(t *testing.T, address string, c pawl.Config) *pawl.Engine {
	t.Helper()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	e, err := pawl.Open(t.Context(), address, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// crowd is what a busy store holds.
type crowd struct {
	jobs, queues, workers int
	kinds                 int // of each queue, in metrics, those of the last hour by the minute then [1]
	hours                 int // of metrics [all of a month], and so much less of the audit log
}

// fill writes a crowd straight into the tables: half of the jobs live, half of them ended
// in the last month; each queue has metrics every five minutes of two days and every hour
// of the month before. Queue q000 to q004 have a half of all jobs.
func (c crowd) fill(t *testing.T, e *pawl.Engine) {
	t.Helper()
	began := time.Now()
	db := e.Store().(interface{ DB() *sql.DB }).DB()
	tables := sqliteTables
	if _, err := db.ExecContext(t.Context(), "SELECT 1 FROM pawl.namespace"); err == nil {
		tables = postgresTables
	}
	exec := func(text string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	failure := job.AppendFailure(nil, time.Now(), job.NewFailure(5, 5, "no answer from 10.1.2.3", "stack\nof\ncalls\n").Body())
	live := c.jobs / 2
	const part = 50_000 // a transaction of SQLite may take five seconds
	for from := 0; from < live; from += part {
		exec(tables.live, from, min(part, live-from), c.queues, c.workers, live)
		exec(tables.ended, from, min(part, live-from), c.queues, c.workers, live, failure)
	}
	for n := 1; n <= c.workers; n++ {
		names, slots := []string{}, []int{}
		for q := range 100 {
			names, slots = append(names, fmt.Sprintf("q%03d", (n*10+q)%c.queues)), append(slots, 20)
		}
		queues, _ := json.Marshal(names)
		rooms, _ := json.Marshal(slots)
		exec(tables.worker, n, fmt.Sprint("worker ", n), string(queues), string(rooms))
	}
	exec(tables.lastWorker, c.workers)
	var jobs metric.Jobs
	jobs.AddMany(metric.Began, 100)
	for n := range 100 {
		took := time.Duration(1+n*n) * time.Millisecond
		jobs.Ended(metric.Done, took/2, took, 2*took)
	}
	var failures metric.Failures
	failures.Add(metric.Sample{FailedJob: metric.FailedJob{Job: job.ID{1}, Time: time.Now()}, Dead: true, Message: "no answer", Version: "v1", Key: "acme"})
	kinds, audit := max(c.kinds, 1), 200_000
	minutes, fine, coarse := 0, 576, 672
	if c.kinds > 1 {
		minutes = 60
	}
	if c.hours > 0 {
		fine, coarse, audit = 12*c.hours, 0, 1000*c.hours
	}
	load := metric.Load{Span: time.Minute, CPU: time.Second, Memory: 50 << 20, Goroutines: 100}
	load.Calls.Add(5 * time.Millisecond)
	for _, m := range []struct {
		class       metric.Class
		data        []byte
		names, rows int // rows of each name
		width, step int // of rows, in minutes
		ago         int // minutes: where the newest of them is
		kinds       int // of each name
	}{
		{metric.OfJobs, jobs.Append(nil), c.queues * kinds, minutes, 2, 1, 5, kinds},
		{metric.OfJobs, jobs.Append(nil), c.queues * kinds, fine, 2, 5, 5 + minutes, kinds},
		{metric.OfJobs, jobs.Append(nil), c.queues, coarse, 3, 60, 48*60 + 120, 1},
		{metric.OfAll, jobs.Append(nil), 1, minutes, 2, 1, 5, 1},
		{metric.OfAll, jobs.Append(nil), 1, fine, 2, 5, 5 + minutes, 1},
		{metric.OfAll, jobs.Append(nil), 1, coarse, 3, 60, 48*60 + 120, 1},
		{metric.OfFailures, failures.Append(nil), 200, fine, 2, 5, 5, 1},
		{metric.OfFailures, failures.Append(nil), 200, coarse, 3, 60, 48*60 + 60, 1},
		{metric.OfWorkers, load.Append(nil), c.workers, min(360, 5*fine), 2, 1, 5, 1},
		{metric.OfWorkers, load.Append(nil), c.workers, coarse, 3, 60, 6*60 + 60, 1},
	} {
		all := m.names * m.rows
		for from := 0; from < all; from += part {
			exec(tables.metric, from, min(part, all-from), m.names, int(m.class), m.width, m.step, m.ago, m.data, m.kinds, began.Unix())
		}
	}
	for from := 0; from < audit; from += part {
		exec(tables.audit, from, min(part, audit-from))
	}
	for _, text := range tables.after {
		exec(text)
	}
	t.Logf("%d jobs in %d queues, %d workers: made in %v", 2*live, c.queues, c.workers, time.Since(began).Round(time.Second))
}

// tableSet is the statements of one sort of store. Each makes rows behind a number, so many.
type tableSet struct {
	live, ended, worker, lastWorker, metric, audit string
	after                                          []string
}

const soakQueue = `CASE WHEN n % 2 = 0 THEN n / 2 % 5 ELSE n / 2 % `

var sqliteTables = func() tableSet {
	const (
		numbers = `WITH RECURSIVE number (n) AS (SELECT ?1 + 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?1 + ?2), ns AS (SELECT max(id) AS ns FROM pawl_namespace)`
		id      = `unhex(printf('%012x7%03x8%015x', t / 1000, n % 4096, n + `
		queue   = `printf('q%03d', ` + soakQueue + `?3 END)`
		micro   = `unixepoch() * 1000000`
	)
	return tableSet{
		live: numbers + `, made AS (SELECT n, ` + micro + ` - (?5 - n) * 3600000000 / ?5 AS t, CASE n % 101 WHEN 50 THEN 3 WHEN 51 THEN 3 WHEN 52 THEN 4 ELSE 2 END AS state FROM number)
			INSERT INTO pawl_job (namespace, id, state, priority, due, run, worker, claim, started, used, max_attempts, created, queue, kind, "key", tags, args, wait)
			SELECT ns, ` + id + `0)), state, 1 + n % 9, t + 864000000000 * (n % 13 / 12), 1, CASE state WHEN 3 THEN 1 + n / 101 % ?4 END, CASE state WHEN 3 THEN 1 END,
				CASE state WHEN 3 THEN t END, n % 11 / 10, 5, t, ` + queue + `, 'k' || (n % 7), 'c' || (n % 10000), CASE n % 1000 WHEN 1 THEN '["red","blue"]' END, X'7B7D',
				CASE state WHEN 4 THEN 1 END
			FROM made, ns`,
		ended: numbers + `, made AS (SELECT n, ` + micro + ` - 3600000000 - (?5 - n) * 2592000000000 / ?5 AS t, CASE n % 20 WHEN 3 THEN 6 WHEN 4 THEN 7 ELSE 5 END AS state FROM number)
			INSERT INTO pawl_job_archive (namespace, id, state, priority, due, run, used, max_attempts, lost, rescues, snoozes, ties, throttles, logs, version, created, finished, expires, queue, kind,
				worker, failures, args)
			SELECT ns, ` + id + `?5)), state, 5, t, 1, 0, 5, 0, 0, 0, 0, 0, 0, 0, t, t + n % 60 * 60000000, t + 86400000000000, ` + queue + `, 'k' || (n % 7), 1 + n % ?4,
				CASE state WHEN 6 THEN ?6 END, X'7B7D'
			FROM made, ns`,
		worker: `INSERT INTO pawl_worker (namespace, id, label, host, process, machine, start, owner, version, lock, queues, slots, offer, lost_after, started, beat)
			SELECT max(id), ?1, ?2, 'h', ?1, '', '', '', '', '', ?3, ?4, '{}', 3600000000, ` + micro + `, ` + micro + ` FROM pawl_namespace`,
		lastWorker: `UPDATE pawl_namespace SET last_worker = ?1`,
		metric: numbers + `
			INSERT INTO pawl_metric (namespace, class, width, start, name, kind, source, flush, roll, expires, data)
			SELECT ns, ?4, ?5, (?10 / (?6 * 60) * ?6 - ?7 - n / ?3 * ?6) * 60000000, CASE ?4 WHEN 4 THEN '' ELSE printf('q%03d', n % ?3 / ?9) END, CASE ?4 WHEN 4 THEN '' ELSE 'k' || (n % ?3 % 7) END, zeroblob(16), 0, CASE ?5 WHEN 2 THEN ` + micro + ` + 86400000000 END,
				` + micro + ` + 2592000000000, ?8
			FROM number, ns`,
		audit: numbers + `
			INSERT INTO pawl_audit (namespace, time, by, action, target, note, detail, expires)
			SELECT ns, ` + micro + ` - (200000 - n) * 10000000, 'ann' || (n % 10), CASE n % 3 WHEN 0 THEN 'retry' ELSE 'pause' END, 'q' || (n % 500), '', '', ` + micro + ` + 2592000000000
			FROM number, ns`,
		after: []string{"ANALYZE"},
	}
}()

var postgresTables = func() tableSet {
	const (
		numbers = `FROM generate_series($1::int + 1, $1::int + $2::int) AS n, (SELECT max(id) AS ns FROM pawl.namespace) AS of`
		id      = `(lpad(to_hex((extract(epoch FROM t) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text || '`
		queue   = `'q' || lpad((` + soakQueue + `$3::int END)::text, 3, '0')`
	)
	idOf := func(salt string) string {
		return id + salt + `'), 1, 3) || '8' || substr(md5(n::text || '` + salt + `'), 4, 15))::uuid`
	}
	return tableSet{
		live: `INSERT INTO pawl.job (namespace, priority, state, id, due, created, max_attempts, used, run, queue, kind, key, args, worker, claim, started, tags, wait)
			SELECT ns, 1 + n % 9, state, ` + idOf("l") + `, t + interval '10 days' * (n % 13 / 12), t, 5, n % 11 / 10, 1, ` + queue + `, 'k' || n % 7, 'c' || n % 10000, '{"n":12345}',
				CASE state WHEN 3 THEN 1 + n / 101 % $4::int END, CASE state WHEN 3 THEN 1 END, CASE state WHEN 3 THEN t END, CASE n % 1000 WHEN 1 THEN '{red,blue}'::text[] END,
				CASE state WHEN 4 THEN 1 END
			FROM (SELECT n, ns, now() - ($5::int - n) * interval '1 hour' / $5::int AS t, CASE n % 101 WHEN 50 THEN 3 WHEN 51 THEN 3 WHEN 52 THEN 4 ELSE 2 END AS state ` + numbers + `) AS made`,
		ended: `INSERT INTO pawl.job_archive (namespace, priority, state, id, due, created, finished, expires, run, version, max_attempts, used, queue, kind, args, worker, started, lost, rescues, snoozes, throttles, ties,
				failures)
			SELECT ns, 5, state, ` + idOf("e") + `, t, t, t + n % 60 * interval '1 minute', t + interval '999 days', 1, 0, 5, 0, ` + queue + `, 'k' || n % 7, '{"n":12345}', 1 + n % $4::int, t, 0, 0, 0, 0, 0,
				CASE state WHEN 6 THEN $6::bytea END
			FROM (SELECT n, ns, now() - interval '1 hour' - ($5::int - n) * interval '30 days' / $5::int AS t, CASE n % 20 WHEN 3 THEN 6 WHEN 4 THEN 7 ELSE 5 END AS state ` + numbers + `) AS made`,
		worker: `INSERT INTO pawl.worker (namespace, id, label, host, process, machine, start, queues, slots, offer, lost_after, started, beat)
			SELECT max(id), $1::int, $2, 'h', $1::int, '', '', ARRAY(SELECT jsonb_array_elements_text($3::jsonb)), ARRAY(SELECT jsonb_array_elements_text($4::jsonb)::int), '{}', 3600000000, now(), now()
			FROM pawl.namespace`,
		lastWorker: `SELECT $1::int`,
		metric: `INSERT INTO pawl.metric (namespace, class, width, flush, start, roll, expires, source, name, kind, data)
			SELECT ns, $4::int, $5::int, 0, date_bin($6::int * interval '1 minute', to_timestamp($10::bigint), 'epoch') - ($7::int + n / $3::int * $6::int) * interval '1 minute', CASE $5::int WHEN 2 THEN now() + interval '1 day' END,
				now() + interval '30 days', '00000000-0000-0000-0000-000000000000', CASE $4::int WHEN 4 THEN '' ELSE 'q' || lpad((n % $3::int / $9::int)::text, 3, '0') END,
				CASE $4::int WHEN 4 THEN '' ELSE 'k' || n % $3::int % 7 END, $8::bytea
			` + numbers,
		audit: `INSERT INTO pawl.audit (namespace, time, expires, by, action, target, note, detail)
			SELECT ns, now() - (200000 - n) * interval '10 seconds', now() + interval '30 days', 'ann' || n % 10, CASE n % 3 WHEN 0 THEN 'retry' ELSE 'pause' END, 'q' || n % 500, '', ''
			` + numbers,
		after: []string{"VACUUM ANALYZE pawl.job, pawl.job_archive, pawl.metric, pawl.audit"},
	}
}()
