package webui_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/pawlwork/pawl"
)

// Beside the look, which all pages share, the pages of queues and limits ask at most six questions, however many queues and limits
// there are.
func TestU7_QueuesAskAFixedNumberOfQuestions(t *testing.T) {
	filled := func(names int) (*asked, *pawl.Engine) {
		a, e := askedEngine(t)
		for n := range names {
			if _, err := e.Enqueue(t.Context(), receipt{}, pawl.Queue(fmt.Sprint("q", n))); err != nil {
				t.Fatal(err)
			}
			if err := e.Queue(fmt.Sprint("s", n)).Set(t.Context(), pawl.QueueSettings{Attempts: 5}); err != nil {
				t.Fatal(err)
			}
			if err := e.Limit(fmt.Sprint("l", n)).Set(t.Context(), pawl.LimitSettings{PerSecond: 2}); err != nil {
				t.Fatal(err)
			}
		}
		return a, e
	}
	aFew, few := filled(1)
	aMany, many := filled(60)
	for _, path := range []string{"/queues", "/queues?open=q0", "/queues/q0", "/limits"} {
		ofFew, _ := aFew.forPage(t, few, path)
		ofMany, all := aMany.forPage(t, many, path)
		if !maps.Equal(ofFew, ofMany) || all == 0 || all > 6+ofFew["settings"]-1 { // those are a question of the look too
			t.Errorf("%s asks %v for few queues, %v for many", path, ofFew, ofMany)
		}
	}
}

// However many schedules, workers and entries there are, a page asks at most six questions beside the look that all pages share.
func TestU7_PagesAskAFewBoundedQuestions(t *testing.T) {
	a, e := askedEngine(t)
	ctx := operating(t.Context(), "many")
	for n := range 120 {
		name := fmt.Sprint("s", n)
		if err := e.Schedule(name).Create(ctx, pawl.Schedule{Cron: "0 6 * * 1-5", Job: pawl.RawArgs("x", []byte("{}"))}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Remote().Register(ctx, pawl.RemoteWorker{Label: name, Version: fmt.Sprint(n % 3), Queues: []string{"py"}, Kinds: []string{"x"}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/cron", "/cron/s7", "/workers", "/workers/7", "/services", "/audit", "/audit?by=nobody", "/settings"} {
		calls, all := a.forPage(t, e, path)
		if all > 6 {
			t.Errorf("%s asks %v", path, calls)
		}
		t.Logf("%s asks %v", path, calls)
	}
}
