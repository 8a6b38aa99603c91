package webui

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// watching is a look at a page by a stream, or by somebody who waits for metrics until a time.
func watching(t *testing.T, patient time.Time) *view {
	return &view{app: &app{cache: newCache()}, ctx: t.Context(), live: patient.IsZero(), patient: patient}
}

// However many things are watched that are dear to read, they take 1 % of the time together, beside the first time that each is read.
func TestU7_WhatIsDearSharesOnePercent(t *testing.T) {
	for _, things := range []int{1, 2, 4} {
		synctest.Test(t, func(t *testing.T) {
			const took = time.Second
			v := watching(t, time.Time{})
			var reads atomic.Int64
			for range 3600 {
				for n := range things {
					_, _ = measured(v, fmt.Sprint(n), 5*time.Second, func(context.Context) (int, error) {
						reads.Add(1)
						time.Sleep(took) // virtual: what it costs
						return n, nil
					})
				}
				time.Sleep(time.Second) // virtual: the next tick
			}
			// An hour has 36 s at 1 %. What is read first knows of no other yet, and is read a second time too early.
			if n := int(reads.Load()); n > 36+2*things || n < 36/2 {
				t.Errorf("%d things were read %d times in an hour, each for %v", things, n, took)
			}
			synctest.Wait()
		})
	}
}

// What stands now is never older than mostRest because a machine was busy once.
func TestU7_ASlowLookIsSoonReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := watching(t, time.Time{})
		var reads int
		ask := func() {
			_, _ = cached(v, "look", time.Second, func(context.Context) (int, error) {
				reads++
				time.Sleep(5 * time.Second) // virtual: a busy machine
				return reads, nil
			})
		}
		ask()
		time.Sleep(mostRest) // virtual
		ask()
		if synctest.Wait(); reads != 2 {
			t.Errorf("%d reads", reads)
		}
		time.Sleep(5 * time.Second) // virtual: the second read ends
	})
}

// A page waits for metrics as long as it is patient, then it is shown without them; a stream does not wait. Once they are there both get
// them.
func TestU7_NobodyWaitsForMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := watching(t, time.Now().Add(200*time.Millisecond))
		stream := *v
		stream.live, stream.patient = true, time.Time{}
		ask := func(v *view) (string, error) {
			return measured(v, "hour", time.Minute, func(context.Context) (string, error) {
				time.Sleep(3 * time.Second) // virtual: many rows
				return "numbers", nil
			})
		}
		began := time.Now()
		if text, err := ask(v); !errors.Is(err, errLater) || time.Since(began) != 200*time.Millisecond {
			t.Errorf("the page got %q, %v after %v", text, err, time.Since(began))
		}
		began = time.Now()
		if text, err := ask(&stream); !stream.heldBack(err) || time.Since(began) != 0 {
			t.Errorf("the stream got %q, %v after %v", text, err, time.Since(began))
		}
		time.Sleep(3 * time.Second) // virtual: they are there
		for _, v := range []*view{v, &stream} {
			if text, err := ask(v); text != "numbers" || err != nil {
				t.Errorf("got %q, %v", text, err)
			}
		}
	})
}

// An action lets everything be read again but metrics, which it cannot have changed.
func TestU7_AnActionLetsMetricsBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := watching(t, time.Now().Add(time.Hour))
		reads := map[string]int{}
		ask := func() {
			_, _ = cached(v, "look", time.Minute, func(context.Context) (int, error) { reads["look"]++; return 0, nil })
			_, _ = measured(v, "hour", time.Minute, func(context.Context) (int, error) { reads["hour"]++; return 0, nil })
		}
		ask()
		v.app.cache.clear()
		ask()
		if reads["look"] != 2 || reads["hour"] != 1 {
			t.Errorf("reads: %v", reads)
		}
	})
}
