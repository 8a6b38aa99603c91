package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// RunControlModel plays random deploys, rollbacks, crashes and words of operators on
// the stores, all at once, and compares what holds (store.Resolve), who is live and
// when the revision changes with a model that knows neither. A failure is shrunk and
// printed with its seed, and replays with -rapid.seed.
func RunControlModel(t *testing.T, programs int, databases ...Fresh) {
	s := &controlStage{}
	for _, fresh := range databases {
		s.openers = append(s.openers, fresh(t))
	}
	t.Cleanup(func() { s.close(t) })
	settle(t, "rapid.checks", programs)
	settle(t, "rapid.steps", controlSteps)
	rapid.Check(t, s.play)
}

// controlSteps is how long a story is on average: the model works it out from its
// beginning after each step.
const controlSteps = 25

// controlStage is where stories are played. Each has owners, names and kinds of its
// own, so that they share a namespace until one fails.
type controlStage struct {
	openers []store.Opener
	players []*controlPlayer
	played  int
	clean   bool
}

// controlPlayer is one store of a story.
type controlPlayer struct {
	store    store.Store
	ids      map[*birth]job.WorkerID
	observer job.WorkerID // declares nothing
	revision int64
	offset   time.Duration
}

func (s *controlStage) close(t rapid.TB) {
	for _, p := range s.players {
		if err := p.store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	s.players = nil
}

func (s *controlStage) play(t *rapid.T) {
	s.played++
	if !s.clean {
		s.close(t)
		for i, o := range s.openers {
			st, err := o.Open(context.Background(), store.Settings{Namespace: fmt.Sprintf("control-%d", s.played)})
			if err != nil {
				t.Fatalf("store %d: open: %v", i, err)
			}
			s.players = append(s.players, &controlPlayer{store: st})
		}
	}
	s.clean = false
	story := &controlStory{controlModel: &controlModel{}, players: s.players, mark: fmt.Sprintf("s%d-", s.played)}
	story.begin(t)
	steps := story.steps()
	t.Repeat(map[string]func(*rapid.T){"step": func(t *rapid.T) {
		choose(t, "step", steps...).do(t)
		story.compare(t)
	}})
	story.end(t)
	s.clean = true
}

// controlStory is one random story.
type controlStory struct {
	*controlModel
	players []*controlPlayer
	mark    string // in front of its names
	before  told
}

func (s *controlStory) begin(t *rapid.T) {
	for i, p := range s.players {
		p.ids = map[*birth]job.WorkerID{}
		var err error
		if p.observer, err = p.store.Register(context.Background(), store.Worker{Label: "observer", LostAfter: lostAfter}); err != nil {
			t.Fatalf("store %d: register: %v", i, err)
		}
		r, err := p.store.Settings(context.Background())
		if err != nil {
			t.Fatalf("store %d: settings: %v", i, err)
		}
		p.revision = r.Revision
	}
	s.before = s.told()
}

func (s *controlStory) steps() (list []step) {
	for _, x := range []struct {
		often int
		name  string
		do    func(*rapid.T)
	}{
		{6, "boot", s.boot}, {3, "leave", s.leave}, {2, "die", s.die}, {2, "crash", s.crash},
		{3, "override", s.override}, {2, "pause", s.pause}, {1, "clock", s.clock},
	} {
		for range x.often {
			list = append(list, step{x.name, x.do})
		}
	}
	return list
}

// each does a step in every store.
func (s *controlStory) each(t *rapid.T, what string, do func(context.Context, *controlPlayer) error) {
	t.Helper()
	for i, p := range s.players {
		if err := do(context.Background(), p); err != nil {
			t.Fatalf("store %d: %s: %v", i, what, err)
		}
	}
}

// things are what stories are about: names of a kind that this build reads, and of one
// that it does not, and patterns of queues.
func (s *controlStory) things() (list []thing) {
	for _, pattern := range []string{"*", "a*", "?"} {
		list = append(list, thing{"queue", s.mark + pattern})
	}
	for _, name := range []string{"a", "b"} {
		for _, kind := range []string{"queue", "tide"} {
			list = append(list, thing{kind, s.mark + name})
		}
	}
	return list
}

// fewFields draws a value: a few fields of small numbers, so that values are often alike.
func fewFields(t *rapid.T) fields {
	f := fields{}
	for _, name := range []string{"total", "attempts", "of_a_later_build"} {
		if n := choose(t, name, 0, 0, 1, 2); n > 0 {
			f[name] = n
		}
	}
	return f
}

// boot starts a process: a deploy, a rollback, or one more of what is there.
func (s *controlStory) boot(t *rapid.T) {
	b := &birth{
		owner: s.mark + choose(t, "owner", "shop", "shop", "mail"), version: choose(t, "version", "1", "2", "3"),
		declares: map[thing]fields{}, born: s.next(),
	}
	for _, about := range s.things() {
		if choose(t, "declares", true, false) {
			b.declares[about] = fewFields(t)
		}
	}
	w := store.Worker{Label: b.owner, Owner: b.owner, Version: b.version, LostAfter: lostAfter}
	for about, value := range b.declares {
		w.Declares = append(w.Declares, store.Declaration{Setting: about.setting(), Value: value.text(t)})
	}
	s.births = append(s.births, b)
	s.each(t, "register", func(ctx context.Context, p *controlPlayer) (err error) {
		p.ids[b], err = p.store.Register(ctx, w)
		return err
	})
}

func (a thing) setting() store.Setting {
	return store.Setting{Kind: store.SettingKind(a.kind), Name: a.name}
}

func (f fields) text(t *rapid.T) json.RawMessage {
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// living draws processes that live, up to n of them.
func (s *controlStory) living(t *rapid.T, n int) (list []*birth) {
	var all []*birth
	for _, b := range s.births {
		if b.died == 0 {
			all = append(all, b)
		}
	}
	for range n {
		if len(all) == 0 {
			break
		}
		i := choose(t, "which", upTo(len(all))...)
		list, all = append(list, all[i]), slices.Delete(all, i, i+1)
	}
	return list
}

func (s *controlStory) leave(t *rapid.T) {
	for _, b := range s.living(t, 1) {
		b.died = s.next()
		s.each(t, "deregister", func(ctx context.Context, p *controlPlayer) error { return p.store.Deregister(ctx, p.ids[b]) })
	}
}

// die lets processes be found dead, all in one moment.
func (s *controlStory) die(t *rapid.T) {
	dead := s.living(t, choose(t, "how many", 1, 2, 3))
	if len(dead) == 0 {
		return
	}
	at := s.next()
	for _, b := range dead {
		b.died = at
	}
	s.each(t, "mark dead", func(ctx context.Context, p *controlPlayer) error {
		var ids []job.WorkerID
		for _, b := range dead {
			ids = append(ids, p.ids[b])
		}
		_, err := p.store.MarkDead(ctx, ids)
		return err
	})
}

// crash lets processes fall silent until they are lost.
func (s *controlStory) crash(t *rapid.T) {
	silent := s.living(t, choose(t, "how many", 1, 2, 3))
	at := s.next()
	s.each(t, "crash", func(ctx context.Context, p *controlPlayer) error {
		beat := func(ids ...job.WorkerID) (now time.Time, err error) {
			for _, id := range ids {
				answer, err := p.store.Beat(ctx, store.Beat{Worker: id})
				if err != nil {
					return now, err
				}
				now = answer.Now
			}
			return now, nil
		}
		var live []job.WorkerID
		for _, b := range s.births {
			if b.died == 0 && !slices.Contains(silent, b) {
				live = append(live, p.ids[b])
			}
		}
		for _, b := range silent {
			if _, err := beat(p.ids[b]); err != nil {
				return err
			}
		}
		p.move(t, 2*lostAfter)
		now, err := beat(append(live, p.observer)...)
		if err != nil {
			return err
		}
		lost, err := p.store.MarkLost(ctx, store.MarkLostRequest{By: p.observer, Beat: now, Steady: 1000 * lostAfter})
		if err == nil && lost.Workers != len(silent) {
			err = fmt.Errorf("%d workers were lost, want %d", lost.Workers, len(silent))
		}
		return err
	})
	for _, b := range silent {
		b.died = at
	}
}

// move sets the clock of a store.
func (p *controlPlayer) move(t rapid.TB, by time.Duration) {
	p.offset += by
	shift(t, p.store, p.offset)
}

// clock sets the clock back or forward: what was seen last stays so.
func (s *controlStory) clock(t *rapid.T) {
	by := choose(t, "by", -time.Hour, -time.Second, time.Second, time.Hour)
	for _, p := range s.players {
		p.move(t, by)
	}
}

func (s *controlStory) override(t *rapid.T) {
	say := saying{at: s.next(), about: choose(t, "about", s.things()...)}
	var value json.RawMessage
	if say.reset = oneIn(t, 4, "reset"); !say.reset {
		say.sets = fewFields(t)
		patch := map[string]any{}
		for name, n := range say.sets {
			patch[name] = n
		}
		for _, name := range []string{"total", "attempts"} {
			if _, set := patch[name]; !set && oneIn(t, 3, "take back "+name) {
				say.takes, patch[name] = append(say.takes, name), nil
			}
		}
		var err error
		if value, err = json.Marshal(patch); err != nil {
			t.Fatal(err)
		}
	}
	s.said = append(s.said, say)
	s.each(t, "override", func(ctx context.Context, p *controlPlayer) error {
		return p.store.Override(ctx, say.about.setting(), value, store.Operator{Name: "ann", Note: "n"})
	})
}

func (s *controlStory) pause(t *rapid.T) {
	p := choose(t, "pause", store.OfQueue(s.mark+"a"), store.Pause{Scope: store.PauseKind, Name: s.mark + "a"}, store.Pause{Scope: store.PauseAll})
	say := saying{at: s.next(), pause: p.Scope.String() + " " + p.Name, paused: choose(t, "paused", true, false)}
	s.said = append(s.said, say)
	s.each(t, "pause", func(ctx context.Context, pl *controlPlayer) error {
		return pl.store.SetPaused(ctx, p, say.paused, store.Operator{Name: "ann"})
	})
}

// compare holds what every store says against the model.
func (s *controlStory) compare(t *rapid.T) {
	t.Helper()
	want, now := s.effective(), s.told()
	changed := !reflect.DeepEqual(now, s.before)
	s.before = now
	for i, p := range s.players {
		r, err := p.store.Settings(context.Background())
		if err != nil {
			t.Fatalf("store %d: settings: %v", i, err)
		}
		if raised := r.Revision != p.revision; raised != changed || r.Revision < p.revision {
			t.Fatalf("store %d: the revision was %d and is %d, the model says that something has changed: %v", i, p.revision, r.Revision, changed)
		}
		p.revision = r.Revision
		got := map[thing]holds{}
		effective := store.Resolve(r)
		for _, e := range effective.Settings {
			if strings.HasPrefix(e.Name, s.mark) {
				got[thing{string(e.Kind), e.Name}] = holdsOf(t, e)
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("store %d differs from the model (-model +store):\n%s", i, diff)
		}
		for _, name := range []string{"a", "b", "ab", "z"} {
			w, some := s.ofQueue(s.mark+name, want)
			e, found := effective.Queue(s.mark + name)
			if found != some {
				t.Fatalf("store %d: queue %s comes to something: %t, the model says %t", i, name, found, some)
			} else if !found {
				continue
			}
			if diff := cmp.Diff(w, holdsOf(t, e), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("store %d: queue %s differs from the model (-model +store):\n%s", i, name, diff)
			}
		}
		s.compareRest(t, i, p, r, now)
	}
}

// holdsOf reads what a name comes to.
func holdsOf(t *rapid.T, e store.EffectiveSetting) holds {
	t.Helper()
	h := holds{Owner: e.Owner, Version: e.Version, Overridden: e.Overridden}
	err := json.Unmarshal(e.Value, &h.Value)
	if err == nil && e.Declared != nil {
		err = json.Unmarshal(e.Declared, &h.Declared)
	}
	if err != nil {
		t.Fatalf("%s %s is %s, declared %s: %v", e.Kind, e.Name, e.Value, e.Declared, err)
	}
	for _, c := range e.Conflicts {
		h.Conflicts = append(h.Conflicts, c.Owner)
	}
	return h
}

// compareRest compares who is live, what is paused, and what a beat tells.
func (s *controlStory) compareRest(t *rapid.T, i int, p *controlPlayer, r store.SettingsReply, want told) {
	t.Helper()
	lives, pauses := map[string]bool{}, map[string]bool{}
	for _, v := range r.Versions {
		if v.Live {
			lives[v.Owner+" "+v.Version] = true
		}
	}
	for _, x := range r.Pauses {
		pauses[x.Scope.String()+" "+x.Name] = true
	}
	for what, sets := range map[string]struct {
		got  map[string]bool
		want map[string]int
	}{"live versions": {lives, want.Lives}, "pauses": {pauses, want.Pauses}} {
		for name := range sets.want {
			if !sets.got[name] {
				t.Fatalf("store %d: %s: %s is missing in %v", i, what, name, sets.got)
			}
		}
		if len(sets.got) != len(sets.want) {
			t.Fatalf("store %d: %s are %v, want %v", i, what, sets.got, sets.want)
		}
	}
	beaten, err := p.store.Beat(context.Background(), store.Beat{Worker: p.observer})
	if err != nil || beaten.Revision != r.Revision {
		t.Fatalf("store %d: a beat tells revision %d (error %v), want %d", i, beaten.Revision, err, r.Revision)
	}
}

// end leaves nothing of the story behind, and the rules of P6 hold.
func (s *controlStory) end(t *rapid.T) {
	for len(s.living(t, 1)) > 0 {
		s.leave(t)
	}
	s.compare(t)
	for _, about := range s.things() {
		s.said = append(s.said, saying{at: s.next(), about: about, reset: true})
		s.each(t, "reset", func(ctx context.Context, p *controlPlayer) error {
			return p.store.Override(ctx, about.setting(), nil, store.Operator{})
		})
	}
	s.each(t, "end", func(ctx context.Context, p *controlPlayer) error {
		r, err := p.store.Settings(ctx)
		if err != nil {
			return err
		}
		for _, x := range r.Pauses {
			if err := p.store.SetPaused(ctx, x, false, store.Operator{}); err != nil {
				return err
			}
		}
		if len(r.Declared)+len(r.Overrides) > 0 {
			return fmt.Errorf("declared %v and set %v are left", r.Declared, r.Overrides)
		}
		if err := p.store.Deregister(ctx, p.observer); err != nil {
			return err
		}
		report, err := p.store.Check(ctx, store.Check{})
		if err == nil && len(report.Faults) > 0 {
			err = fmt.Errorf("check: %v", report.Faults)
		}
		return err
	})
}
