package pawl_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

// Queues tells how queues stand, and what this process serves of them.
func TestJ35_QueuesTellsWhatWaitsWhoServesAndWhatIsPaused(t *testing.T) {
	registered := make(chan struct{}, 1)
	e, err := pawl.New(sqlite.Memory(), pawl.Config{Queues: pawl.Queues{"mail": {Workers: 7, Total: 40}, "slow": {Workers: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	pawl.Handle(e, func(context.Context, *pawl.Job[Welcome]) error { registered <- struct{}{}; return nil })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	defer func() {
		stop()
		if err := errors.Join(<-ended, e.Close()); err != nil {
			t.Error(err)
		}
	}()
	for _, q := range []string{"slow", "elsewhere"} {
		if err := e.Queue(q).Pause(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []string{"mail", "slow", "other"} {
		if _, err := e.Enqueue(ctx, Welcome{42}, pawl.Queue(q)); err != nil {
			t.Fatal(err)
		}
	}
	<-registered // the worker runs
	got, err := e.Queues(ctx)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]pawl.QueueState{}
	var names []string
	for _, q := range got {
		names, at[q.Name] = append(names, q.Name), q
	}
	if want := []string{"elsewhere", "mail", "other", "slow"}; !slices.Equal(names, want) {
		t.Errorf("queues are %v, want %v", names, want)
	}
	if q := at["mail"]; q.Slots != 7 || q.Total != 40 || q.Workers != 1 || len(q.Labels) != 1 || q.Pause != nil {
		t.Errorf("mail stands at %+v, want 7 slots of one worker and a total of 40", q)
	}
	if q := at["slow"]; q.Slots != 2 || q.Total != 0 || q.Ready.Jobs != 1 || q.Oldest.IsZero() || q.Pause == nil {
		t.Errorf("slow stands at %+v, want a ready job, 2 slots and a pause", q)
	}
	if q := at["other"]; q.Slots != 0 || q.Workers != 0 || q.Ready.Jobs != 1 || q.Pause != nil {
		t.Errorf("other stands at %+v, want a ready job that nobody serves", q)
	}
	one, err := e.Queues(ctx, "slow")
	if err != nil || len(one) != 1 || one[0].Name != "slow" {
		t.Errorf("asked for slow, got %v, %v", one, err)
	}
	if _, err := e.Queues(ctx, "no such name"); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("a name that no queue has: %v, want ErrInvalid", err)
	}
}
