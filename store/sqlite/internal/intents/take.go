package intents

import (
	"cmp"
	"slices"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// What is to be applied of one kind.
//   - pawl_intent_fresh has those that nobody has tried, in order; pawl_intent_due
//     those that were put off until now.
const (
	freshIntents = `SELECT id, number, kind, failures, created, subject, payload
	FROM pawl_intent INDEXED BY pawl_intent_fresh
	WHERE namespace = ? AND kind = ? AND due IS NULL
	ORDER BY number
	LIMIT ?`
	lateIntents = `SELECT id, number, kind, failures, created, subject, payload
	FROM pawl_intent INDEXED BY pawl_intent_due
	WHERE namespace = ? AND kind = ? AND due IS NOT NULL AND due <= ?
	ORDER BY due
	LIMIT ?`
)

// row is an intent that is to be applied.
type row struct {
	store.Intent
	number   int64
	failures int
	created  int64
}

// take reads what is to be applied, in order, within the bounds. It reports whether
// there is more.
func take(in *lite.Session, kinds []store.IntentKind, limit int) (rows []row, more bool, err error) {
	for _, kind := range kinds {
		for _, q := range []*lite.Query{
			in.On(freshIntents).Int(int64(kind)).Int(int64(limit)),
			in.On(lateIntents).Int(int64(kind)).Int(in.Now).Int(int64(limit)),
		} {
			for q.Step() {
				rows = append(rows, row{
					Intent: store.Intent{ID: q.ColID(0), Kind: store.IntentKind(q.ColInt(2)), Subject: q.ColText(5), Payload: q.ColBlob(6)},
					number: q.ColInt(1), failures: int(q.ColInt(3)), created: q.ColInt(4),
				})
			}
			if err := q.Done(); err != nil {
				return nil, false, err
			}
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.number, b.number) })
	bytes := 0
	for i := range rows {
		if bytes += rows[i].Weight(); i > 0 && bytes > store.IntentBytes || i == limit {
			return rows[:i], true, nil
		}
	}
	return rows, len(rows) == limit, nil
}

// firstIntents has the first intents of a subject, by pawl_intent_subject.
const firstIntents = `SELECT id, due
	FROM pawl_intent
	WHERE namespace = ? AND kind = ? AND subject = ?
	ORDER BY number
	LIMIT ?`

// first reads the first intents of each subject among some: one more than are held.
func first(in *lite.Session, held []store.Intent) (list []store.IntentPlace, err error) {
	type subject struct {
		kind store.IntentKind
		name string
	}
	counts := map[subject]int64{}
	for i := range held {
		counts[subject{held[i].Kind, held[i].Subject}]++
	}
	for s, n := range counts {
		q := in.On(firstIntents).Int(int64(s.kind)).Text(s.name).Int(n + 1)
		for q.Step() {
			p := store.IntentPlace{ID: job.ID(q.ColID(0)), Kind: s.kind, Subject: s.name}
			if due := q.ColInt(1); due > in.Now {
				p.Until = lite.TimeOf(due)
			}
			list = append(list, p)
		}
		if err := q.Done(); err != nil {
			return nil, err
		}
	}
	return list, nil
}
