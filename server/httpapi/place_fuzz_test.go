package httpapi

import (
	"fmt"
	"testing"
)

// FuzzLastEventID gives what a client says of its place in a stream, and the subject that it asks for.
func FuzzLastEventID(f *testing.F) {
	const kept = 5
	w := &watch{epoch: "abc", changed: make(chan struct{}), now: number(9)}
	for n := range kept {
		w.add("change", number(n))
	}
	for n := range kept + 2 {
		f.Add(fmt.Sprint("abc-", n), "overview")
	}
	for _, id := range []string{"", "-", "abc", "abc-", "abc--1", "abc-+3", "abc-3-4", "x-3", "abc-9223372036854775808", "abc-0x3", "\x00"} {
		f.Add(id, "queue:mail")
		f.Add(id, "job:0190B0E1-0000-7000-8000-000000000000")
	}
	s := &streams{overview: &watches{}, queues: &watches{}, jobs: &watches{}}
	f.Fuzz(func(t *testing.T, id, subject string) {
		if from, name, err := s.subject(subject); err == nil {
			if again, same, err := s.subject(name); again != from || same != name || err != nil {
				t.Errorf("%q is %q, and that is %q: %v", subject, name, same, err)
			}
		}
		p := readPlace(id)
		if again := readPlace(p.String()); p != (place{}) && again != p {
			t.Errorf("%q is %v, and that is %v", id, p, again)
		}
		want := 1 // the whole
		if p.epoch == w.epoch && p.version >= 0 && p.version <= w.version {
			want = int(w.version - p.version)
		}
		if frames := w.after(p); len(frames) != want {
			t.Errorf("%q: %d events, want %d", id, len(frames), want)
		}
	})
}
