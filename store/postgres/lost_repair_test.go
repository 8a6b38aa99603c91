package postgres

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Whatever becomes of the answers of a repair: each fault is mended once, is said to be,
// and has one entry in the audit log.
func TestJ27_J32_LostAnswers_Repair(t *testing.T) {
	loseEach(t, lostCase{name: "repair", wakes: true, play: func(l *lossy) (func(context.Context) error, func(error)) {
		ids := l.enqueued(l.drafts(2)...)
		damage := l.direct.pg.SQL("UPDATE pawl.job SET state = 5, worker = 7 WHERE id = ANY ($1)")
		if _, err := l.pool.Exec(l.t.Context(), damage, ids); err != nil {
			l.t.Fatal(err)
		}
		report, err := l.direct.Check(l.t.Context(), store.Check{})
		l.surely(err)
		faults := slices.DeleteFunc(report.Faults, func(f store.Fault) bool { return f.Rule != "live job in a final state" })
		if len(faults) != len(ids) {
			l.t.Fatalf("faults %v, want %d", faults, len(ids))
		}
		op := store.RepairRequest{By: store.Operator{Name: "somebody"}, Grace: time.Hour}
		var done []store.Repair
		call := func(ctx context.Context) (err error) {
			done, err = l.s.Repair(ctx, faults, op)
			return err
		}
		return call, func(err error) {
			again := l.unsure(err) || slices.ContainsFunc(done, func(r store.Repair) bool { return r.Answer == store.RepairBusy })
			if again {
				_, err = l.direct.Repair(l.t.Context(), faults, op)
				l.surely(err)
			}
			for _, r := range done {
				if r.Answer != store.RepairDone && !again {
					l.t.Errorf("answer %s, want that it is repaired", r.Answer)
				}
			}
			for _, id := range ids {
				jobs, err := l.direct.Get(l.t.Context(), []job.ID{id})
				l.surely(err)
				if jobs[0].State != job.Waiting || jobs[0].Worker != 0 {
					l.t.Errorf("the job is %s, of worker %d", jobs[0].State, jobs[0].Worker)
				}
				audit, err := l.direct.Audit(l.t.Context(), store.AuditFilter{Target: id.String()}, store.AuditPage{Limit: 10})
				l.surely(err)
				if len(audit.Entries) != 1 {
					l.t.Errorf("%d audit entries about %s, want one", len(audit.Entries), id)
				}
			}
		}
	}})
}
