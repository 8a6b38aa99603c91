package stream

import (
	"encoding/json"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
)

func TestE5_PositionsKeepTheirPlaceInText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := At(rapid.Uint32().Draw(t, "epoch"), rapid.Int64Min(0).Draw(t, "seq"))
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var q Position
		if err := json.Unmarshal(b, &q); err != nil || q != p {
			t.Fatalf("%s became %s: %v", p.Debug(), q.Debug(), err)
		}
	})
}

// A position that was cut off, or in which a character was changed, is no other place.
func TestE6_APositionThatWasChangedIsRefused(t *testing.T) {
	for _, p := range []Position{At(1, 1), At(1, 1234567), At(7, 1<<62), At(0, 5)} {
		s := p.String()
		for i := range s {
			if _, err := ParsePosition(s[:i]); i > 0 && !errors.Is(err, job.ErrInvalid) {
				t.Errorf("%q of %q: %v", s[:i], s, err)
			}
			for _, c := range "AaZz09-_x" {
				changed := s[:i] + string(c) + s[i+1:]
				if q, err := ParsePosition(changed); err == nil && q != p {
					t.Errorf("%q of %q is %s", changed, s, q.Debug())
				}
			}
		}
		if _, err := ParsePosition(s + "A"); err == nil {
			t.Errorf("%q with more", s)
		}
	}
}

func TestE5_PositionsHaveAnOrder(t *testing.T) {
	for _, c := range []struct {
		a, b  Position
		order int
		ok    bool
	}{
		{At(1, 1), At(1, 2), -1, true}, {At(1, 2), At(1, 2), 0, true}, {At(1, 3), At(1, 2), 1, true},
		{Position{}, At(3, 1), -1, true}, {At(3, 1), Position{}, 1, true}, {At(1, 5), At(2, 1), 0, false},
	} {
		if order, ok := c.a.Compare(c.b); order != c.order || ok != c.ok {
			t.Errorf("%s and %s: %d, %v", c.a.Debug(), c.b.Debug(), order, ok)
		}
	}
}

func FuzzPosition(f *testing.F) {
	f.Add("")
	f.Add(At(1, 77).String())
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePosition(s)
		if err == nil && p.String() != s {
			t.Errorf("%q is %s, whose text is %q", s, p.Debug(), p)
		}
	})
}
