package jobs

import (
	"encoding/json"
	"slices"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Enqueue accepts drafts, all or none.
func (t *Transition) Enqueue(drafts []job.Draft) ([]job.Receipt, error) {
	receipts := make([]job.Receipt, len(drafts))
	for i := range drafts {
		var err error
		if receipts[i], err = t.accept(&drafts[i]); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}

// accept takes one draft in. The order of the looks matters: a resend is
// answered with its own id before its unique key is judged, because that key
// may be held by itself.
func (t *Transition) accept(d *job.Draft) (job.Receipt, error) {
	if d.Resend {
		if seen, err := t.acceptedBefore(d.ID); err != nil || seen {
			return job.Receipt{ID: d.ID, Duplicate: seen}, err
		}
	}
	if d.Unique.Hash != nil {
		holder, taken, err := t.uniqueHolder(d.Unique.Hash)
		if err != nil || taken {
			return job.Receipt{ID: holder, Duplicate: taken}, err
		}
	}
	begins, err := t.begins(d)
	if err != nil {
		return job.Receipt{}, err
	}
	added, err := t.insert(d, begins)
	if err != nil {
		return job.Receipt{}, err
	}
	if added && begins {
		t.begun = append(t.begun, beginning{d.HandOver, t.Now})
	}
	if added && d.Unique.Hash != nil {
		if err := t.takeUnique(d.Unique.Hash, d.ID); err != nil {
			return job.Receipt{}, err
		}
	}
	return job.Receipt{ID: d.ID, Duplicate: !added}, nil
}

// Where an id may be, by the primary keys of the tables.
var findID = []string{
	`SELECT 1
	FROM pawl_job
	WHERE namespace = ? AND id = ?`,
	`SELECT 1
	FROM pawl_job_archive
	WHERE namespace = ? AND id = ?`,
	`SELECT 1
	FROM pawl_tombstone
	WHERE namespace = ? AND id = ?`,
}

// acceptedBefore looks for an id among live and archived jobs and tombstones.
func (t *Transition) acceptedBefore(id job.ID) (bool, error) {
	for _, text := range findID {
		if ok, err := t.On(text).Blob(id[:]).Found(); err != nil || ok {
			return ok, err
		}
	}
	return false, nil
}

// What reads and takes a unique key, by its primary key.
const (
	holderOfUnique = `SELECT job
	FROM pawl_job_unique
	WHERE namespace = ? AND hash = ? AND (until IS NULL OR until > ?)`

	holdUnique = `INSERT OR REPLACE INTO pawl_job_unique (namespace, hash, job, until)
	VALUES (?, ?, ?, NULL)`
)

// uniqueHolder names the job that holds a unique key now.
func (t *Transition) uniqueHolder(hash []byte) (holder job.ID, taken bool, err error) {
	q := t.On(holderOfUnique).Blob(hash).Int(t.Now)
	if taken = q.Step(); taken {
		holder = q.ColID(0)
	}
	return holder, taken, q.Done()
}

// takeUnique gives a free key to a live job; a row whose time is over is replaced.
func (t *Transition) takeUnique(hash []byte, id job.ID) error {
	return t.On(holdUnique).Blob(hash).Blob(id[:]).Exec()
}

// insert adds the live row, running if it begins; false when the id is live already.
func (t *Transition) insert(d *job.Draft, begins bool) (bool, error) {
	due := t.Now
	switch {
	case !d.At.IsZero():
		due = max(due, lite.Micros(d.At))
	case d.In > 0:
		due = lite.Later(t.Now, d.In)
	}
	way := &waits
	if begins {
		way = &runs
	}
	into := &way.plain
	if slices.ContainsFunc(optional, func(c *column) bool { return c.given(d) }) {
		into = &way.full
	}
	q := t.On(into.text)
	if begins {
		q.Int(int64(d.HandOver.Worker)).Int(t.Now)
	}
	for _, c := range into.columns {
		c.draft(q, arrival{d, t.Now, due})
	}
	n, err := q.Changes()
	return n == 1, err
}

// insertion is a statement that adds a live row, with the columns that it binds.
type insertion struct {
	text    string
	columns choice
}

// insertions add a job that arrives in one state. Most jobs are plain; binding and
// storing twelve NULLs for each would cost a third of the insert.
type insertions struct{ plain, full insertion }

var (
	waits    = insertionsOf("state", "2")
	runs     = insertionsOf("state, run, claim, worker, started", "3, 1, 0, ?, ?") // as begins says
	optional = choose(func(c *column) bool { return c.given != nil })
)

// insertionsOf add a job, unless its primary key is there.
func insertionsOf(first, values string) insertions {
	of := func(list choice) insertion {
		return insertion{`INSERT INTO pawl_job (namespace, ` + first + `, ` + list.names() + `)
	VALUES (?, ` + values + `, ` + list.parameters() + `)
	ON CONFLICT DO NOTHING`, list}
	}
	return insertions{
		plain: of(choose(func(c *column) bool { return c.draft != nil && c.given == nil })),
		full:  of(choose(func(c *column) bool { return c.draft != nil })),
	}
}

// words writes a list of names as the JSON array in which it is stored.
func words(list []string) string {
	if len(list) == 0 {
		return ""
	}
	b, err := json.Marshal(list)
	if err != nil { // strings always encode
		panic("sqlite: encode names: " + err.Error())
	}
	return string(b)
}

// ParseWords reads what words wrote.
func ParseWords(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var list []string
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	return list, nil
}
