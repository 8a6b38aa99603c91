package rate

import (
	"context"
	"math"
	"time"

	"github.com/pawlwork/pawl/job"
)

// run is the loop of a limiter. It ends when nobody waits and no block is left.
func (m *limiter) run() {
	defer m.all.loops.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		pause, goes := m.step()
		if !goes {
			return
		}
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-m.woken:
		}
	}
}

// step does what is to be done now, and says how long there is nothing more to do.
// goes is false when the loop may end.
func (m *limiter) step() (pause time.Duration, goes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.serve(now)
	m.sendAway(now)
	if len(m.line) == 0 {
		return m.rest(now)
	}
	first := m.line[0]
	switch {
	case m.block.serves(first.n, now):
		return m.block.comes(first.n).Sub(now), true
	case now.Before(m.again):
		return m.again.Sub(now), true
	}
	m.ask(now, first.n)
	return 0, true
}

// rest is what is to be done while nobody waits: what is left of a block goes back
// after a while. The caller holds mu.
func (m *limiter) rest(now time.Time) (pause time.Duration, goes bool) {
	b := &m.block
	end := m.touched.Add(idleAfter)
	switch {
	case b.Size == 0:
		m.runs = false
		return 0, false
	case b.used < b.Size:
	case int64(b.Size)*4 >= m.pace.Burst: // used up, and counted against a small burst
		end = m.touched.Add(usedAfter)
	default:
		end = b.until
		if m.closing {
			m.block = supply{}
			return 0, true
		}
	}
	if !m.closing && now.Before(b.until) && now.Before(end) {
		return min(end.Sub(now), b.until.Sub(now)), true
	}
	if now.Before(b.until) || m.closing {
		if m.ahead /= 2; b.used < b.Size {
			m.ahead = min(m.ahead, b.used)
		}
		m.ask(now, 0)
	}
	m.block = supply{}
	return 0, true
}

// ask settles the block and takes the next, in one question; with need 0 it only
// settles. The caller holds mu, which is free while the store is asked.
func (m *limiter) ask(now time.Time, need int) {
	s, revision, err := m.all.find(m.of)
	if err != nil {
		m.fail(err)
		return
	}
	q := job.TakeRequest{Rate: s.Rate(), Revision: revision, Need: need, Since: -1}
	if q.Rate == (job.Rate{}) { // no bound any more
		m.block = supply{}
		m.fail(nil)
		return
	}
	if !m.asked.IsZero() {
		q.Since, q.Last = now.Sub(m.asked), m.last
	}
	q.Settle = m.block.settled()
	if need > 0 {
		q.Want = m.wanted(now)
	}
	m.block = supply{} // whatever becomes of the question, it is not settled twice
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(m.all.ctx, askLimit)
	reply, err := m.all.config.Store.Take(ctx, m.of, q)
	cancel()
	m.mu.Lock()
	m.answered(now, need, &reply, err)
}

// wanted is how many tokens to take: those that are waited for, and more the longer
// blocks have been used up one after the other. The caller holds mu.
func (m *limiter) wanted(now time.Time) int {
	switch {
	case now.Sub(m.asked) >= job.BlockFor:
		m.ahead = 0
	case m.block.Size > 0 && m.block.used == m.block.Size:
		m.ahead = min(m.ahead*4+2, job.MaxBurst/8)
	}
	sum := m.ahead
	for _, w := range m.line {
		sum = min(sum+w.n, job.MaxBurst)
	}
	return sum
}

// answered takes over the answer of the store. The caller holds mu.
func (m *limiter) answered(sent time.Time, need int, reply *job.TakeReply, err error) {
	if err != nil {
		// What was taken is lost; those who wait are told, and ask again if they like.
		m.fail(err)
		return
	}
	now := time.Now()
	m.asked, m.last, m.pace = sent, reply.At, *reply
	switch {
	case need == 0:
	case reply.Size > 0:
		m.again, m.touched = time.Time{}, now
		m.block = supply{Block: reply.Block, ready: reply.Ready, rate: reply.Rate, began: now, until: sent.Add(job.BlockFor)}
	case int64(need) > reply.Burst:
		if len(m.line) > 0 && m.line[0].n == need {
			m.finish(overBurst(m.of, need, reply.Burst))
		}
	default:
		m.refuse(now, reply.Wait)
		m.lacked = need
		// By then it is worth asking: the last token of the block comes a little later.
		m.next += min(time.Second/2, m.takes(int(reply.Burst))/2)
	}
}

// refuse notes when to ask again. The caller holds mu.
func (m *limiter) refuse(now time.Time, wait time.Duration) {
	m.refused, m.next, m.lacked = now, wait, 0
	m.again = now.Add(min(max(wait, time.Millisecond), askEvery))
}

// sendAway ends the wait of those whose tokens come too late for them. Those who come
// back speak for their tokens, so that not all come back at once. The caller holds mu.
func (m *limiter) sendAway(now time.Time) {
	if m.pace.Rate == 0 && m.again.IsZero() {
		return // nothing is known yet
	}
	before := 0 // tokens of those further ahead
	kept := m.line[:0]
	for _, w := range m.line {
		at, known := m.estimate(now, before, w.n)
		if known && !w.by.IsZero() && at.After(w.by) {
			if w.books {
				at = later(at, m.booked)
				m.booked = at.Add(m.takes(w.n))
				if latest := now.Add(maxBooked); m.booked.After(latest) {
					m.booked = latest
				}
			}
			w.wait, w.err = at.Sub(now), ErrLate
			close(w.done)
			continue
		}
		before += w.n
		kept = append(kept, w)
	}
	clear(m.line[len(kept):])
	m.line = kept
}

// estimate is when n tokens behind others are there. The caller holds mu.
func (m *limiter) estimate(now time.Time, before, n int) (at time.Time, known bool) {
	b := &m.block
	switch {
	case b.serves(before+n, now):
		return b.comes(before + n), true
	case now.Before(m.again):
		at = m.refused.Add(m.next)
		switch {
		case before > 0:
			at = at.Add(m.takes(before + n - m.line[0].n))
		case m.lacked > 0: // and those that it wants beyond what was refused
			at = at.Add(m.takes(n - m.lacked))
		}
		return at, true
	}
	return now, false // the next answer tells
}

// takes is how long n tokens take to come.
func (m *limiter) takes(n int) time.Duration {
	if m.pace.Rate == 0 || n <= 0 {
		return 0
	}
	return time.Duration(min(float64(n)*job.TokenParts/float64(m.pace.Rate)*1e9, math.MaxInt64/4))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
