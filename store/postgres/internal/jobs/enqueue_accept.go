package jobs

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Acceptance takes drafts in that may meet a unique key or an id of before.
// Nothing in it fails because a row is there already, so it also works inside a
// user's transaction, which an error would end.
//
// The order of the looks matters: a resend is answered with its own id before
// its unique key is judged, because that key may be held by itself.
type Acceptance struct {
	Room     *Room
	Session  pg.Session
	Drafts   []job.Draft
	receipts []job.Receipt
	// again: this very call may have been committed before, its answer lost.
	// Then an id that is found is this call's own, and no duplicate.
	again bool
	told  hints.Set // what went in, for claims
	begun *begun    // which drafts began; nil where none asks

	answered []bool
	left     int              // drafts without an answer
	byKey    map[string][]int // drafts of a unique key, in order
}

// rounds bounds how often a job or a key may change hands under our eyes.
const rounds = 10

var errRestless = fmt.Errorf("%w: a job or a unique key changed hands too often", store.ErrBusy)

func (a *Acceptance) Run(ctx context.Context) ([]job.Receipt, error) {
	a.receipts = make([]job.Receipt, len(a.Drafts))
	a.answered, a.left = make([]bool, len(a.Drafts)), len(a.Drafts)
	a.byKey = map[string][]int{}
	a.begun = newBegun(a.Drafts)
	for i := range a.Drafts {
		if hash := a.Drafts[i].Unique.Hash; hash != nil {
			a.byKey[string(hash)] = append(a.byKey[string(hash)], i)
		}
	}
	for range rounds {
		if err := a.lookByID(ctx); err != nil {
			return nil, err
		}
		batch, err := a.takeKeys(ctx)
		if err != nil {
			return nil, err
		}
		if err := a.insert(ctx, batch); err != nil {
			return nil, err
		}
		if a.left == 0 {
			return a.receipts, nil
		}
	}
	return nil, pg.Fault{Err: errRestless, Passing: true}.AsError()
}

// settle answers a draft.
func (a *Acceptance) settle(i int, r job.Receipt) {
	a.receipts[i], a.answered[i] = r, true
	a.left--
}

// known answers a draft whose id was accepted before. If that was this very call,
// nobody has told claims of it yet: it is due at the given time, or later.
func (a *Acceptance) known(i int, due time.Time) {
	if a.again && !a.begun.has(a.Drafts[i].ID) {
		a.told.Add(a.Drafts[i].Queue, a.Drafts[i].Priority, due)
	}
	a.settle(i, job.Receipt{ID: a.Drafts[i].ID, Duplicate: !a.again || a.Drafts[i].Resend})
}

// sought reports whether a draft may have been accepted before.
func (a *Acceptance) sought(i int) bool { return a.again || a.Drafts[i].Resend }

// The live table is looked at first: a job that ends between the looks is then
// found in the archive.
//
//   - job_pkey, job_archive_pkey and tombstone_pkey: one lookup for each id.
const (
	LookArchived = `SELECT a.id
FROM (` + GivenIDs + `) AS e
JOIN pawl.job_archive AS a ON a.namespace = ANY (ARRAY[e.namespace]) AND a.id = e.id
UNION ALL
SELECT t.id
FROM (` + GivenIDs + `) AS e
JOIN pawl.tombstone AS t ON t.namespace = ANY (ARRAY[e.namespace]) AND t.id = e.id`
	lookLive = `SELECT j.id, j.due, CASE WHEN j.state = 3 AND j.claim = 0 THEN j.worker ELSE 0 END
FROM (` + GivenIDs + `) AS e
JOIN pawl.job AS j ON j.namespace = ANY (ARRAY[e.namespace]) AND j.id = e.id`
	// undoInsert takes drafts back that were put in by this transaction (job_pkey).
	undoInsert = "DELETE FROM pawl.job WHERE namespace = $1 AND id = ANY($2::uuid[])"
)

// lookByID answers the drafts whose ids are known.
func (a *Acceptance) lookByID(ctx context.Context) error {
	var ids [][16]byte
	at := map[job.ID][]int{}
	for i := range a.Drafts {
		if a.answered[i] || !a.sought(i) {
			continue
		}
		id := a.Drafts[i].ID
		if at[id] == nil {
			ids = append(ids, id)
		}
		at[id] = append(at[id], i)
	}
	if len(ids) == 0 {
		return nil
	}
	found := func(id job.ID, due time.Time) {
		for _, i := range at[id] {
			a.known(i, due)
		}
		delete(at, id)
	}
	args := []any{a.Room.pg.Namespace, ids}
	return a.Session.Run(ctx,
		&pg.Statement{Text: lookLive, Args: args, Each: func(scan pg.Scan) error {
			var id job.ID
			var due time.Time
			var beginner int64 // it began in the commit that accepted it, and runs since
			err := scan(&id, &due, &beginner)
			if beginner != 0 && a.again && a.begun.asks(id, job.WorkerID(beginner)) {
				a.begun.add(id, due) // this very call's: nobody else knows of it
			}
			found(id, due)
			return err
		}},
		&pg.Statement{Text: LookArchived, Args: args, Each: func(scan pg.Scan) error {
			var id job.ID
			err := scan(&id)
			found(id, LongAgo)
			return err
		}})
}

// takeKeys takes the unique keys of the unanswered drafts in the order of their
// hashes, as every transition does, and returns the drafts that may go in: one
// for each id and each key. A key that another job holds answers its drafts.
func (a *Acceptance) takeKeys(ctx context.Context) ([]int, error) {
	var batch, asks []int
	ids, keys := map[job.ID]bool{}, map[string]bool{}
	for i := range a.Drafts {
		d := &a.Drafts[i]
		if a.answered[i] {
			continue
		}
		if ids[d.ID] || d.Unique.Hash != nil && keys[string(d.Unique.Hash)] {
			continue // after its twin has been answered
		}
		ids[d.ID] = true
		if d.Unique.Hash == nil {
			batch = append(batch, i)
			continue
		}
		keys[string(d.Unique.Hash)] = true
		asks = append(asks, i)
	}
	if len(asks) == 0 {
		return batch, nil
	}
	slices.SortFunc(asks, func(i, j int) int { return bytes.Compare(a.Drafts[i].Unique.Hash, a.Drafts[j].Unique.Hash) })
	taken, err := a.Room.takeUnique(ctx, a.Session, a.keysOf(asks), false)
	if err != nil {
		return nil, err
	}
	for n, i := range asks {
		switch {
		case taken[n].free:
			batch = append(batch, i)
		case taken[n].holder != (job.ID{}):
			if taken[n].holder == a.Drafts[i].ID {
				a.known(i, LongAgo) // committed after the look by id, by the try whose answer was lost
			}
			a.answerKey(a.Drafts[i].Unique.Hash, job.Receipt{ID: taken[n].holder, Duplicate: true})
		}
		// Otherwise its holder left in between: the next round asks again.
	}
	return batch, nil
}

func (a *Acceptance) keysOf(list []int) []uniqueKey {
	keys := make([]uniqueKey, len(list))
	for n, i := range list {
		keys[n] = uniqueKey{hash: a.Drafts[i].Unique.Hash, job: a.Drafts[i].ID}
	}
	return keys
}

// answerKey answers every draft of a key that has no answer yet.
func (a *Acceptance) answerKey(hash []byte, r job.Receipt) {
	for _, i := range a.byKey[string(hash)] {
		if !a.answered[i] {
			a.settle(i, r)
		}
	}
}

// insert puts the drafts in, then looks among ended jobs once more: one may have
// ended after the first look and before the insert (its id was still live then).
// What is found undoes itself.
func (a *Acceptance) insert(ctx context.Context, batch []int) error {
	slices.Sort(batch)
	for len(batch) > 0 {
		n, _ := portion(batch, func(i *int) int { return WeightOf(&a.Drafts[*i]) })
		if err := a.insertSome(ctx, batch[:n]); err != nil {
			return err
		}
		batch = batch[n:]
	}
	return nil
}

func (a *Acceptance) insertSome(ctx context.Context, batch []int) error {
	drafts := make([]job.Draft, len(batch))
	at := make(map[job.ID]int, len(batch))
	var sought [][16]byte
	for n, i := range batch {
		drafts[n] = a.Drafts[i]
		at[drafts[n].ID] = i
		if a.sought(i) {
			sought = append(sought, drafts[n].ID)
		}
	}
	added := make(map[job.ID]bool, len(batch))
	put := insertStep(a.Room.pg.Namespace, drafts, insertNew, newBegun(drafts))
	put.Each = func(scan pg.Scan) error {
		var id job.ID
		var due time.Time
		var begins bool
		if err := scan(&id, &due, &begins); err != nil {
			return err
		}
		added[id] = true
		if begins {
			a.begun.add(id, due)
			return nil
		}
		d := &a.Drafts[at[id]]
		a.told.Add(d.Queue, d.Priority, due)
		return nil
	}
	steps := []*pg.Statement{put}
	var ended [][16]byte
	if len(sought) > 0 {
		steps = append(steps, &pg.Statement{Text: LookArchived, Args: []any{a.Room.pg.Namespace, sought}, Each: func(scan pg.Scan) error {
			var id job.ID
			err := scan(&id)
			if added[id] { // what is not ours may be live again by now
				ended = append(ended, id)
			}
			return err
		}})
	}
	if err := a.Session.Run(ctx, steps...); err != nil {
		return err
	}
	if len(ended) > 0 {
		undo := &pg.Statement{Text: undoInsert, Args: []any{a.Room.pg.Namespace, ended}}
		if err := a.Session.Run(ctx, undo); err != nil {
			return err
		}
		for _, id := range ended {
			delete(added, job.ID(id))
			a.begun.undone(id)
		}
	}
	var unused []uniqueKey
	for n, i := range batch {
		d := &drafts[n]
		if added[d.ID] {
			a.settle(i, job.Receipt{ID: d.ID})
			if d.Unique.Hash != nil {
				a.answerKey(d.Unique.Hash, job.Receipt{ID: d.ID, Duplicate: true})
			}
			continue
		}
		if a.again && d.HandOver != nil {
			continue // committed after the look by id, by the try whose answer was lost: the next round sees whether it began
		}
		a.known(i, LongAgo)
		if d.Unique.Hash != nil {
			unused = append(unused, uniqueKey{hash: d.Unique.Hash, job: d.ID})
		}
	}
	return a.Room.dropUnique(ctx, a.Session, unused)
}

// uniqueKey asks for a key in the name of a job.
type uniqueKey struct {
	hash []byte
	job  job.ID
}

// uniqueAnswer says who has it. Neither free nor a holder means that it changed
// hands in between: ask again.
type uniqueAnswer struct {
	free   bool
	holder job.ID
}

// givenKeys are the unique keys of a call with their jobs, as GivenIDs.
const givenKeys = "SELECT $1::int AS namespace, k.* FROM unnest($2::bytea[], $3::uuid[]) AS k (hash, job) OFFSET 0"

// A conflict neither locks nor changes the row of a live job: its finish would
// have to wait for the transaction that asked, which may be a user's.
//
//   - job_unique_pkey serves all of them; rows go by ascending hash, as everywhere.
const (
	takeUnique = `INSERT INTO pawl.job_unique (namespace, hash, job)
SELECT $1, k.hash, k.job
FROM unnest($2::bytea[], $3::uuid[]) WITH ORDINALITY AS k (hash, job, n)
ORDER BY k.n
ON CONFLICT (namespace, hash) DO NOTHING
RETURNING hash`
	// A key whose time is over is taken over. An archived job that comes back also
	// takes its own ($4); a resend of one that was purged does not: its period holds.
	replaceUnique = `WITH old AS MATERIALIZED (
	SELECT k.namespace, u.hash, k.job
	FROM (` + givenKeys + `) AS k
	JOIN pawl.job_unique AS u ON u.namespace = ANY (ARRAY[k.namespace]) AND u.hash = k.hash
	WHERE u.until <= {now} OR $4 AND u.until IS NOT NULL AND u.job = k.job
	ORDER BY u.hash
	FOR UPDATE OF u
)
UPDATE pawl.job_unique AS u
SET job = old.job, until = NULL
FROM old
WHERE u.namespace = ANY (ARRAY[old.namespace]) AND u.hash = old.hash
RETURNING u.hash`
	uniqueHolders = `SELECT u.hash, u.job
FROM (SELECT $1::int AS namespace, k.* FROM unnest($2::bytea[]) AS k (hash) OFFSET 0) AS k
JOIN pawl.job_unique AS u ON u.namespace = ANY (ARRAY[k.namespace]) AND u.hash = k.hash
WHERE u.until IS NULL OR u.until > {now}`
	dropUnique = `WITH mine AS MATERIALIZED (
	SELECT k.namespace, u.hash
	FROM (` + givenKeys + `) AS k
	JOIN pawl.job_unique AS u ON u.namespace = ANY (ARRAY[k.namespace]) AND u.hash = k.hash AND u.job = k.job
	ORDER BY u.hash
	FOR UPDATE OF u
)
DELETE FROM pawl.job_unique AS u
USING mine
WHERE u.namespace = ANY (ARRAY[mine.namespace]) AND u.hash = mine.hash`
)

// takeUnique takes keys, which are in the order of their hashes. back says that
// their jobs come back from the archive.
func (r *Room) takeUnique(ctx context.Context, session pg.Session, keys []uniqueKey, back bool) ([]uniqueAnswer, error) {
	answers := make([]uniqueAnswer, len(keys))
	at := make(map[string]int, len(keys))
	for i, k := range keys {
		at[string(k.hash)] = i
	}
	free := func(scan pg.Scan) error {
		var hash []byte
		if err := scan(&hash); err != nil {
			return err
		}
		answers[at[string(hash)]].free = true
		return nil
	}
	hashes, jobs := keyArrays(keys)
	if err := session.Run(ctx, &pg.Statement{Text: takeUnique, Args: []any{r.pg.Namespace, hashes, jobs}, Each: free}); err != nil {
		return nil, err
	}
	var rest []uniqueKey
	for i, k := range keys {
		if !answers[i].free {
			rest = append(rest, k)
		}
	}
	if len(rest) == 0 {
		return answers, nil
	}
	hashes, jobs = keyArrays(rest)
	err := session.Run(ctx,
		&pg.Statement{Text: replaceUnique, Args: []any{r.pg.Namespace, hashes, jobs, back}, Each: free},
		&pg.Statement{Text: uniqueHolders, Args: []any{r.pg.Namespace, hashes}, Each: func(scan pg.Scan) error {
			var hash []byte
			var holder job.ID
			if err := scan(&hash, &holder); err != nil {
				return err
			}
			if a := &answers[at[string(hash)]]; !a.free {
				a.holder = holder
			}
			return nil
		}})
	return answers, err
}

// dropUnique gives keys back that were taken for nothing.
func (r *Room) dropUnique(ctx context.Context, session pg.Session, keys []uniqueKey) error {
	if len(keys) == 0 {
		return nil
	}
	hashes, jobs := keyArrays(keys)
	return session.Run(ctx, &pg.Statement{Text: dropUnique, Args: []any{r.pg.Namespace, hashes, jobs}})
}

func keyArrays(keys []uniqueKey) (hashes [][]byte, jobs [][16]byte) {
	for _, k := range keys {
		hashes, jobs = append(hashes, k.hash), append(jobs, k.job)
	}
	return hashes, jobs
}
