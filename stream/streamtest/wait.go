package streamtest

import (
	"context"
	"errors"
	"time"
)

// wait reports whether the feed says within d that there is news.
func (p *player) wait(d time.Duration) bool {
	p.l.Helper()
	ctx, cancel := context.WithTimeout(p.l.ctx, d)
	defer cancel()
	err := p.feed.Wait(ctx)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		p.l.Fatalf("wait: %v", err)
	}
	return err == nil
}
