package pg

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Statement is one statement of a transition. Its rows are read by each, all of them
// before the transition goes on or is answered: rows reach this side before the
// statement they belong to is committed.
type Statement struct {
	Text string
	Args []any
	Each func(Scan) error
	Raw  func([][]byte) error // instead of each: the columns as the server sends them, in binary; only on the store's own connections
	Hits int64                // rows that the statement changed
}

// Scan reads the columns of one row.
type Scan func(dest ...any) error

// Session runs statements in one transaction: the store's own, or a user's.
type Session interface {
	Run(ctx context.Context, steps ...*Statement) error
}

// Limits are what a transaction of the store sets for itself.
type Limits struct {
	Lock  time.Duration // longest wait for somebody else's lock
	free  bool          // as the server would have it: for what may read much, or has to wait
	every time.Duration // longest time for a statement; 0: as the server would have it, or none
}

var (
	// Where waiting holds up others, it is short: the caller goes on alone then.
	SharedLimits = &Limits{Lock: 30 * time.Millisecond}
	// Where only the call itself waits. It gives up before the server looks for
	// deadlocks [1 s], and tries again: none is ever found.
	UpkeepLimits = &Limits{Lock: 900 * time.Millisecond}
	// Where something else serves as well, and what is asked for may be behind any
	// number of dead entries (IsOverTime).
	ShortLimits = &Limits{Lock: SharedLimits.Lock, every: time.Second}
	freeLimits  = &Limits{free: true}
)

// IsOverTime reports whether a statement was ended because its time was over.
func IsOverTime(err error) bool { return HasCode(err, "57014") }

// idleLimit ends a transaction of the store whose process stands still, well
// below the time after which that process is declared lost.
const idleLimit = 10 * time.Second

// Durability is at least "on" (P1), whatever the role's default, for the
// transaction in which it is set.
const Durability = `set_config('synchronous_commit',
		CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)`

// SettingsText is what holds in a transaction of the store. The planner is told to
// seek: its statistics are of a moment when the table was empty or full, and
// every statement here has its index.
//
// Where a session is the store's own, they are set once for all of it, with
// sharedLimits: as the first statement of each transaction they cost a claim a
// tenth. Where it may not be (behind a pooler, or with hooks of the user's that
// may reset it) they are that first statement, and hold for the transaction only.
//
// Statements over a list put the namespace into the list, behind OFFSET 0, and compare
// it with ANY:
//
//	FROM (SELECT $1::int AS namespace, e.* FROM unnest($2::uuid[]) AS e (id) OFFSET 0) AS e
//	JOIN pawl.job ON job.namespace = ANY (ARRAY[e.namespace]) AND job.id = e.id
//
// A planner that believes the table to be empty, because it was when somebody looked,
// would otherwise read all of it: for each item of the list, were the namespace compared
// with $1, and once for each statement, in the order of the primary key, were it compared
// with the list's own by =, by which two orders could be merged.
const SettingsText = "SELECT " + Durability + `,
	set_config('lock_timeout', $1, true),
	set_config('idle_in_transaction_session_timeout', $2, true),
	set_config('statement_timeout', '0', true),
	set_config('plan_cache_mode', 'force_generic_plan', true),
	set_config('jit', 'off', true),
	set_config('enable_bitmapscan', 'off', true),
	set_config('enable_seqscan', 'off', true),
	set_config('enable_hashjoin', 'off', true),
	set_config('enable_mergejoin', 'off', true)`

var (
	sessionSettings = strings.ReplaceAll(SettingsText, ", true)", ", false)") +
		",\n\tset_config('default_transaction_isolation', 'read committed', false),\n\t(" + MayIdleText + ")"
	// SetFreeText undoes the settings of a session for one transaction, all but durability.
	SetFreeText = `SELECT
	set_config('lock_timeout', NULL, true),
	set_config('idle_in_transaction_session_timeout', NULL, true),
	set_config('statement_timeout', NULL, true),
	set_config('plan_cache_mode', NULL, true),
	set_config('jit', NULL, true),
	set_config('enable_bitmapscan', NULL, true),
	set_config('enable_seqscan', NULL, true),
	set_config('enable_hashjoin', NULL, true),
	set_config('enable_mergejoin', NULL, true)`
)

// MayIdleText lets a session be idle for as long as it likes, whatever the role's
// default. Servers before 14 have no such limit.
const MayIdleText = "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'"

const (
	setLock  = "SELECT set_config('lock_timeout', $1, true)"
	setEvery = "SELECT set_config('statement_timeout', $1, true)"
)

// WaitForLocks bounds the wait for others' locks for the statements behind it, in the same transaction.
func WaitForLocks(d time.Duration) *Statement {
	return &Statement{Text: setLock, Args: []any{Milliseconds(d)}}
}

func (l *Limits) Args() []any {
	return []any{Milliseconds(l.Lock), Milliseconds(idleLimit)}
}

// set queues what makes the limits hold in the transaction that begins.
func (s *Link) set(b *pgx.Batch, l *Limits) {
	switch {
	case l == nil:
	case !s.Settled && !l.free:
		b.Queue(SettingsText, l.Args()...)
	case !s.Settled:
	case l.free:
		b.Queue(SetFreeText)
	case l.Lock != SharedLimits.Lock:
		b.Queue(setLock, Milliseconds(l.Lock))
	}
	if l != nil && l.every > 0 {
		b.Queue(setEvery, Milliseconds(l.every))
	}
}

// settle makes the settings those of every session of a pool, where the session
// is the store's own to set. A pooler that nobody told us of gives itself away: it
// makes up the number of the server process. What was set through it would come
// to others, and P1 not to us.
func (s *Link) settle(config *pgxpool.Config) {
	connected := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if connected != nil {
			if err := connected(ctx, conn); err != nil {
				return err
			}
		}
		var backend uint32
		if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&backend); err != nil {
			return err
		}
		if backend != conn.PgConn().PID() {
			s.pooled.Store(true)
			return nil
		}
		_, err := conn.Exec(ctx, sessionSettings, SharedLimits.Args()...)
		return err
	}
}

// settles reports whether sessions made with a pool's settings stay as the store
// sets them: hooks that run around each use of a connection may reset it, and
// sessions of the caller's pool are the caller's.
func settles(pollOnly, onlyPool bool, config *pgxpool.Config) bool {
	//lint:ignore SA1019 a pool may still have the older hook
	return !pollOnly && !onlyPool && config.BeforeAcquire == nil && config.PrepareConn == nil && config.AfterRelease == nil
}

func Milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }

// Send runs the steps as one transaction in one round trip and returns when its
// commit is answered. Without limits it is a plain read.
func (s *Link) Send(ctx context.Context, pool *Pool, l *Limits, steps ...*Statement) error {
	if s.explicit {
		return s.Transact(ctx, pool, l, func(t *Transaction) error { return t.last(ctx, steps...) })
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return Acquired(ctx, err)
	}
	defer conn.Release()
	b := &pgx.Batch{}
	s.set(b, l)
	s.queue(b, steps)
	return Judge(ctx, conn.SendBatch(ctx, b).Close())
}

// queue adds the steps to what is sent.
func (s *Link) queue(b *pgx.Batch, steps []*Statement) {
	for _, st := range steps {
		b.Queue(s.SQL(st.Text), st.Args...).Query(st.read)
	}
}

func (st *Statement) read(rows pgx.Rows) error {
	for rows.Next() {
		var err error
		switch {
		case st.Raw != nil:
			err = st.Raw(rows.RawValues())
		case st.Each != nil:
			err = st.Each(rows.Scan)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errUnreadable, err)
		}
	}
	rows.Close()
	st.Hits = rows.CommandTag().RowsAffected()
	return rows.Err()
}

// Acquired judges an error of a pool: nothing was sent yet.
func Acquired(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return Fault{Err: context.Cause(ctx), Passing: true}.AsError()
	}
	return Fault{Err: Unavailable(err), Passing: true}.AsError()
}

func Judge(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	f := Sent(err)
	if ctx.Err() != nil && f.Unknown {
		f.Err = errors.Join(context.Cause(ctx), err)
	}
	return f.AsError()
}

// Transaction is one of the store's own that takes more than one round trip.
type Transaction struct {
	s     *Link
	conn  *Conn
	limit *Limits
	open  bool
}

// Transact runs f in a transaction and commits what it did.
func (s *Link) Transact(ctx context.Context, pool *Pool, l *Limits, f func(*Transaction) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return Acquired(ctx, err)
	}
	defer conn.Release()
	t := &Transaction{s: s, conn: conn, limit: l}
	if err := f(t); err != nil {
		t.rollback()
		return err
	}
	return t.commit(ctx)
}

// Run sends the steps together. Nothing is committed yet, so an error is never
// an unknown outcome.
func (t *Transaction) Run(ctx context.Context, steps ...*Statement) error {
	b := t.batch()
	t.s.queue(b, steps)
	if err := t.conn.SendBatch(ctx, b).Close(); err != nil {
		f := Sent(err)
		f.Unknown = false
		if ctx.Err() != nil {
			f.Err = errors.Join(context.Cause(ctx), err)
		}
		return f.AsError()
	}
	return nil
}

// batch begins the transaction with the first statements that are sent.
func (t *Transaction) batch() *pgx.Batch {
	b := &pgx.Batch{}
	if !t.open {
		b.Queue(BeginText)
		t.s.set(b, t.limit)
		t.open = true
	}
	return b
}

// Commit sends the steps together with the commit: a round trip less.
func (t *Transaction) Commit(ctx context.Context, steps ...*Statement) error {
	return t.last(ctx, steps...)
}

// last sends the steps together with the commit.
func (t *Transaction) last(ctx context.Context, steps ...*Statement) error {
	b := t.batch()
	t.s.queue(b, steps)
	b.Queue("COMMIT")
	t.open = false
	err := Judge(ctx, t.conn.SendBatch(ctx, b).Close())
	if err != nil {
		t.open = true
	}
	return err
}

func (t *Transaction) commit(ctx context.Context) error {
	if !t.open {
		return nil
	}
	return t.last(ctx)
}

// rollback leaves the connection usable; if it cannot, the pool drops it.
func (t *Transaction) rollback() {
	if !t.open || t.conn.Conn().IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = t.conn.Exec(ctx, "ROLLBACK")
}
