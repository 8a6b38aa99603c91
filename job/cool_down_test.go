package job_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
)

// coolModel is a queue in which a second after the other passes.
type coolModel struct {
	second, until, quiet int
	counter              int
}

func (m *coolModel) tick() {
	m.second++
	if m.second <= m.until {
		m.quiet = 0
		return
	}
	if m.quiet++; m.quiet%120 == 0 && m.counter > 0 {
		m.counter--
	}
}

func (m *coolModel) throttle(hint, base, most int, off bool) (began bool) {
	within := func(s int) int {
		switch {
		case s < 1:
			return 1
		case s > 3600:
			return 3600
		}
		return s
	}
	if m.second < m.until {
		if hint > 0 && m.second+within(hint) > m.until {
			m.until = m.second + within(hint)
		}
		return false
	}
	m.counter++
	lasts := base
	for n := 1; n < m.counter && lasts < most; n++ {
		lasts *= 2
	}
	lasts = min(lasts, most)
	if off {
		if lasts = 60; hint > 0 {
			lasts = hint
		}
	}
	m.until, m.quiet = m.second+within(max(lasts, hint)), 0
	return true
}

func TestJ8_CoolDownsFollowTheModel(t *testing.T) {
	start := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 8))
		base, most, off := 1+r.IntN(30), 60+r.IntN(7200), r.IntN(4) == 0
		settings := &job.BackoffSettings{Off: off, Base: time.Duration(base) * time.Second, Max: time.Duration(most) * time.Second}
		m, c := coolModel{}, job.CoolDown{Queue: "q"}
		for range 100 {
			for range r.IntN(1 + []int{5, 100, 1000}[r.IntN(3)]) {
				m.tick()
			}
			if counter := c.Counter(at(m.second)); counter != m.counter {
				t.Fatalf("seed %d, second %d: the counter is %d, want %d", seed, m.second, counter, m.counter)
			}
			hint := []int{0, 0, 1 + r.IntN(90), 5000}[r.IntN(4)]
			next, began := c.Throttled(job.Throttle{Hint: time.Duration(hint) * time.Second, Backoff: settings}, at(m.second))
			if want := m.throttle(hint, base, most, off); began != want || next.Throttles != m.counter || !next.Until.Equal(at(m.until)) {
				t.Fatalf("seed %d, second %d, hint %d: began %v with %d until %v, want %v with %d until %v",
					seed, m.second, hint, began, next.Throttles, next.Until.Sub(start), want, m.counter, at(m.until).Sub(start))
			}
			if c = next; !c.Running(at(m.second)) || c.Running(at(m.until)) {
				t.Fatalf("seed %d, second %d: it does not run from now to its end", seed, m.second)
			}
		}
	}
}

func TestJ8_DefaultsOfACoolDown(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	var c job.CoolDown
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600} {
		c, _ = c.Throttled(job.Throttle{}, now)
		if lasts := c.Until.Sub(now); lasts != want*time.Second || c.Throttles != i+1 {
			t.Errorf("throttle %d: %v with counter %d, want %v", i+1, lasts, c.Throttles, want*time.Second)
		}
		now = c.Until
	}
}

// A cool-down that began in the future was written before the clock was set back. One
// that began a moment later by another's clock is running.
func TestJ32_ACoolDownOfTheFutureIsVoid(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	c, _ := job.CoolDown{}.Throttled(job.Throttle{Hint: time.Minute}, now)
	if !c.Running(now.Add(-time.Second)) {
		t.Error("a second earlier it is not running")
	}
	if c.Running(now.Add(-time.Minute)) {
		t.Error("a minute earlier it is running")
	}
	if again, began := c.Throttled(job.Throttle{Hint: time.Minute}, now.Add(-time.Hour)); !began || again.Until.After(now) {
		t.Errorf("after the clock was set back: began %v, until %v", began, again.Until)
	}
}

func TestJ8_AThrottleBurnsNoAttemptForAWhile(t *testing.T) {
	r := job.Run{ID: job.NewID(), Run: 7, Used: 4, MaxAttempts: 5}
	for _, c := range []struct {
		outcome job.Outcome
		reason  string
	}{
		{job.Outcome{Kind: job.Throttled}, "throttled"},
		{job.Outcome{Kind: job.Throttled, Scope: new("github"), Message: "429"}, "throttled by github: 429"},
	} {
		c.outcome.Delay = time.Minute
		for _, r.Throttles = range []int{0, job.MaxThrottles - 1} {
			e := job.Decide(r, c.outcome, policy)
			if e.To != job.Waiting || e.Delay != time.Minute || e.Burn || !e.Throttle || e.Failure != nil || e.Reason != c.reason {
				t.Errorf("after %d throttles: %+v", r.Throttles, e)
			}
		}
	}
	r.Throttles = job.MaxThrottles
	if e := job.Decide(r, job.Outcome{Kind: job.Throttled}, policy); e.To != job.Dead || !e.Burn || e.Throttle || e.Failure == nil {
		t.Errorf("the last attempt, throttled once too often: %+v", e)
	}
	r.Used = 0
	if e := job.Decide(r, job.Outcome{Kind: job.Throttled}, policy); e.To != job.Waiting || !e.Burn || e.Delay != time.Minute {
		t.Errorf("throttled once too often: %+v", e)
	}
}
