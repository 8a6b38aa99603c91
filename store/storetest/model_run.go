package storetest

import (
	"context"
	"flag"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// programs is how many random programs RunModel plays unless -rapid.checks says otherwise.
const programs = 1000

// RunModel plays random programs on the stores, all at once, and on a plain map
// model, and compares every answer and, after each step, every job. A failure
// is shrunk and printed with its seed, and replays with -rapid.seed.
//
// Each program has a namespace of its own on the same databases.
func RunModel(t *testing.T, databases ...Fresh) {
	var openers []store.Opener
	for _, fresh := range databases {
		openers = append(openers, fresh(t))
	}
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		if err := checks.Value.Set(strconv.Itoa(programs)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) })
	}
	played := 0
	rapid.Check(t, func(t *rapid.T) {
		played++
		playProgram(t, openers, "program-"+strconv.Itoa(played))
	})
}

func playProgram(t *rapid.T, openers []store.Opener, namespace string) {
	ctx := context.Background()
	p := &program{model: newModel()}
	for i, o := range openers {
		s, err := o.Open(ctx, store.Settings{Namespace: namespace, MaxLost: modelMaxLost, Keep: modelKeep})
		if err != nil {
			t.Fatalf("store %d: open: %v", i, err)
		}
		defer func() {
			if err := s.Close(); err != nil {
				t.Errorf("store %d: close: %v", i, err)
			}
		}()
		shift(t, s, 0)
		begin, err := s.Now(ctx)
		if err != nil {
			t.Fatalf("store %d: now: %v", i, err)
		}
		p.players = append(p.players, &player{store: s, ctx: ctx, begin: begin})
	}
	p.register(t)
	p.enqueue(t)
	t.Repeat(p.steps())
	p.conclude(t)
}

// steps are what a program is made of. Steps that should come often are there
// under several names.
func (p *program) steps() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":                  p.compare,
		"enqueue":           p.enqueue,
		"enqueue more":      p.enqueue,
		"resend":            p.resend,
		"claim":             p.claim,
		"claim more":        p.claim,
		"claim still more":  p.claim,
		"claim again":       p.claimAgain,
		"finish":            p.finish,
		"finish more":       p.finish,
		"finish still more": p.finish,
		"cancel": p.operate("cancel", (*model).cancel, func(pl *player, ids []job.ID) ([]store.Change, error) {
			return pl.store.Cancel(pl.ctx, ids, store.Operator{Name: "ann"})
		}),
		"retry": p.operate("retry", (*model).retry, func(pl *player, ids []job.ID) ([]store.Change, error) {
			return pl.store.Retry(pl.ctx, ids, store.Operator{Name: "ann"})
		}),
		"delete": p.operate("delete", (*model).delete, func(pl *player, ids []job.ID) ([]store.Change, error) {
			return pl.store.Delete(pl.ctx, ids, store.Operator{Name: "ann"})
		}),
		"register":   p.register,
		"beat":       p.beat,
		"hold":       p.hold,
		"deregister": p.deregister,
		"lose":       p.lose,
		"rescue":     p.rescue,
		"expire":     p.expire,
		"purge":      p.purge,
		"pause":      p.pause,
		"clock":      p.clock,
		"clock more": p.clock,
	}
}
