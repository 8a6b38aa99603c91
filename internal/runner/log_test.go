package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
)

// written are the lines of a log that name a job, as a program would read them.
type written struct {
	logbook
}

func (w *written) lines(t *testing.T) (lines []map[string]any) {
	t.Helper()
	for text := range strings.Lines(w.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		if line["job"] != nil {
			lines = append(lines, line)
		}
	}
	return lines
}

func (w *written) of(level slog.Level) func(*runner.Config) {
	return func(c *runner.Config) {
		c.Logger = slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
	}
}

// Every run that did not succeed has a line that says what became of its job, at
// the level that fits, with what somebody needs who has only the log.
func TestJ28_EveryFailureIsLogged(t *testing.T) {
	long := strings.Repeat("cause: ", 1000) + "root" // longer than what is kept with the job
	for name, c := range map[string]struct {
		handler  handle
		attempts int
		want     []string // level, attempt, of, retry in seconds (- for none)
		holds    map[string]string
	}{
		"retried, then dead": {
			handler:  func(context.Context, *runner.Task) job.Outcome { return job.Outcome{Kind: job.Failed, Message: long} },
			attempts: 2, want: []string{"WARN 1 2 3", "ERROR 2 2 -"},
			holds: map[string]string{"error": long, "reason": "all 2 attempts failed"},
		},
		"panic": {
			handler:  func(context.Context, *runner.Task) job.Outcome { panic("boom") },
			attempts: 1, want: []string{"ERROR 1 1 -"},
			holds: map[string]string{"error": "panic: boom", "stack": "log_test.go"},
		},
		"gave up": {
			handler: func(context.Context, *runner.Task) job.Outcome {
				return job.Outcome{Kind: job.GaveUp, Message: "pointless"}
			},
			attempts: 5, want: []string{"ERROR 1 5 -"}, holds: map[string]string{"error": "pointless", "reason": "the handler gave up"},
		},
		"parked": {
			handler: func(context.Context, *runner.Task) job.Outcome {
				return job.Outcome{Kind: job.Undecoded, Message: "not JSON"}
			},
			attempts: 5, want: []string{"WARN 1 5 -"}, holds: map[string]string{"error": "not JSON", "msg": "parked"},
		},
		"put off": {
			handler: func(_ context.Context, t *runner.Task) job.Outcome {
				if t.Job.Snoozes > 0 {
					return succeed
				}
				return job.Outcome{Kind: job.Snoozed, Delay: time.Minute}
			},
			attempts: 5, want: []string{"DEBUG 1 5 60"}, holds: map[string]string{"msg": "put off"},
		},
		"a store that failed": {
			handler: func(_ context.Context, t *runner.Task) job.Outcome {
				if t.Job.Run > 1 {
					return succeed
				}
				return job.Outcome{Kind: job.StoreFailed, Message: "disk full"}
			},
			attempts: 5, want: []string{"WARN 1 5 2"}, holds: map[string]string{"error": "disk full"},
		},
		"success": {handler: func(context.Context, *runner.Task) job.Outcome { return succeed }, attempts: 5},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				log := &written{}
				p := l.run(1, c.handler, log.of(slog.LevelDebug), func(c *runner.Config) {
					c.Queues[0].Backoff = job.Constant(3 * time.Second)
				})
				id := l.add(1, func(d *job.Draft) { d.Attempts = c.attempts }, p)[0]
				after(2 * time.Minute)
				var got []string
				lines := log.lines(t)
				for i, line := range lines {
					wait := "-"
					if ns, ok := line["retry_in"].(float64); ok {
						wait = fmt.Sprint(math.Ceil(ns / 1e9)) // the wait for a store is spread
					}
					got = append(got, fmt.Sprint(line["level"], " ", line["attempt"], " ", line["of"], " ", wait))
					if line["job"] != id.String() || line["kind"] != "k" || line["queue"] != "q" || line["run"] != float64(i+1) {
						t.Errorf("line %v", line)
					}
				}
				if fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("lines %q, want %q", got, c.want)
				}
				for key, part := range c.holds {
					if text, _ := lines[len(lines)-1][key].(string); !strings.Contains(text, part) {
						t.Errorf("%s is %.200q, want %.200q", key, text, part)
					}
				}
				p.stop()
			})
		})
	}
}

// The log says what is stored: nothing of an end that was refused, and only once
// of one that was sent twice.
func TestJ28_TheLogSaysWhatIsStored(t *testing.T) {
	inLab(t, func(l *lab) {
		log := &written{}
		p := l.run(1, func(context.Context, *runner.Task) job.Outcome { return fail }, log.of(slog.LevelWarn))
		down := true
		p.faults.set(func(f *faults) {
			f.before = func(method string) error {
				if method == "Finish" && down {
					return job.ErrOutcomeUnknown
				}
				return nil
			}
		})
		l.add(1, func(d *job.Draft) { d.Attempts = 1 }, p)
		after(5 * time.Second)
		if lines := log.lines(t); len(lines) != 0 {
			t.Errorf("logged before it was stored: %v", lines)
		}
		p.faults.set(func(*faults) { down = false })
		after(5 * time.Second)
		if lines := log.lines(t); len(lines) != 1 || lines[0]["level"] != "ERROR" {
			t.Errorf("lines %v", lines)
		}
		p.stop()
	})
}

// The first answer is lost, the repeat finds its own end: hook and log are told
// of it, once, and the counters too.
func TestJ28_AnEndWhoseAnswerWasLostIsToldOnce(t *testing.T) {
	for name, outcome := range map[string]job.Outcome{
		"done": succeed, "failed": {Kind: job.Failed, Message: "x"}, "dead": {Kind: job.GaveUp, Message: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				var told []runner.Finished
				log := &written{}
				p := l.run(1, func(context.Context, *runner.Task) job.Outcome { return outcome }, log.of(slog.LevelWarn), func(c *runner.Config) {
					c.Queues[0].Backoff = job.Constant(time.Hour)
					c.Hooks.Finish = func(f runner.Finished) { told = append(told, f) }
				})
				lost := 0
				p.faults.set(func(f *faults) {
					f.after = func(method string) error {
						if method == "Finish" && lost < 3 {
							lost++
							return job.ErrOutcomeUnknown
						}
						return nil
					}
				})
				l.add(1, nil, p)
				after(10 * time.Second)
				if len(told) != 1 || told[0].Verdict != job.Applied || told[0].Outcome.Kind != outcome.Kind || lost != 3 {
					t.Errorf("the hook was told %+v after %d lost answers", told, lost)
				}
				want := 1
				if outcome.Kind == job.Succeeded {
					want = 0
				}
				if lines := log.lines(t); len(lines) != want {
					t.Errorf("lines %v", lines)
				}
				if s := p.Stats(); s.Finished[outcome.Kind] != 1 || s.Refused != 0 || s.Unclear != 1 {
					t.Errorf("finished %v, refused %d, unclear %d", s.Finished, s.Refused, s.Unclear)
				}
				p.stop()
			})
		})
	}
}

// The transaction had finished the job, and its answer was lost: the hook is told
// of the transaction's end, not of the error that the handler returned for it.
func TestP3_AnUnclearCommitIsToldAsWhatItWas(t *testing.T) {
	inLab(t, func(l *lab) {
		var told []runner.Finished
		p := l.run(1, func(ctx context.Context, t *runner.Task) job.Outcome {
			tx, err := l.store.Begin(ctx)
			if err != nil {
				return fail
			}
			end := t.End(succeed)
			t.FinishingInTx(end)
			if v, err := tx.Finish(ctx, t.Worker(), []job.End{end}); err != nil || v[0] != job.Applied {
				return fail
			}
			if err := tx.Commit(ctx); err != nil {
				return fail
			}
			t.UnclearInTx()
			return job.Outcome{Kind: job.StoreFailed, Message: job.ErrOutcomeUnknown.Error()}
		}, func(c *runner.Config) { c.Hooks.Finish = func(f runner.Finished) { told = append(told, f) } })
		id := l.add(1, nil, p)[0]
		after(10 * time.Second)
		l.expect(id, job.Done, 0, 0)
		if len(told) != 1 || !told[0].InTx || told[0].Verdict != job.Applied {
			t.Errorf("the hook was told %+v", told)
		}
		if s := p.Stats(); s.InTx != 1 || s.Finished[job.StoreFailed] != 0 {
			t.Errorf("in a transaction %d, finished %v", s.InTx, s.Finished)
		}
		p.stop()
	})
}
