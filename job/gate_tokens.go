package job

import (
	"math"
	"time"
)

// GateTokens are the tokens of a gate with a rate, as they stood at a time: each job
// that goes through takes one. A gate that nobody remembers has a full burst.
type GateTokens struct {
	Level float64
	At    int64 // the store's time, in µs
}

// Full are those of a gate of which nobody has taken.
func (r Rate) Full(now int64) GateTokens { return GateTokens{Level: float64(r.Burst), At: now} }

// Fill lets time pass. A clock that is set back brings nothing, and one that is set
// forward no more than a burst.
func (t *GateTokens) Fill(r Rate, now int64) {
	if now > t.At {
		t.Level += r.PerSecond * float64(now-t.At) / 1e6
	}
	t.Level, t.At = min(t.Level, float64(r.Burst)), now
}

// There is how many whole ones are there.
func (t *GateTokens) There() int { return int(max(t.Level, 0)) }

// Take takes some of those that are there.
func (t *GateTokens) Take(n int) { t.Level -= float64(n) }

// Wait is how long until the next one comes; 0 when one is there.
func (t *GateTokens) Wait(r Rate) time.Duration {
	if t.Level >= 1 {
		return 0
	}
	us := math.Ceil((1-t.Level)/r.PerSecond*1e6) + 1
	return time.Duration(min(us, 3.15e14)) * time.Microsecond // ten years
}

// Until is how long until all are there.
func (t *GateTokens) Until(r Rate) time.Duration {
	if t.IsFull(r) {
		return 0
	}
	return time.Duration(min((float64(r.Burst)-t.Level)/r.PerSecond*1e6, 3.15e14)) * time.Microsecond
}

// IsFull reports whether there is nothing to remember.
func (t *GateTokens) IsFull(r Rate) bool { return t.Level >= float64(r.Burst) }
