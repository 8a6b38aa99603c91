package pawl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store"
)

// record collects what handlers saw, in order.
type record struct {
	mu    sync.Mutex
	lines []string
}

func (r *record) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, " ")
}

var one = pawltest.Config(func(c *pawl.Config) { c.Queues = pawl.Queues{"default": {Workers: 1}} })

func TestJ7_FailuresAreRetriedWithBackoffThenDead(t *testing.T) {
	var seen record
	start := time.Time{}
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			seen.add("%d@%v", j.Attempt, time.Since(start))
			return errors.New("no luck")
		}, pawl.Backoff(pawl.Constant(time.Minute)))
	}, func(t *testing.T, e *pawltest.Engine) {
		start = time.Now()
		r := e.Enqueue(Welcome{1}, pawl.Attempts(3))
		e.Advance(10 * time.Minute)
		j := e.RequireState(r.ID, job.Dead)
		if seen.String() != "1@0s 2@1m0s 3@2m0s" {
			t.Errorf("ran %s", &seen)
		}
		if j.Used != 3 || len(j.Failures.List()) != 3 || j.Failures.List()[2].Attempt != 3 || j.Failures.List()[2].Message != "no luck" || j.Failures.List()[2].Time.IsZero() {
			t.Errorf("kept %+v", j)
		}
	})
}

func TestJ9_OperatorRetryGivesAFreshBudget(t *testing.T) {
	var runs int
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			runs++
			return errors.New("no luck")
		}, pawl.Backoff(pawl.Constant(time.Second)))
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1}, pawl.Attempts(5))
		e.Advance(time.Minute)
		e.RequireState(r.ID, job.Dead)
		c, err := e.Retry(pawl.As(t.Context(), "ann", "fixed the mail server"), r.ID)
		if err != nil || c != pawl.Changed {
			t.Fatal(c, err)
		}
		e.Advance(time.Minute)
		j := e.RequireState(r.ID, job.Dead)
		if runs != 10 || j.Run != 10 || j.Used != 5 {
			t.Errorf("%d runs, run number %d, %d attempts burned", runs, j.Run, j.Used)
		}
		list, err := e.Audit(t.Context(), pawl.AuditFilter{}, pawl.AuditPage{})
		if log := list.Entries; err != nil || len(log) != 1 || log[0].By != "ann" || log[0].Action != "retry" || log[0].Target != r.ID.String() || log[0].Note != "fixed the mail server" {
			t.Errorf("audit %+v, %v", list, err)
		}
	})
}

func TestJ9_SnoozeRunsAgainAndBurnsNothing(t *testing.T) {
	var seen record
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			seen.add("%d/%d", j.Run, j.Attempt)
			if j.Run < 4 {
				return fmt.Errorf("not yet: %w", pawl.Snooze(10*time.Minute))
			}
			return nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1}, pawl.Attempts(1))
		e.Advance(time.Hour)
		j := e.RequireState(r.ID, job.Done)
		if seen.String() != "1/1 2/1 3/1 4/1" || j.Used != 0 || j.Snoozes != 3 {
			t.Errorf("ran %s, %d attempts burned, %d snoozes", &seen, j.Used, j.Snoozes)
		}
	})
}

func TestJ32_StoreFaultInAHandlerBurnsNoAttempt(t *testing.T) {
	faults := []error{store.ErrUnavailable, store.ErrFull, store.ErrBusy, pawl.ErrOutcomeUnknown}
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			if n := int(j.Run) - 1; n < len(faults) {
				return fmt.Errorf("write the order: %w", faults[n])
			}
			return nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1}, pawl.Attempts(1))
		e.Advance(time.Minute)
		if j := e.RequireState(r.ID, job.Done); j.Used != 0 || int(j.Run) != len(faults)+1 {
			t.Errorf("%d attempts burned in %d runs", j.Used, j.Run)
		}
	})
}

// An error that looks like the store's and never passes: the handler's own store,
// or one that stays full. It is not tried for ever.
func TestJ32_StoreFaultThatDoesNotPassBurnsAttempts(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			return fmt.Errorf("write the order: %w", store.ErrBusy)
		}, pawl.Backoff(job.NoBackoff))
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1}, pawl.Attempts(3))
		e.Advance(time.Hour)
		j := e.RequireState(r.ID, job.Dead)
		if j.Used != 3 || j.Run != 3*(job.MaxStoreFailures+1) || !strings.Contains(j.Failures.List()[0].Message, "write the order") {
			t.Errorf("%d attempts burned in %d runs, failures %v", j.Used, j.Run, j.Failures)
		}
	})
}

func TestJ11_PanicIsAFailureWithItsStack(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			if j.Args.UserID == 1 {
				explode()
			}
			return nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		bad, good := e.Enqueue(Welcome{1}, pawl.Attempts(1)), e.Enqueue(Welcome{2})
		e.RunUntilIdle()
		j := e.RequireState(bad.ID, job.Dead)
		if f := j.Failures.List()[0]; !strings.Contains(f.Message, "kaboom") || !strings.Contains(f.Stack, "explode") {
			t.Errorf("kept %+v", f)
		}
		e.RequireState(good.ID, job.Done)
	})
}

//go:noinline
func explode() { panic("kaboom") }

func TestJ6_PriorityThenDueThenOrderOfArrival(t *testing.T) {
	var seen record
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			seen.add("%d", j.Args.UserID)
			return nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		e.Enqueue(Welcome{1}, pawl.Priority(9))
		e.Enqueue(Welcome{2})
		e.Enqueue(Welcome{3})
		e.Enqueue(Welcome{4}, pawl.Priority(1))
		e.Enqueue(Welcome{5}, pawl.In(time.Minute), pawl.Priority(1))
		e.Enqueue(Welcome{6})
		e.RunUntilIdle()
		e.Advance(time.Minute)
		if seen.String() != "4 2 3 6 1 5" {
			t.Errorf("ran %s", &seen)
		}
	}, one)
}

func TestJ31_ArgumentsEvolve(t *testing.T) {
	var seen record
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[renamed]) error {
			seen.add("%s=%q", j.Kind, j.Args.Name)
			return nil
		}, pawl.Upgrade(0, func(old []byte) ([]byte, error) {
			if bytes.Contains(old, []byte("poison")) {
				return nil, errors.New("cannot read poison")
			}
			return bytes.Replace(old, []byte("title"), []byte("name"), 1), nil
		}))
	}, func(t *testing.T, e *pawltest.Engine) {
		old := e.Enqueue(pawl.RawArgs("old-name", []byte(`{"title":"a"}`)))
		e.Enqueue(renamed{Name: "b"})
		broken := e.Enqueue(pawl.RawArgs("new-name", []byte(`{]`)))
		poison := e.Enqueue(pawl.RawArgs("new-name", []byte(`"poison"`)))
		newer := e.Enqueue(newest{})
		e.RunUntilIdle()
		if seen.String() != `old-name="a" new-name="b"` {
			t.Errorf("ran %s", &seen)
		}
		e.RequireState(old.ID, job.Done)
		for _, r := range []pawl.Receipt{broken, poison} {
			j := e.RequireState(r.ID, job.Suspended)
			if j.Used != 0 || j.Wait != job.Parked || !strings.HasPrefix(j.Reason, "cannot read the arguments") {
				t.Errorf("kept %+v", j)
			}
			if why, err := e.Why(t.Context(), r.ID); err != nil || !strings.HasPrefix(why.Text, "parked: cannot read the arguments") {
				t.Errorf("why: %q, %v", why, err)
			}
		}
		waiting, err := e.List(t.Context(), pawl.Filter{Wait: job.Parked}, pawl.Page{Limit: 10})
		if err != nil || len(waiting.Jobs) != 2 {
			t.Errorf("%d parked jobs listed, %v", len(waiting.Jobs), err)
		}
		e.RequireState(newer.ID, job.Waiting) // this build does not know version 2
		if c, err := e.Retry(t.Context(), broken.ID); err != nil || c != pawl.Changed {
			t.Errorf("retry of a parked job: %v, %v", c, err)
		}
	}, one)
}

type renamed struct {
	Name string `json:"name"`
}

func (renamed) Kind() string          { return "new-name" }
func (renamed) KindAliases() []string { return []string{"old-name"} }
func (renamed) Version() int          { return 1 }

type newest struct{}

func (newest) Kind() string { return "new-name" }
func (newest) Version() int { return 2 }

func TestJ28_MiddlewareHooksLogsProgressAndHeaders(t *testing.T) {
	var seen, finished record // the next run may begin before the hook of the last one's end is called
	layer := func(name string) pawl.Middleware {
		return func(next pawl.Work) pawl.Work {
			return func(ctx context.Context, j *pawl.Info) error {
				seen.add("%s>", name)
				err := next(ctx, j)
				seen.add("<%s", name)
				return err
			}
		}
	}
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			seen.add("work(%s,%s)", j.Headers()["traceparent"], pawl.IdempotencyKey(ctx)[:0])
			j.Log().With("user", j.Args.UserID).WithGroup("g").Info("uploading", "part", 3, slog.Group("h", "x", 1))
			if err := j.Progress(ctx, 3, 10); err != nil {
				return err
			}
			if j.Attempt == 1 {
				return errors.New("first")
			}
			if j.Attempt == 2 {
				panic("second")
			}
			return nil
		}, pawl.Use(layer("inner")), pawl.Backoff(pawl.Constant(0)))
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{42}, pawl.Headers(map[string]string{"traceparent": "00-x"}))
		e.RunUntilIdle()
		j := e.RequireState(r.ID, job.Done)
		want := "enqueue:1 outer> inner> work(00-x,) <inner <outer error:first:false outer> inner> work(00-x,) <inner <outer error:panic: second:false outer> inner> work(00-x,) <inner <outer"
		if seen.String() != want {
			t.Errorf("saw  %s\nwant %s", &seen, want)
		}
		if want := "waiting waiting done"; finished.String() != want {
			t.Errorf("finished %s, want %s", &finished, want)
		}
		if j.Progress.Done != 3 || j.Progress.Total != 10 || !slices.Equal(j.Tags, []string{"hooked"}) {
			t.Errorf("progress %+v, tags %v", j.Progress, j.Tags)
		}
		lines, err := e.Logs(t.Context(), r.ID, 0, 10)
		if err != nil || len(lines) != 3 || lines[0].Text != "uploading user=42 g.part=3 g.h.x=1" || lines[2].Run != 3 {
			t.Errorf("logs %+v, %v", lines, err)
		}
	}, one, pawltest.Config(func(c *pawl.Config) {
		c.Middleware = []pawl.Middleware{layer("outer")}
		c.Hooks = pawl.Hooks{
			Enqueue: func(ctx context.Context, drafts []job.Draft) error {
				seen.add("enqueue:%d", len(drafts))
				drafts[0].Tags = append(drafts[0].Tags, "hooked")
				return nil
			},
			Finish: func(f pawl.Finished) { finished.add("%s", f.State) },
			Error: func(ctx context.Context, j *pawl.Info, err error, final bool) {
				seen.add("error:%v:%v", err, final)
			},
		}
	}))
}

func TestJ28_EnqueueHookCanRefuseAndIsCheckedAgain(t *testing.T) {
	refused := errors.New("not on a Sunday")
	var hook func(drafts []job.Draft) error
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		hook = func([]job.Draft) error { return refused }
		if _, err := e.Engine.Enqueue(t.Context(), Welcome{1}); !errors.Is(err, refused) {
			t.Errorf("got %v", err)
		}
		hook = func(d []job.Draft) error { d[0].Priority = 99; return nil }
		if _, err := e.Engine.Enqueue(t.Context(), Welcome{1}); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	}, pawltest.Config(func(c *pawl.Config) {
		c.Hooks.Enqueue = func(ctx context.Context, drafts []job.Draft) error { return hook(drafts) }
	}))
}

func TestJ1_RawPayloadsAndResults(t *testing.T) {
	payload := []byte("\x00\xff not json")
	var got []byte
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.HandleRaw(to, "bytes", func(ctx context.Context, j *pawl.Job[pawl.Raw]) error {
			got = j.Args
			return nil
		})
		pawl.HandleResult(to, func(ctx context.Context, j *pawl.Job[Encode]) (string, error) {
			return strings.Repeat("x", j.Args.Video), nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		e.Enqueue(pawl.RawArgs("bytes", payload))
		small := e.Enqueue(Encode{3})
		large := e.Enqueue(Encode{1 << 20}, pawl.Attempts(1))
		e.RunUntilIdle()
		if !bytes.Equal(got, payload) {
			t.Errorf("got %q", got)
		}
		if s, err := pawl.Result[string](t.Context(), e.Engine, small.ID); err != nil || s != "xxx" {
			t.Errorf("result %q, %v", s, err)
		}
		j := e.RequireState(large.ID, job.Dead)
		if !strings.Contains(j.Failures.List()[0].Message, "must be at most 1048576 bytes") {
			t.Errorf("kept %+v", j.Failures)
		}
		if _, err := pawl.Result[string](t.Context(), e.Engine, large.ID); !errors.Is(err, pawl.ErrNotDone) {
			t.Errorf("result of a dead job: %v", err)
		}
	})
}

func TestJ13_TimeoutAndDeadline(t *testing.T) {
	var seen record
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			<-ctx.Done()
			seen.add("%v;", context.Cause(ctx))
			return ctx.Err()
		}, pawl.Timeout(time.Minute))
	}, func(t *testing.T, e *pawltest.Engine) {
		slow := e.Enqueue(Welcome{1}, pawl.Attempts(1))
		e.RunUntilIdle()
		e.RequireState(slow.ID, job.Dead)
		own := e.Enqueue(Welcome{2}, pawl.Attempts(1), pawl.Timeout(time.Hour), pawl.Deadline(time.Now().Add(10*time.Minute)))
		never := e.Enqueue(Welcome{3}, pawl.Queue("nobodys"), pawl.Deadline(time.Now().Add(30*time.Minute)))
		e.Advance(2 * time.Hour)
		e.RequireState(own.ID, job.Dead)
		if j := e.RequireState(never.ID, job.Dead); j.Run != 0 || !strings.Contains(j.Reason, "deadline") {
			t.Errorf("kept %+v", j)
		}
		if want := "pawl: attempt timed out; pawl: job deadline passed;"; seen.String() != want {
			t.Errorf("causes %s", &seen)
		}
	})
}

func TestJ10_CancelIsImmediateHereAndThreeValued(t *testing.T) {
	begun := make(chan job.ID, 1)
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			if j.Args.UserID == 2 {
				begun <- j.ID
			}
			<-ctx.Done()
			if j.Args.UserID == 3 {
				return nil // done all the same
			}
			return context.Cause(ctx)
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		waiting := e.Enqueue(Welcome{1}, pawl.In(time.Hour))
		if c, err := e.Cancel(t.Context(), waiting.ID); c != pawl.Changed || err != nil {
			t.Error(c, err)
		}
		if c, err := e.Cancel(t.Context(), waiting.ID); c != pawl.Ended || err != nil {
			t.Error(c, err)
		}
		if c, err := e.Cancel(t.Context(), job.NewID()); c != pawl.NotFound || err != nil {
			t.Error(c, err)
		}
		running, stubborn := e.Enqueue(Welcome{2}), e.Enqueue(Welcome{3})
		began := time.Now()
		go func() {
			<-begun
			for _, r := range []pawl.Receipt{running, stubborn} {
				if c, err := e.Cancel(t.Context(), r.ID); c != pawl.Asked || err != nil {
					t.Error(c, err)
				}
			}
		}()
		e.RunUntilIdle()
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("cancel took %v of virtual time", took)
		}
		e.RequireState(running.ID, job.Cancelled)
		e.RequireState(stubborn.ID, job.Done) // P9: the truth wins
		if c, err := e.Delete(t.Context(), running.ID); c != pawl.Changed || err != nil {
			t.Error(c, err)
		}
		if c, err := e.Delete(t.Context(), running.ID); c != pawl.NotFound || err != nil {
			t.Error(c, err)
		}
	})
}

func TestJ4_DuplicateNamesTheJobThatWasThere(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			if j.Attempt == 1 {
				return errors.New("again")
			}
			return nil
		}, pawl.Backoff(pawl.Constant(time.Hour)))
	}, func(t *testing.T, e *pawltest.Engine) {
		rule := pawl.Unique(pawl.ByArgs(), pawl.HeldFor(24*time.Hour))
		first := e.Enqueue(Welcome{1}, rule)
		other := e.Enqueue(Welcome{2}, rule)
		e.RunUntilIdle() // both wait for a retry now, which must not dodge the rule
		again := e.Enqueue(Welcome{1}, rule)
		if first.Duplicate || other.Duplicate || !again.Duplicate || again.ID != first.ID {
			t.Errorf("%+v %+v %+v", first, other, again)
		}
		e.Advance(2 * time.Hour)
		e.RequireState(first.ID, job.Done)
		if held := e.Enqueue(Welcome{1}, rule); !held.Duplicate || held.ID != first.ID {
			t.Errorf("within the period: %+v", held)
		}
		e.Advance(25 * time.Hour)
		if after := e.Enqueue(Welcome{1}, rule); after.Duplicate {
			t.Errorf("after the period: %+v", after)
		}
	})
}

func TestJ10_PauseLetsRunningJobsFinish(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) {
		e := to
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			if j.Args.UserID == 1 {
				if err := e.Queue("default").Pause(ctx); err != nil {
					return err
				}
			}
			time.Sleep(time.Minute) // virtual
			return ctx.Err()
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		first := e.Enqueue(Welcome{1})
		e.RunUntilIdle()
		second := e.Enqueue(Welcome{2})
		e.Advance(time.Hour)
		e.RequireState(first.ID, job.Done)
		e.RequireState(second.ID, job.Waiting)
		if why, err := e.Why(t.Context(), second.ID); err != nil || !strings.HasPrefix(why.Text, "queue default is paused by code since ") {
			t.Errorf("why: %q, %v", why, err)
		}
		if err := e.Queue("default").Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.RunUntilIdle()
		e.RequireState(second.ID, job.Done)
	}, one)
}

func TestHandleBatch_EachJobHasItsOwnEnd(t *testing.T) {
	var seen record
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.HandleBatch(to, func(ctx context.Context, jobs []*pawl.Job[Email]) []error {
			var names []string
			errs := make([]error, len(jobs))
			for i, j := range jobs {
				names = append(names, j.Args.To)
				if j.Args.To == "bad" {
					errs[i] = pawl.Dead(errors.New("no such mailbox"))
				}
			}
			slices.Sort(names)
			seen.add("%s:%s", jobs[0].Args.Domain, strings.Join(names, "+"))
			return errs
		}, pawl.Batch[Email]{Size: 4, Wait: time.Second, Key: func(a Email) string { return a.Domain }})
	}, func(t *testing.T, e *pawltest.Engine) {
		good, bad := e.Enqueue(Email{"ann", "x"}), e.Enqueue(Email{"bad", "x"})
		e.RunUntilIdle()
		e.Enqueue(Email{"bob", "y"})
		e.RunUntilIdle()
		e.RequireState(good.ID, job.Done)
		e.RequireState(bad.ID, job.Dead)
		if seen.String() != "x:ann+bad y:bob" {
			t.Errorf("batches %s", &seen)
		}
	})
}

// One job of many whose failures cannot be read: all run, and its neighbours are
// not leased and given back over and over.
func TestP8_OneUnreadableRowCostsThatRow(t *testing.T) {
	const jobs = 100
	var ran atomic.Int64
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			if ran.Add(1); j.Run == 1 {
				return errors.New("no luck")
			}
			return nil
		}, pawl.Backoff(pawl.Constant(time.Hour)))
	}, func(t *testing.T, e *pawltest.Engine) {
		var receipts []pawl.Receipt
		for i := range jobs {
			receipts = append(receipts, e.Enqueue(Welcome{int64(i)}))
		}
		e.Advance(time.Minute)
		bad := receipts[3].ID
		err := e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
			_, err := tx.Exec(ctx, "UPDATE pawl_job SET failures = CAST('[{}]' AS BLOB) WHERE id = $1", bad[:])
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		e.Advance(time.Hour)
		for _, r := range receipts {
			e.RequireState(r.ID, job.Done)
		}
		if s := e.Stats(); ran.Load() != 2*jobs || s.Returned != 0 {
			t.Errorf("%d runs of %d, %d given back", ran.Load(), 2*jobs, s.Returned)
		}
		j, err := e.Get(t.Context(), bad)
		if err != nil || len(j.Failures.List()) != 1 || !j.Failures.List()[0].Unreadable {
			t.Errorf("kept %+v, %v", j.Failures, err)
		}
		// Repaired as a person would: the test's last look finds nothing amiss.
		if err := e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
			_, err := tx.Exec(ctx, "UPDATE pawl_job_archive SET failures = NULL WHERE id = $1", bad[:])
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
}
