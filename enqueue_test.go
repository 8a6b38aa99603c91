package pawl_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store/sqlite"
)

type gobCodec struct{}

func (gobCodec) Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func (gobCodec) Unmarshal(data []byte, v any) error {
	return gob.NewDecoder(bytes.NewReader(data)).Decode(v)
}

func TestJ1_TheCodecIsReplaceable(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.HandleResult(to, func(ctx context.Context, j *pawl.Job[Encode]) (Email, error) {
			return Email{To: strings.Repeat("x", j.Args.Video)}, nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Encode{3}, pawl.Tags("a", "b"))
		e.RunUntilIdle()
		j := e.RequireState(r.ID, job.Done)
		if bytes.HasPrefix(j.Args, []byte("{")) || !slices.Equal(j.Tags, []string{"a", "b"}) {
			t.Errorf("kept %q, tags %v", j.Args, j.Tags)
		}
		if got, err := pawl.Result[Email](t.Context(), e.Engine, r.ID); err != nil || got.To != "xxx" {
			t.Errorf("result %+v, %v", got, err)
		}
	}, pawltest.Config(func(c *pawl.Config) { c.Codec = gobCodec{} }))
}

func TestJ3_EveryOptionReachesTheJob(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		id, due := job.NewID(), time.Now().Add(time.Hour).UTC()
		r := e.Enqueue(Welcome{1}, pawl.Queue("mail"), pawl.Priority(2), pawl.At(due), pawl.Attempts(7),
			pawl.Timeout(time.Minute), pawl.Deadline(due.Add(time.Hour)), pawl.WithID(id), pawl.Key("k"),
			pawl.Tags("x"), pawl.Needs("gpu"), pawl.Headers(map[string]string{"traceparent": "00"}))
		j := e.RequireState(r.ID, job.Waiting)
		if r.ID != id || j.Queue != "mail" || j.Priority != 2 || !j.Due.Equal(due) || j.MaxAttempts != 7 ||
			j.Timeout != time.Minute || !j.Deadline.Equal(due.Add(time.Hour)) || j.Key != "k" ||
			!slices.Equal(j.Tags, []string{"x"}) || !slices.Equal(j.Capabilities, []string{"gpu"}) || !maps.Equal(j.Headers(), map[string]string{"traceparent": "00"}) {
			t.Errorf("kept %+v", j)
		}
	})
}

type mailed struct{}

func (mailed) Kind() string { return "mail.sent" }
func (mailed) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Attempts(3), pawl.Priority(4)}
}

func TestJ3_TheCallGoesBeforeDefaultsQueueAndEngine(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		for _, c := range []struct {
			args     pawl.Args
			opts     []pawl.EnqueueOption
			queue    string
			attempts int
		}{
			{mailed{}, opts(pawl.Attempts(9)), "mail", 9},
			{mailed{}, nil, "mail", 3},
			{Welcome{1}, opts(pawl.Queue("mail")), "mail", 2},
			{Welcome{1}, nil, "default", 6},
		} {
			j := e.RequireState(e.Enqueue(c.args, c.opts...).ID, job.Waiting)
			if j.Queue != c.queue || j.MaxAttempts != c.attempts {
				t.Errorf("%T %v: queue %s, %d attempts; want %s, %d", c.args, c.opts, j.Queue, j.MaxAttempts, c.queue, c.attempts)
			}
		}
	}, pawltest.Config(func(c *pawl.Config) {
		c.Attempts = 6
		c.Queues = pawl.Queues{"mail": {Workers: 1, Attempts: 2}, "default": {Workers: 1}}
		c.Routes = []pawl.Route{{Kind: "mail.*", Queue: "mail"}} // J5
	}))
}

type nilDefault struct{}

func (nilDefault) Kind() string                   { return "nil-default" }
func (nilDefault) Defaults() []pawl.EnqueueOption { return []pawl.EnqueueOption{nil} }

func TestP10_OptionsThatLookLikeDefaultsAreRefused(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		for want, c := range map[string]struct {
			args pawl.Args
			opt  pawl.EnqueueOption
		}{
			"attempts -1":                           {Welcome{1}, pawl.Attempts(-1)},
			"headers":                               {Welcome{1}, pawl.Headers(map[string]string{"a": "caf\xe9"})},
			"unique rule":                           {Welcome{1}, pawl.Unique(nil)},
			"option in the defaults of nil-default": {nilDefault{}, pawl.Priority(1)},
		} {
			if _, err := e.Engine.Enqueue(t.Context(), c.args, c.opt); !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
	})
}

// A job that is due now behind one that is due later is not left to the poll.
func TestJ2_TheEarliestOfManyWakesTheRunner(t *testing.T) {
	var ran chan time.Time
	pawltest.Run(t, func(to *pawl.Engine) {
		ran = make(chan time.Time, 1)
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			ran <- time.Now()
			return nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		time.Sleep(11 * time.Second) // virtual: the looks of a beginning are over
		synctest.Wait()
		begin := time.Now()
		if _, err := e.EnqueueMany(ctx, pawl.NewItem(Welcome{1}, pawl.At(begin.Add(time.Hour))), pawl.NewItem(Welcome{2})); err != nil {
			t.Fatal(err)
		}
		if late := (<-ran).Sub(begin); late > 10*time.Millisecond {
			t.Errorf("began after %v", late)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Attempts are written into the job: what the worker's queue says does not count
// for a job that another process enqueued.
func TestJ3_AttemptsAreThoseOfTheProcessThatEnqueues(t *testing.T) {
	file := sqlite.File(filepath.Join(t.TempDir(), "jobs.db"))
	open := func(attempts int) *pawl.Engine {
		e, err := pawl.New(file, pawl.Config{Queues: pawl.Queues{"default": {Workers: 1, Attempts: attempts}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		return e
	}
	worker, web := open(3), open(0)
	for e, want := range map[*pawl.Engine]int{worker: 3, web: job.DefaultAttempts} {
		r, err := e.Enqueue(t.Context(), Welcome{1})
		if err != nil {
			t.Fatal(err)
		}
		if j, err := worker.Get(t.Context(), r.ID); err != nil || j.MaxAttempts != want {
			t.Errorf("%d attempts, %v; want %d", j.MaxAttempts, err, want)
		}
	}
}
