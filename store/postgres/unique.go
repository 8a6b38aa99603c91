package postgres

import (
	"context"

	"github.com/pawlwork/pawl/job"
)

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

// A conflict neither locks nor changes the row of a live job: its finish would
// have to wait for the transaction that asked, which may be a user's.
const (
	// job_unique_pkey; rows go in by ascending hash, as everywhere.
	takeUnique = `INSERT INTO pawl.job_unique (namespace, hash, job)
		SELECT $1, k.hash, k.job FROM unnest($2::bytea[], $3::uuid[]) WITH ORDINALITY AS k (hash, job, n) ORDER BY k.n
		ON CONFLICT (namespace, hash) DO NOTHING RETURNING hash`
	// A key whose time is over is taken over. An archived job that comes back also
	// takes its own ($4); a resend of one that was purged does not: its period holds.
	replaceUnique = `WITH old AS MATERIALIZED (
			SELECT k.namespace, u.hash, k.job FROM (SELECT $1::int AS namespace, k.* FROM unnest($2::bytea[], $3::uuid[]) AS k (hash, job) OFFSET 0) AS k
			JOIN pawl.job_unique AS u ON u.namespace = k.namespace AND u.hash = k.hash
			WHERE u.until <= {now} OR $4 AND u.until IS NOT NULL AND u.job = k.job
			ORDER BY u.hash FOR UPDATE OF u)
		UPDATE pawl.job_unique AS u SET job = old.job, until = NULL FROM old WHERE u.namespace = old.namespace AND u.hash = old.hash RETURNING u.hash`
	uniqueHolders = `SELECT u.hash, u.job FROM (SELECT $1::int AS namespace, k.* FROM unnest($2::bytea[]) AS k (hash) OFFSET 0) AS k
		JOIN pawl.job_unique AS u ON u.namespace = k.namespace AND u.hash = k.hash WHERE u.until IS NULL OR u.until > {now}`
	dropUnique = `WITH mine AS MATERIALIZED (
			SELECT k.namespace, u.hash FROM (SELECT $1::int AS namespace, k.* FROM unnest($2::bytea[], $3::uuid[]) AS k (hash, job) OFFSET 0) AS k
			JOIN pawl.job_unique AS u ON u.namespace = k.namespace AND u.hash = k.hash AND u.job = k.job
			ORDER BY u.hash FOR UPDATE OF u)
		DELETE FROM pawl.job_unique AS u USING mine WHERE u.namespace = mine.namespace AND u.hash = mine.hash`
)

// takeUnique takes keys, which are in the order of their hashes. back says that
// their jobs come back from the archive.
func (s *Store) takeUnique(ctx context.Context, session session, keys []uniqueKey, back bool) ([]uniqueAnswer, error) {
	answers := make([]uniqueAnswer, len(keys))
	at := make(map[string]int, len(keys))
	for i, k := range keys {
		at[string(k.hash)] = i
	}
	free := func(scan scan) error {
		var hash []byte
		if err := scan(&hash); err != nil {
			return err
		}
		answers[at[string(hash)]].free = true
		return nil
	}
	hashes, jobs := keyArrays(keys)
	if err := session.run(ctx, &statement{text: takeUnique, args: []any{s.namespace, hashes, jobs}, each: free}); err != nil {
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
	err := session.run(ctx,
		&statement{text: replaceUnique, args: []any{s.namespace, hashes, jobs, back}, each: free},
		&statement{text: uniqueHolders, args: []any{s.namespace, hashes}, each: func(scan scan) error {
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
func (s *Store) dropUnique(ctx context.Context, session session, keys []uniqueKey) error {
	if len(keys) == 0 {
		return nil
	}
	hashes, jobs := keyArrays(keys)
	return session.run(ctx, &statement{text: dropUnique, args: []any{s.namespace, hashes, jobs}})
}

func keyArrays(keys []uniqueKey) (hashes [][]byte, jobs [][16]byte) {
	for _, k := range keys {
		hashes, jobs = append(hashes, k.hash), append(jobs, k.job)
	}
	return hashes, jobs
}
