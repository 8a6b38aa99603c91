package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"
)

// probeLimits is no wait at all, as far as the server can: an insert has no NOWAIT.
var probeLimits = &limits{lock: 2 * time.Millisecond}

// errProbed undoes a probe.
var errProbed = errors.New("undo")

// probeIDs asks for ids by job_pkey. Nobody ever sees these rows.
const probeIDs = `INSERT INTO pawl.job (namespace, id, state, priority, due, created, max_attempts, queue, kind)
	SELECT $1, e.id, 1, 5, {now}, {now}, 1, '', ''
	FROM unnest($2::uuid[]) AS e (id)
	ORDER BY e.id
	ON CONFLICT (namespace, id) DO NOTHING`

// held reports whether somebody's transaction holds one of the keys at this
// moment. It takes them as an enqueue would, and undoes that. A probe that fails
// for another reason says no: whoever wants the keys meets that reason itself.
func (s *Store) held(ctx context.Context, keys []lockKey) bool {
	ctx, cancel := context.WithTimeout(ctx, s.tryTimeout)
	defer cancel()
	var hashes []uniqueKey
	var ids [][16]byte
	for _, k := range keys {
		if k.hash != "" {
			hashes = append(hashes, uniqueKey{hash: []byte(k.hash)})
		} else {
			ids = append(ids, k.id)
		}
	}
	slices.SortFunc(hashes, func(a, b uniqueKey) int { return bytes.Compare(a.hash, b.hash) })
	err := s.transact(ctx, s.work, probeLimits, func(t *transaction) error {
		if len(hashes) > 0 {
			if _, err := s.takeUnique(ctx, t, hashes, false); err != nil {
				return err
			}
		}
		if len(ids) > 0 {
			if err := t.run(ctx, &statement{text: probeIDs, args: []any{s.namespace, ids}}); err != nil {
				return err
			}
		}
		return errProbed
	})
	return faultOf(err).blocked
}

// firstHeld finds the key that a call has to wait for, by halves. If none is held
// any more, it names one that the caller finds free.
func (s *Store) firstHeld(ctx context.Context, keys []lockKey) lockKey {
	for len(keys) > 1 {
		half := len(keys) / 2
		if s.held(ctx, keys[:half]) {
			keys = keys[:half]
		} else {
			keys = keys[half:]
		}
	}
	return keys[0]
}

// allHeld finds every key that is held, by halves.
func (s *Store) allHeld(ctx context.Context, keys []lockKey) []lockKey {
	switch {
	case len(keys) == 0 || !s.held(ctx, keys):
		return nil
	case len(keys) == 1:
		return keys
	}
	half := len(keys) / 2
	return slices.Concat(s.allHeld(ctx, keys[:half]), s.allHeld(ctx, keys[half:]))
}
