package runner_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// slowClaims is the way back from a store whose statement commits only when its rows have been sent, as Postgres' does:
// a claim that is not waited for has claimed nothing, and its repeat finds nothing.
type slowClaims struct {
	store.Store
	rate, size, ready int
	failed            map[int64]bool
}

func (s *slowClaims) Claim(ctx context.Context, c store.Claim) (store.ClaimReply, error) {
	if s.failed[c.Seq] {
		now, err := s.Now(ctx)
		return store.ClaimReply{Now: now}, err
	}
	n := min(c.Queues[0].Limit, s.ready, int((c.Bytes+int64(s.size)-1)/int64(s.size)))
	select {
	case <-time.After(time.Duration(n*s.size) * time.Second / time.Duration(s.rate)):
	case <-ctx.Done():
		s.failed[c.Seq] = true
		return store.ClaimReply{}, fmt.Errorf("%w: %w", job.ErrOutcomeUnknown, ctx.Err())
	}
	answer, err := s.Store.Claim(ctx, c)
	s.ready -= len(answer.Jobs)
	return answer, err
}

// Claims of 16 MiB take longer than a call may, on a link that carries each payload in time.
func TestP10_ClaimsThatTakeLongerThanACallAllRun(t *testing.T) {
	inLab(t, func(l *lab) {
		const n, size = 40, 1 << 20
		link := &slowClaims{rate: size, size: size, ready: n, failed: map[int64]bool{}}
		p := l.run(n, func(context.Context, *runner.Task) job.Outcome { return job.Outcome{Kind: job.Succeeded} },
			func(c *runner.Config) { link.Store, c.Store = c.Store, link })
		ids := l.add(n, func(d *job.Draft) { d.Args = make([]byte, size) }, p)
		after(3 * time.Minute)
		for _, id := range ids {
			l.expect(id, job.Done, 0, 0)
		}
		p.stop()
	})
}
