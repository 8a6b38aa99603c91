package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// damaged is one kind of damage, as a bug or a person with a shell would do it.
//
// Its SQL is written in words of the suite, which a Spoiler puts into its dialect:
// <job> is a table, $waiting the id of a job of the case, @past a moment, and so on.
type damaged struct {
	rule string
	in   string // the table; empty means that of jobs
	// before brings about what sql breaks; nil: it is there.
	before func(d *database)
	sql    []string
	// left: nobody can tell what the row should be, so it is reported, and removed by
	// these statements in the end.
	left []string
	// after looks at what the repair made of it.
	after func(d *database, s *scene)
}

// damages are at least one for every rule of every table.
var damages = []damaged{
	{rule: "live job in a final state", sql: []string{"UPDATE <job> SET state = 5 WHERE id = $waiting"}, after: waits},
	{rule: "live job in a final state", sql: []string{"UPDATE <job> SET state = 99, worker = 7 WHERE id = $waiting"}, after: waits},
	{rule: "job in two places", sql: []string{
		`INSERT INTO <job> (namespace, id, state, priority, due, max_attempts, created, queue, kind)
		SELECT namespace, id, 2, priority, due, 5, created, queue, kind FROM <job_archive> WHERE id = $done`,
	}, after: func(d *database, s *scene) { runsOn(d, "brought back", s.done, job.Waiting, 1) }},
	{rule: "job in two places", sql: []string{
		`INSERT INTO <job_archive> (namespace, id, state, priority, due, created, finished, expires, run, version,
			max_attempts, used, lost, rescues, snoozes, queue, kind)
		SELECT namespace, id, 5, priority, due, created, due, @future, run + 3, version,
			max_attempts, used, lost, rescues, snoozes, queue, kind FROM <job> WHERE id = $running`,
	}, after: func(d *database, s *scene) { runsOn(d, "run that was overtaken", s.running, job.Waiting, 4) }},
	{rule: "running without a worker", sql: []string{"UPDATE <job> SET worker = NULL WHERE id = $running"}, after: givenBack},
	{rule: "running without a worker", sql: []string{"UPDATE <job> SET run = 0 WHERE id = $running"}},
	{rule: "worker of a job that does not run", sql: []string{"UPDATE <job> SET worker = 7, begun = @true, cancel = @true WHERE id = $waiting"}, after: waits},
	{rule: "running without a live worker", sql: []string{"UPDATE <job> SET worker = 7, started = @past WHERE id = $running"}, after: func(d *database, s *scene) {
		givenBack(d, s)
		equal(d, "rescues", d.get(s.running).Rescues, 1)
	}},
	{rule: "running without a live worker", sql: []string{"UPDATE <job> SET worker = 7, started = @past, cancel = @true WHERE id = $running"},
		after: func(d *database, s *scene) { equal(d, "asked to cancel", d.get(s.running).State, job.Cancelled) }},
	{rule: "unique key not held", sql: []string{"DELETE FROM <job_unique> WHERE job = $waiting"}, after: holdsKey},
	{rule: "unique key not held", sql: []string{"UPDATE <job_unique> SET until = @future WHERE job = $waiting"}, after: holdsKey},
	{rule: "unique key not held", sql: []string{"UPDATE <job_unique> SET job = $other, until = @future WHERE job = $waiting"}, after: holdsKey},
	{rule: "unique key not held", sql: []string{
		"UPDATE <job> SET unique_hash = (SELECT w.unique_hash FROM <job> AS w WHERE w.id = $waiting), ties = ties | 1 WHERE id = $logged",
	}, after: holdsKey},
	{rule: "ties do not add up", sql: []string{"UPDATE <job> SET ties = 0 WHERE id = $waiting"}, after: holdsKey},
	{rule: "ties do not add up", sql: []string{"UPDATE <job> SET ties = 0 WHERE id = $logged"}},
	{rule: "ties do not add up", in: "job_archive", sql: []string{"UPDATE <job_archive> SET ties = 1 WHERE id = $done"}},
	{rule: "attempts out of bounds", sql: []string{"UPDATE <job> SET used = -1 WHERE id = $waiting"}},
	{rule: "attempts out of bounds", sql: []string{"UPDATE <job> SET max_attempts = 0, used = 4 WHERE id = $waiting"}, after: func(d *database, s *scene) {
		equal(d, "attempts", d.get(s.waiting).MaxAttempts, 5)
	}},
	{rule: "priority out of bounds", sql: []string{"UPDATE <job> SET priority = 12 WHERE id = $waiting"}, after: func(d *database, s *scene) {
		equal(d, "priority", d.get(s.waiting).Priority, 9)
	}},
	{rule: "counts below zero", sql: []string{"UPDATE <job> SET lost = -1, run = -7 WHERE id = $waiting"}},
	{rule: "counts below zero", in: "job_archive", sql: []string{"UPDATE <job_archive> SET rescues = -1 WHERE id = $done"}},
	{rule: "due at no time", sql: []string{"UPDATE <job> SET due = @never WHERE id = $waiting"}, after: waits},
	{rule: "wait of a job that is not suspended", sql: []string{"UPDATE <job> SET wait = 1 WHERE id = $waiting"}, after: waits},
	{rule: "failures cannot be read", sql: []string{"UPDATE <job> SET failures = @junk WHERE id = $waiting"}},
	{rule: "failures cannot be read", in: "job_archive", sql: []string{"UPDATE <job_archive> SET failures = @junk WHERE id = $done"}},
	{rule: "names cannot be read", sql: []string{"UPDATE <job> SET tags = @names WHERE id = $waiting"}},
	{rule: "names cannot be read", in: "job_archive", sql: []string{"UPDATE <job_archive> SET tags = @names WHERE id = $done"}},
	{rule: "archived job in a live state", in: "job_archive", sql: []string{"UPDATE <job_archive> SET state = 2 WHERE id = $done"},
		after: func(d *database, s *scene) { runsOn(d, "brought back", s.done, job.Waiting, 1) }},
	{rule: "archived without an end", in: "job_archive", sql: []string{"UPDATE <job_archive> SET expires = @past WHERE id = $done"}},
	{rule: "unique key without its job", in: "job_unique", sql: []string{
		"INSERT INTO <job_unique> (namespace, hash, job, until) SELECT namespace, @junk, $done, NULL FROM <job> WHERE id = $waiting",
	}},
	{rule: "log lines do not add up", sql: []string{"UPDATE <job> SET logs = 7 WHERE id = $logged"}, after: says(2)},
	{rule: "log lines do not add up", sql: []string{"DELETE FROM <job_log> WHERE job = $logged AND line = 1"}, after: says(1)},
	{rule: "log lines do not add up", in: "job_archive", sql: []string{"UPDATE <job_archive> SET logs = 7, ties = 2 WHERE id = $done"}},
	{rule: "log lines without their job", in: "job_log", sql: []string{"UPDATE <job_log> SET job = $other WHERE job = $logged"}},
	{rule: "intent out of bounds", in: "intent", sql: []string{anIntent(1, -1, "NULL")}, after: func(d *database, s *scene) {
		d.sql(s, "DELETE FROM <intent>") // nobody applies it here
	}},
	{rule: "intent out of bounds", in: "intent", sql: []string{anIntent(0, 0, "NULL")}, left: []string{"DELETE FROM <intent>"}},
	{rule: "intent put off for nothing", in: "intent", sql: []string{anIntent(1, 0, "@future")}, after: func(d *database, s *scene) {
		d.sql(s, "DELETE FROM <intent>")
	}},
	{rule: "row of no namespace", in: "tombstone", sql: []string{
		"INSERT INTO <tombstone> (namespace, id, expires) VALUES (1000, $done, @future)",
	}},
	{rule: "declaration without its version", in: "declaration", sql: []string{aDeclaration("{}")}},
	{rule: "declaration cannot be read", in: "declaration", sql: []string{aVersion("@past"), aDeclaration("no object")}, after: forgetVersions},
	{rule: "override cannot be read", in: "override", sql: []string{
		`INSERT INTO <override> (namespace, kind, name, value, by, note, since)
		SELECT namespace, 'queue', 'mail', 'no object', '', '', @past FROM <job> WHERE id = $waiting`,
	}},
	{rule: "pause of an unknown scope", in: "pause", sql: []string{
		`INSERT INTO <pause> (namespace, scope, name, since, by, note)
		SELECT namespace, 9, 'mail', @past, '', '' FROM <job> WHERE id = $waiting`,
	}},
	{rule: "live version without a live worker", in: "code_version", sql: []string{aVersion("NULL"), aDeclaration("{}")}, after: forgetVersions},
	{rule: "ended version with a live worker", in: "code_version", sql: []string{
		aVersion("@past"), "UPDATE <worker> SET owner = 'shop', version = 'v1' WHERE id = $worker",
	}, after: func(d *database, s *scene) {
		d.sql(s, "UPDATE <worker> SET owner = '', version = ''", "DELETE FROM <code_version>")
	}},
	{rule: "operation without an end", in: "operation", sql: []string{
		`INSERT INTO <operation> (namespace, id, state, next, pages, pace, most, looked, changed, asked, duplicate, busy, unchanged,
			failures, created, ended, expires, verb, filter, cursor, by, note, reason)
		SELECT namespace, $done, 1, @past, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, @past, @past, NULL, '{}', '{}', '{}', '', '', ''
		FROM <job> WHERE id = $waiting`,
	}, after: func(d *database, s *scene) { d.sql(s, "DELETE FROM <operation>") }},
	{rule: "operation miscounted", in: "operation", sql: []string{
		`INSERT INTO <operation> (namespace, id, state, next, pages, pace, most, looked, changed, asked, duplicate, busy, unchanged,
			failures, created, ended, expires, verb, filter, cursor, by, note, reason)
		SELECT namespace, $done, 1, @past, 0, 1, 0, 2, 1, 0, 0, 0, 0, 0, @past, NULL, NULL, '{}', '{}', '{}', '', '', ''
		FROM <job> WHERE id = $waiting`,
	}, after: func(d *database, s *scene) { d.sql(s, "DELETE FROM <operation>") }},
	{rule: "cool-down of no length", in: "cool_down", sql: []string{
		`INSERT INTO <cool_down> (namespace, queue, throttles, since, until)
		SELECT namespace, 'elsewhere', 1, @past, @past FROM <job> WHERE id = $waiting`,
	}},
	{rule: "bucket over its burst", in: "bucket", before: func(d *database) {
		_, err := d.Store.(store.Limits).Take(d.ctx, store.BucketName{Limit: "n", Key: "k"}, job.TakeRequest{
			Rate: job.Rate{PerSecond: 1, Burst: 1}, Need: 1, Want: 1, Since: -1,
		})
		if err != nil {
			d.Fatal(err)
		}
	}, sql: []string{"UPDATE <bucket> SET level = 2000000000"}, left: []string{"DELETE FROM <bucket>"}},
	{rule: "metric out of bounds", in: "metric", before: func(d *database) { measured(d, false) },
		sql: []string{"UPDATE <metric> SET roll = NULL"}, left: []string{"DELETE FROM <metric>"}},
	{rule: "metric without its flush", in: "metric", before: func(d *database) { measured(d, false) },
		sql: []string{"DELETE FROM <metric_flush>"}, left: []string{"DELETE FROM <metric>"}},
	{rule: "metric in two places", in: "metric", before: func(d *database) { measured(d, true) }, sql: []string{
		`INSERT INTO <metric> (namespace, class, width, start, name, kind, source, flush, roll, expires, data)
		SELECT namespace, class, 2, start, name, kind, source, flush, expires, expires, data FROM <metric> WHERE width = 3`,
	}, left: []string{"DELETE FROM <metric>"}},
	{rule: "schedule due again", in: "schedule", sql: []string{
		`INSERT INTO <schedule> (namespace, name, revision, anchor, next, last, expires, cron, zone)
		SELECT namespace, 's', 1, @past, @past, @past, @future, 'c', 'z' FROM <job> WHERE id = $waiting`,
	}, left: []string{"DELETE FROM <schedule>"}},
	{rule: "schedule out of bounds", in: "schedule", sql: []string{
		`INSERT INTO <schedule> (namespace, name, revision, anchor, fires, expires, cron, zone)
		SELECT namespace, 's', 1, @past, 2, @future, 'c', 'z' FROM <job> WHERE id = $waiting`,
	}, after: func(d *database, s *scene) { d.sql(s, "DELETE FROM <schedule>") }},
	{rule: "member without its group", in: "hand", before: joined(stream.Competing), sql: []string{"DELETE FROM <consumer_group>"}, after: noGroups},
	{rule: "member without its place", in: "hand", before: joined(stream.Competing), sql: []string{"DELETE FROM @place", "DELETE FROM <shelf>"},
		left: forgetGroups},
	{rule: "delivery of a member that is gone", in: "retry", sql: []string{
		`INSERT INTO <retry> (namespace, shelf, seq, consumer_group, stripe, hand, wants, alone, failures, losses, due, reason)
		SELECT namespace, 1, 1, 1, 0, 1000000, 0, @true, 1, 2, @future, '' FROM <job> WHERE id = $waiting`,
	}, after: func(d *database, s *scene) { d.sql(s, "DELETE FROM <retry> WHERE hand = 0 AND losses = 2") }},
	{rule: "stripe of a member that is gone", in: "stripe", before: joined(stream.Ordered),
		sql: []string{"UPDATE <stripe> SET hand = 1000000 WHERE stripe = 3"}, after: oneComes},
	{rule: "place beyond the log", in: "stripe", before: joined(stream.Ordered),
		sql: []string{"UPDATE <stripe> SET at = 1000000000 WHERE stripe = 3"}, after: noGroups},
	{rule: "place beyond the log", in: "shelf", before: joined(stream.Competing),
		sql: []string{"UPDATE @place SET upto = 1000000000"}, after: oneComes},
	{rule: "acknowledgement of a member that is gone", in: "acked", sql: []string{
		"INSERT INTO <acked> (namespace, hand, seq) SELECT namespace, 1000000, 1 FROM <job> WHERE id = $waiting",
	}},
	{rule: "worker that left and is not lost", in: "worker", sql: []string{"UPDATE <worker> SET gone = @true WHERE id = $idle"}},
	{rule: "worker numbers go backwards", in: "namespace", sql: []string{"UPDATE <namespace> SET last_worker = 0"}},
}

func anIntent(kind, failures int, due string) string {
	return fmt.Sprintf(`INSERT INTO <intent> (namespace, @order, id, kind, failures, created, subject, due)
	SELECT namespace, @first, $done, %d, %d, @past, 's', %s FROM <job> WHERE id = $waiting`, kind, failures, due)
}

func aVersion(ended string) string {
	return `INSERT INTO <code_version> (namespace, owner, version, seen, ended)
	SELECT namespace, 'shop', 'v1', @past, ` + ended + ` FROM <job> WHERE id = $waiting`
}

func aDeclaration(value string) string {
	return `INSERT INTO <declaration> (namespace, kind, name, owner, version, value, since)
	SELECT namespace, 'queue', 'mail', 'shop', 'v1', '` + value + `', @past FROM <job> WHERE id = $waiting`
}

// forgetVersions clears the ground for the next damage.
func forgetVersions(d *database, s *scene) {
	d.Helper()
	d.sql(s, "UPDATE <worker> SET owner = '', version = ''", "DELETE FROM <code_version>")
}

func waits(d *database, s *scene) { equal(d, "state", d.get(s.waiting).State, job.Waiting) }

func givenBack(d *database, s *scene) { equal(d, "state", d.get(s.running).State, job.Waiting) }

// runsOn checks that the run number of a job did not go back (P2).
func runsOn(d *database, what string, id job.ID, state job.State, run int64) {
	d.Helper()
	if j := d.get(id); j.State != state || j.Run < run {
		d.Errorf("%s: job is %s with run %d, want %s with %d or more", what, j.State, j.Run, state, run)
	}
}

// holdsKey checks that the key of the waiting job is held: another with it is a duplicate.
func holdsKey(d *database, s *scene) {
	d.Helper()
	receipts := d.send(draft(func(j *job.Draft) { j.Unique = job.Unique{Hash: s.hash} }))
	if !receipts[0].Duplicate || receipts[0].ID != s.waiting {
		d.Errorf("receipt %+v for the same key, want a duplicate of %s", receipts[0], s.waiting)
	}
}

func says(lines int) func(*database, *scene) {
	return func(d *database, s *scene) {
		equal(d, "lines", len(must[[]job.LogLine](d, "logs")(d.Store.Logs(d.ctx, s.logged, 0, 10))), lines)
	}
}

// scene is what there is before the damage.
type scene struct {
	w                              *employee
	idle                           job.WorkerID
	done, running, waiting, logged job.ID
	other                          job.ID // of no job
	hash                           []byte
}

// take claims the one job of a queue.
func (s *scene) take(d *database, queue string) store.LeasedJob {
	d.Helper()
	jobs := s.w.ask(store.QueueClaim{Queue: queue, Limit: 1, Start: 1}).Jobs
	if len(jobs) != 1 {
		d.Fatalf("claimed %d jobs of %s, want 1", len(jobs), queue)
	}
	return jobs[0]
}

func (d *database) scene() *scene {
	d.Helper()
	s := &scene{w: d.hire("a", "b", "c", "d"), other: job.NewID()}
	s.idle = d.hire("a").id
	s.hash = slices.Clone(s.other[:])
	s.done = d.one(onQueue("a"))
	s.w.end(s.take(d, "a"), job.Done)
	s.running = d.one(onQueue("b"))
	s.take(d, "b")
	s.waiting = d.one(onQueue("c"), func(j *job.Draft) { j.Unique = job.Unique{Hash: s.hash} })
	s.logged = d.one(onQueue("d"))
	s.w.end(s.take(d, "d"), job.Waiting, func(e *job.End) { e.Logs = []job.LogLine{{Text: "one"}, {Text: "two"}} })
	return s
}

// sql runs statements in words of the suite.
func (d *database) sql(s *scene, texts ...string) {
	d.Helper()
	words := d.opener.(Spoiler).Words()
	ids := strings.NewReplacer("$worker", fmt.Sprint(s.w.id), "$idle", fmt.Sprint(s.idle), "$done", words.ID(s.done), "$running", words.ID(s.running),
		"$waiting", words.ID(s.waiting), "$logged", words.ID(s.logged), "$other", words.ID(s.other))
	tx, err := d.Store.Begin(d.ctx)
	if err != nil {
		d.Fatal(err)
	}
	for _, text := range texts {
		text = ids.Replace(words.Replace(text))
		if _, err := tx.Exec(d.ctx, text); err != nil {
			_ = tx.Rollback(context.Background())
			d.Fatalf("%s: %v", text, err)
		}
	}
	if err := tx.Commit(d.ctx); err != nil {
		d.Fatal(err)
	}
}

// groupOf is what the damages of groups are done to.
func groupOf(mode stream.Mode) store.GroupJoin {
	return store.GroupJoin{Group: "g", Member: "m", Mode: mode, Filter: stream.Filter{Topic: "a"}}
}

// joined makes a group with a member.
func joined(mode stream.Mode) func(d *database) {
	return func(d *database) {
		d.Helper()
		j := groupOf(mode)
		j.Worker = d.hire("groups").id
		if _, err := d.Store.(store.Groups).JoinGroup(d.ctx, j); err != nil {
			d.Fatal(err)
		}
	}
}

// oneComes requires that what is published after a repair comes to a member of the group.
func oneComes(d *database, s *scene) {
	d.Helper()
	groups := d.Store.(store.Groups)
	if _, err := groups.Append(d.ctx, []stream.Publication{{Event: stream.Event{ID: "after", Topic: "a", Key: "k"}}}); err != nil {
		d.Fatal(err)
	}
	info, err := d.Store.(store.GroupObjects).GroupNamed(d.ctx, "g")
	if err != nil {
		d.Fatal(err)
	}
	j := groupOf(info.Mode)
	j.Member, j.Worker = "another", s.w.id
	members, err := d.Store.(store.GroupObjects).GroupMembers(d.ctx, "g", 0, 10)
	if err != nil {
		d.Fatal(err)
	}
	for i := range members { // those of before have the stripes
		if _, err := groups.LoseMembers(d.ctx, store.LoseMembers{Hands: []int64{members[i].Hand}}); err != nil {
			d.Fatal(err)
		}
	}
	h, err := groups.JoinGroup(d.ctx, j)
	if err != nil {
		d.Fatal(err)
	}
	match, err := j.Filter.Matcher()
	if err != nil {
		d.Fatal(err)
	}
	reply, err := groups.Turn(d.ctx, &store.Turn{Hand: h, Match: &match, Want: stream.Want{N: 10, Idle: true}})
	if err != nil || len(reply.Given) != 1 || reply.Given[0].Event.ID != "after" {
		d.Errorf("%d events come after the repair, %v", len(reply.Given), err)
	}
	noGroups(d, s)
}

// forgetGroups removes all that groups have.
var forgetGroups = []string{"DELETE FROM <hand>", "DELETE FROM @place", "DELETE FROM <shelf>", "DELETE FROM <stripe>", "DELETE FROM <consumer_group>"}

func noGroups(d *database, s *scene) {
	d.Helper()
	d.sql(s, forgetGroups...)
}

// Words put SQL of the suite into a dialect: "<" and ">" around a table, @true, @past,
// @future, @never, @junk (bytes), @names, @place, @order and @first.
type Words struct {
	*strings.Replacer
	ID func(id job.ID) string // as a literal
}

// measured keeps something that a process measured: just now, or days ago, by the hour.
func measured(d *database, hours bool) {
	d.Helper()
	at := d.now()
	if hours {
		at = at.Add(-3 * 24 * time.Hour)
	}
	d.process().add(ran(at.Truncate(time.Hour), "q", "k", 1, time.Second))
	for hours {
		r, err := d.metrics().RollUp(d.ctx, 100)
		if err != nil {
			d.Fatal(err)
		}
		hours = r.Merged > 0
	}
}
