package lists

import (
	"context"
	"strings"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Count counts the jobs a filter matches, up to cap (0 means MaxCounted).
func (r *Room) Count(ctx context.Context, f store.Filter, cap int) (store.Counted, error) {
	cap, err := store.CountCap(cap)
	if err != nil {
		return store.Counted{}, err
	}
	stretches, err := r.withQueues(ctx, r.of(f))
	if err != nil {
		return store.Counted{}, err
	}
	if len(stretches) == 0 {
		return store.Counted{}, r.pg.Usable(ctx)
	}
	b := &listing{}
	text := b.count(stretches, f, cap)
	var counted store.Counted
	visits := 0
	err = r.pg.Browse(ctx, func() []*pg.Statement {
		counted, visits = store.Counted{}, 0
		if f.Fingerprint == "" {
			return []*pg.Statement{seek(), {Text: text, Args: b.args, Each: func(scan pg.Scan) error { return scan(&visits, &counted.Jobs) }}}
		}
		return []*pg.Statement{seek(), {Text: text, Args: b.args, Each: func(scan pg.Scan) error {
			var failures []byte
			visits++
			err := scan(&failures)
			if f.Matches(job.StoredFailures(failures)) {
				counted.Jobs++
			}
			return err
		}}}
	})
	counted.More = visits > store.MaxVisits || counted.Jobs > cap
	counted.Jobs = min(counted.Jobs, cap)
	return counted, err
}

// count is the statement of a count: how many rows it visited, and how many of
// them matched. By fingerprint it answers the failures of each, NULL for those
// that cannot have it.
func (b *listing) count(stretches []stretch, f store.Filter, cap int) string {
	most := cap
	parts := make([]string, len(stretches))
	for i, r := range stretches {
		if len(r.match) > 0 { // else every row that it visits matches
			most = store.MaxVisits
		}
		r.unsorted = r.index != "" // it names its index by an order, in which nothing is sorted
		columns := "(" + b.all(r.match) + ") AS matches"
		if f.Fingerprint != "" {
			columns = "CASE WHEN " + strings.TrimSuffix(columns, " AS matches") + " THEN failures END AS failures"
		}
		parts[i] = b.each(r, b.read(r, columns))
	}
	all := "SELECT *\n\tFROM (\n" + strings.Join(parts, "\nUNION ALL\n") + "\n\t) AS stretch\n\tLIMIT " + b.arg(most+1)
	if f.Fingerprint != "" {
		return all
	}
	return "SELECT count(*), count(*) FILTER (WHERE matches)\nFROM (\n\t" + all + "\n) AS counted"
}
