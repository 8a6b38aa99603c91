package sqlite_test

import (
	"errors"
	"testing"

	"github.com/pawlwork/pawl/internal/feed"
	"github.com/pawlwork/pawl/internal/feed/feedtest"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// In ordered mode an event that fails is kept and tried again by its member. One that a
// transaction of unknown outcome may have acknowledged is not: the store says what became of it,
// when the member has joined again.
func TestE28_WhatIsInDoubtIsNotTriedAgainHere(t *testing.T) {
	for name, commits := range map[string]bool{"committed": true, "rolled back": false} {
		t.Run(name, func(t *testing.T) {
			st, err := memory(t).Open(t.Context(), store.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			b := feedtest.New(t, st.(feedtest.Grouping))
			match, _ := stream.Filter{Topic: "a"}.Matcher()
			m := stream.Membership{Group: "g", Member: "m", Match: match, Mode: stream.Ordered}
			if _, err := b.Publish(t.Context(), []stream.Publication{{Event: stream.Event{ID: "1", Topic: "a"}}}); err != nil {
				t.Fatal(err)
			}
			f, err := b.Join(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Next(t.Context(), nil, stream.Want{N: 5, Idle: true})
			if err != nil || len(got) != 1 {
				t.Fatalf("%d come, %v", len(got), err)
			}
			tx, err := st.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			err = f.(*feed.Feed).Ack(t.Context(), tx.(store.TxGroups), got[0].Ref)
			if commits {
				err = errors.Join(err, tx.Commit(t.Context()))
			} else {
				err = errors.Join(err, tx.Rollback(t.Context()))
			}
			if err != nil {
				t.Fatal(err)
			}
			kept := []stream.Settlement{{Ref: got[0].Ref, Verdict: stream.Kept}}
			if _, err := f.Next(t.Context(), kept, stream.Want{N: 5}); !errors.Is(err, stream.ErrFeedLost) {
				t.Errorf("kept in doubt: %v", err)
			}
			if f, err = b.Join(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			got, err = f.Next(t.Context(), nil, stream.Want{N: 5, Idle: true})
			if err != nil || (len(got) == 0) != commits {
				t.Errorf("%d come again, %v", len(got), err)
			}
			feedtest.Check(t, st)
		})
	}
}
