package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// The names most cases use.
const (
	queue = "q"
	kind  = "k"
)

// lostAfter is far more than any case takes, so that only a moved clock loses a worker.
const lostAfter = 10 * time.Minute

// keep is a retention in which the three states differ.
var keep = job.Keep{Done: 2 * time.Hour, Dead: 4 * time.Hour, Cancelled: 6 * time.Hour}

// keepNone keeps a tombstone only.
var keepNone = job.Keep{Done: -1, Dead: -1, Cancelled: -1}

// draft is a valid draft with some fields changed.
func draft(edit ...func(*job.Draft)) job.Draft {
	d := job.Draft{ID: job.NewID(), Kind: kind, Queue: queue, Priority: 5, Attempts: 5, Args: []byte(`{}`)}
	for _, e := range edit {
		e(&d)
	}
	return d
}

func priority(p int) func(*job.Draft)     { return func(d *job.Draft) { d.Priority = p } }
func at(t time.Time) func(*job.Draft)     { return func(d *job.Draft) { d.At = t } }
func in(d time.Duration) func(*job.Draft) { return func(j *job.Draft) { j.In = d } }
func ofKind(k string) func(*job.Draft)    { return func(d *job.Draft) { d.Kind = k } }
func onQueue(q string) func(*job.Draft)   { return func(d *job.Draft) { d.Queue = q } }
func until(t time.Time) func(*job.Draft)  { return func(d *job.Draft) { d.Deadline = t } }

// once makes a draft unique by a name, and for a period after its end.
func once(name string, period time.Duration) func(*job.Draft) {
	return func(d *job.Draft) { d.Unique = job.Unique{Hash: job.UniqueHash(name), Period: period} }
}

// again makes a draft the resend of an id.
func again(id job.ID) func(*job.Draft) {
	return func(d *job.Draft) { d.ID, d.Resend = id, true }
}

// drafts makes n plain drafts.
func drafts(n int, edit ...func(*job.Draft)) []job.Draft {
	list := make([]job.Draft, n)
	for i := range list {
		list[i] = draft(edit...)
	}
	return list
}

// enqueue accepts drafts that must be new, and gives their ids.
func (d *database) enqueue(list ...job.Draft) []job.ID {
	d.Helper()
	ids := make([]job.ID, len(list))
	for i, r := range d.send(list...) {
		if r.Duplicate || r.ID != list[i].ID {
			d.Fatalf("draft %d: receipt %+v, want it accepted as %s", i, r, list[i].ID)
		}
		ids[i] = r.ID
	}
	return ids
}

// send accepts drafts, which may be duplicates.
func (d *database) send(list ...job.Draft) []job.Receipt {
	d.Helper()
	receipts := must[[]job.Receipt](d, "enqueue")(d.Store.Enqueue(d.ctx, list))
	if len(receipts) != len(list) {
		d.Fatalf("enqueue: %d receipts for %d drafts", len(receipts), len(list))
	}
	return receipts
}

// one enqueues a single job.
func (d *database) one(edit ...func(*job.Draft)) job.ID {
	d.Helper()
	return d.enqueue(draft(edit...))[0]
}

// duplicate checks that a draft adds nothing because another job was there first.
func (d *database) duplicate(what string, of job.ID, list ...job.Draft) {
	d.Helper()
	before := d.count()
	for _, r := range d.send(list...) {
		equal(d, what, r, job.Receipt{ID: of, Duplicate: true})
	}
	equal(d, what+": jobs", d.count(), before)
}

// operate runs one of Cancel, Retry and Delete without an operator's name.
func (d *database) operate(what string, f func([]job.ID) ([]store.Change, error), ids ...job.ID) []store.Change {
	d.Helper()
	changes := must[[]store.Change](d, what)(f(ids))
	if len(changes) != len(ids) {
		d.Fatalf("%s: %d answers for %d ids", what, len(changes), len(ids))
	}
	return changes
}

func (d *database) cancel(ids ...job.ID) []store.Change {
	d.Helper()
	return d.operate("cancel", func(ids []job.ID) ([]store.Change, error) {
		return d.Store.Cancel(d.ctx, ids, store.Operator{})
	}, ids...)
}

func (d *database) retry(ids ...job.ID) []store.Change {
	d.Helper()
	return d.operate("retry", func(ids []job.ID) ([]store.Change, error) {
		return d.Store.Retry(d.ctx, ids, store.Operator{})
	}, ids...)
}

func (d *database) delete(ids ...job.ID) []store.Change {
	d.Helper()
	return d.operate("delete", func(ids []job.ID) ([]store.Change, error) {
		return d.Store.Delete(d.ctx, ids, store.Operator{})
	}, ids...)
}
