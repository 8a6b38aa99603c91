package pawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// CursorInfo is a cursor as others see it.
type CursorInfo = store.CursorInfo

// TopicInfo is a topic that has had an event.
type TopicInfo = store.TopicInfo

// Topics lists up to n topics by name, after one, with the time of their newest event: all of
// them, or those that match a pattern such as "orders.*".
func (e *Engine) Topics(ctx context.Context, pattern, after string, n int) ([]TopicInfo, error) {
	log, err := e.reading(ctx, n)
	if err != nil {
		return nil, err
	}
	p, err := stream.ParsePattern("topic", pattern)
	if err != nil {
		return nil, err
	}
	list, err := log.Topics(ctx, p, after, n)
	back, tells := log.(store.LogBack)
	if err != nil || !tells || len(list) == 0 {
		return list, err
	}
	newest, err := back.NewestEvents(ctx, list)
	for i := range list {
		list[i].Newest = newest[list[i].ID]
	}
	return list, err
}

// Cursors lists up to n named cursors by name, after one.
func (e *Engine) Cursors(ctx context.Context, after string, n int) ([]CursorInfo, error) {
	log, err := e.reading(ctx, n)
	if err != nil {
		return nil, err
	}
	return log.ListCursors(ctx, after, n)
}

// reading is the log for who lists something of it.
func (e *Engine) reading(ctx context.Context, n int) (store.Cursors, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	if n < 1 || n > store.MaxEventPage {
		return nil, job.Invalid("n", n, fmt.Sprintf("must be 1..%d", store.MaxEventPage))
	}
	return e.log()
}

// CursorNamed is one of them. ErrNotFound where there is none.
func (e *Engine) CursorNamed(ctx context.Context, name string) (CursorInfo, error) {
	log, err := e.reading(ctx, 1)
	if err != nil {
		return CursorInfo{}, err
	}
	return log.CursorNamed(ctx, name)
}

// SeekCursor puts a cursor somewhere else. Who reads with it begins anew there: a worker with
// its next batch, or two thirds of its lease later when there is none; another reader finds
// its next commit refused. It is audited (As).
func (e *Engine) SeekCursor(ctx context.Context, name string, to stream.Start) error {
	log, err := e.reading(ctx, 1)
	if err != nil {
		return err
	}
	at, err := e.placeOf(ctx, to)
	if err != nil {
		return err
	}
	return log.SeekCursor(ctx, name, at, operatorOf(ctx))
}

// DeleteCursor forgets a cursor. It is audited (As).
func (e *Engine) DeleteCursor(ctx context.Context, name string) error {
	log, err := e.reading(ctx, 1)
	if err != nil {
		return err
	}
	return log.DeleteCursor(ctx, name, operatorOf(ctx))
}

// WaitFor returns when a cursor or a group has passed a position, so that what was published
// can be read from what its reader makes of it: nothing that its filter chooses is left
// before the position, and of a group nothing is being handled or tried again. It waits until
// ctx ends.
func (e *Engine) WaitFor(ctx context.Context, name string, p stream.Position) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		log, err := e.reading(ctx, 1)
		if err != nil {
			return err
		}
		passed, err := hasPassed(ctx, log, name, p)
		if err != nil || passed {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("wait for %q: %w", name, context.Cause(ctx))
		}
	}
}

// hasPassed says whether nothing of a cursor or group is left before a position.
func hasPassed(ctx context.Context, log store.Cursors, name string, p stream.Position) (bool, error) {
	c, err := log.CursorNamed(ctx, name)
	at, filter := c.At, c.Filter
	if groups, ok := log.(store.GroupObjects); ok && errors.Is(err, ErrNotFound) {
		g, fault := groups.GroupNamed(ctx, name)
		if errors.Is(fault, ErrNotFound) {
			return false, job.NotFound("cursor or group", name)
		}
		if order, ok := g.Undone.Compare(p); fault == nil && !g.Undone.IsZero() && (!ok || order <= 0) {
			return false, nil
		}
		at, filter, err = g.At, g.Filter, fault
	}
	if err != nil {
		return false, err
	}
	m, err := filter.Matcher()
	if err != nil {
		return false, err
	}
	for {
		order, ok := at.Compare(p)
		switch {
		case !ok:
			return false, fmt.Errorf("%w: it is %s, and %q is at %s", ErrPosition, p.Debug(), name, at.Debug())
		case order >= 0:
			return true, nil
		}
		page, err := log.Events(ctx, store.EventQuery{Match: m, After: at, Limit: 64})
		if err != nil {
			return false, err
		}
		if len(page.Events) > 0 {
			order, _ := page.Events[0].Position.Compare(p)
			return order > 0, nil
		}
		if !page.More {
			order, _ := page.Head.Compare(p)
			return order >= 0, nil
		}
		at = page.Next
	}
}
