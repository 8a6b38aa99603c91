package rate

import (
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Tokens of a block come one after the other, and are over a second after they were asked for.
func TestJ17_ABlockIsOverAfterASecond(t *testing.T) {
	sent := time.Unix(1_000_000, 0)
	b := supply{
		Block: job.Block{Size: 5}, ready: 2 * job.TokenParts, rate: 10 * job.TokenParts,
		began: sent.Add(50 * time.Millisecond), until: sent.Add(job.BlockFor),
	}
	at := func(d time.Duration) time.Time { return b.began.Add(d) }
	if !b.take(2, at(0)) {
		t.Error("what was there cannot be used")
	}
	if b.take(1, at(99*time.Millisecond)) {
		t.Error("a token is used before it has come")
	}
	if !b.take(1, at(101*time.Millisecond)) {
		t.Error("a token that has come cannot be used")
	}
	if b.take(3, at(900*time.Millisecond)) {
		t.Error("more is used than is in the block")
	}
	if !b.take(1, sent.Add(999*time.Millisecond)) {
		t.Error("the block is over before its second is")
	}
	if b.take(1, sent.Add(time.Second)) || b.serves(1, sent.Add(time.Second)) {
		t.Error("the block is used after its second")
	}
	if s := b.settled(); s.Unused != 1 {
		t.Errorf("%d tokens are left, want 1", s.Unused)
	}
}
