package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/batch"
	"github.com/pawlwork/pawl/pawltest"
)

// around is a hook that writes down when enqueues begin and end.
func around(seen *record) func(context.Context, []pawl.Draft) func(error) {
	return func(ctx context.Context, drafts []pawl.Draft) func(error) {
		who, _ := ctx.Value(tenantKey{}).(string)
		for i := range drafts {
			if err := drafts[i].SetHeader("from", who); err != nil {
				return nil
			}
			if drafts[i].Kind == "pack" && drafts[i].Queue == "large" {
				_ = drafts[i].SetHeader("more", strings.Repeat("x", 2<<20))
			}
		}
		return func(err error) { seen.add("%s:%s:%d:%v", who, drafts[0].Kind, len(drafts), err != nil) }
	}
}

// The hook around an enqueue sees every way in, may add headers, and is told once what
// became of it.
func TestJ28_TheHookAroundEnqueueIsToldOfTheEnd(t *testing.T) {
	var seen, heard record
	inside := func(next pawl.Work) pawl.Work {
		return func(ctx context.Context, j *pawl.Info) error {
			return next(context.WithValue(ctx, tenantKey{}, "run"), j)
		}
	}
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			heard.add("%s", j.Headers()["from"])
			_, err := j.Then(Pack{1})
			return err
		})
		pawl.Handle(to, func(_ context.Context, j *pawl.Job[Pack]) error {
			heard.add("%s", j.Headers()["from"])
			return nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		from := func(name string) context.Context { return context.WithValue(t.Context(), tenantKey{}, name) }
		if _, err := e.Engine.EnqueueMany(from("many"), pawl.NewItem(Pack{1}), pawl.NewItem(Pack{2})); err != nil {
			t.Error(err)
		}
		if _, err := e.Engine.Enqueue(from("bad"), Pack{1}, pawl.Queue("large")); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("headers beyond their bound: %v", err)
		}
		err := e.Tx(from("tx"), func(ctx context.Context, tx *pawl.Tx) error {
			_, err := tx.Enqueue(ctx, Pack{3})
			return err
		})
		if err != nil {
			t.Error(err)
		}
		e.RunUntilIdle()
		if _, err := e.Engine.Enqueue(from("one"), Welcome{1}); err != nil {
			t.Error(err)
		}
		e.RunUntilIdle()
	}, one, pawltest.Config(func(c *pawl.Config) {
		c.Middleware, c.Hooks.AroundEnqueue = []pawl.Middleware{inside}, around(&seen)
	}))
	if want := "many:pack:2:false bad:pack:1:true tx:pack:1:false one:welcome:1:false run:pack:1:false"; seen.String() != want {
		t.Errorf("the hook saw %s, want %s", &seen, want)
	}
	if want := "many many tx one run"; heard.String() != want {
		t.Errorf("handlers heard of %s, want %s", &heard, want)
	}
}

// told is an observer that writes down the batches of a kind.
type told struct {
	batch.Observer
	mu   *sync.Mutex
	list *[]string
}

func (o told) Named(name string) batch.Observer {
	return told{plain{func(r batch.Report) {
		o.mu.Lock()
		defer o.mu.Unlock()
		*o.list = append(*o.list, fmt.Sprintf("%s of %d, %d failed", name, r.Items, r.Failed))
	}}, o.mu, o.list}
}

// plain is an observer of ends.
type plain struct{ end func(batch.Report) }

func (plain) Received(int)              {}
func (plain) Rejected(int, error)       {}
func (plain) Left(int)                  {}
func (plain) Started()                  {}
func (p plain) Finished(r batch.Report) { p.end(r) }

// A batch handler's observer knows batches by their kind.
func TestJ28_ABatchHandlerIsObserved(t *testing.T) {
	var mu sync.Mutex
	var list []string
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.HandleBatch(to, func(_ context.Context, jobs []*pawl.Job[Email]) []error {
			return make([]error, len(jobs))
		}, pawl.Batch[Email]{Size: 2, Wait: time.Second, Observer: told{mu: &mu, list: &list}})
	}, func(t *testing.T, e *pawltest.Engine) {
		e.Enqueue(Email{To: "ann"})
		e.Enqueue(Email{To: "bob"})
		e.RunUntilIdle()
	})
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(list, "; "); got != "email of 2, 0 failed" {
		t.Errorf("the observer was told of %s", got)
	}
}
