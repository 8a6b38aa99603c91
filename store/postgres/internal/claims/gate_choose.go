package claims

import (
	"bytes"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/internal/turns"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// choose picks the jobs that each gate lets through.
func (p *gatePass) choose() {
	starts, room := p.start, p.room
	for i := range p.visits {
		v := &p.visits[i]
		switch {
		case v.given == 0:
		case !v.locked: // it keeps its turn: a key that is asked for often must not lose it for that
			p.k.upcoming(p.now.Add(contendedFor))
		default:
			starts, room = p.through(v, starts, room)
		}
	}
}

// through picks those of one gate, and says how many may still be started and how many
// bytes are left.
func (p *gatePass) through(v *gateVisit, starts int, room int64) (int, int64) {
	if p.count != nil && v.bound.Concurrent > 0 {
		v.running = p.count.Running(&v.bound)
	}
	most := v.given
	if v.bound.Concurrent > 0 {
		most = min(most, v.bound.Concurrent-v.running)
	}
	if most <= 0 {
		v.full(p.now)
		return starts, room
	}
	if v.bound.Keeps() {
		if most = min(most, p.allowed(v)); most == 0 {
			return starts, room
		}
	}
	list := p.sorted(v)
	if v.state.head != nil {
		list = []gateJob{*v.state.head}
	}
	var next time.Time
	refused, left, held := false, false, [job.MaxPriority + 1]bool{}
	ends := lookEnds{asked: v.asked, widens: v.asked < widest/len(p.visits)}
	for i := range list {
		c := &list[i]
		if ends.hidesSome() {
			break
		}
		ends.meet(c.priority)
		if gate := p.k.c.Gates.Gate(p.g.queue.Queue, c.kind, c.key); gate != v.Of.Number {
			p.moves.add(c.ID, v.Of.Number, gate) // to where it belongs by the limits that hold
			continue
		}
		if !v.known { // it belongs here, and what bounds it is known by the next scan
			held[c.priority] = true
			ends.close(c.priority)
			continue
		}
		if c.due.After(p.now) {
			ends.close(c.priority)
			if held[c.priority] = true; next.IsZero() || c.due.Before(next) {
				next = c.due
			}
			continue
		}
		late := c.rescued && starts <= 0
		take := c.takes && len(v.chosen) < most && room > 0 && !late
		if take && p.count != nil && !p.count.Allow(p.g.queue.Queue, c.kind, c.key) {
			take, refused = false, true
		}
		left = left || c.takes && !take
		if c.takes && v.bound.Ordered && !take {
			held[c.priority] = true
			ends.closeAll()
			break
		}
		switch {
		case take:
			v.chosen = append(v.chosen, *c)
			room -= c.bytes
			starts--
		case c.takes || v.bound.Ordered: // later, or behind who cannot be taken here
			if held[c.priority] = true; !late {
				ends.close(c.priority)
			}
		}
		if !held[c.priority] && v.state.head == nil {
			v.Data.at[c.priority] = c.position
		}
		if !c.takes && v.bound.Ordered {
			ends.closeAll()
			break
		}
	}
	wide := v.Data.wide
	beyond := p.passTo(v, &ends, len(v.chosen) < most && v.state.head == nil)
	if refused && len(v.chosen) > 0 && !beyond {
		v.Data.wide = wide // the next one may be behind what was refused, too
	}
	p.count.Took(&v.bound, len(v.chosen))
	p.remember(v)
	switch {
	case v.bound.Concurrent > 0 && v.running+len(v.chosen) >= v.bound.Concurrent || refused && !beyond:
		v.full(p.now)
	case !v.Closed.IsZero() || len(v.chosen) == v.given:
	case left && room <= 0: // the answer is full
	case beyond:
		p.further = true
	case left || slices.Contains(held[:], true) && next.IsZero(): // jobs are left for others, or another time
		v.full(p.now)
	case !next.IsZero():
		if v.Closed, v.Idle = next, true; v.Closed.After(p.now.Add(turns.ScanEvery)) {
			v.Closed = p.now.Add(turns.ScanEvery)
		}
	case len(v.chosen) == 0 && v.running == 0 && len(v.found) == 0:
		v.Gone = true
	case len(v.chosen) == 0 && len(v.found) == 0:
		v.Closed, v.Idle = p.now.Add(drainedFor), true
	}
	return starts, room
}

// passTo keeps the frontier of a gate behind what may still be committed, and notes
// where nothing waits. When the gate gave less than it might have it reports whether the
// next look sees more than this one, which met jobs for others as far as it went.
func (p *gatePass) passTo(v *gateVisit, ends *lookEnds, less bool) (beyond bool) {
	counts := [job.MaxPriority + 1]int{}
	for i := range v.found {
		counts[v.found[i].priority]++
	}
	highest := position{due: p.now.Add(-gateLag)}
	for _, priority := range jobs.Priorities {
		if v.sought&(1<<priority) != 0 && counts[priority] == 0 {
			v.Data.empty |= 1 << priority
		}
		if highest.before(v.Data.at[priority]) {
			v.Data.at[priority] = highest
		}
		if less && counts[priority] == v.asked && !ends.closed[priority] {
			beyond = beyond || v.from[priority].before(v.Data.at[priority]) || v.asked < widest/len(p.visits)
		}
	}
	if v.Data.wide++; !beyond {
		v.Data.wide = 0
	}
	return beyond
}

// gateState is what is remembered of a gate between claims: of an ordered one the job
// that has to end before the next begins, of one with a rate its tokens.
type gateState struct {
	stored bool
	head   *gateJob // that may be the only one to go; nil: the first
	state  job.State
	tokens job.GateTokens
	id     job.ID // that is to be remembered
	write  bool
	drop   bool
	refill bool
}

// What reads and writes it. A worker that is lost was given nothing, so nothing is to be
// remembered: the lease before it has locked the row of one that is not.
//
//   - gate_pkey, and job_pkey for the head; worker_pkey.
const (
	stateOfGates = `SELECT e.n, g.level, g.filled, g.head, j.state, j.priority, j.due, j.kind, j.version,
	j.capabilities, j.rescues > 0, coalesce(j.key, ''), j.queue
FROM (
	SELECT $1::int AS namespace, e.*
	FROM unnest($2::bigint[]) WITH ORDINALITY AS e (gate, n)
	OFFSET 0
) AS e
JOIN pawl.gate AS g ON g.namespace = e.namespace AND g.gate = e.gate
LEFT JOIN pawl.job AS j ON j.namespace = ANY (ARRAY[g.namespace]) AND j.id = g.head`

	setGates = `INSERT INTO pawl.gate (namespace, gate, head, level, filled, expires)
SELECT $1, g.gate, g.head, g.level, g.filled, {now} + g.keep * interval '1 microsecond'
FROM unnest($2::bigint[], $3::uuid[], $4::float8[], $5::bigint[], $6::bigint[]) AS g (gate, head, level, filled, keep)
WHERE EXISTS (SELECT FROM pawl.worker WHERE namespace = $1 AND id = $7 AND lost IS NULL)
ON CONFLICT (namespace, gate) DO UPDATE
SET head = excluded.head, level = excluded.level, filled = excluded.filled, expires = excluded.expires`

	dropGates = `DELETE FROM pawl.gate AS g
USING (
	SELECT $1::int AS namespace, e.*
	FROM unnest($2::bigint[]) AS e (gate)
	OFFSET 0
) AS e
WHERE g.namespace = e.namespace AND g.gate = e.gate`
)

func (p *gatePass) readStates(gates []int64, at []int) *pg.Statement {
	return &pg.Statement{Text: stateOfGates, Args: []any{p.k.room.pg.Namespace, gates}, Each: func(scan pg.Scan) error {
		var n int
		var level pgtype.Float8
		var filled pgtype.Int8
		var head pgtype.UUID
		var state, priority pgtype.Int2
		var due pgtype.Timestamptz
		var kind, queue pgtype.Text
		var version pgtype.Int4
		var needs []pgtype.Text
		var rescued pgtype.Bool
		var key string
		if err := scan(&n, &level, &filled, &head, &state, &priority, &due, &kind, &version, &needs, &rescued, &key, &queue); err != nil {
			return err
		}
		s := &p.visits[at[n-1]].state
		s.stored, s.state, s.id = true, job.State(state.Int16), job.ID(head.Bytes)
		s.tokens = job.GateTokens{Level: level.Float64, At: filled.Int64}
		if !level.Valid {
			s.tokens.At = 0
		}
		if state.Valid {
			s.head = &gateJob{candidate: candidate{
				position: position{dueOf(due), s.id}, priority: int(priority.Int16), rescued: rescued.Bool,
				takes: queue.String == p.g.queue.Queue && p.k.offer.takes(kind.String, int(version.Int32), needs),
			}, kind: kind.String, key: key}
		}
		return nil
	}}
}

// allowed is how many jobs the tokens and the head of a gate let through.
func (p *gatePass) allowed(v *gateVisit) int {
	s, most := &v.state, v.given
	if v.bound.Rate != (job.Rate{}) {
		now := p.now.UnixMicro()
		if s.tokens.At == 0 {
			s.tokens = v.bound.Rate.Full(now)
		}
		s.refill = s.stored && s.tokens.At > now // the clock was set back: tokens come from now on
		s.tokens.Fill(v.bound.Rate, now)
		if most = min(most, s.tokens.There()); most == 0 {
			v.Closed = p.now.Add(min(s.tokens.Wait(v.bound.Rate), drainedFor)) // another rate may hold then
			return 0
		}
	}
	if !v.bound.Ordered || s.state == 0 { // it has ended, or there was none
		s.head, s.id = nil, job.ID{}
		return most
	}
	switch {
	case s.state != job.Waiting: // it is suspended; what runs is counted
		v.full(p.now)
		return 0
	case s.head.due.After(p.now):
		if v.Closed = s.head.due; v.Closed.After(p.now.Add(drainedFor)) {
			v.Closed = p.now.Add(drainedFor)
		}
		return 0
	}
	return 1
}

// remember says what is to be kept of a gate. What says nothing is forgotten, so that
// keys that are gone leave nothing behind.
func (p *gatePass) remember(v *gateVisit) {
	if !v.bound.Keeps() {
		return
	}
	s, rated := &v.state, v.bound.Rate != (job.Rate{})
	if v.bound.Ordered && len(v.chosen) > 0 {
		s.id = v.chosen[0].ID
	}
	if s.tokens.Take(len(v.chosen)); rated && len(v.chosen) > 0 && s.tokens.There() == 0 {
		v.Closed = p.now.Add(min(s.tokens.Wait(v.bound.Rate), drainedFor))
	}
	nothing := s.id == (job.ID{}) && (!rated || s.tokens.IsFull(v.bound.Rate))
	s.drop = nothing && s.stored
	s.write = !nothing && len(v.chosen) > 0
}

// writes are the statements that lease what was chosen; nil when there is nothing to
// write. alive says afterwards whether the worker is not lost.
func (p *gatePass) writes() (steps []*pg.Statement, alive *bool) {
	room := p.k.room
	gateOf := map[job.ID]*gateVisit{}
	var chosen []gateJob
	var set, drop []int64
	var heads []pgtype.UUID
	var levels []pgtype.Float8
	var filled []pgtype.Int8
	var keeps []int64
	for i := range p.visits {
		v := &p.visits[i]
		for n := range v.chosen {
			gateOf[v.chosen[n].ID] = v
		}
		chosen = append(chosen, v.chosen...)
		switch s := &v.state; {
		case s.drop:
			drop = append(drop, v.Of.Number)
		case s.write || s.refill:
			rated := v.bound.Rate != (job.Rate{})
			set = append(set, v.Of.Number)
			heads = append(heads, pgtype.UUID{Bytes: s.id, Valid: s.id != (job.ID{})})
			levels = append(levels, pgtype.Float8{Float64: s.tokens.Level, Valid: rated})
			filled = append(filled, pgtype.Int8{Int64: s.tokens.At, Valid: rated})
			keep := time.Duration(0)
			if rated {
				keep = s.tokens.Until(v.bound.Rate)
			}
			keeps = append(keeps, keep.Microseconds())
		}
	}
	if chosen == nil && drop == nil && set == nil {
		return nil, nil
	}
	alive = new(bool)
	*alive = true
	if chosen != nil {
		slices.SortFunc(chosen, func(a, b gateJob) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		ids, gates := make([][16]byte, len(chosen)), make([]int64, len(chosen))
		for i := range chosen {
			ids[i], gates[i] = chosen[i].ID, gateOf[chosen[i].ID].Of.Number
		}
		reader := &leaseReader{lane: p.g.queue, worker: p.k.c.Worker}
		steps = append(steps,
			&pg.Statement{Text: leaseChosen, Args: []any{room.pg.Namespace, p.k.c.Worker, p.k.c.Seq, ids, gates}, Raw: func(cols [][]byte) error {
				err := reader.read(cols)
				p.leased = reader.jobs
				l := &p.leased[len(p.leased)-1]
				v := gateOf[l.ID]
				l.Rarely().Gate = v.Of.Number
				p.bytes = reader.rows.Large
				return err
			}},
			&pg.Statement{Text: isAlive, Args: []any{room.pg.Namespace, p.k.c.Worker}, Each: func(scan pg.Scan) error { return scan(alive) }})
	}
	if set != nil {
		steps = append(steps, &pg.Statement{Text: setGates, Args: []any{room.pg.Namespace, set, heads, levels, filled, keeps, p.k.c.Worker}})
	}
	if drop != nil {
		steps = append(steps, &pg.Statement{Text: dropGates, Args: []any{room.pg.Namespace, drop}})
	}
	return steps, alive
}

// runningByKind counts what runs from gates, by what limits go by.
//
//   - job_gate_held: as many rows as run from gates.
const runningByKind = `SELECT r.queue, r.kind, coalesce(r.key, ''), count(*)
FROM (
	SELECT queue, kind, key
	FROM pawl.job
	WHERE namespace = $1 AND state = 3 AND gate IS NOT NULL AND gate > -9223372036854775808
	ORDER BY gate
	OFFSET 0
) AS r
GROUP BY r.queue, r.kind, r.key`

func (p *gatePass) countByKind() *pg.Statement {
	return &pg.Statement{Text: runningByKind, Args: []any{p.k.room.pg.Namespace}, Each: func(scan pg.Scan) error {
		var queue, kind, key string
		var n int
		err := scan(&queue, &kind, &key, &n)
		p.count.Add(queue, kind, key, n)
		return err
	}}
}
