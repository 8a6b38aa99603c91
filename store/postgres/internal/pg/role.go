package pg

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Pool is the connections of a store as one role may use them. All roles share one pool of pgx, so that a process that
// is idle has few connections. Some of them are each role's own: whoever uses up what there is for one role (a slow
// list, a thousand enqueues that wait for a row) holds up that role and no other.
type Pool struct {
	*pgxpool.Pool
	own   chan struct{} // holds one for each in use of those that are kept for it
	spare chan struct{} // the same of those that are for whoever comes first
	most  chan struct{} // bounds the role; nil: nothing else does
}

// Conn is a connection that a role has taken.
type Conn struct {
	*pooled
	role *Pool
	from chan struct{}
}

type pooled = pgxpool.Conn

// Acquire waits for a connection of the role.
func (p *Pool) Acquire(ctx context.Context) (*Conn, error) {
	from, err := p.enter(ctx)
	if err != nil {
		return nil, err
	}
	c := &Conn{role: p, from: from}
	if c.pooled, err = p.Pool.Acquire(ctx); err != nil {
		c.leave()
		return nil, err
	}
	return c, nil
}

// Release gives it back.
func (c *Conn) Release() {
	c.pooled.Release()
	c.leave()
}

func (c *Conn) leave() {
	<-c.from
	if c.role.most != nil {
		<-c.role.most
	}
}

// enter waits for the right to a connection, one of the role's own if there is one.
func (p *Pool) enter(ctx context.Context) (from chan struct{}, err error) {
	if p.most != nil {
		select {
		case p.most <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	select {
	case p.own <- struct{}{}:
		return p.own, nil
	default:
	}
	select {
	case p.own <- struct{}{}:
		return p.own, nil
	case p.spare <- struct{}{}:
		return p.spare, nil
	case <-ctx.Done():
		if p.most != nil {
			<-p.most
		}
		return nil, context.Cause(ctx)
	}
}

// Roles are what the connections of a store are for.
type Roles struct {
	Reserved *Pool // heartbeats, and what else keeps a worker's lease
	Finish   *Pool // ends of runs, progress, logs, the report of what is held
	Upkeep   *Pool // rounds: rescue, expiry, purge, trimming, schedules, metrics
	Claim    *Pool // claims, and looks whether there is something
	Work     *Pool // what callers write: enqueue, publish, verbs, settings; turns of groups and cursors
	Reading  *Pool // lists, counts, search, Check
}

// Share divides n connections [2 or more] of a pool. With few, roles share those that are kept for them: the ones that
// keep leases among themselves, and so do the others.
func Share(pool *pgxpool.Pool, n int) *Roles {
	r := &Roles{Reserved: &Pool{}, Finish: &Pool{}, Upkeep: &Pool{}, Claim: &Pool{}, Work: &Pool{}, Reading: &Pool{}}
	var groups [][]*Pool
	switch {
	case n == 2:
		groups = [][]*Pool{{r.Reserved, r.Finish, r.Upkeep}, {r.Claim, r.Work, r.Reading}}
	case n == 3:
		groups = [][]*Pool{{r.Reserved}, {r.Finish, r.Upkeep}, {r.Claim, r.Work, r.Reading}}
	case n == 4:
		groups = [][]*Pool{{r.Reserved}, {r.Finish, r.Upkeep}, {r.Claim}, {r.Work, r.Reading}}
	case n == 5:
		groups = [][]*Pool{{r.Reserved}, {r.Finish, r.Upkeep}, {r.Claim}, {r.Work}, {r.Reading}}
	default:
		groups = [][]*Pool{{r.Reserved}, {r.Finish}, {r.Upkeep}, {r.Claim}, {r.Work}, {r.Reading}}
	}
	spare := n
	for _, g := range groups {
		size := 1
		if n >= manyConnections && g[0] == r.Finish {
			size = 2 // an end whose job somebody holds waits beside the others
		}
		own := make(chan struct{}, size)
		for _, p := range g {
			p.own = own
		}
		spare -= size
	}
	shared := make(chan struct{}, spare)
	for _, p := range []*Pool{r.Reserved, r.Finish, r.Upkeep, r.Claim, r.Work, r.Reading} {
		p.Pool, p.spare = pool, shared
	}
	// These are not in a hurry, and a read that counts much takes a processor of the server's for itself.
	r.Upkeep.most, r.Reading.most = make(chan struct{}, max(n/4, 1)), make(chan struct{}, max(n/8, 1))
	return r
}

// manyConnections is from how many connections the ends of runs have two of their own.
const manyConnections = 8

// Size is how many connections the role may have at once.
func (p *Pool) Size() int {
	n := cap(p.own) + cap(p.spare)
	if p.most != nil {
		n = min(n, cap(p.most))
	}
	return n
}
