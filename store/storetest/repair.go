package storetest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// tester is who repairs in the suite.
var tester = store.RepairRequest{By: store.Operator{Name: "tester", Note: "drill"}}

// repairer is the store of a case as one that mends.
func (d *database) repairer() store.Repairer {
	d.Helper()
	r, ok := d.Store.(store.Repairer)
	if !ok {
		d.Fatalf("%T is no store.Repairer", d.Store)
	}
	return r
}

// look checks the database.
func (d *database) look(c store.Check) store.CheckReport {
	d.Helper()
	return must[store.CheckReport](d, "check")(d.Store.Check(d.ctx, c))
}

// mend repairs faults, and gives what became of them.
func (d *database) mend(faults ...store.Fault) []store.Repair {
	d.Helper()
	done := must[[]store.Repair](d, "repair")(d.repairer().Repair(d.ctx, faults, tester))
	if len(done) != len(faults) {
		d.Fatalf("%d answers for %d faults", len(done), len(faults))
	}
	return done
}

// entries are the audit entries of repairs.
func (d *database) entries() []store.AuditEntry {
	d.Helper()
	return must[store.AuditList](d, "audit")(d.Store.Audit(d.ctx, store.AuditFilter{Action: store.RepairAction}, store.AuditPage{Limit: 1000})).Entries
}

func repair() []testCase {
	return []testCase{
		{name: "J27_EveryRuleHasASentenceAndADamage", run: func(d *database) {
			for _, r := range d.repairer().Rules() {
				if r.Says == "" || !strings.HasSuffix(r.Says, ".") {
					d.Errorf("the rule %q of %q has no sentence: see check.Sentences", r.Name, r.Table)
				}
				i := slices.IndexFunc(damages, func(x damaged) bool { return x.rule == r.Name && (r.Table == "" || ofTable(r.Table, x.in)) })
				switch {
				case i < 0:
					d.Errorf("no damage breaks the rule %q of %q", r.Name, r.Table)
				case r.Repair == "" && damages[i].left == nil:
					d.Errorf("the rule %q of %q has no repair, and its damage does not say that it is left", r.Name, r.Table)
				}
			}
		}},
		{name: "J27_EachKindOfDamageIsNamedAndMended", needs: Features{Spoil: true}, run: func(d *database) {
			rules := d.repairer().Rules()
			for _, x := range damages {
				if !slices.ContainsFunc(rules, func(r store.Rule) bool { return r.Name == x.rule }) {
					continue // of another store's own
				}
				what := x.rule + ": " + strings.Join(strings.Fields(strings.Join(x.sql, "; ")), " ")
				if d.Failed() {
					return // what one damage left makes no sense of the others
				}
				x.play(d, what)
			}
		}},
		{name: "J27_ARepairThatComesLateChangesNothing", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.take()
			d.lose(w)
			d.advance(2 * time.Hour)
			faults := d.look(store.Check{}).Faults
			if len(faults) != 1 {
				d.Fatalf("faults %v, want the run of a lost worker", faults)
			}
			d.rescue()
			v := d.hire()
			again := v.take()
			done := d.mend(faults...)
			equal(d, "answer", done[0].Answer, store.RepairNotNeeded)
			equal(d, "state", d.get(id).State, job.Running)
			equal(d, "entries", d.entries(), nil)
			v.end(again, job.Done)
		}},
		{name: "J27_ARepairMayBeRepeated", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.take()
			d.lose(w)
			d.advance(2 * time.Hour)
			faults := d.look(store.Check{}).Faults
			equal(d, "answers", answers(d.mend(append(faults, faults...)...)), []store.RepairAnswer{store.RepairDone, store.RepairNotNeeded})
			j := d.get(id)
			equal(d, "state", j.State, job.Waiting)
			equal(d, "rescues", j.Rescues, 1)
			equal(d, "entries", len(d.entries()), 1)
			v := d.hire()
			v.end(v.take(), job.Done)
		}},
		{name: "J27_AnUnknownRuleIsReported", run: func(d *database) {
			done := d.mend(store.Fault{Rule: "no such rule", Table: "job"}, store.Fault{Rule: "job in two places", Table: "no such table"})
			equal(d, "answers", answers(done), []store.RepairAnswer{store.RepairImpossible, store.RepairImpossible})
			_, err := d.repairer().Repair(d.ctx, make([]store.Fault, store.MaxFaults+1), tester)
			if !errors.Is(err, job.ErrInvalid) {
				d.Errorf("too many faults: %v, want ErrInvalid", err)
			}
		}},
		{name: "J27_NextGoesOn", run: func(d *database) {
			d.enqueue(drafts(12)...)
			w := d.hire()
			for _, j := range w.claim(5) {
				w.end(j, job.Done)
			}
			var all store.CheckReport
			calls := 0
			for c := (store.Check{Step: 2, Rows: 3, Totals: true}); ; c.After = all.Next {
				report := d.look(c)
				if report.Live+report.Archived > 4 {
					d.Errorf("a call looked at %d rows, want 4 at most", report.Live+report.Archived)
				}
				all.Join(report)
				if calls++; all.Next == "" || calls > 100 {
					break
				}
			}
			equal(d, "report", all, store.CheckReport{Live: 7, Archived: 5, Totals: all.Totals})
			equal(d, "totals", all.Totals, []store.QueueCount{
				{Queue: queue, State: job.Waiting, Counted: store.Counted{Jobs: 7}}, {Queue: queue, State: job.Done, Counted: store.Counted{Jobs: 5}},
			})
			if calls < 5 {
				d.Errorf("%d calls, want several", calls)
			}
			_, err := d.Store.Check(d.ctx, store.Check{After: "nowhere"})
			if !errors.Is(err, job.ErrInvalid) {
				d.Errorf("a place that is none: %v, want ErrInvalid", err)
			}
		}},
		{name: "J27_TotalsAreExact", run: func(d *database) {
			d.enqueue(drafts(30, onQueue("a"))...)
			d.enqueue(drafts(20, onQueue("b"), in(time.Hour))...)
			w := d.hire("a", "b")
			for _, j := range w.ask(store.QueueClaim{Queue: "a", Limit: 11, Start: 11}).Jobs[:4] {
				w.end(j, job.Dead)
			}
			count := func(queue string, state job.State, jobs int) store.QueueCount {
				return store.QueueCount{Queue: queue, State: state, Counted: store.Counted{Jobs: jobs}}
			}
			for _, step := range []int{0, 1, 7} {
				equal(d, "totals", d.look(store.Check{Step: step, Totals: true}).Totals, []store.QueueCount{
					count("a", job.Waiting, 19), count("a", job.Running, 7), count("a", job.Dead, 4), count("b", job.Waiting, 20),
				})
			}
			equal(d, "totals that nobody asked for", d.look(store.Check{}).Totals, nil)
		}},
	}
}

func answers(done []store.Repair) (list []store.RepairAnswer) {
	for _, r := range done {
		list = append(list, r.Answer)
	}
	return list
}

// ofTable reports whether a store calls a table of the suite so.
func ofTable(name, table string) bool {
	if table == "" {
		table = "job"
	}
	return strings.TrimPrefix(name, "pawl_") == table
}

// play plants one damage, and sees it found, named, mended and written down. Then
// everything is sound, and every job runs.
func (x *damaged) play(d *database, what string) {
	s := d.scene()
	if report := d.look(store.Check{}); report.Found > 0 {
		d.Fatalf("before %s: %v", what, report.Faults)
	}
	before := len(d.entries())
	if x.before != nil {
		x.before(d)
	}
	d.sql(s, x.sql...)
	mine := func(f store.Fault) bool { return f.Rule == x.rule && ofTable(f.Table, x.in) }
	var faults []store.Fault
	for _, step := range []int{0, 1} {
		faults = d.look(store.Check{Step: step}).Faults
		if !slices.ContainsFunc(faults, mine) {
			d.Fatalf("%s: with steps of %d, found %v", what, step, faults)
		}
	}
	done := d.mend(slices.DeleteFunc(slices.Clone(faults), func(f store.Fault) bool { return !mine(f) })...)
	if x.left != nil {
		equal(d, what, done[0].Answer, store.RepairImpossible)
		equal(d, what+": entries", len(d.entries()), before)
		d.sql(s, x.left...)
		s.runAll(d, what)
		return
	}
	if done[0].Answer != store.RepairDone {
		d.Fatalf("%s: %s: %s", what, done[0].Answer, done[0])
	}
	entry := d.entries()[0]
	if !strings.Contains(entry.Detail, x.rule) || !strings.Contains(entry.Detail, "→") || entry.Note != "drill" ||
		entry.By != "tester" || entry.Target != done[0].Target() {
		d.Errorf("%s: entry %+v of %+v", what, entry, done[0])
	}
	for range 3 { // what broke several rules takes several repairs
		if faults = d.look(store.Check{}).Faults; len(faults) > 0 {
			d.mend(faults...)
		}
	}
	if faults = d.look(store.Check{}).Faults; len(faults) > 0 {
		d.Fatalf("%s: still broken: %v", what, faults)
	}
	if x.after != nil {
		x.after(d, s)
	}
	s.runAll(d, what)
}

// runAll runs every job of a scene to its end.
func (s *scene) runAll(d *database, what string) {
	d.Helper()
	for name, id := range map[string]job.ID{"done": s.done, "running": s.running, "waiting": s.waiting, "logged": s.logged} {
		j := d.get(id)
		if j.State == job.Running && j.Worker == s.w.id {
			s.w.end(store.LeasedJob{Job: j}, job.Done)
		}
		if j.State == job.Waiting {
			must[[]store.Change](d, "retry")(d.Store.Retry(d.ctx, []job.ID{id}, store.Operator{})) // it may be scheduled
			leased := s.take(d, j.Queue)
			equal(d, what, leased.ID, id)
			s.w.end(leased, job.Done)
		}
		if state := d.get(id).State; !state.Final() {
			d.Fatalf("%s: the job that was %s is %s", what, name, state)
		}
	}
	if faults := d.look(store.Check{}).Faults; len(faults) > 0 {
		d.Fatalf("%s: after all jobs ran: %v", what, faults)
	}
	for _, w := range []job.WorkerID{s.w.id, s.idle} {
		if err := d.Store.Deregister(d.ctx, w); err != nil {
			d.Fatal(err)
		}
	}
}
