package job

import (
	"fmt"
	"time"
)

// GateUse is how the gate stands behind which a job waits.
type GateUse struct {
	Running int // jobs that came through it, as far as 1,000
	// Head is the job that has to end before another of an ordered key begins, while it
	// lives and does not run.
	Head    ID
	HeadDue time.Time // zero: it is suspended
	Tokens  GateTokens
	Known   bool // there are tokens that somebody has taken of
}

// whose is how sentences name the bound.
func (b *GateBound) whose() string {
	if b.Key != "" {
		return fmt.Sprintf("key %s of limit %s", b.Key, b.Limit)
	}
	return "limit " + b.Limit
}

// gated says what a job waits for behind a gate; empty when the gate is open.
func gated(s *Situation, w *Why) (WhyCode, string) {
	b, use, gate := s.Bound, &s.Gate, s.Job.Gate()
	if b == nil || b.Gate != gate {
		w.Blocker = fmt.Sprintf("gate %d", gate)
		return WhyGate, fmt.Sprintf("ready: waits behind gate %d of queue %s, of which this process knows no limit", gate, s.Job.Queue)
	}
	whose := b.whose()
	w.Blocker = whose
	if b.Concurrent > 0 && use.Running >= b.Concurrent {
		return WhyLimit, fmt.Sprintf("ready: %s is at its bound, %d of %d run", whose, use.Running, b.Concurrent)
	}
	if b.Ordered && use.Head != (ID{}) && use.Head != s.Job.ID {
		w.Blocker = "job " + use.Head.String()
		if use.HeadDue.IsZero() {
			return WhyOrder, fmt.Sprintf("ready: %s runs in order, and job %s comes first, which is suspended", whose, use.Head)
		}
		w.Until = use.HeadDue
		return WhyOrder, fmt.Sprintf("ready: %s runs in order, and job %s comes first, which is due %s", whose, use.Head, stamp(use.HeadDue))
	}
	if b.Rate != (Rate{}) && use.Known {
		t := use.Tokens
		if t.Fill(b.Rate, s.Now.UnixMicro()); t.There() == 0 {
			w.Until = s.Now.Add(t.Wait(b.Rate))
			return WhyRate, fmt.Sprintf("ready: %s lets %v %s a second through, the next one at %s", whose, b.Rate.PerSecond, plural(b.Rate.PerSecond, "job", "jobs"), stamp(w.Until))
		}
	}
	w.Blocker = ""
	return "", ""
}
