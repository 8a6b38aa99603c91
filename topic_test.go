package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
	"github.com/pawlwork/pawl/stream"
)

// topicTown is an engine on a memory store, for what needs no Run.
func topicTown(t *testing.T, topics ...pawl.Topic) *pawl.Engine {
	t.Helper()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{Topics: topics})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func TestE3_ADeclaredTopicHasVersions(t *testing.T) {
	e := topicTown(t, pawl.Topic{Name: "orders.*", Versioned: true})
	ctx := t.Context()
	put := func(x stream.Expect) (stream.PublishReply, error) {
		return e.Publish(ctx, "orders.placed", nil, pawl.Key("order-7"), pawl.Expect(x))
	}
	if r, err := put(stream.NoStream()); err != nil || r.Version != 1 {
		t.Errorf("the first: %+v, %v", r, err)
	}
	if _, err := put(stream.NoStream()); !errors.Is(err, stream.ErrVersion) {
		t.Errorf("a conflict: %v", err)
	}
	if r, err := put(stream.Version(1)); err != nil || r.Version != 2 {
		t.Errorf("the second: %+v, %v", r, err)
	}
	err := e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
		r, err := tx.Publish(ctx, "orders.placed", nil, pawl.Key("order-7"), pawl.Expect(stream.Version(2)))
		if r.Version != 3 {
			t.Errorf("within: %+v", r)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	_, err = e.Publish(ctx, "mails.sent", nil, pawl.Expect(stream.NoStream()))
	if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "expected version") {
		t.Errorf("a topic without versions: %v", err)
	}
	var versions []int64
	for ev, err := range e.Events(ctx, stream.Filter{}, stream.FromStart()) {
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, ev.Version)
	}
	if !slices.Equal(versions, []int64{1, 2, 3}) {
		t.Errorf("versions %v", versions)
	}
}

func TestJ30_TopicsAreDeclaredAndSet(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{
			Queues: pawl.Queues{"default": {Workers: 1}},
			Topics: []pawl.Topic{
				{Name: ">", KeepFor: 24 * time.Hour}, {Name: "orders.*", KeepCount: 100, Versioned: true}, {Name: "orders.placed", KeepFor: time.Hour},
			},
		}, waiting)
		ops := at.settle(pawl.Config{})
		soon()
		ctx := pawl.As(t.Context(), "ann", "disk is full")
		ops.must(ops.Topic("orders.*").Set(ctx, pawl.TopicSettings{KeepCount: 50}))
		ops.must(ops.Topic(">").Set(ctx, pawl.TopicSettings{KeepFor: 2 * time.Hour, KeepCount: pawl.NoLimit}))
		soon()
		shown, err := w.Settings(ctx)
		w.must(err)
		for topic, want := range map[string]struct {
			pattern string
			holds   pawl.TopicSettings
		}{
			"mails":           {">", pawl.TopicSettings{KeepFor: 2 * time.Hour, KeepCount: -1}},
			"orders.paid":     {"orders.*", pawl.TopicSettings{KeepFor: 2 * time.Hour, KeepCount: 50, Versioned: true}},
			"orders.placed":   {"", pawl.TopicSettings{KeepFor: 2 * time.Hour, KeepCount: 50}},
			"orders.placed.x": {">", pawl.TopicSettings{KeepFor: 2 * time.Hour, KeepCount: -1}},
		} {
			if got := shown.Topic(topic); got.Pattern != want.pattern || got.Holds != want.holds || got.Owner != "pawl.test" {
				t.Errorf("%s: %+v, want %+v", topic, got, want)
			}
		}
		if i := slices.IndexFunc(shown.Topics, func(s pawl.EffectiveTopic) bool { return s.Name == "orders.*" }); i < 0 ||
			shown.Topics[i].Declared.KeepCount != 100 || shown.Topics[i].By != "ann" || !slices.Equal(shown.Topics[i].Overridden, []string{"keep_count"}) {
			t.Errorf("shown: %+v", shown.Topics)
		}
		ops.must(ops.Topic("orders.*").Reset(ctx, "keep_count"))
		shown, err = ops.Settings(ctx)
		ops.must(err)
		if n := shown.Topic("orders.paid").Holds.KeepCount; n != -1 {
			t.Errorf("after it was taken back: %d", n)
		}
	})
}

func TestJ30_TopicsAreChecked(t *testing.T) {
	_, err := pawl.New(sqlite.Memory(), pawl.Config{Topics: []pawl.Topic{
		{Name: ""}, {Name: "a..b"}, {Name: "orders.*"}, {Name: "orders.*"}, {Name: "x", KeepFor: -2}, {Name: "y", KeepCount: -2}, {Name: "z", KeepFor: time.Millisecond},
	}})
	for _, want := range []string{
		`Config.Topics[0].Name ""`, `Config.Topics[1].Name "a..b"`, `Config.Topics[3].Name "orders.*": must be there once`,
		"Config.Topics[4].KeepFor", "Config.Topics[5].KeepCount", "Config.Topics[6].KeepFor",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	e := topicTown(t)
	for what, err := range map[string]error{
		"nothing":    e.Topic("a").Set(t.Context(), pawl.TopicSettings{}),
		"a bad name": e.Topic("a b").Set(t.Context(), pawl.TopicSettings{KeepCount: 1}),
		"a field":    e.Topic("a").Reset(t.Context(), "size"),
		"a bound":    e.Topic("a").Set(t.Context(), pawl.TopicSettings{KeepCount: -7}),
	} {
		if !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// An event comes when it is due, to the second, wherever it was accepted; nobody polls for it.
func TestE4_ADelayedEventComesWhenItIsDue(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}}, waiting)
		other := at.settle(pawl.Config{})
		soon()
		ctx := t.Context()
		begin := time.Now()
		for id, d := range map[string]time.Duration{"late": 10 * time.Minute, "soon": 2 * time.Second, "middle": 90 * time.Second} {
			r, err := other.Publish(ctx, "a", nil, pawl.EventID(id), pawl.In(d))
			if other.must(err); !r.Delayed || !r.Position.IsZero() {
				t.Errorf("%s: %+v", id, r)
			}
		}
		var got []string
		for ev, err := range w.Follow(ctx, stream.Filter{}, stream.FromStart()) {
			w.must(err)
			late := time.Since(begin) - map[string]time.Duration{"late": 10 * time.Minute, "soon": 2 * time.Second, "middle": 90 * time.Second}[ev.ID]
			if late < 0 || late > 2*time.Second {
				t.Errorf("%s came %v after its time", ev.ID, late)
			}
			if got = append(got, ev.ID); len(got) == 3 {
				break
			}
		}
		if fmt.Sprint(got) != "[soon middle late]" {
			t.Errorf("came %v", got)
		}
		if n := w.way.dues.Load(); n > 60 {
			t.Errorf("%d looks in ten minutes for three events", n)
		}
	})
}

func (w *way) AppendDue(ctx context.Context, limit int) (store.AppendDueReply, error) {
	w.dues.Add(1)
	return w.Store.(store.Delays).AppendDue(ctx, limit)
}

func (w *way) Trim(ctx context.Context, q store.TrimRequest) (store.TrimReply, error) {
	return w.Store.(store.Trimmer).Trim(ctx, q)
}

func (w *way) TopicNamed(ctx context.Context, name string) (store.TopicState, error) {
	return w.Store.(store.TopicReader).TopicNamed(ctx, name)
}

// What is past its time goes by itself, a reader that was behind goes on and is told, and an
// operator can keep more.
func TestE18_WhatIsPastItsTimeGoes(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{
			Queues: pawl.Queues{"default": {Workers: 1}},
			Topics: []pawl.Topic{{Name: "orders.*", KeepFor: time.Hour}, {Name: "mails", KeepCount: 3}},
		}, waiting)
		ctx := t.Context()
		put := func(topic string, n int) {
			for i := range n {
				_, err := w.Publish(ctx, topic, i)
				w.must(err)
			}
		}
		count := func(topic string) (n int) {
			for _, err := range w.Events(ctx, stream.Filter{Topic: topic}, stream.FromStart()) {
				w.must(err)
				n++
			}
			return n
		}
		put("orders.placed", 5)
		put("orders.paid", 2)
		put("mails", 7)
		put("other", 4)
		c, err := w.Cursor(ctx, "late", stream.Filter{Topic: "orders.*"})
		w.must(err)
		b, err := c.Poll(ctx, 2)
		w.must(err)
		w.must(b.Commit(ctx))
		w.must(w.Topic("orders.paid").Set(ctx, pawl.TopicSettings{KeepFor: pawl.NoLimit}))
		time.Sleep(2 * time.Hour) // virtual
		for topic, want := range map[string]int{"orders.placed": 0, "orders.paid": 2, "mails": 3, "other": 4} {
			if n := count(topic); n != want {
				t.Errorf("%s has %d events, want %d", topic, n, want)
			}
		}
		info, err := w.Topic("mails").Info(ctx)
		if w.must(err); info.Kept != 3 || info.Low.IsZero() || info.Settings.Holds.KeepCount != 3 {
			t.Errorf("mails: %+v", info)
		}
		if b, err = c.Poll(ctx, 10); err != nil || len(b.Events) != 2 {
			t.Fatalf("the cursor goes on with %+v, %v", b, err)
		}
		w.must(b.Commit(ctx))
		late, err := w.CursorNamed(ctx, "late")
		if w.must(err); late.Trimmed.IsZero() {
			t.Errorf("the cursor does not say that it lost events: %+v", late)
		}
		if n := strings.Count(at.log.String(), "a reader was behind what its topics keep"); n != 1 {
			t.Errorf("it was logged %d times", n)
		}
	})
}

// Readers pass over what has expired.
func TestE4_ReadersPassOverWhatHasExpired(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		e := at.settle(pawl.Config{})
		ctx := t.Context()
		for _, ttl := range []time.Duration{time.Hour, time.Minute, 2 * time.Hour} {
			_, err := e.Publish(ctx, "a", nil, pawl.TTL(ttl), pawl.EventID(ttl.String()))
			e.must(err)
		}
		time.Sleep(30 * time.Minute) // virtual
		var got []string
		for ev, err := range e.Events(ctx, stream.Filter{}, stream.FromStart()) {
			e.must(err)
			got = append(got, ev.ID)
		}
		if fmt.Sprint(got) != "[1h0m0s 2h0m0s]" {
			t.Errorf("read %v", got)
		}
	})
}
