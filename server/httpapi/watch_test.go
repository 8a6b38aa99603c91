package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
)

// number is a view that counts.
type number int64

func (n number) since(older view) view {
	if n == older {
		return nil
	}
	return n
}

func TestU4_OneLookServesAllReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks, value atomic.Int64
		ws := &watches{log: slog.New(slog.DiscardHandler), read: func(_ context.Context, subjects []string) (map[string]view, error) {
			looks.Add(1)
			views := map[string]view{}
			for _, s := range subjects {
				views[s] = number(value.Load())
			}
			return views, nil
		}}
		var readers []*watch
		for range 100 {
			for _, subject := range []string{"a", "b", "c"} {
				w, err := ws.subscribe(t.Context(), subject)
				if err != nil {
					t.Fatal(err)
				}
				readers = append(readers, w)
			}
		}
		if n := looks.Load(); n != 3 {
			t.Errorf("%d looks for the first of three subjects", n)
		}
		value.Store(7)
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		if n := looks.Load(); n != 3+10 {
			t.Errorf("%d looks in ten seconds", n-3)
		}
		for _, w := range readers {
			if frames, _, _, _ := ws.next(w, place{w.epoch, 1}); len(frames) != 1 {
				t.Errorf("%q", frames)
			}
			ws.leave(w)
		}
		before := looks.Load()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := looks.Load() - before; n != 0 {
			t.Errorf("%d looks while nobody watches", n)
		}
	})
}

func TestU4_WhoComesTogetherLooksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		var fails atomic.Bool
		ws := &watches{log: slog.New(slog.DiscardHandler), read: func(ctx context.Context, subjects []string) (map[string]view, error) {
			looks.Add(1)
			time.Sleep(time.Second) // virtual: a slow store
			if fails.Load() {
				return nil, pawl.ErrUnavailable
			}
			return map[string]view{"a": number(1)}, ctx.Err()
		}}
		come := func(ctx context.Context) <-chan error {
			done := make(chan error, 1)
			go func() {
				w, err := ws.subscribe(ctx, "a")
				if err == nil {
					defer ws.leave(w)
				}
				done <- err
			}()
			synctest.Wait()
			return done
		}
		gone, leave := context.WithCancel(t.Context())
		first := come(gone)
		var others []<-chan error
		for range 20 {
			others = append(others, come(t.Context()))
		}
		leave() // who looks for the others
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for _, o := range others {
			if err := <-o; err != nil {
				t.Error(err)
			}
		}
		if n := looks.Load(); n != 2 {
			t.Errorf("%d looks", n)
		}
		fails.Store(true)
		time.Sleep(5 * time.Second)
		looks.Store(0)
		others = nil
		for range 20 {
			others = append(others, come(t.Context()))
		}
		for _, o := range others {
			if err := <-o; !errors.Is(err, pawl.ErrUnavailable) {
				t.Error(err)
			}
		}
		if n := looks.Load(); n != 1 {
			t.Errorf("%d looks", n)
		}
	})
}

// A store that answers slowly is asked less often, and a failure hides nothing that changed.
func TestU4_LooksRestAndGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks, value atomic.Int64
		var fails atomic.Bool
		ws := &watches{log: slog.New(slog.DiscardHandler), read: func(context.Context, []string) (map[string]view, error) {
			time.Sleep(500 * time.Millisecond) // virtual: a slow store
			looks.Add(1)
			if fails.Load() {
				return nil, pawl.ErrUnavailable
			}
			return map[string]view{"a": number(value.Load())}, nil
		}}
		w, err := ws.subscribe(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		looks.Store(0)
		time.Sleep(time.Minute)
		if n := looks.Load(); n < 10 || n > 12 {
			t.Errorf("%d looks in a minute", n)
		}
		fails.Store(true)
		value.Store(3)
		time.Sleep(time.Minute)
		fails.Store(false)
		time.Sleep(10 * time.Second)
		frames, now, _, ended := ws.next(w, place{w.epoch, 1})
		if len(frames) != 1 || now.version != 2 || ended {
			t.Errorf("%q, %v, %t", frames, now, ended)
		}
		ws.leave(w)
	})
}

func TestU4_WhatIsKeptIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ws := &watches{log: slog.New(slog.DiscardHandler), read: func(_ context.Context, subjects []string) (map[string]view, error) {
			return map[string]view{subjects[0]: number(1)}, nil
		}}
		var last string
		for n := range 1000 {
			last = string(rune('a'+n%26)) + time.Duration(n).String()
			w, err := ws.subscribe(t.Context(), last)
			if err != nil {
				t.Fatal(err)
			}
			ws.leave(w)
			time.Sleep(time.Millisecond)
		}
		if n := len(ws.list); n > maxIdle || ws.list[last] == nil {
			t.Errorf("%d subjects", n)
		}
		w := &watch{epoch: "e", changed: make(chan struct{})}
		for n := range 1000 {
			w.add("change", slices.Repeat([]int{n}, 10_000))
		}
		if w.bytes > keptBytes || len(w.ring) > keptEvents || len(w.ring) == 0 {
			t.Errorf("%d bytes in %d events", w.bytes, len(w.ring))
		}
		for n := range 1000 {
			w.add("change", n)
		}
		if len(w.ring) != keptEvents || w.ring[len(w.ring)-1].version != 2000 {
			t.Errorf("%d events", len(w.ring))
		}
	})
}
