package rate

import (
	"time"

	"github.com/pawlwork/pawl/job"
)

// supply is a block of tokens as its process has it. Its tokens come one after the
// other, counted from when the answer came, and it may be used until a second after it
// was asked for: both are on the safe side of what the store counts.
type supply struct {
	job.Block
	ready int64 // parts that were there
	rate  int64 // parts in a second
	began time.Time
	until time.Time
	used  int
}

// take uses n tokens, if they are there.
func (b *supply) take(n int, now time.Time) bool {
	if b.used+n > b.Size || !now.Before(b.until) || now.Before(b.comes(n)) {
		return false
	}
	b.used += n
	return true
}

// comes is when the next n tokens are there.
func (b *supply) comes(n int) time.Time {
	missing := float64(b.used+n)*job.TokenParts - float64(b.ready)
	if missing <= 0 {
		return b.began
	}
	// Rounded up to whole µs and one more: a float may be a little off.
	return b.began.Add(time.Duration(missing/float64(b.rate)*1e6+2) * time.Microsecond)
}

// serves reports whether the next n tokens are in it, and come in time.
func (b *supply) serves(n int, now time.Time) bool {
	return b.used+n <= b.Size && now.Before(b.until) && b.comes(n).Before(b.until)
}

// settled is the block as it is given back.
func (b *supply) settled() job.Block {
	s := b.Block
	s.Unused = s.Size - b.used
	return s
}
