package pawl

import (
	"context"
	"errors"
	"time"

	"github.com/pawlwork/pawl/internal/keeper"
	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// keeper does the upkeep of the namespace, as the worker that a runner is; nil
// for a process that is none.
func (e *Engine) keeper(r *runner.Runner) (*keeper.Keeper, error) {
	steady := func() (job.WorkerID, time.Time, time.Duration) { return 0, time.Time{}, 0 }
	var leads func() bool
	var died func([]store.Death)
	if r != nil {
		died = r.Meter().Died
		steady, leads = r.Member().Steady, r.Member().Leads
	}
	return keeper.New(keeper.Config{
		Store: e.store, Hub: e.hub, Logger: e.cfg.Logger, Steady: steady, Leads: leads, Every: e.every, Died: died,
		Unserved: e.unservedFound, Gates: func() *job.GateRules { return e.followed.limits.Load().gates }, Rhythm: store.RhythmOf(e.store),
		Topics: func() keeper.TopicKeep { return e.followed.topics.Load().keep() },
	})
}

// unservedFound keeps what the last report of this process found.
func (e *Engine) unservedFound(list []store.Unserved) { e.unserved.Store(&list) }

// Upkeep runs one round of upkeep by hand and says what it did: "rescue",
// "expire", "intents", "operations", "purge", "rollup", "unserved", "gates", "trim", "delayed" or "members". Every process that runs does them by itself, so
// it is for those who do not want to wait, and the audit log says who. A process that does not run declares
// nobody lost: it has no beats by which to judge.
func (e *Engine) Upkeep(ctx context.Context, round string) (UpkeepReport, error) {
	if err := e.usable(ctx); err != nil {
		return UpkeepReport{}, err
	}
	k, err := e.keeper(e.runner())
	if err != nil {
		return UpkeepReport{}, err
	}
	report, err := k.Run(ctx, round)
	if errors.Is(err, job.ErrInvalid) {
		return report, err
	}
	record, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit) // whoever left: it was done
	defer cancel()
	return report, errors.Join(err, e.store.Record(record, operatorOf(ctx), store.UpkeepAction, round, report.Detail(err)))
}

// recordLimit is how long the entry of what was done is tried to be written.
const recordLimit = 10 * time.Second

// Services is what every loop of this process has done: claims, beats, ends,
// upkeep, the listener. It is empty before the first Run, and shows what has stopped
// after it.
func (e *Engine) Services(context.Context) []ServiceStatus {
	if r := e.runner(); r != nil {
		return r.Services()
	}
	return nil
}

// runner is that of Run, nil while Run does not run.
func (e *Engine) runner() *runner.Runner {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running
}
