package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a store that is closed, and checked for broken rules, at the end.
func open(t *testing.T, o store.Opener) *Store {
	t.Helper()
	s, err := o.Open(context.Background(), store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		report, err := s.Check(context.Background(), store.Check{})
		if err != nil && !errors.Is(err, store.ErrClosed) {
			t.Errorf("check: %v", err)
		}
		for _, f := range report.Faults {
			t.Errorf("check: %s: %s %s", f.Rule, f.ID, f.Detail)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s.(*Store)
}

func newFile(t *testing.T, options ...Options) store.Opener {
	return File(filepath.Join(t.TempDir(), "work.db"), options...)
}

func draft() job.Draft {
	return job.Draft{ID: job.NewID(), Kind: "k", Queue: "q", Priority: 5, Attempts: 5, Args: []byte("{}")}
}

func drafts(n int) []job.Draft {
	list := make([]job.Draft, n)
	for i := range list {
		list[i] = draft()
	}
	return list
}

func (s *Store) mustEnqueue(t *testing.T, list ...job.Draft) []job.Receipt {
	t.Helper()
	r, err := s.Enqueue(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *Store) mustCount(t *testing.T, states ...job.State) (n int) {
	t.Helper()
	for page := (store.Page{Limit: store.MaxPage}); ; {
		listed, err := s.List(t.Context(), store.Filter{States: states}, page)
		if err != nil {
			t.Fatal(err)
		}
		if n += len(listed.Jobs); !listed.More {
			return n
		}
		page.After = listed.Next
	}
}

var offer = job.Offer{Kinds: map[string]int{"k": 0}}

func (s *Store) mustRegister(t *testing.T) job.WorkerID {
	t.Helper()
	w, err := s.Register(t.Context(), store.Worker{Label: "w", Queues: []string{"q"}, Offer: offer, LostAfter: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func claimOf(w job.WorkerID, seq int64, limit int) store.Claim {
	return store.Claim{Worker: w, Seq: seq, Offer: offer, Queues: []store.QueueClaim{{Queue: "q", Limit: limit, Start: limit}}}
}

func (s *Store) mustClaim(t *testing.T, c store.Claim) store.ClaimReply {
	t.Helper()
	got, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func wantErr(t *testing.T, what string, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("%s: %v, want %v", what, err, w)
		}
	}
}

// sqlOf runs SQL on a connection of its own, as another program on the file would.
func sqlOf(t *testing.T, s *Store, text string) {
	t.Helper()
	c, err := s.file.Connect(context.Background(), lite.SmallCache)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Raw.Exec(text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}
