package wake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/supervise"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// take returns what was hinted, by queue name.
func take(s *Subscription, names ...string) (map[string]time.Time, Heard) {
	got := map[string]time.Time{}
	heard := s.Take(func(i int, what Hinted) { got[names[i]] = what.Due })
	return got, heard
}

// origins returns where the hints came from, by queue name.
func origins(s *Subscription, names ...string) map[string]origin {
	got := map[string]origin{}
	s.Take(func(i int, what Hinted) { got[names[i]] = what.from })
	return got
}

func token(s *Subscription) bool {
	select {
	case <-s.C():
		return true
	default:
		return false
	}
}

func TestHub_HintsAreMerged(t *testing.T) {
	h := NewHub()
	s := h.Subscribe("a", "b")
	defer s.Close()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	h.Ready(store.Hint{Subject: store.SubjectQueue, Name: "a", Due: noon}, store.Hint{Subject: store.SubjectQueue, Name: "a", Due: noon.Add(-time.Hour)}, store.Hint{Subject: store.SubjectQueue, Name: "a", Due: noon.Add(time.Hour)})
	h.Ready(store.Hint{Subject: store.SubjectQueue, Name: "elsewhere"})
	if !token(s) || token(s) {
		t.Error("want one token for any number of hints")
	}
	got, heard := take(s, "a", "b")
	if len(got) != 1 || !got["a"].Equal(noon.Add(-time.Hour)) {
		t.Errorf("hinted %v, want a at its lowest due time", got)
	}
	if heard.Job {
		t.Errorf("heard %+v", heard)
	}
	if got, _ := take(s, "a", "b"); len(got) != 0 {
		t.Errorf("hinted again: %v", got)
	}
}

func TestHub_ReadyNowBeatsADueTime(t *testing.T) {
	h := NewHub()
	s := h.Subscribe("a")
	h.Ready(store.Hint{Subject: store.SubjectQueue, Name: "a", Due: time.Now().Add(time.Hour)}, store.Hint{Subject: store.SubjectQueue, Name: "a"}, store.Hint{Subject: store.SubjectQueue, Name: "a", Due: time.Now()})
	if got, _ := take(s, "a"); !got["a"].IsZero() {
		t.Errorf("due %v, want now", got["a"])
	}
}

func TestHub_ZeroHintMeansEverything(t *testing.T) {
	h := NewHub()
	s := h.Subscribe("a", "b")
	h.Ready(store.Hint{})
	got, heard := take(s, "a", "b")
	if len(got) != 2 || heard != (Heard{Job: true, Members: true, Setting: true, Topic: true, Intent: true, Delay: true, Group: true}) {
		t.Errorf("hinted %v, %+v", got, heard)
	}
}

func TestHub_CancelHintAloneAsksForNoLook(t *testing.T) {
	h := NewHub()
	s := h.Subscribe("a")
	h.Ready(store.Hint{Subject: store.SubjectJob})
	if !token(s) {
		t.Error("no token")
	}
	if got, heard := take(s, "a"); len(got) != 0 || !heard.Job {
		t.Errorf("hinted %v, %+v", got, heard)
	}
}

// TestHub_MembersHintAsksForABeatOnly has the hint by which workers hear of each other: it asks for no look, and a hint
// about any queue, which a store may give on every commit, does not say it.
func TestHub_MembersHintAsksForABeatOnly(t *testing.T) {
	h := NewHub()
	s := h.Subscribe("a")
	h.give(outside, store.Hint{Subject: store.SubjectMembers})
	if !token(s) {
		t.Error("no token")
	}
	if got, heard := take(s, "a"); len(got) != 0 || heard != (Heard{Members: true}) {
		t.Errorf("hinted %v, %+v", got, heard)
	}
	h.give(outside, store.Hint{Subject: store.SubjectQueue}, store.Hint{Subject: store.SubjectJob})
	if got, heard := take(s, "a"); len(got) != 1 || heard != (Heard{Job: true}) {
		t.Errorf("of any queue and job: hinted %v, %+v", got, heard)
	}
}

// TestHub_SubjectsAreHandedThrough has hints that are not about queues: each is heard as what it is and asks for no look.
func TestHub_SubjectsAreHandedThrough(t *testing.T) {
	h := NewHub()
	s := h.Subscribe("a")
	for subject, want := range map[store.Subject]Heard{
		store.SubjectJob:     {Job: true},
		store.SubjectMembers: {Members: true},
		store.SubjectSetting: {Setting: true},
		store.SubjectTopic:   {Topic: true},
		store.SubjectIntent:  {Intent: true},
		store.SubjectDelay:   {Delay: true},
		store.SubjectGroup:   {Group: true},
	} {
		h.give(outside, store.Hint{Subject: subject, Name: "a"})
		if !token(s) {
			t.Errorf("%v: no token", subject)
		}
		if got, heard := take(s, "a"); len(got) != 0 || heard != want {
			t.Errorf("%v: hinted %v, heard %+v, want %+v", subject, got, heard, want)
		}
	}
	h.give(outside, store.Hint{Subject: store.SubjectGroup + 1, Name: "a"})
	if token(s) {
		t.Error("woken for a subject that nobody knows")
	}
}

func TestHub_HintForOthersWakesNobody(t *testing.T) {
	h := NewHub()
	s := h.Subscribe("a")
	h.Ready(store.Hint{Subject: store.SubjectQueue, Name: "b"})
	if token(s) {
		t.Error("woken for a queue that is not served")
	}
	s.Close()
	s.Close()
	h.Ready(store.Hint{Subject: store.SubjectQueue, Name: "a"})
	if token(s) {
		t.Error("woken after Close")
	}
}

// ear is a listener whose connection the test holds.
type ear struct {
	calls chan call
}

type call struct {
	hear func(store.Hint)
	end  chan error
}

func (e *ear) Listen(ctx context.Context, hear func(store.Hint)) error {
	c := call{hear: hear, end: make(chan error)}
	e.calls <- c
	select {
	case err := <-c.end:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func TestListen_HealthFollowsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub()
		s := h.Subscribe("a")
		e := &ear{calls: make(chan call)}
		tree, err := supervise.New(supervise.Config{Services: []supervise.Service{h.Service(e)}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		first := <-e.calls
		synctest.Wait()
		if h.Healthy() {
			t.Error("healthy before it can be known")
		}
		time.Sleep(settle)
		synctest.Wait()
		if !h.Healthy() {
			t.Error("not healthy after it has listened for a while")
		}
		if got, _ := take(s, "a"); len(got) != 1 {
			t.Error("no look after the listener came up: what came before was not heard")
		}
		first.hear(store.Hint{Subject: store.SubjectQueue, Name: "a"})
		if origins(s, "a")["a"] != outside {
			t.Error("a hint from the listener does not say so")
		}
		first.end <- errors.New("connection lost")
		synctest.Wait()
		if h.Healthy() {
			t.Error("healthy without a connection")
		}
		if !token(s) {
			t.Error("nobody was told that the poll must be short now")
		}
		second := <-e.calls // it comes back by itself
		second.hear(store.Hint{Subject: store.SubjectQueue, Name: "a"})
		if !h.Healthy() {
			t.Error("not healthy although it hears")
		}
		second.end <- nil // a clean return that nobody asked for is a loss, too
		third := <-e.calls
		if h.Healthy() {
			t.Error("healthy although Listen had returned")
		}
		_ = third
		if stuck := tree.Stop(t.Context()); stuck != nil {
			t.Error(stuck)
		}
		time.Sleep(2 * settle) // a settle timer that outlives its listener would say healthy here
		synctest.Wait()
		if h.Healthy() {
			t.Error("healthy after the stop")
		}
	})
}

func TestHub_QueuesOfASubscriptionChange(t *testing.T) {
	h := NewHub()
	s := h.Subscribe("a", "b")
	h.Ready(store.Hint{Subject: store.SubjectQueue, Name: "b"})
	s.SetQueues("b", "c")
	h.Ready(store.Hint{Subject: store.SubjectQueue, Name: "c"}, store.Hint{Subject: store.SubjectQueue, Name: "a"})
	if got, _ := take(s, "b", "c"); len(got) != 2 {
		t.Errorf("hinted %v, want b, which was before the change, and c", got)
	}
}

// Where hints come from is known of each queue: what the runner has counted, what came
// from here otherwise, and what came from outside, the furthest of those that were merged.
func TestJ34_OriginsOfHints(t *testing.T) {
	h := NewHub()
	s := h.Subscribe("a", "b", "c", "d")
	on := func(queue string) store.Hint { return store.Hint{Subject: store.SubjectQueue, Name: queue} }
	h.Accepted(on("a"), on("b"), on("c"))
	if s.Uncounted() {
		t.Error("counted jobs pass for others")
	}
	h.Ready(on("b"))
	h.give(outside, on("c"))
	h.Accepted(on("b"), on("c"))
	if !s.Uncounted() {
		t.Error("others are not seen before Take")
	}
	if got, want := fmt.Sprint(origins(s, "a", "b", "c", "d")), fmt.Sprint(map[string]origin{"a": counted, "b": here, "c": outside}); got != want {
		t.Errorf("origins %s, want %s", got, want)
	}
	if s.Uncounted() {
		t.Error("they are seen after Take")
	}
	h.give(outside, store.Hint{Subject: store.SubjectJob})
	if s.Uncounted() {
		t.Error("what is not about queues passes for jobs that wait")
	}
}
