package jobs

import (
	"testing"
	"time"
)

// Looks begin where the last purge ended, and in front again after a while even if
// none of them finds anything: a job whose end was committed late lies before.
func TestP10_LooksBeginInFrontFromTimeToTime(t *testing.T) {
	var p purges
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if from := p.from(begin); !from.Equal(LongAgo) {
		t.Errorf("the first purge begins at %v", from)
	}
	place := begin.Add(-time.Minute)
	p.reached(place)
	front := 0
	for at := time.Duration(0); at <= 2*purgeAnew; at += 5 * time.Second {
		from := p.forLook()
		switch {
		case from.Equal(LongAgo):
			front++
			p.reached(place)
		case !from.Equal(place):
			t.Fatalf("a look begins at %v, want %v", from, place)
		}
		p.heard(begin.Add(at))
	}
	if front != 1 {
		t.Errorf("looks of twenty minutes began in front %d times, want once", front)
	}
	p.heard(begin.Add(-time.Hour))
	if from := p.forLook(); !from.Equal(LongAgo) {
		t.Errorf("a look after the clock was set back begins at %v", from)
	}
}
