package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
)

// Whichever way drafts go in, the jobs are the same: one at a time, by arrays
// and by COPY, with every column used by some and by none.
func TestJ2_BulkIsTheSameAsOneByOne(t *testing.T) {
	s := openInternal(t)
	soon := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
	variants := []func(*job.Draft){
		func(*job.Draft) {},
		func(d *job.Draft) {
			d.Version, d.Priority, d.Attempts, d.Kind, d.Queue = 3, 9, 1, "other.kind", "other"
		},
		func(d *job.Draft) { d.At = soon },
		func(d *job.Draft) { d.At = time.Unix(0, 0) },
		func(d *job.Draft) { d.In = time.Hour },
		func(d *job.Draft) { d.Timeout, d.Deadline = 90*time.Second, soon },
		func(d *job.Draft) { d.Key, d.Budget = `it's "quoted" \ 漢字`, "b" },
		func(d *job.Draft) { d.Tags = []string{`a"b`, `c\d`, "{e,f}", "NULL", "漢字", " "} },
		func(d *job.Draft) { d.Capabilities = []string{"gpu", "disk"} },
		func(d *job.Draft) { d.Args, d.HeaderBytes = nil, []byte{0, 1, 255} },
		func(d *job.Draft) { d.Args, d.HeaderBytes = []byte{}, nil },
	}
	send := func(n int, edit func(*job.Draft)) []job.Job {
		drafts := make([]job.Draft, n)
		for i := range drafts {
			drafts[i] = someDraft(edit)
		}
		receipts, err := s.Enqueue(t.Context(), drafts)
		if err != nil {
			t.Fatal(err)
		}
		ids := []job.ID{receipts[0].ID, receipts[n-1].ID}
		jobs, err := s.Get(t.Context(), ids)
		if err != nil || len(jobs) != 2 {
			t.Fatalf("%d jobs, %v", len(jobs), err)
		}
		return jobs
	}
	for i, edit := range variants {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			one := send(1, edit)[0]
			for _, n := range []int{7, jobs.Bulk} {
				for _, got := range send(n, edit) {
					if gap := got.Created.Sub(one.Created); gap < 0 || gap > time.Minute {
						t.Errorf("created %v after the first", gap)
					}
					if one.Due.After(one.Created) == got.Due.After(got.Created) && !got.Due.Equal(soon) {
						got.Due = one.Due // an hour after now, or now
					}
					got.Created, got.ID = one.Created, one.ID
					if diff := cmp.Diff(one, got, cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("%d at once (-one +many):\n%s", n, diff)
					}
				}
			}
		})
	}
}

// Every column may be needed by one draft of a batch and not by its neighbours.
func TestJ2_MixedDraftsInOneBatch(t *testing.T) {
	s := openInternal(t)
	for _, n := range []int{50, jobs.Bulk} {
		drafts := make([]job.Draft, n)
		for i := range drafts {
			drafts[i] = someDraft(func(d *job.Draft) {
				if i%7 == 3 {
					d.Tags, d.Key, d.Timeout, d.Version = []string{fmt.Sprint(i)}, fmt.Sprint(i), time.Duration(i)*time.Millisecond, i
				}
			})
		}
		if _, err := s.Enqueue(t.Context(), drafts); err != nil {
			t.Fatal(err)
		}
		for i := range 14 {
			jobs, err := s.Get(t.Context(), []job.ID{drafts[i].ID})
			if err != nil || len(jobs) != 1 {
				t.Fatalf("%d jobs, %v", len(jobs), err)
			}
			d, j := drafts[i], jobs[0]
			if fmt.Sprint(d.Tags, d.Key, d.Timeout, d.Version) != fmt.Sprint(j.Tags, j.Key, j.Timeout, j.Version) {
				t.Errorf("draft %d of %d: %v %q %v %d came back as %v %q %v %d", i, n, d.Tags, d.Key, d.Timeout, d.Version, j.Tags, j.Key, j.Timeout, j.Version)
			}
		}
	}
}

// A bulk with an id that is there already is answered as a resend of that one,
// and the rest goes in.
func TestJ2_BulkWithAnOldID(t *testing.T) {
	s := openInternal(t)
	old := someDraft()
	if _, err := s.Enqueue(t.Context(), []job.Draft{old}); err != nil {
		t.Fatal(err)
	}
	drafts := many(jobs.Bulk)
	drafts[jobs.Bulk/2] = old
	receipts, err := s.Enqueue(t.Context(), drafts)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range receipts {
		if r.ID != drafts[i].ID || r.Duplicate != (i == jobs.Bulk/2) {
			t.Fatalf("receipt %d is %+v", i, r)
		}
	}
}
