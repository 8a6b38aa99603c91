package feedtest

import (
	"context"
	"testing"

	"github.com/pawlwork/pawl/stream"
)

// several are processes that have one store: publications and members go to them in turn.
type several struct {
	list []*Backend
	of   map[[2]string]*Backend // where a member is
	next int
}

func (s *several) turn() *Backend {
	s.next++
	return s.list[s.next%len(s.list)]
}

// Features implements stream.Backend.
func (s *several) Features() stream.Features { return s.list[0].Features() }

// Publish implements stream.Backend.
func (s *several) Publish(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error) {
	return s.turn().Publish(ctx, drafts)
}

// Join implements stream.Backend.
func (s *several) Join(ctx context.Context, m stream.Membership) (stream.Feed, error) {
	b := s.turn()
	f, err := b.Join(ctx, m)
	if err == nil {
		s.of[[2]string{m.Group, m.Member}] = b
	}
	return f, err
}

func (s *several) kill(t testing.TB, group, member string) {
	t.Helper()
	s.of[[2]string{group, member}].Kill(t, group, member)
	for _, b := range s.list {
		b.Nudge()
	}
}
