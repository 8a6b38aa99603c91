package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/groups"
	"github.com/pawlwork/pawl/store/sqlite/internal/intents"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/log"
)

var (
	_ store.Intents     = (*Store)(nil)
	_ store.IntendingTx = within{}
)

// ApplyIntents applies up to limit intents that users' transactions have left. It
// writes only where there are some.
func (s *Store) ApplyIntents(ctx context.Context, limit int) (store.IntentsReply, error) {
	due, err := view(ctx, s, s.intents.Due)
	if err != nil || !due {
		return store.IntentsReply{}, err
	}
	return ask(ctx, s, limit, func(t *jobs.Transition) (store.IntentsReply, error) { return s.intents.Apply(&t.Session, limit) })
}

// WaitingIntents lists intents that have not been applied.
func (s *Store) WaitingIntents(ctx context.Context, limit int) ([]store.IntentInfo, error) {
	return view(ctx, s, func(c *lite.Snapshot) ([]store.IntentInfo, error) { return s.intents.Waiting(c, limit) })
}

// Intend leaves intents with the transaction. Its connection is one of ours and
// sees the end: they are applied then.
func (w within) Intend(ctx context.Context, list []store.Intent) error {
	if err := store.CheckIntents(list); err != nil || len(list) == 0 {
		return err
	}
	return w.run(ctx, func(t *jobs.Transition) error {
		_, err := whole(t, func() ([]struct{}, error) { return nil, intents.Leave(&t.Session, list) })
		return err
	}, func(c *userConn) {
		c.tx.told = append(c.tx.told, func(error) { w.s.applier.wake() }) // after a rollback it finds nothing
	})
}

// lookAlso is what a listener looks for after a commit elsewhere.
func (s *Store) lookAlso(c *lite.Conn) (found []store.Hint, err error) {
	look := lite.Snapshot{Conn: c, Namespace: s.namespace, Clock: &s.clock}
	due, err := s.intents.Due(&look)
	if err != nil {
		return nil, err
	}
	if due {
		s.applier.wake()
		found = append(found, store.Hint{Subject: store.SubjectIntent})
	}
	next, err := log.NextDue(&look)
	if s.delays.earlier(next) {
		found = append(found, store.Hint{Subject: store.SubjectDelay})
	}
	if err != nil {
		return found, err
	}
	news, err := groups.CountNews(&look)
	if err != nil {
		return found, err
	}
	if s.groupNews.Swap(news) != news {
		found = append(found, store.Hint{Subject: store.SubjectGroup})
	}
	newest, ours, err := log.NewerThan(&look, s.newest.Load())
	s.newest.Store(newest)
	if ours {
		found = append(found, store.Hint{Subject: store.SubjectTopic})
	}
	return found, err
}

// HandleIntents has intents of a kind applied by a function, whose statements run in
// the transaction that removes them. It is there for storetest; nothing else may
// call it.
func (s *Store) HandleIntents(kind store.IntentKind, apply func(exec func(text string, args ...any) error, list []store.Intent) error) {
	s.intents.Register(kind, func(in *lite.Session, list []store.Intent) error {
		return apply(func(text string, args ...any) error {
			q := in.Query(text)
			for _, a := range args {
				switch a := a.(type) {
				case string:
					q.Text(a)
				case int:
					q.Int(int64(a))
				case []byte:
					q.Blob(a)
				}
			}
			return q.Exec()
		}, list)
	})
}

// applier applies intents right after the commit that left them. Nothing depends
// on it: the sweep finds what it misses.
type applier struct {
	woken   chan struct{}
	stopped chan struct{}
}

func startApplier(s *Store) *applier {
	a := &applier{woken: make(chan struct{}, 1), stopped: make(chan struct{})}
	go a.work(s)
	return a
}

func (a *applier) wake() {
	select {
	case a.woken <- struct{}{}:
	default:
	}
}

// appliedAtOnce is how many intents one transaction of this loop applies.
const appliedAtOnce = 200

func (a *applier) work(s *Store) {
	defer close(a.stopped)
	for {
		select {
		case <-s.closing:
			return
		case <-a.woken:
		}
		for more := true; more; {
			reply, err := s.ApplyIntents(context.Background(), appliedAtOnce)
			if err != nil {
				s.logger.Debug("pawl: intents were not applied, the sweep goes on", "store", s.file.Name, "error", err)
				break
			}
			more = reply.More && reply.Applied+len(reply.PutOff) > 0
		}
	}
}
