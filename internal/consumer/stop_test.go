package consumer_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/consumer"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
	"github.com/pawlwork/pawl/stream/memory"
)

func TestE15_CloseDrains(t *testing.T) {
	for _, mode := range []stream.Mode{stream.Competing, stream.Ordered} {
		t.Run(mode.String(), func(t *testing.T) {
			inLab(t, memory.Options{}, func(l *lab) {
				s := l.subscribe(func(ctx context.Context, m *consumer.Message) error {
					takes(10 * time.Second)
					if m.Event.ID == "1" {
						return errBroken
					}
					return ctx.Err()
				}, func(c *consumer.Config) { c.InFlight, c.Membership.Mode = 3, mode })
				l.publish("t.a", "0@a", "1@b", "2@c", "3@a", "4@b")
				after(0)
				began := time.Now()
				closed := make(chan struct{})
				go func() {
					defer close(closed)
					s.close()
				}()
				after(5 * time.Second)
				if !s.Running() {
					t.Error("handlers run, and it does not")
				}
				l.publish("t.a", "late@d")
				<-closed
				equal(t, "it took", time.Since(began), 10*time.Second)
				equal(t, "runs", l.sorted(), []string{"0", "1", "2"})
				equal(t, "left", l.left(), map[string]int{"1": 1, "3": 0, "4": 0, "late": 0})
				equal(t, "members", len(l.backend.Members("g")), 0)
			})
		})
	}
}

// Past its bound a close cancels handlers: what they do not finish goes back uncounted, what
// they do finish counts.
func TestE15_PastItsBoundACloseCancels(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		s := l.subscribe(func(ctx context.Context, m *consumer.Message) error {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), job.ErrStopping) {
				t.Errorf("cancelled by %v", context.Cause(ctx))
			}
			switch m.Event.ID {
			case "in time":
				return nil
			case "ignores":
				takes(time.Hour)
			case "says":
				return m.Reject("done with it")
			}
			return ctx.Err()
		})
		l.publish("t.a", "in time", "ignores", "gives up", "says")
		after(0)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		began := time.Now()
		err := s.Close(ctx)
		if !errors.Is(err, job.ErrStopping) || !strings.Contains(err.Error(), "1 handlers of g did not return") {
			t.Errorf("close: %v", err)
		}
		equal(t, "it took", time.Since(began), 4*time.Second)
		equal(t, "run", <-s.ended, err)
		if s.Running() {
			t.Error("it runs")
		}
		equal(t, "left", l.left(), map[string]int{"ignores": 0, "gives up": 0})
		equal(t, "parked", l.parked(), []string{"says after 1: done with it"})
		after(2 * time.Hour) // the one that ignores it
	})
}

func TestE15_AbortCancelsAtOnce(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		s := l.subscribe(func(ctx context.Context, _ *consumer.Message) error { <-ctx.Done(); return ctx.Err() })
		l.publish("t.a", "1", "2")
		after(0)
		began := time.Now()
		if err := s.Abort(); !errors.Is(err, job.ErrStopping) {
			t.Errorf("abort: %v", err)
		}
		equal(t, "it took", time.Since(began), 0)
		<-s.ended
		equal(t, "running", s.Running(), false)
		equal(t, "left", l.left(), map[string]int{"1": 0, "2": 0})
	})
}

// The end of Run's context is a close with a grace period: handlers do not inherit it.
func TestE15_TheEndOfItsContextIsAClose(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		l.publish("t.a", "short", "long")
		c, err := consumer.New(l.config(func(ctx context.Context, m *consumer.Message) error {
			if m.Event.ID == "short" {
				takes(5 * time.Second)
				return ctx.Err()
			}
			<-ctx.Done()
			return ctx.Err()
		}, func(c *consumer.Config) { c.Grace = 20 * time.Second }))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "running", c.Running(), false)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		if err := c.Run(ctx); !errors.Is(err, job.ErrStopping) {
			t.Errorf("run: %v", err)
		}
		equal(t, "it took", time.Since(began), 21*time.Second)
		equal(t, "left", l.left(), map[string]int{"long": 0})
	})
}

func TestE15_CloseReportsWhatCouldNotBeSettled(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		var down atomic.Bool
		l.faulty.next = func([]stream.Settlement, stream.Want) error {
			if down.Load() {
				return errBroken
			}
			return nil
		}
		n := 0
		l.faulty.leave = func() error { n++; return errors.Join(errBroken, errors.New(strings.Repeat("!", n))) }
		s := l.subscribe(func(context.Context, *consumer.Message) error { takes(time.Second); return nil })
		l.publish("t.a", "1")
		after(0)
		down.Store(true)
		began := time.Now()
		err := s.Close(context.Background())
		if !errors.Is(err, errBroken) || !strings.HasSuffix(err.Error(), "\n!") {
			t.Errorf("close: %v", err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		<-s.ended
		equal(t, "running", s.Running(), false)
	})
}

// A member that is lost while it closes says so: what its handlers did comes again.
func TestE15_CloseReportsThatTheMemberWasLost(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		s := l.subscribe(func(context.Context, *consumer.Message) error { takes(time.Minute); return nil })
		l.publish("t.a", "1")
		after(0)
		go func() {
			after(10 * time.Second)
			l.backend.Kill("g", s.Member())
		}()
		if err := s.Close(context.Background()); !errors.Is(err, stream.ErrFeedLost) {
			t.Errorf("close: %v", err)
		}
		if err := <-s.ended; !errors.Is(err, stream.ErrFeedLost) || s.Running() {
			t.Errorf("run: %v", err)
		}
		after(time.Hour) // its handler
	})
}

// A backend that does not answer holds a close up until its bound, and no longer.
func TestE15_ABackendThatHangsHoldsNobody(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		c := l.config(fine)
		c.Backend = hanging{l.backend}
		s := l.start(c)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		if err := s.Close(ctx); err == nil {
			t.Error("nothing is wrong")
		}
		equal(t, "it took", time.Since(began), 6*time.Second)
		<-s.ended
	})
}

type hanging struct{ stream.Backend }

func (h hanging) Join(context.Context, stream.Membership) (stream.Feed, error) { return h, nil }

func (hanging) Next(ctx context.Context, _ []stream.Settlement, _ stream.Want) ([]stream.Delivery, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (hanging) Wait(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
func (hanging) Leave(ctx context.Context, _ []stream.Settlement) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestE15_CloseBeforeAndBesideRun(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		c, err := consumer.New(l.config(fine))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := c.Run(context.Background()); err != nil || c.Running() {
			t.Errorf("run after close: %v", err)
		}
		l.faulty.join = func() error { return errBroken }
		s := l.subscribe(fine)
		after(time.Minute)
		if !s.Running() {
			t.Error("it tries to join, and does not run")
		}
		s.close()
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("a second close: %v", err)
		}
		if err := s.Run(context.Background()); err == nil {
			t.Error("it ran twice")
		}
	})
}

// A subscription that ended does not claim to run: not when its group refuses it, nor when
// the backend panics.
func TestE15_RunningTellsTheTruth(t *testing.T) {
	inLab(t, memory.Options{}, func(l *lab) {
		other := l.subscribe(fine)
		s := l.subscribe(fine, ordered)
		if err := <-s.ended; !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), "mode") || s.Running() {
			t.Errorf("another mode: %v", err)
		}
		if err := s.Close(context.Background()); !errors.Is(err, job.ErrInvalid) {
			t.Errorf("close: %v", err)
		}
		l.faulty.mu.Lock()
		l.faulty.next = func([]stream.Settlement, stream.Want) error { panic("of the backend") }
		l.faulty.mu.Unlock()
		l.publish("t.a", "1")
		if err := <-other.ended; err == nil || !strings.Contains(err.Error(), "of the backend") || other.Running() {
			t.Errorf("a panic: %v", err)
		}
	})
}
