package workers

import "testing"

// Two may lead while one has not heard of another before it: the one that leads looks
// in front once a minute, the others seldom.
func TestJ30_WhoLeadsLooksInFrontOnceAMinute(t *testing.T) {
	l := &leader{}
	anew := func(beats int, l *leader) (n int) {
		for range beats {
			l.found(5)
			if l.From(5) == 0 {
				n++
			}
		}
		return n
	}
	if n := anew(120, l); n != 10 {
		t.Errorf("of 120 beats of the leader %d begin in front, want 10", n)
	}
	seldom := 0
	for range 120 {
		l.found(5)
		if l.From(7) == 0 {
			seldom++
		}
	}
	if seldom != 1 {
		t.Errorf("of 120 beats of another %d begin in front, want 1", seldom)
	}
	if l.found(5); l.From(3) != 0 {
		t.Error("who is before the last is not looked for")
	}
}
