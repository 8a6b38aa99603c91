package keeper_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/keeper"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// A queue that nobody serves and a kind that nobody knows are in the log, with
// what somebody needs to find them.
func TestJ18_UnservedQueuesAndKindsAreReported(t *testing.T) {
	var log strings.Builder
	inHouse(t, func(h *house) {
		h.add(3, func(d *job.Draft) { d.Queue = "orphans" })
		h.add(2, func(d *job.Draft) { d.Kind = "stranger" })
		h.add(1, func(d *job.Draft) { d.Queue, d.In = "later", time.Hour })
		report := func(want int) {
			t.Helper()
			h.beat()
			if list, err := h.ReportOnce(h.t.Context()); err != nil || len(list) != want {
				t.Errorf("found %+v, %v; want %d", list, err, want)
			}
		}
		report(0) // nobody has waited for long
		if log.Len() != 0 {
			t.Errorf("logged %s", log.String())
		}
		time.Sleep(61 * time.Second) // virtual
		report(2)
		for _, part := range []string{
			`level=WARN msg="jobs wait that nobody takes" queue=orphans kind=k jobs=3 oldest=`, `why="no live worker serves queue orphans"`,
			`queue=q kind=stranger jobs=2 oldest=`, `why="no live worker of queue q knows kind stranger"`,
		} {
			if strings.Count(log.String(), part) != 1 {
				t.Errorf("the log does not hold %q once:\n%s", part, log.String())
			}
		}
		h.steady = 59 * time.Second // after an outage every other worker looks dead
		report(0)
		h.steady, h.own = time.Hour, 0 // not registered
		if list, err := h.ReportOnce(h.t.Context()); err != nil || list != nil {
			t.Errorf("found %+v, %v", list, err)
		}
	}, func(c *keeper.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
}

// scripted answers what a test wants.
type scripted struct {
	store.Store
	list []store.Unserved
	err  error
}

func (s *scripted) Unserved(context.Context, job.WorkerID, time.Duration) ([]store.Unserved, error) {
	return s.list, s.err
}

func TestP10_AReportIsBounded(t *testing.T) {
	var log strings.Builder
	answers := &scripted{}
	inHouse(t, func(h *house) {
		for i := range 1000 {
			answers.list = append(answers.list, store.Unserved{Queue: fmt.Sprint("queue", i), Jobs: 200, More: true})
		}
		if list, err := h.ReportOnce(h.t.Context()); err != nil || len(list) != 1000 {
			t.Errorf("%d, %v", len(list), err)
		}
		if n := strings.Count(log.String(), "\n"); n != 21 || !strings.Contains(log.String(), "reasons=980") || !strings.Contains(log.String(), "jobs=200+") {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
		answers.list, answers.err = nil, fmt.Errorf("too slow: %w", context.DeadlineExceeded)
		if _, err := h.ReportOnce(h.t.Context()); err != nil {
			t.Errorf("a look that takes too long is given up: %v", err)
		}
		answers.err = errors.New("down")
		if _, err := h.ReportOnce(h.t.Context()); !errors.Is(err, answers.err) {
			t.Errorf("error %v", err)
		}
	}, func(c *keeper.Config) {
		answers.Store = c.Store.(store.Store)
		c.Store, c.Logger = answers, slog.New(slog.NewTextHandler(&log, nil))
	})
}
