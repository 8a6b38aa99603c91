package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// ofQueue is a declaration of a queue.
func ofQueue(name, value string) store.Declaration {
	return store.Declaration{Setting: store.Setting{Kind: store.SettingQueue, Name: name}, Value: json.RawMessage(value)}
}

// deploy registers a worker of an owner's version.
func (d *database) deploy(owner, version string, declares ...store.Declaration) *employee {
	d.Helper()
	w := &employee{d: d, store: d.Store, offer: everything}
	w.id = must[job.WorkerID](d, "register")(d.Store.Register(d.ctx, store.Worker{
		Label: owner + version, Queues: []string{queue}, Offer: everything, LostAfter: lostAfter,
		Owner: owner, Version: version, Declares: declares,
	}))
	return w
}

// leave deregisters a worker.
func (w *employee) leave() {
	w.d.Helper()
	if err := w.store.Deregister(w.d.ctx, w.id); err != nil {
		w.d.Fatalf("deregister: %v", err)
	}
}

func (d *database) settings() store.SettingsReply {
	d.Helper()
	return must[store.SettingsReply](d, "settings")(d.Store.Settings(d.ctx))
}

// comesTo is what a queue comes to: its value, and whose it is.
func (d *database) comesTo(name string) string {
	d.Helper()
	e := store.Resolve(d.settings())
	s, found := e.Queue(name)
	if !found {
		return "nothing"
	}
	return fmt.Sprintf("%s by %s %s", s.Value, s.Owner, s.Version)
}

// override sets fields of a queue.
func (d *database) override(name, value string, op store.Operator) {
	d.Helper()
	var text json.RawMessage
	if value != "" {
		text = json.RawMessage(value)
	}
	if err := d.Store.Override(d.ctx, store.Setting{Kind: store.SettingQueue, Name: name}, text, op); err != nil {
		d.Fatalf("override: %v", err)
	}
}

// raises checks whether something raises the revision.
func (d *database) raises(what string, want bool, do func()) {
	d.Helper()
	before := d.settings().Revision
	do()
	if after := d.settings().Revision; after < before || (after > before) != want {
		d.Errorf("%s: the revision was %d and is %d, raised should be %t", what, before, after, want)
	}
}

func control() []testCase {
	ann := store.Operator{Name: "ann", Note: "too slow"}
	return []testCase{
		{name: "J30_WhatCodeDeclaresHolds", run: func(d *database) {
			before := d.now()
			d.deploy("shop", "1", ofQueue("a", `{"total": 3}`), ofQueue("b", `{ }`))
			equal(d, "a", d.comesTo("a"), `{"total":3} by shop 1`)
			equal(d, "b", d.comesTo("b"), `{} by shop 1`)
			equal(d, "c", d.comesTo("c"), "nothing")
			r := d.settings()
			equal(d, "declared", len(r.Declared), 2)
			for _, x := range r.Declared {
				within(d, "since", x.Since, before, d.now())
				within(d, "seen", x.Seen, before, d.now())
			}
			equal(d, "versions", len(r.Versions), 1)
			equal(d, "live", r.Versions[0].Live, true)
			w := must[[]store.WorkerInfo](d, "registry")(d.Store.Registry(d.ctx))
			equal(d, "whose code", [2]string{w[0].Worker.Owner, w[0].Worker.Version}, [2]string{"shop", "1"})
		}},
		{name: "J30_ARollbackRestoresTheOldValuesByItself", run: func(d *database) {
			one := d.deploy("shop", "1", ofQueue("a", `{"total":1}`))
			two := d.deploy("shop", "2", ofQueue("a", `{"total":2}`))
			equal(d, "deployed", d.comesTo("a"), `{"total":2} by shop 2`)
			one.leave()
			equal(d, "alone", d.comesTo("a"), `{"total":2} by shop 2`)
			back := d.deploy("shop", "1", ofQueue("a", `{"total":1}`))
			equal(d, "rolled back with its first worker", d.comesTo("a"), `{"total":1} by shop 1`)
			two.leave()
			equal(d, "rolled back", d.comesTo("a"), `{"total":1} by shop 1`)
			back.leave()
			equal(d, "nobody", d.comesTo("a"), "nothing")
		}},
		{name: "J30_TwoLiveVersionsDoNotFight", run: func(d *database) {
			d.deploy("shop", "1", ofQueue("a", `{"total":1}`))
			d.deploy("shop", "2", ofQueue("a", `{"total":2}`))
			// One more process of the older version changes nothing: it was seen before.
			d.raises("one more of each", false, func() {
				d.deploy("shop", "1", ofQueue("a", `{"total":1}`))
				d.deploy("shop", "2", ofQueue("a", `{"total":2}`))
			})
			equal(d, "the newer one", d.comesTo("a"), `{"total":2} by shop 2`)
		}},
		{name: "J30_WhatNobodyDeclaresGoesWithTheLastWorker", run: func(d *database) {
			old := []*employee{d.deploy("shop", "1", ofQueue("a", `{"total":1}`)), d.deploy("shop", "1"), d.deploy("shop", "1")}
			d.deploy("shop", "2", ofQueue("b", `{"total":2}`))
			d.raises("the first leaves", false, old[0].leave)
			equal(d, "still declared", d.comesTo("a"), `{"total":1} by shop 1`)
			d.raises("the second is dead", false, func() {
				must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{old[1].id}))
			})
			d.raises("the last is dead", true, func() {
				must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{old[2].id}))
			})
			equal(d, "gone", d.comesTo("a"), "nothing")
			equal(d, "the other version's", d.comesTo("b"), `{"total":2} by shop 2`)
		}},
		{name: "J30_WhatASilentWorkerDeclaredGoes", run: func(d *database) {
			w := d.deploy("shop", "1", ofQueue("a", `{"total":1}`))
			d.raises("lost", true, func() { d.lose(w) })
			equal(d, "gone", d.comesTo("a"), "nothing")
			equal(d, "it is remembered", d.settings().Versions[0].Live, false)
		}},
		{name: "J30_AVersionThatComesBackIsSeenAnew", run: func(d *database) {
			w := d.deploy("shop", "1", ofQueue("a", `{"total":1}`), ofQueue("b", `{"total":1}`))
			first := d.settings().Declared[0]
			w.leave()
			d.deploy("shop", "1", ofQueue("a", `{"total":7}`))
			again := d.settings().Declared
			equal(d, "declared", len(again), 1)
			equal(d, "value", string(again[0].Value), `{"total":7}`)
			if !again[0].Seen.After(first.Seen) || !again[0].Since.After(first.Since) {
				d.Errorf("it is seen %v and held since %v, want later than %v", again[0].Seen, again[0].Since, first.Seen)
			}
		}},
		{name: "J30_TheClockDoesNotDecideWhichWasSeenLast", run: func(d *database) {
			d.deploy("shop", "1", ofQueue("a", `{"total":1}`))
			d.advance(-time.Hour)
			d.deploy("shop", "2", ofQueue("a", `{"total":2}`))
			d.deploy("mail", "1", ofQueue("a", `{"total":3}`))
			equal(d, "seen later at an earlier time", d.comesTo("a"), `{"total":2} by shop 2`)
		}},
		{name: "J30_OfTwoOwnersTheFirstKeepsTheName", run: func(d *database) {
			shop := d.deploy("shop", "1", ofQueue("a", `{"total":1}`))
			d.deploy("mail", "1", ofQueue("a", `{"total":9}`))
			d.deploy("help", "1", ofQueue("a", `{"total":1}`))
			equal(d, "the first", d.comesTo("a"), `{"total":1} by shop 1`)
			e := store.Resolve(d.settings())
			s, _ := e.Of(store.Setting{Kind: store.SettingQueue, Name: "a"})
			equal(d, "conflicts", len(s.Conflicts), 1) // who says the same is none
			equal(d, "whose", s.Conflicts[0].Owner, "mail")
			// A new version of the owner holds it for as long: the name passes on.
			d.deploy("shop", "2", ofQueue("a", `{"total":2}`))
			shop.leave()
			equal(d, "passed on", d.comesTo("a"), `{"total":2} by shop 2`)
		}},
		{name: "J30_AnOverrideStaysOverEveryDeploy", run: func(d *database) {
			one := d.deploy("shop", "1", ofQueue("a", `{"total":1,"attempts":4,"of_a_later_build":{"x":1}}`))
			d.override("a", `{"total":-1}`, ann)
			equal(d, "field by field", d.comesTo("a"), `{"attempts":4,"of_a_later_build":{"x":1},"total":-1} by shop 1`)
			d.deploy("shop", "2", ofQueue("a", `{"total":2}`))
			one.leave()
			equal(d, "over the next version", d.comesTo("a"), `{"total":-1} by shop 2`)
			d.override("a", `{"attempts":3}`, ann)
			equal(d, "one more field", d.comesTo("a"), `{"attempts":3,"total":-1} by shop 2`)
			d.override("a", `{"total":null}`, ann)
			equal(d, "one taken back", d.comesTo("a"), `{"attempts":3,"total":2} by shop 2`)
			d.override("a", "", ann)
			equal(d, "all taken back", d.comesTo("a"), `{"total":2} by shop 2`)
			d.override("unknown", `{"total":5}`, ann)
			equal(d, "of what nobody declares", d.comesTo("unknown"), `{"total":5} by  `)
		}},
		{name: "J30_APatternHoldsForTheQueuesThatItNames", run: func(d *database) {
			one := d.deploy("shop", "1", ofQueue("mail.*", `{"attempts":3,"total":10}`), ofQueue("*", `{"total":50}`), ofQueue("mail.slow", `{"total":1}`))
			equal(d, "by the longest", d.comesTo("mail.eu"), `{"attempts":3,"total":10} by shop 1`)
			equal(d, "by its own", d.comesTo("mail.slow"), `{"total":1} by shop 1`)
			equal(d, "by the other", d.comesTo("video"), `{"total":50} by shop 1`)
			d.raises("an operator's word for a pattern", true, func() { d.override("mail.*", `{"total":4}`, ann) })
			d.override("*", `{"attempts":9,"total":5}`, ann)
			equal(d, "set, the longer over the shorter", d.comesTo("mail.eu"), `{"attempts":9,"total":4} by shop 1`)
			equal(d, "over its own declaration", d.comesTo("mail.slow"), `{"attempts":9,"total":4} by shop 1`)
			d.override("mail.eu", `{"total":2}`, ann)
			equal(d, "its own over it", d.comesTo("mail.eu"), `{"attempts":9,"total":2} by shop 1`)
			d.override("*", "", ann)
			d.deploy("shop", "2", ofQueue("mail.*", `{"attempts":6}`))
			equal(d, "the next version", d.comesTo("mail.us"), `{"attempts":6,"total":4} by shop 2`)
			one.leave()
			equal(d, "what nobody declares goes", d.comesTo("video"), "nothing")
			got := d.audit(store.AuditFilter{Target: "mail.*"}, 100)
			equal(d, "entries", len(got), 1)
			equal(d, "action", got[0].Action, "set queue")
		}},
		{name: "J30_AnOverrideSaysWhoWhenAndWhy", run: func(d *database) {
			before := d.now()
			d.override("a", `{"total":5}`, ann)
			o := d.settings().Overrides[0]
			equal(d, "who and why", [2]string{o.By, o.Note}, [2]string{"ann", "too slow"})
			within(d, "since", o.Since, before, d.now())
			d.override("a", "", store.Operator{Name: "bob"})
			var got [][4]string
			for _, e := range d.audit(store.AuditFilter{Target: "a"}, 100) {
				got = append(got, [4]string{e.Action, e.Target, e.By, e.Note})
			}
			equal(d, "entries, the newest first", got, [][4]string{{"reset queue", "a", "bob", ""}, {"set queue", "a", "ann", "too slow"}})
		}},
		{name: "J30_WhatCannotBeSetIsRefused", run: func(d *database) {
			for what, c := range map[string]struct {
				s     store.Setting
				value string
				want  string
			}{
				"no object":     {store.Setting{Kind: store.SettingQueue, Name: "a"}, `[1]`, "JSON object"},
				"no JSON":       {store.Setting{Kind: store.SettingQueue, Name: "a"}, `{`, "JSON object"},
				"no name":       {store.Setting{Kind: store.SettingQueue}, `{}`, "name"},
				"a bad pattern": {store.Setting{Kind: store.SettingQueue, Name: "a[*"}, `{}`, "name"},
				"no queue":      {store.Setting{Kind: store.SettingUpkeep, Name: "*"}, `{}`, "name"},
				"no kind":       {store.Setting{Name: "a"}, `{}`, "kind"},
				"out of bounds": {store.Setting{Kind: store.SettingQueue, Name: "a"}, `{"total":-2}`, "Total -2"},
				"too long":      {store.Setting{Kind: "later", Name: "a"}, `{"x":"` + strings.Repeat("x", store.MaxSetting) + `"}`, "at most 65536 bytes"},
			} {
				err := d.Store.Override(d.ctx, c.s, json.RawMessage(c.value), ann)
				if !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
					d.Errorf("%s: %v, want %q in it", what, err, c.want)
				}
				_, err = d.Store.Register(d.ctx, store.Worker{Owner: "shop", Version: "1", LostAfter: lostAfter,
					Declares: []store.Declaration{{Setting: c.s, Value: json.RawMessage(c.value)}}})
				if !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
					d.Errorf("declare %s: %v, want %q in it", what, err, c.want)
				}
			}
			for what, w := range map[string]store.Worker{
				"no owner": {Version: "1"}, "no version": {Owner: "shop"}, "nobody's": {Declares: []store.Declaration{ofQueue("a", "{}")}},
				"too many": {Owner: "shop", Version: "1", Declares: make([]store.Declaration, store.MaxDeclarations+1)},
			} {
				if _, err := d.Store.Register(d.ctx, w); !errors.Is(err, job.ErrInvalid) {
					d.Errorf("%s: %v, want ErrInvalid", what, err)
				}
			}
			r := d.settings()
			equal(d, "nothing is set", len(r.Overrides)+len(r.Declared)+len(r.Versions), 0)
		}},
		{name: "J30_OneVersionDeclaresWhatAnyOfItsWorkersDid", run: func(d *database) {
			d.deploy("shop", "1", ofQueue("a", `{"total":1}`), ofQueue("b", `{"total":1}`))
			d.raises("another name", true, func() { d.deploy("shop", "1", ofQueue("c", `{"total":1}`)) })
			d.raises("another value", true, func() { d.deploy("shop", "1", ofQueue("b", `{"total":2}`)) })
			d.raises("the same in other words", false, func() { d.deploy("shop", "1", ofQueue("b", ` { "total" : 2 } `)) })
			for name, want := range map[string]string{"a": `{"total":1}`, "b": `{"total":2}`, "c": `{"total":1}`} {
				equal(d, name, d.comesTo(name), want+" by shop 1")
			}
		}},
		{name: "J30_ManyRegisterAtOnce", run: func(d *database) {
			const many = 8
			var all sync.WaitGroup
			ids := make([]job.WorkerID, many)
			for i := range many {
				all.Go(func() {
					var err error
					ids[i], err = d.Store.Register(d.ctx, store.Worker{
						Owner: "shop", Version: "1", LostAfter: lostAfter, Declares: []store.Declaration{ofQueue("a", `{"total":1}`), ofQueue(fmt.Sprint("q", i), `{}`)},
					})
					if err != nil {
						d.Errorf("register: %v", err)
					}
				})
			}
			all.Wait()
			r := d.settings()
			equal(d, "declared", len(r.Declared), 1+many)
			for _, x := range r.Declared[1:] {
				equal(d, "seen once", x.Seen, r.Declared[0].Seen)
			}
			for _, id := range ids {
				all.Go(func() {
					if err := d.Store.Deregister(d.ctx, id); err != nil {
						d.Errorf("deregister: %v", err)
					}
				})
			}
			all.Wait() // of those who leave at once somebody is the last
			r = d.settings()
			equal(d, "declared", len(r.Declared), 0)
			equal(d, "live", r.Versions[0].Live, false)
		}},
		{name: "J30_TheRevisionRidesInBeatsAndClaims", run: func(d *database) {
			w := d.hire()
			at := d.settings().Revision
			told := func(what string) {
				d.Helper()
				want := d.settings().Revision
				if want <= at {
					d.Errorf("%s: the revision is %d, want more than %d", what, want, at)
				}
				at = want
				equal(d, what+": a beat's", w.beat().Revision, want)
				w.ask(store.QueueClaim{Queue: queue, Limit: 1, Start: 1})
				equal(d, what+": an empty claim's", w.ask(store.QueueClaim{Queue: queue, Limit: 1, Start: 1}).Revision, want)
				id := d.one()
				for taken := false; !taken; {
					got := w.ask(store.QueueClaim{Queue: queue, Limit: 1, Start: 1})
					equal(d, what+": a claim's", got.Revision, want)
					equal(d, what+": a repeated claim's", w.repeat(w.seq, store.QueueClaim{Queue: queue, Limit: 1, Start: 1}).Revision, want)
					if taken = len(got.Jobs) > 0; taken {
						equal(d, "job", got.Jobs[0].ID, id)
						w.end(got.Jobs[0], job.Done)
					}
				}
				sharing := must[store.BeatReply](d, "beat")(d.Store.Beat(d.ctx, store.Beat{Worker: w.id, Splits: true}))
				equal(d, what+": a sharing beat's", sharing.Revision, want)
			}
			d.deploy("shop", "1", ofQueue("a", `{"total":1}`))
			told("a deploy")
			d.override("a", `{"total":2}`, ann)
			told("an override")
			for _, p := range []store.Pause{store.OfQueue("other"), {Scope: store.PauseKind, Name: "other"}} {
				for _, paused := range []bool{true, false} {
					if err := d.Store.SetPaused(d.ctx, p, paused, ann); err != nil {
						d.Fatal(err)
					}
					told(fmt.Sprint(p.Scope, " paused ", paused))
				}
			}
		}},
		{name: "J30_TheRevisionStaysWhereNothingChanges", run: func(d *database) {
			d.deploy("shop", "1", ofQueue("a", `{"total":1}`))
			d.override("a", `{"total":2}`, ann)
			pause := func(paused bool) {
				if err := d.Store.SetPaused(d.ctx, store.OfQueue("a"), paused, ann); err != nil {
					d.Fatal(err)
				}
			}
			pause(true)
			d.raises("nothing", false, func() {
				w := d.deploy("shop", "1", ofQueue("a", `{"total":1}`))
				d.override("a", `{"total":2}`, store.Operator{Name: "bob"})
				d.override("b", "", ann)
				d.override("b", "{}", ann)
				pause(true)
				w.beat()
				d.one()
				w.end(w.take(), job.Done)
				w.leave()
				d.hire().leave()
				must[int](d, "purge")(d.Store.Purge(d.ctx, 100))
			})
			equal(d, "who set it", d.settings().Overrides[0].By, "ann")
			pause(false)
			d.raises("a pause that is over", false, func() { pause(false) })
		}},
		{name: "J30_VersionsAreRemembered30Days", run: func(d *database) {
			d.deploy("shop", "1", ofQueue("a", `{}`)).leave()
			keep := d.deploy("shop", "2")
			d.advance(store.KeepVersion - time.Hour)
			keep.beat()
			must[int](d, "purge")(d.Store.Purge(d.ctx, 100))
			equal(d, "versions", len(d.settings().Versions), 2)
			d.advance(2 * time.Hour)
			equal(d, "due", must[store.Due](d, "due")(d.Store.Due(d.ctx)).Purge, true)
			must[int](d, "purge")(d.Store.Purge(d.ctx, 100))
			r := d.settings()
			equal(d, "versions", len(r.Versions), 1)
			equal(d, "which", r.Versions[0].Version, "2")
		}},
		{name: "J30_AChangeElsewhereIsHeard", needs: Features{Listen: true, Shared: true}, run: func(d *database) {
			ctx, stop := context.WithCancel(d.ctx)
			hints, ended := make(chan store.Hint), make(chan error, 1)
			go func() {
				ended <- d.Store.(store.Listener).Listen(ctx, func(h store.Hint) {
					select {
					case hints <- h:
					case <-ctx.Done():
					}
				})
			}()
			elsewhere := d.open(store.Settings{})
			for n, found := 1, false; !found; n++ {
				value := json.RawMessage(fmt.Sprintf(`{"total":%d}`, n))
				if err := elsewhere.Override(d.ctx, store.Setting{Kind: store.SettingQueue, Name: "a"}, value, ann); err != nil {
					d.Fatal(err)
				}
				select {
				case h := <-hints:
					found = h.Subject == store.SubjectSetting || h.Subject == store.SubjectAll
				case err := <-ended:
					d.Fatalf("listen ended by itself: %v", err)
				default:
				}
			}
			stop()
			<-ended
		}},
	}
}
