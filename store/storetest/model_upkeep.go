package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// The steps of a program that move workers, the clock and what upkeep does.

// everyRow is a limit that no program reaches.
const everyRow = 1000

func (p *program) register(t *rapid.T) {
	queues := some(t, p.queues, "queue")
	var totals []store.Total
	for _, q := range some(t, queues, "with a total") {
		totals = append(totals, store.Total{Queue: q, Total: choose(t, "total", 1, 2, 7), Workers: choose(t, "workers", 1, 3)})
	}
	play(t, p, fmt.Sprintf("register with totals %v", totals), func(m *model) (bool, error) {
		m.workers = append(m.workers, modelWorker{beat: m.now, queues: queues, totals: totals})
		return true, nil
	}, func(pl *player) (bool, error) {
		id, err := pl.store.Register(pl.ctx, store.Worker{Label: "w", Queues: queues, Totals: totals, LostAfter: modelLostAfter * tick})
		pl.workers = append(pl.workers, id)
		return true, err
	})
}

// beaten is what both sides must agree on about a beat.
type beaten struct {
	Cancels  []store.RunRef
	Leader   bool
	Settled  bool
	Repeated bool // the registry's version is that of the answer before
	Crews    map[string]store.Crew
}

// resign takes a worker out of the registry: what it shares is to be split anew.
func (m *model) resign(w int) {
	if m.workers[w].live() && m.workers[w].split > 0 {
		m.registry++
	}
}

// splitting is what a beat says to a worker with totals.
func (p *program) splitting(m *model, w int) (b beaten) {
	me := &m.workers[w]
	b.Settled, b.Repeated, b.Crews = true, me.told == m.registry, map[string]store.Crew{}
	for _, mine := range me.totals {
		b.Crews[mine.Queue] = store.Crew{}
	}
	may := me.told > 0
	for i, other := range m.workers {
		sharing := other.live() && other.split > 0
		if i != w && sharing {
			b.Settled = b.Settled && other.split == m.registry
			may = may && other.split >= me.told
		}
		for _, theirs := range other.totals {
			crew, mine := b.Crews[theirs.Queue]
			switch {
			case !mine:
				continue
			case !other.live() && other.split == 0: // it never shared
			case !other.live():
				for _, r := range p.held(i) {
					if m.jobs[r.ID].queue == theirs.Queue {
						crew.Held++
					}
				}
			case sharing:
				if len(crew.Workers) == 0 || theirs.Total < crew.Total {
					crew.Total = theirs.Total
				}
				if i < w {
					crew.Index++
				}
				crew.Workers = append(crew.Workers, theirs.Workers)
			}
			b.Crews[theirs.Queue] = crew
		}
	}
	if me.split == 0 {
		for queue, crew := range b.Crews {
			crew.Index = -1
			b.Crews[queue] = crew
		}
	}
	told := me.told
	me.told = m.registry
	if me.split > 0 || may {
		if me.split == 0 {
			m.registry++
		}
		me.split = told
	}
	return b
}

func (p *program) beat(t *rapid.T) { p.beatOf(t, p.mostlyLive(t)) }

func (p *program) beatOf(t *rapid.T, w int) {
	begun := some(t, p.held(w), "begun")
	splits := len(p.model.workers[w].totals) > 0
	play(t, p, fmt.Sprintf("beat of worker %d, begun %v", w, begun), func(m *model) (beaten, error) {
		if !m.workers[w].live() {
			return beaten{}, job.ErrWorkerLost
		}
		m.workers[w].beat = m.now
		m.begin(w, begun)
		var b beaten
		if splits {
			b = p.splitting(m, w)
		}
		for _, r := range p.held(w) {
			if m.jobs[r.ID].asked {
				b.Cancels = append(b.Cancels, r)
			}
		}
		slices.SortFunc(b.Cancels, byRun)
		b.Leader = slices.IndexFunc(m.workers, modelWorker.live) == w
		return b, nil
	}, func(pl *player) (beaten, error) {
		got, err := pl.store.Beat(pl.ctx, store.Beat{Worker: pl.workers[w], Begun: begun, Splits: splits, Version: pl.told[w]})
		repeated := splits && err == nil && got.Version == pl.told[w]
		pl.beats[w], pl.told[w] = got.Now, got.Version
		slices.SortFunc(got.Cancels, byRun)
		return beaten{got.Cancels, got.Leader, got.Settled, repeated, got.Crews}, err
	})
}

func byRun(a, b store.RunRef) int { return bytes.Compare(a.ID[:], b.ID[:]) }

// inOrder sorts a repeated claim's answer, whose order is not promised.
func inOrder(list []leased, sort bool) []leased {
	if sort {
		slices.SortFunc(list, func(a, b leased) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	}
	return list
}

func (p *program) hold(t *rapid.T) {
	w := p.worker(t, liveWorker)
	held := some(t, p.held(w), "held")
	if len(p.runs) > 0 && rapid.Bool().Draw(t, "believes too much") {
		if r := pick(t, p.runs, "run"); !slices.Contains(held, r.RunRef) {
			held = append(held, r.RunRef)
		}
	}
	play(t, p, fmt.Sprintf("hold of worker %d: %v", w, held), func(m *model) (store.ReportReply, error) {
		h := m.hold(w, held)
		slices.SortFunc(h.Stale, byRun)
		return h, nil
	}, func(pl *player) (store.ReportReply, error) {
		h, err := pl.store.ReportRuns(pl.ctx, pl.workers[w], held)
		slices.SortFunc(h.Stale, byRun)
		return h, err
	})
}

func (p *program) deregister(t *rapid.T) { p.deregisterOf(t, p.worker(t, anyWorker)) }

func (p *program) deregisterOf(t *rapid.T, w int) {
	play(t, p, fmt.Sprintf("deregister worker %d", w), func(m *model) (bool, error) {
		m.resign(w)
		m.workers[w].gone = true
		return true, nil
	}, func(pl *player) (bool, error) { return true, pl.store.Deregister(pl.ctx, pl.workers[w]) })
}

// crash lets time pass in which only some workers beat; one of them declares
// the silent ones lost.
func (p *program) crash(t *rapid.T) {
	w := p.worker(t, liveWorker)
	if len(p.held(w)) > 0 && len(p.model.workers) > 1 && !oneIn(t, 3, "itself busy") {
		t.Skip("the one that declares had better be idle, so that the others' runs are lost")
	}
	p.move(choose(t, "ticks", modelLostAfter+1, modelLostAfter, 1))
	p.beatOf(t, w)
	play(t, p, fmt.Sprintf("lose by worker %d", w), func(m *model) (int, error) { return m.lose(w), nil },
		func(pl *player) (int, error) {
			lost, err := pl.store.MarkLost(pl.ctx, store.MarkLostRequest{By: pl.workers[w], Beat: pl.beats[w], Steady: everyRow * tick})
			return lost.Workers, err
		})
	if oneIn(t, 2, "and rescue") {
		p.rescue(t)
	}
}

// die declares a worker lost that is proven dead, whenever it beat.
func (p *program) die(t *rapid.T) {
	w := p.worker(t, anyWorker)
	play(t, p, fmt.Sprintf("worker %d is dead", w), func(m *model) (int, error) {
		if !m.workers[w].live() {
			return 0, nil
		}
		m.resign(w)
		m.workers[w].lost = true
		return 1, nil
	}, func(pl *player) (int, error) { return pl.store.MarkDead(pl.ctx, []job.WorkerID{pl.workers[w]}) })
}

func (p *program) rescue(t *rapid.T) {
	play(t, p, "rescue", func(m *model) (store.RescueReply, error) { return m.rescue(), nil },
		func(pl *player) (store.RescueReply, error) {
			rescued, err := pl.store.Rescue(pl.ctx, everyRow)
			rescued.Deaths = onlyIDs(rescued.Deaths)
			return rescued, err
		})
}

func (p *program) expire(t *rapid.T) {
	play(t, p, "expire", func(m *model) (store.ExpireReply, error) { return m.expire(), nil },
		func(pl *player) (store.ExpireReply, error) {
			due, err := pl.store.Due(pl.ctx)
			if err != nil {
				return store.ExpireReply{}, err
			}
			expired, err := pl.store.Expire(pl.ctx, everyRow)
			if err == nil && due.Expire != (expired.Total() > 0) {
				err = fmt.Errorf("the look said %t, and %d expired", due.Expire, expired.Total())
			}
			expired.Deaths = onlyIDs(expired.Deaths)
			return expired, err
		})
}

// onlyIDs is who died, in an order that both sides have.
func onlyIDs(deaths []store.Death) []store.Death {
	var ids []store.Death
	for _, d := range deaths {
		ids = append(ids, store.Death{ID: d.ID})
	}
	slices.SortFunc(ids, func(a, b store.Death) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return ids
}

func (p *program) purge(t *rapid.T) {
	play(t, p, "purge", func(m *model) (bool, error) { m.purge(); return true, nil },
		func(pl *player) (bool, error) {
			due, err := pl.store.Due(pl.ctx)
			if err != nil {
				return false, err
			}
			n, err := pl.store.Purge(pl.ctx, everyRow)
			if err == nil && !due.Purge && n > 0 {
				err = fmt.Errorf("the look said that there is nothing to purge, and %d rows were", n)
			}
			return true, err
		})
}

func (p *program) pause(t *rapid.T) {
	q, paused := choose(t, "queue", append(p.keyed, p.queues...)...), oneIn(t, 3, "paused")
	play(t, p, fmt.Sprintf("pause %s: %v", q, paused), func(m *model) (bool, error) { m.paused[q] = paused; return true, nil },
		func(pl *player) (bool, error) {
			return true, pl.store.SetPaused(pl.ctx, store.OfQueue(q), paused, store.Operator{Name: "ann"})
		})
}

// clock moves every store's clock: mostly on, sometimes back, sometimes by days.
func (p *program) clock(t *rapid.T) {
	p.move(choose(t, "ticks", 1, 1, 1, 1, 2, 2, 3, 5, 5, -1, -1, -3, 10, 30, 200))
}

func (p *program) move(ticks int) {
	p.offset += ticks
	p.model.now.tick += ticks
	for _, pl := range p.players {
		pl.store.(clocked).SetClockOffset(time.Duration(p.offset) * tick)
	}
}
