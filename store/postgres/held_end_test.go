package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres"
)

type leavesItsTx struct{}

func (leavesItsTx) Kind() string { return "leaves" }

type ordinary struct{}

func (ordinary) Kind() string { return "ordinary" }

// A handler that returns before its transaction has ended keeps its own end
// waiting and no other: what the others come to is stored meanwhile.
func TestP8_AnEndThatWaitsHoldsUpNoOther(t *testing.T) {
	db := need.Postgres(t)
	p := pool(t, db)
	stored := make(chan pawl.Finished, 100)
	e, err := pawl.New(postgres.Pool(p, postgres.Options{Schema: db.Schema}), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 10}}, Hooks: pawl.Hooks{Finish: func(f pawl.Finished) { stored <- f }},
	})
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan pgx.Tx, 2)
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[leavesItsTx]) error {
		tx, err := p.Begin(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		defer func() { left <- tx }()
		return errors.Join(postgres.Within(e, tx).Finish(j), errors.New("it fails after all"))
	})
	pawl.Handle(e, func(context.Context, *pawl.Job[ordinary]) error { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	enqueue := func(args pawl.Args) job.ID {
		t.Helper()
		r, err := e.Enqueue(ctx, args, pawl.Attempts(1))
		if err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	ids := []job.ID{enqueue(leavesItsTx{}), enqueue(leavesItsTx{})}
	first, second := <-left, <-left
	for range 5 {
		id := enqueue(ordinary{})
		if f := <-stored; f.ID != id {
			t.Errorf("the end of %s was stored, not that of %s", f.ID, id)
		}
	}
	if err := errors.Join(first.Commit(ctx), second.Rollback(ctx)); err != nil {
		t.Fatal(err)
	}
	// One run has ended in its transaction, the other as its handler said. The
	// hook is told of both.
	for _, f := range []pawl.Finished{<-stored, <-stored} {
		if f.InTx && f.State != job.Done || !f.InTx && f.State != job.Dead {
			t.Errorf("stored %+v", f)
		}
	}
	if s := e.Stats(); s.InTx != 1 || s.Finished[job.Failed] != 1 || s.Unclear+s.Refused != 0 {
		t.Errorf("counted %+v", s)
	}
	states := map[job.State]int{}
	for _, id := range ids {
		j, err := e.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		states[j.State]++
	}
	if states[job.Done] != 1 || states[job.Dead] != 1 {
		t.Errorf("the two jobs are %v", states)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
