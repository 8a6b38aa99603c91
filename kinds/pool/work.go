package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

const (
	putOff   = 10 * time.Second     // of a job that found no idle child
	maxDelay = 366 * 24 * time.Hour // that a child may ask for
)

// errTimeout is the cause of a child that took longer than it may.
var errTimeout = errors.New("timeout")

// request is the line that a child reads.
type request struct {
	ID      string          `json:"id"`
	Kind    string          `json:"kind"`
	Attempt int             `json:"attempt"`
	Payload json.RawMessage `json:"payload"`
}

// answer is the line that a child writes.
type answer struct {
	ID     string          `json:"id"`
	Status string          `json:"status"`
	Error  string          `json:"error"`
	Result json.RawMessage `json:"result"`
	Delay  float64         `json:"delay"` // seconds
}

// work has one job done by a child.
func (p *Pool) work(ctx context.Context, j *pawl.Job[pawl.Raw]) (pawl.Raw, error) {
	// (ID, Run) is a fence token: no two runs have the same.
	r := request{ID: fmt.Sprintf("%s.%d", j.ID, j.Run), Kind: j.Kind, Attempt: j.Attempt, Payload: json.RawMessage(j.Args)}
	line, err := json.Marshal(r) // one line: it leaves out the line breaks of a payload
	if err != nil {
		return nil, pawl.Dead(fmt.Errorf("%w payload: children of a pool read JSON: %w", job.ErrInvalid, err))
	}
	if line = append(line, '\n'); len(line) > p.config.Line {
		return nil, pawl.Dead(job.Invalid("payload", fmt.Sprintf("%d bytes", len(line)), fmt.Sprintf("must make a line of at most %d bytes", p.config.Line)))
	}
	for {
		c, err := p.borrow(ctx)
		switch {
		case errors.Is(err, errNotIdle) || errors.Is(err, errClosed):
			return nil, pawl.SnoozeFor(putOff, err.Error())
		case err != nil:
			return nil, err
		}
		a, err := p.ask(ctx, c, j, r.ID, line)
		c.back <- err
		if err == nil {
			return outcome(a)
		}
		<-c.gone // until then the job has not ended
		switch {
		case errors.Is(err, errClosed):
			return nil, pawl.SnoozeFor(putOff, err.Error())
		case !errors.Is(err, errNotAsked):
			return nil, err
		}
	}
}

// ask asks a child and waits for its answer. After an error the child is of no more use.
func (p *Pool) ask(ctx context.Context, c *child, j *pawl.Job[pawl.Raw], id string, line []byte) (a answer, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.Timeout, errTimeout)
	defer cancel()
	c.stderr.attach(j.Log(), jobLines)
	defer c.stderr.detach()
	text, err := p.hear(ctx, c, line)
	c.stderr.flush() // what it wrote before its answer or its end belongs to this job
	if err != nil {
		return a, err
	}
	return read(text, id)
}

// hear hands a child its line and waits for one of its own.
func (p *Pool) hear(ctx context.Context, c *child, line []byte) (text []byte, err error) {
	written, lines := c.write(line), c.lines
	for written != nil || lines != nil {
		select {
		case err := <-written:
			if err != nil {
				return nil, err
			}
			written = nil
		case l := <-lines:
			if l.err != nil {
				return nil, c.ended(l.err)
			}
			lines, text = nil, l.text // what it says besides is for its keeper to hear
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, errTimeout) {
				return nil, interruption{cause}
			}
			return nil, interruption{fmt.Errorf("the child gave no answer within %v", p.config.Timeout)}
		case <-p.closing:
			return nil, interruption{errClosed}
		}
	}
	return text, nil
}

// interruption is an end of a child that it is not to blame for.
type interruption struct{ error }

func (i interruption) Unwrap() error { return i.error }

// read reads an answer to what was asked.
func read(line []byte, id string) (a answer, err error) {
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("the child said %.100q: %w", line, err)
	}
	switch {
	case a.ID != id:
		return a, fmt.Errorf("the child answered %.100q, and was asked %q", a.ID, id)
	case a.Delay < 0 || a.Delay > maxDelay.Seconds():
		return a, fmt.Errorf("the child answered with a delay of %v seconds: must be 0..%v", a.Delay, maxDelay.Seconds())
	}
	switch a.Status {
	case "ok", "retry", "dead", "throttled":
	case "snooze":
		if a.Delay == 0 {
			return a, fmt.Errorf("the child answered %q without a delay", a.Status)
		}
	default:
		return a, fmt.Errorf("the child answered with status %.100q: must be ok, retry, dead, snooze or throttled", a.Status)
	}
	return a, nil
}

// outcome is what an answer makes of the job.
func outcome(a answer) (pawl.Raw, error) {
	delay := time.Duration(a.Delay * float64(time.Second))
	why := errors.New("the child gave no reason")
	if a.Error != "" {
		why = errors.New(a.Error)
	}
	switch a.Status {
	case "retry":
		if delay > 0 {
			return nil, pawl.RetryIn(delay, why)
		}
		return nil, why
	case "dead":
		return nil, pawl.Dead(why)
	case "snooze":
		return nil, pawl.SnoozeFor(delay, a.Error)
	case "throttled": // the whole queue cools down
		if a.Error == "" {
			return nil, pawl.Throttled(delay)
		}
		return nil, fmt.Errorf("%w: %w", why, pawl.Throttled(delay))
	}
	return pawl.Raw(a.Result), nil
}
