package storetest

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/pawlwork/pawl/job"
)

func jobEnqueue() []testCase {
	return []testCase{
		{name: "J2_ReceiptPerDraftInOrder", run: func(d *database) {
			list := drafts(5)
			for i, r := range d.send(list...) {
				equal(d, "receipt", r, job.Receipt{ID: list[i].ID})
			}
			equal(d, "jobs", d.count(job.Waiting), 5)
		}},
		{name: "J3_EveryFieldIsKept", run: func(d *database) {
			from := d.now()
			want := draft(func(d *job.Draft) {
				d.Version, d.Priority, d.Attempts = 3, 2, 9
				d.Args, d.HeaderBytes = []byte(`{"user":42}`), []byte(`{"traceparent":"00-a-b-01"}`)
				d.Key, d.Budget = "customer-7", "tokens"
				d.Tags, d.Capabilities = []string{"red", "blue"}, []string{"gpu"}
				d.Timeout = 90 * time.Second
				d.At, d.Deadline = from.Add(time.Hour), from.Add(2*time.Hour)
				d.Unique = job.Unique{Hash: job.UniqueHash("x"), Period: time.Minute}
				d.Gate = -7
			})
			d.enqueue(want)
			got := d.get(want.ID)
			within(d, "created", got.Created, from, d.now())
			got.Created = time.Time{}
			equal(d, "job", got, job.Job{
				ID: want.ID, Queue: queue, Kind: kind, Version: 3, State: job.Waiting, Priority: 2,
				Args: want.Args, HeaderBytes: want.HeaderBytes, Key: "customer-7", Budget: "tokens",
				Tags: want.Tags, Capabilities: want.Capabilities, Timeout: want.Timeout,
				Due: want.At, Deadline: want.Deadline, MaxAttempts: 9, Unique: want.Unique, Ties: job.TieUnique, Rare: &job.Rare{Gate: -7},
			})
		}},
		{name: "J3_DueNowByDefault", run: func(d *database) {
			from := d.now()
			id := d.one()
			to := d.now()
			within(d, "due", d.get(id).Due, from, to)
			within(d, "created", d.get(id).Created, from, to)
		}},
		{name: "J3_InCountsFromTheStoresNow", run: func(d *database) {
			d.advance(100 * time.Hour)
			from := d.now()
			id := d.one(in(time.Hour))
			within(d, "due", d.get(id).Due, from.Add(time.Hour), d.now().Add(time.Hour))
		}},
		{name: "J6_PastDueMeansNow", run: func(d *database) {
			from := d.now()
			early := d.one(at(from.Add(-24 * time.Hour)))
			ancient := d.one(at(time.Unix(0, 0)))
			to := d.now()
			within(d, "due of yesterday", d.get(early).Due, from, to)
			within(d, "due of 1970", d.get(ancient).Due, from, to)
		}},
		{name: "J1_ArgumentsAreExactBytes", run: func(d *database) {
			every := make([]byte, 256)
			for i := range every {
				every[i] = byte(i)
			}
			for _, args := range [][]byte{
				nil, {}, []byte("null"), []byte(`{"a":"\u0000"}`), {0}, every,
				[]byte(`{"b":1, "a" : 2,"a":2}`), []byte("\xff\xfe not UTF-8"), bytes.Repeat([]byte("x"), 1<<20),
			} {
				id := d.one(func(d *job.Draft) { d.Args, d.HeaderBytes = args, args })
				got := d.get(id)
				if !bytes.Equal(got.Args, args) || !bytes.Equal(got.HeaderBytes, args) {
					d.Errorf("%d bytes came back changed: %.80q and %.80q, want %.80q", len(args), got.Args, got.HeaderBytes, args)
				}
			}
		}},
		{name: "J3_TextIsExact", run: func(d *database) {
			for _, text := range []string{"'; drop table job --", `"quoted"`, "100%_", "[a,b]", `back\slash`, "ünïcödé 漢字 🙂", "NULL", "1", "01"} {
				id := d.one(func(d *job.Draft) {
					d.Key, d.Tags = text, []string{text, "z", "a"}
				})
				got := d.get(id)
				equal(d, "key", got.Key, text)
				equal(d, "tags", got.Tags, []string{text, "z", "a"})
			}
		}},
		{name: "EmptySlice", run: func(d *database) {
			equal(d, "receipts", d.send(), nil)
			equal(d, "jobs", d.count(), 0)
		}},
		{name: "J2_ManyDrafts", run: func(d *database) {
			list := drafts(manyRows)
			d.enqueue(list...)
			equal(d, "jobs", d.count(job.Waiting), manyRows)
			w := d.hire()
			for start := 0; start < len(list); start += manyRows / 4 {
				for i, j := range w.claim(manyRows / 4) {
					if j.ID != list[start+i].ID {
						d.Fatalf("claim %d is %s, want %s: enqueued in order, claimed in order", start+i, j.ID, list[start+i].ID)
					}
				}
			}
			equal(d, "running", d.count(job.Running), manyRows)
		}},
		{name: "J2_AllOrNone", run: func(d *database) {
			// A time no database can hold: either it is refused together with its
			// neighbours, or all three are in and it is not due.
			list := drafts(3)
			list[1].At = time.Date(400_000, 1, 1, 0, 0, 0, 0, time.UTC)
			_, err := d.Store.Enqueue(d.ctx, list)
			if err != nil {
				equal(d, "jobs after "+err.Error(), d.count(), 0)
				return
			}
			equal(d, "jobs", d.count(), 3)
			equal(d, "claimed", ids(d.hire().claim(10)), []job.ID{list[0].ID, list[2].ID})
		}},
		{name: "J3_FarTimesStayWhatTheyAre", run: func(d *database) {
			far := time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
			id := d.one(at(far), until(far))
			got := d.get(id)
			equal(d, "due", got.Due.UTC(), far)
			equal(d, "deadline", got.Deadline.UTC(), far)
			equal(d, "claimed", len(d.hire().claim(10)), 0)
		}},
		{name: "TimesAreCutToMicroseconds", run: func(d *database) {
			due := d.now().Add(time.Hour).Truncate(time.Second).Add(1999 * time.Nanosecond)
			equal(d, "due", d.get(d.one(at(due))).Due.UTC(), due.Truncate(time.Microsecond).UTC())
		}},
		{name: "J3_DurationsAreExact", run: func(d *database) {
			for _, timeout := range []time.Duration{0, time.Millisecond, 90 * time.Second, 1000 * time.Hour} {
				id := d.one(func(d *job.Draft) { d.Timeout = timeout })
				equal(d, "timeout", d.get(id).Timeout, timeout)
			}
		}},
		{name: "P1_EndedContextAddsNothing", run: func(d *database) {
			ctx, stop := context.WithCancel(d.ctx)
			stop()
			if _, err := d.Store.Enqueue(ctx, drafts(2)); !errors.Is(err, context.Canceled) {
				d.Errorf("enqueue with an ended context: %v, want %v", err, context.Canceled)
			}
			equal(d, "jobs", d.count(), 0)
		}},
		{name: "CallersSlicesAreNotKept", run: func(d *database) {
			list := []job.Draft{draft(func(d *job.Draft) { d.Args, d.Tags = []byte("before"), []string{"before"} })}
			d.enqueue(list...)
			copy(list[0].Args, "after!")
			list[0].Tags[0] = "after"
			got := d.get(list[0].ID)
			equal(d, "args", string(got.Args), "before")
			equal(d, "tags", got.Tags, []string{"before"})
		}},
	}
}
