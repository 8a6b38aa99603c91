package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type counted struct{ N int }

// asked does a write with a key, and counts how often it was done.
func asked(a *answers, key string, done *int, fail error) (*body[counted], error) {
	ctx := context.WithValue(context.Background(), repetitionKey{}, repetition{key, http.Header{}})
	return once(ctx, a, &operation{id: "x"}, &counted{}, func(context.Context, *counted) (*body[counted], error) {
		*done++
		return answer(counted{*done}), fail
	})
}

func TestU2_KeysAreForgottenAfterADayAndTheOldestFirst(t *testing.T) {
	now := time.Unix(1e9, 0)
	a := &answers{now: func() time.Time { return now }}
	n := 0
	for range 3 {
		if got, err := asked(a, "day", &n, nil); err != nil || got.Body.N != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	now = now.Add(keptFor)
	if got, err := asked(a, "day", &n, nil); err != nil || got.Body.N != 2 {
		t.Errorf("after a day: %+v, %v", got, err)
	}
	for i := range maxAnswers {
		if _, err := asked(a, fmt.Sprint("other ", i), &n, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.known) != maxAnswers || a.order.Len() != maxAnswers {
		t.Errorf("%d are known, %d in order", len(a.known), a.order.Len())
	}
	last := n
	if got, err := asked(a, fmt.Sprint("other ", maxAnswers-1), &n, nil); err != nil || got.Body.N != last || n != last {
		t.Errorf("the newest: %+v, %v", got, err)
	}
	if got, err := asked(a, "day", &n, nil); err != nil || got.Body.N != last+1 {
		t.Errorf("the oldest: %+v, %v", got, err)
	}
}

func TestU2_AnswersThatAreRememberedHaveABoundInBytes(t *testing.T) {
	a := &answers{now: time.Now}
	large := strings.Repeat("x", 1<<20)
	for i := range 40 {
		ctx := context.WithValue(t.Context(), repetitionKey{}, repetition{fmt.Sprint(i), http.Header{}})
		_, err := once(ctx, a, &operation{id: "x"}, &counted{}, func(context.Context, *counted) (*body[string], error) { return answer(large), nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	if a.bytes > maxMemory+2<<20 || len(a.known) > 18 || len(a.known) < 10 {
		t.Errorf("%d bytes of %d answers", a.bytes, len(a.known))
	}
}

func TestU2_WhatFailedIsTriedAgain(t *testing.T) {
	a := &answers{now: time.Now}
	n, broken := 0, errors.New("broken")
	for range 2 {
		if _, err := asked(a, "k", &n, broken); !errors.Is(err, broken) {
			t.Error(err)
		}
	}
	func() {
		defer func() { _ = recover() }()
		ctx := context.WithValue(t.Context(), repetitionKey{}, repetition{"k", http.Header{}})
		_, _ = once(ctx, a, &operation{id: "x"}, &counted{}, func(context.Context, *counted) (*body[counted], error) { panic("a fault") })
	}()
	if got, err := asked(a, "k", &n, nil); err != nil || got.Body.N != 3 || a.order.Len() != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestU2_ARepetitionWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{now: time.Now}
		release, done := make(chan error), 0
		ask := func(ctx context.Context) (*body[counted], error) {
			ctx = context.WithValue(ctx, repetitionKey{}, repetition{"k", http.Header{}})
			return once(ctx, a, &operation{id: "x"}, &counted{}, func(context.Context, *counted) (*body[counted], error) {
				done++
				n := done
				return answer(counted{n}), <-release
			})
		}
		got := make(chan *body[counted], 3)
		for range 3 {
			go func() {
				out, _ := ask(t.Context())
				got <- out
			}()
		}
		synctest.Wait()
		if done != 1 {
			t.Fatalf("%d are under way", done)
		}
		hungUp, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := ask(hungUp); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		release <- errors.New("failed") // another goes on
		synctest.Wait()
		if done != 2 || len(got) != 1 {
			t.Fatalf("%d were done, %d have an answer", done, len(got))
		}
		release <- nil
		synctest.Wait()
		if first, second, third := <-got, <-got, <-got; first != nil || second.Body.N != 2 || third.Body.N != 2 || done != 2 {
			t.Errorf("%+v, %+v, %+v", first, second, third)
		}
	})
}
