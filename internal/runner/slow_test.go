package runner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// slow is the way to a store over a link that takes its time with every byte.
type slow struct {
	store.Store
	rate int  // bytes a second
	late bool // what the caller no longer waits for arrives all the same

	mu    sync.Mutex
	free  time.Time // when the link has sent what it was given
	calls []int     // bytes of each call
	going sync.WaitGroup
}

// send waits until the link has taken the bytes, and says whether the caller
// waited for that.
func (s *slow) send(ctx context.Context, bytes int) (arrives time.Time, err error) {
	s.mu.Lock()
	s.calls = append(s.calls, bytes)
	now := time.Now()
	arrives = now.Add(time.Duration(bytes) * time.Second / time.Duration(s.rate))
	if s.late { // it goes behind what is still on its way
		arrives = arrives.Add(max(s.free.Sub(now), 0))
		s.free = arrives
	}
	s.mu.Unlock()
	select {
	case <-time.After(time.Until(arrives)):
		return arrives, nil
	case <-ctx.Done():
		return arrives, fmt.Errorf("the link is slow: %w", ctx.Err())
	}
}

func (s *slow) most() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Max(s.calls)
}

func (s *slow) Finish(ctx context.Context, w job.WorkerID, ends []job.End) ([]job.Verdict, error) {
	bytes := 0
	for _, e := range ends {
		bytes += len(e.Result)
		for _, l := range e.Logs {
			bytes += len(l.Text)
		}
	}
	arrives, err := s.send(ctx, bytes)
	switch {
	case err == nil:
		return s.Store.Finish(ctx, w, ends)
	case s.late:
		s.going.Go(func() {
			time.Sleep(time.Until(arrives)) // stimulus: virtual, until the bytes are there
			_, _ = s.Store.Finish(context.WithoutCancel(ctx), w, ends)
		})
	}
	return nil, err
}

func (s *slow) Note(ctx context.Context, w job.WorkerID, notes []store.Note) ([]job.Verdict, error) {
	bytes := 0
	for _, n := range notes {
		for _, l := range n.Logs {
			bytes += len(l.Text)
		}
	}
	if _, err := s.send(ctx, bytes); err != nil {
		return nil, err
	}
	return s.Store.Note(ctx, w, notes)
}

// over puts a slow link before a process's store.
func (s *slow) over(c *runner.Config) {
	s.Store = c.Store
	c.Store = s
}

// Results that together take longer than a call may, on a link that carries each
// of them in time. (700 of 1 MiB at 20 MB/s were sent again and again, for ever.)
func TestP10_EndsThatTakeLongerThanACallAreAllStored(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late %v", late), func(t *testing.T) {
			inLab(t, func(l *lab) {
				const n, size = 96, 256 << 10
				result := make([]byte, size)
				told := map[job.ID]int{}
				link := &slow{rate: size, late: late} // one end a second; a call has 10 s
				p := l.run(n, func(context.Context, *runner.Task) job.Outcome {
					time.Sleep(time.Second)
					return job.Outcome{Kind: job.Succeeded, Result: result}
				}, link.over, func(c *runner.Config) {
					c.Hooks.Finish = func(f runner.Finished) {
						if f.Verdict == job.Applied && f.End.To == job.Done {
							told[f.Task.Job.ID]++
						}
					}
				})
				ids := l.add(n, nil, p)
				after(5 * time.Minute)
				for _, id := range ids {
					l.expect(id, job.Done, 0, 0)
					if told[id] != 1 {
						t.Errorf("the hook was told %d times of %s", told[id], id)
					}
				}
				if s := p.Stats(); s.Finished[job.Succeeded] != n || s.Ending != 0 || s.Refused != 0 || s.LeasesLost != 0 {
					t.Errorf("stats %+v", s)
				}
				if most := link.most(); most > 16<<20 {
					t.Errorf("a call carried %d bytes", most)
				}
				p.stop()
				link.going.Wait()
			})
		})
	}
}

// What is small passes while a result is on its way that the link does not carry
// in time, and that one is given up with its reason, not tried for ever.
func TestP8_AnEndThatTheLinkCannotCarryHoldsUpNoOther(t *testing.T) {
	inLab(t, func(l *lab) {
		link := &slow{rate: 10 << 10}
		p := l.run(4, func(_ context.Context, t *runner.Task) job.Outcome {
			if t.Job.Priority == 1 {
				return job.Outcome{Kind: job.Succeeded, Result: make([]byte, 1<<20)}
			}
			return succeed
		}, link.over)
		big := l.add(1, func(d *job.Draft) { d.Priority, d.Attempts = 1, 1 }, p)[0]
		after(time.Second)
		small := l.add(20, nil, p)
		after(2 * time.Minute)
		for _, id := range small {
			l.expect(id, job.Done, 0, 0)
		}
		j := l.expect(big, job.Dead, 1, 0)
		if list := j.Failures.List(); len(list) != 1 || !strings.Contains(list[0].Message, "could not be stored") {
			t.Errorf("failures %+v", list)
		}
		p.stop()
	})
}

// Claims wait while the ends that are not stored yet are large, however few.
func TestP10_UnstoredEndsAreBoundedInBytes(t *testing.T) {
	inLab(t, func(l *lab) {
		p := l.run(4, func(context.Context, *runner.Task) job.Outcome {
			return job.Outcome{Kind: job.Succeeded, Result: make([]byte, 4<<20)}
		}, func(c *runner.Config) { c.Queues[0].Prefetch = -1 })
		p.faults.set(func(f *faults) {
			f.before = func(method string) error {
				if method == "Finish" {
					return store.ErrUnavailable
				}
				return nil
			}
		})
		l.add(24, nil, p)
		after(10 * time.Second)
		if ending := p.Stats().Ending; ending > 8+4 { // 32 MiB, and those that ran when they were reached
			t.Errorf("%d ends of 4 MiB wait for the store", ending)
		}
		p.faults.set(func(f *faults) { f.before = nil })
		after(10 * time.Second)
		if s := p.Stats(); s.Ending != 0 || s.Finished[job.Succeeded] != 24 {
			t.Errorf("ending %d, finished %v", s.Ending, s.Finished)
		}
		p.stop()
	})
}

// The log lines of many runs go in several calls, none of which is lost for the
// others.
func TestP10_NotesThatTakeLongerThanACallAreAllStored(t *testing.T) {
	inLab(t, func(l *lab) {
		const n, lines = 12, 600 // of 4 KiB: 28 MiB
		link := &slow{rate: 1 << 20}
		release := make(chan struct{})
		p := l.run(n, func(_ context.Context, t *runner.Task) job.Outcome {
			for range lines {
				t.AddLog(0, strings.Repeat("x", 4<<10))
			}
			<-release
			return succeed
		}, link.over)
		ids := l.add(n, nil, p)
		after(3 * time.Minute)
		for _, id := range ids {
			got, err := l.store.Logs(l.t.Context(), id, 0, 2*lines)
			if err != nil || len(got) != lines {
				t.Errorf("%d of %d lines, %v", len(got), lines, err)
			}
		}
		if most := link.most(); most > 4<<20 {
			t.Errorf("a call carried %d bytes", most)
		}
		close(release)
		synctest.Wait()
		p.stop()
	})
}
