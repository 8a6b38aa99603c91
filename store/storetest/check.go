package storetest

import (
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// rules are the sentences of P6 that every store checks, by the names that
// reports, pages and scripts know them by.
var rules = []string{
	"live job in a final state",
	"job in two places",
	"running without a worker",
	"worker of a job that does not run",
	"running without a live worker",
	"unique key not held",
	"ties do not add up",
	"attempts out of bounds",
	"priority out of bounds",
	"counts below zero",
	"due at no time",
	"wait of a job that is not suspended",
	"failures cannot be read",
	"names cannot be read",
	"archived job in a live state",
	"archived without an end",
	"unique key without its job",
	"log lines without their job",
	"intent out of bounds",
	"intent put off for nothing",
	"operation without an end",
	"operation miscounted",
	"schedule due again",
	"schedule out of bounds",
	"row of no namespace",
	"declaration without its version",
	"declaration cannot be read",
	"override cannot be read",
	"live version without a live worker",
	"ended version with a live worker",
	"bucket over its burst",
	"pause of an unknown scope",
	"worker that left and is not lost",
	"cool-down of no length",
	"metric out of bounds",
	"metric without its flush",
	"metric in two places",
	"member without its group",
	"member without its place",
	"delivery of a member that is gone",
	"stripe of a member that is gone",
	"place beyond the log",
	"acknowledgement of a member that is gone",
}

// ownRules hold only where a store keeps something in a way of its own: a counter
// of lines in the job's row, numbers of workers that are counted.
var ownRules = []string{
	"log lines do not add up",
	"worker numbers go backwards",
}

// check: what a store of its own cannot break through the seam is broken by the
// store's own tests, with SQL. Here is what the seam can reach.
func check() []testCase {
	look := func(d *database, c store.Check) store.CheckReport {
		d.Helper()
		return must[store.CheckReport](d, "check")(d.Store.Check(d.ctx, c))
	}
	return []testCase{
		{name: "P6_RulesHaveTheSameNames", run: func(d *database) {
			lists, ok := d.Store.(interface{ CheckRules() []string })
			if !ok {
				d.Fatalf("%T does not tell its rules", d.Store)
			}
			names := slices.DeleteFunc(lists.CheckRules(), func(name string) bool { return slices.Contains(ownRules, name) })
			slices.Sort(names)
			equal(d, "rules", slices.Compact(names), slices.Sorted(slices.Values(rules)))
		}},
		{name: "P6_EmptyIsClean", run: func(d *database) {
			equal(d, "report", look(d, store.Check{}), store.CheckReport{})
		}},
		{name: "P6_CountsWhatItSaw", run: func(d *database) {
			d.enqueue(drafts(25)...)
			w := d.hire()
			for _, j := range w.claim(10) {
				w.end(j, job.Done)
			}
			for _, step := range []int{0, 1, 7, 1000} {
				equal(d, "report", look(d, store.Check{Step: step}), store.CheckReport{Live: 15, Archived: 10})
			}
		}},
		{name: "P6_ARunWithALostWorkerPastTheGrace", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.take()
			d.lose(w)
			equal(d, "faults within the grace", look(d, store.Check{Grace: 100 * time.Hour}).Faults, nil)
			d.advance(2 * time.Hour)
			faults := look(d, store.Check{Grace: time.Hour}).Faults
			if len(faults) != 1 || faults[0].ID != id || faults[0].Rule != "running without a live worker" {
				d.Errorf("faults %+v, want one that names job %s", faults, id)
			}
			equal(d, "looking changes nothing", d.get(id).State, job.Running)
			d.rescue()
			equal(d, "faults after the rescue", look(d, store.Check{}).Faults, nil)
		}},
		{name: "P6_ARunWithAnAbsentWorkerPastTheGrace", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.take()
			if err := d.Store.Deregister(d.ctx, w.id); err != nil {
				d.Fatal(err)
			}
			d.advance(2 * time.Hour)
			faults := look(d, store.Check{Grace: time.Hour}).Faults
			if len(faults) != 1 || faults[0].ID != id || faults[0].Rule != "running without a live worker" {
				d.Errorf("faults %+v, want one that names job %s", faults, id)
			}
			d.rescue()
		}},
	}
}
