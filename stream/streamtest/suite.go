package streamtest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/stream"
)

// Fixture is an empty backend, and what a case needs beside the seam.
type Fixture struct {
	Backend stream.Backend
	// Kill takes a member for dead, now: what it has open goes to others, with a loss.
	Kill func(t testing.TB, group, member string)
	// Parked is what a group has given up without a topic for it, oldest first.
	Parked func(t testing.TB, group string) []stream.Parked
	// PutBad appends an entry that cannot be read; nil where nobody but the backend writes.
	PutBad func(t testing.TB, topic, key string, data []byte)
	// Pass lets time pass for the backend [time.Sleep].
	Pass func(d time.Duration)
	// Versioned is a topic whose keys have versions, where the backend has them.
	Versioned string
	// Window is how long ids are remembered; 0: too long for this fixture's time.
	Window time.Duration
}

// Run holds a backend against the suite; every case gets a fresh one.
func Run(t *testing.T, fresh func(t *testing.T) Fixture) {
	run(t, func(t *testing.T, c func(*testing.T)) { c(t) }, fresh)
}

// RunVirtual is Run with each case, and its backend, in a bubble of virtual time.
func RunVirtual(t *testing.T, fresh func(t *testing.T) Fixture) { run(t, synctest.Test, fresh) }

// RunMembers is the case E14_ManyMembersComeAndGo with so many members, for a soak.
func RunMembers(t *testing.T, members int, fresh func(t *testing.T) Fixture) {
	f := fresh(t)
	l := &lab{T: t, Fixture: f, ctx: t.Context(), features: f.Backend.Features()}
	l.comeAndGo(members)
}

func run(t *testing.T, around func(*testing.T, func(*testing.T)), fresh func(t *testing.T) Fixture) {
	for _, topic := range suite() {
		t.Run(topic.name, func(t *testing.T) {
			for _, c := range topic.cases {
				t.Run(c.name, func(t *testing.T) {
					around(t, func(t *testing.T) {
						f := fresh(t)
						if f.Pass == nil {
							f.Pass = time.Sleep // virtual, or a fixture without a clock of its own
						}
						c.run(&lab{T: t, Fixture: f, ctx: t.Context(), features: f.Backend.Features()})
					})
				})
			}
		})
	}
}

// chapter is one file of the suite.
type chapter struct {
	name  string
	cases []testCase
}

type testCase struct {
	name string
	run  func(l *lab)
}

// suite is everything, in the order of docs/conformance_streams.md.
func suite() []chapter {
	return []chapter{
		{"publish", publishing()},
		{"group", groups()},
		{"settle", settling()},
		{"dead_letter", deadLetters()},
		{"loss", losses()},
		{"ordered", ordered()},
	}
}

// lab is a backend under test.
type lab struct {
	*testing.T
	Fixture
	ctx      context.Context
	features stream.Features
}
