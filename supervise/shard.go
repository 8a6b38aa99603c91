package supervise

import (
	"context"
	"log/slog"
	"time"
)

const (
	failuresUntilSkipped = 3
	cyclesSkipped        = 10
)

// shard is one part of a tick's cycle. A plain tick is a single shard that has no name, no place in
// the Status, and is never skipped.
type shard struct {
	member   *child
	logger   *slog.Logger
	timeout  time.Duration
	function func(context.Context) error

	position     int // in Status.Shards; -1 for a plain tick
	failedInARow int
	skipsLeft    int
}

func newShard(m *child, s Service, position int, name string) *shard {
	if position < 0 {
		return &shard{member: m, logger: m.logger, timeout: s.timeout, function: s.run, position: position}
	}
	m.status.Shards = append(m.status.Shards, ShardStatus{Name: name})
	return &shard{
		member:   m,
		logger:   m.logger.With("shard", name),
		timeout:  s.timeout,
		function: func(ctx context.Context) error { return s.runShard(ctx, name) },
		position: position,
	}
}

// skipped reports whether the shard sits out this cycle, and counts it.
func (s *shard) skipped() bool {
	if s.skipsLeft == 0 {
		return false
	}
	s.skipsLeft--
	s.publish(nil, time.Time{})
	return true
}

// run runs the shard's function once. after is what NextIn asked for, if it was chosen; err is a
// failure that has been counted and logged, or the interruption by a stop, which is neither.
func (s *shard) run(ctx context.Context) (after time.Duration, chosen bool, err error) {
	err = call(func() error {
		if s.timeout == 0 {
			return s.function(ctx)
		}
		limited, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		return s.function(limited)
	})
	if wish, ok := err.(nextIn); ok {
		after, chosen, err = time.Duration(wish), true, nil
	}
	switch {
	case err == nil:
		s.succeeded(ctx)
	case !interrupted(ctx, err):
		s.failed(ctx, err)
	}
	return after, chosen, err
}

func (s *shard) succeeded(ctx context.Context) {
	if s.failedInARow >= failuresUntilSkipped && s.position >= 0 {
		s.logger.InfoContext(ctx, "shard recovered", "failed_in_a_row", s.failedInARow)
	}
	s.failedInARow = 0
	s.publish(nil, time.Now())
}

func (s *shard) failed(ctx context.Context, err error) {
	s.member.reportFailure(ctx, s.logger, err)
	s.failedInARow++
	if s.failedInARow >= failuresUntilSkipped && s.position >= 0 {
		s.skipsLeft = cyclesSkipped
		s.logger.WarnContext(ctx, "shard is skipped", "failed_in_a_row", s.failedInARow, "cycles", cyclesSkipped)
	}
	s.publish(err, time.Time{})
}

// publish brings the shard's entry in the Status up to date.
func (s *shard) publish(failure error, success time.Time) {
	if s.position < 0 {
		return
	}
	var text string
	if failure != nil {
		text = errorText(failure) // the user's code: not under the lock
	}
	s.member.mu.Lock()
	defer s.member.mu.Unlock()
	status := &s.member.status.Shards[s.position]
	status.FailedInARow, status.SkipsLeft = s.failedInARow, s.skipsLeft
	if failure != nil {
		status.Errors++
		status.LastError = text
	}
	if !success.IsZero() {
		status.LastSuccess = success
	}
}
