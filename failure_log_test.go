package pawl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store"
)

// written is a log as text.
type written struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

// count counts the lines that hold all parts.
func (w *written) count(parts ...string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(w.buf.String()) {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			n++
		}
	}
	return n
}

// Who looks at nothing but the log sees every failure, every job that is dead or
// parked, and every queue that nobody serves.
func TestJ28_TheLogTellsOfEveryFailure(t *testing.T) {
	log := &written{}
	cause := errors.New("no route to host")
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			switch j.Args.UserID {
			case 1:
				explode()
			case 2:
				return fmt.Errorf("send mail: %w", errors.Join(fmt.Errorf("connect: %w", cause), errors.New("and no fallback")))
			case 3:
				return pawl.Dead(errors.New("no such user"))
			case 4:
				if j.Run == 1 {
					return pawl.Snooze(time.Second)
				}
			}
			return nil
		}, pawl.Backoff(pawl.Constant(7*time.Second)))
		pawl.HandleRaw(to, "strange", func(context.Context, *pawl.Job[pawl.Raw]) error { return nil })
	}, func(t *testing.T, e *pawltest.Engine) {
		e.Enqueue(Welcome{1}, pawl.Attempts(5))
		e.Enqueue(Welcome{2}, pawl.Attempts(1))
		e.Enqueue(Welcome{3})
		e.Enqueue(Welcome{4})
		if _, err := e.Store().Enqueue(t.Context(), []job.Draft{
			{ID: job.NewID(), Kind: Welcome{}.Kind(), Queue: "default", Priority: 5, Attempts: 5, Args: []byte("not JSON")},
			{ID: job.NewID(), Kind: Welcome{}.Kind(), Queue: "nobodys", Priority: 5, Attempts: 5, Args: []byte("{}")},
			{ID: job.NewID(), Kind: "unheard-of", Queue: "default", Priority: 5, Attempts: 5, Args: []byte("{}")},
		}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- e.Run(ctx) }()
		time.Sleep(5 * time.Minute) // stimulus: virtual, a process that runs for a while
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, c := range []struct {
			least, most int
			parts       []string
		}{
			{4, 4, []string{"level=WARN", "tried again", "kind=welcome", "queue=default", "of=5", "retry_in=7s", `error="panic: kaboom"`, "explode"}},
			{1, 1, []string{"level=ERROR", "a job is dead", "attempt=5 of=5", `error="panic: kaboom"`, "explode"}},
			{1, 1, []string{"level=ERROR", "attempt=1 of=1", "send mail: connect: no route to host", "and no fallback"}},
			{1, 1, []string{"level=ERROR", "a job is dead", `error="no such user"`}},
			{1, 1, []string{"level=WARN", "parked", "cannot read the arguments of welcome"}},
			{3, 5, []string{"level=WARN", "nobody takes", "queue=nobodys", "jobs=1", "no live worker serves queue nobodys"}},
			{3, 5, []string{"level=WARN", "nobody takes", "queue=default", "knows kind unheard-of"}},
			{0, 0, []string{"put off"}}, // by its handler: for those who want to know
		} {
			if n := log.count(c.parts...); n < c.least || n > c.most {
				t.Errorf("%d lines with %q, want %d to %d", n, c.parts, c.least, c.most)
			}
		}
		if t.Failed() {
			t.Log(log.buf.String())
		}
	}, pawltest.Config(func(c *pawl.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) }))
}

// A job may also die while no handler of it runs: the process that notices says
// so in the same words.
func TestJ28_TheLogTellsOfJobsThatDieOutsideOfAHandler(t *testing.T) {
	log, ends := &written{}, 0
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(context.Context, *pawl.Job[Welcome]) error { return nil })
	}, func(t *testing.T, e *pawltest.Engine) {
		late := job.Draft{ID: job.NewID(), Kind: "welcome", Queue: "nobodys", Priority: 5, Attempts: 5, Args: []byte("{}"), Deadline: pawltestBegin.Add(time.Minute)}
		deadly := job.Draft{ID: job.NewID(), Kind: "deadly", Queue: "theirs", Priority: 5, Attempts: 7, Args: []byte("{}")}
		if _, err := e.Store().Enqueue(t.Context(), []job.Draft{late, deadly}); err != nil {
			t.Fatal(err)
		}
		offer := job.Offer{Kinds: map[string]int{"deadly": 0}}
		w, err := e.Store().Register(t.Context(), store.Worker{Label: "theirs", Queues: []string{"theirs"}, Offer: offer, LostAfter: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		claimed, err := e.Store().Claim(t.Context(), store.Claim{Worker: w, Seq: 1, Offer: offer, Queues: []store.QueueClaim{{Queue: "theirs", Limit: 1, Start: 1}}})
		if err != nil || len(claimed.Jobs) != 1 {
			t.Fatal(claimed, err)
		}
		run := store.RunRef{ID: deadly.ID, Run: claimed.Jobs[0].Run}
		if _, err := e.Store().Note(t.Context(), w, []store.Note{{RunRef: run, Begun: true}}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- e.Run(ctx) }()
		time.Sleep(5 * time.Minute) // stimulus: virtual, in which the other worker does not beat
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, parts := range [][]string{
			{"level=ERROR", "a job is dead", "kind=welcome", "queue=nobodys", "job=" + late.ID.String(), "run=0", "attempt=1 of=5", `reason="its deadline passed"`},
			{"level=ERROR", "a job is dead", "kind=deadly", "queue=theirs", "job=" + deadly.ID.String(), "run=1", "attempt=1 of=7", `reason="lost with its worker once"`},
		} {
			if n := log.count(parts...); n != 1 {
				t.Errorf("%d lines with %q, want one", n, parts)
			}
		}
		if n := log.count("a job is dead"); n != 2 || ends != 0 {
			t.Errorf("%d lines of dead jobs, want 2; %d ends of runs, want none: this process ran nothing", n, ends)
		}
		if t.Failed() {
			t.Log(log.buf.String())
		}
	}, pawltest.Config(func(c *pawl.Config) {
		c.Logger, c.MaxLost = slog.New(slog.NewTextHandler(log, nil)), 1
		c.Hooks.Finish = func(pawl.Finished) { ends++ }
	}))
}
