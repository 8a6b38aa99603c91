package jobs

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
)

// An end that has something to say, or shares its job with another, is looked at;
// those beside it are not. Nothing is left out, and nothing is done twice.
func TestP8_OneEndDoesNotPullOthersOntoTheLongerWay(t *testing.T) {
	ends := make([]job.End, 500)
	for i := range ends {
		ends[i] = job.End{ID: job.NewID(), Run: 1, To: job.Done}
	}
	f := &finishing{ends: ends}
	if w := f.split(); len(w.plain) != 500 || len(w.light) != 0 || len(w.rest) != 0 {
		t.Errorf("%d plain, %d light and %d others of 500 plain ends", len(w.plain), len(w.light), len(w.rest))
	}
	ends[250].Failure = []byte("no luck")
	ends[251].To = job.Waiting
	ends[252].Ties = job.TieUnique | job.TieLogs
	ends[253].Ties = job.TieNode
	if w := f.split(); len(w.plain) != 496 || !slices.Equal(w.light, []int{252}) || !slices.Equal(w.rest, []int{250, 251, 253}) {
		t.Errorf("%d plain ends, light %v, and %v", len(w.plain), w.light, w.rest)
	}
}

func TestP2_EveryEndIsPlainOrLookedAt(t *testing.T) {
	ids := []job.ID{job.NewID(), job.NewID(), job.NewID(), job.NewID(), job.NewID(), job.NewID()}
	keeps := []job.Keep{{}, {Done: 1}, {Done: -1}}
	rapid.Check(t, func(t *rapid.T) {
		f := &finishing{skip: rapid.Bool().Draw(t, "skip")}
		for range rapid.IntRange(1, 8).Draw(t, "ends") {
			f.ends = append(f.ends, job.End{
				ID: rapid.SampledFrom(ids).Draw(t, "id"), Run: rapid.Int64Range(1, 2).Draw(t, "run"),
				To:   rapid.SampledFrom([]job.State{job.Done, job.Done, job.Done, job.Waiting}).Draw(t, "to"),
				Ties: rapid.SampledFrom([]job.Ties{0, 0, 0, job.TieUnique, job.TieLogs, job.TieKey}).Draw(t, "ties"), Keep: rapid.SampledFrom(keeps).Draw(t, "keep"),
			})
		}
		w := f.split()
		plain, light, rest := w.plain, w.light, w.rest
		all := slices.Sorted(slices.Values(slices.Concat(plain, light, rest)))
		for i := range f.ends {
			if len(all) != len(f.ends) || all[i] != i {
				t.Fatalf("of %d ends %v are plain, %v light and %v are not", len(f.ends), plain, light, rest)
			}
		}
		if f.skip && len(plain)+len(light) > 0 {
			t.Fatalf("%v are plain and %v light where locked rows are passed over", plain, light)
		}
		quick := slices.Concat(plain, light)
		for n, i := range quick {
			e := &f.ends[i]
			if e.To != job.Done || e.Keep.WithDefaults().Done != f.ends[quick[0]].Keep.WithDefaults().Done {
				t.Fatalf("end %d is plain: %+v", i, e)
			}
			if n != 0 && n != len(plain) && bytes.Compare(f.ends[quick[n-1]].ID[:], e.ID[:]) >= 0 {
				t.Fatalf("plain ends %v and light ones %v are not in the order of their jobs", plain, light)
			}
			if n < len(plain) && e.Ties != 0 || e.Ties == job.TieKey {
				t.Fatalf("end %d with ties %v is not looked at", i, e.Ties)
			}
			for k := range f.ends {
				if k != i && f.ends[k].ID == e.ID {
					t.Fatalf("end %d is plain, and %d is of the same job", i, k)
				}
			}
		}
		if !slices.IsSorted(rest) {
			t.Fatalf("the others are taken in the order %v", rest)
		}
	})
}

// Calls that shared a commit whose answer was lost go on alone. What a second end of a
// run was before that try, stale, it stays: the archive knows the run as ended by the
// same worker, which is the first end's work.
func TestP2_AStaleEndStaysStaleWhenItsCommitIsSplit(t *testing.T) {
	run := job.End{ID: job.NewID(), Run: 1, To: job.Done}
	other := job.End{ID: job.NewID(), Run: 1, To: job.Done}
	calls := []*finishCall{{ends: []job.End{run}}, {ends: []job.End{other, run}}}
	f := newFinishing(nil, calls)
	f.again, f.foreign = true, []bool{false, false, true}
	f.handOver(calls)
	for n, want := range [][]bool{{true}, {true, false}} {
		alone := newFinishing(nil, calls[n:n+1])
		for i := range want {
			if alone.mayBeOwn(i) != want[i] {
				t.Errorf("end %d of call %d may have been applied by the lost try: %t, want %t", i, n, !want[i], want[i])
			}
		}
	}
}
