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
	if plain, rest := f.split(); len(plain) != 500 || len(rest) != 0 {
		t.Errorf("%d plain and %d others of 500 plain ends", len(plain), len(rest))
	}
	ends[250].Failure = []byte("no luck")
	ends[251].To = job.Waiting
	if plain, rest := f.split(); len(plain) != 498 || !slices.Equal(rest, []int{250, 251}) {
		t.Errorf("%d plain ends, and %v", len(plain), rest)
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
				To: rapid.SampledFrom([]job.State{job.Done, job.Done, job.Done, job.Waiting}).Draw(t, "to"), Keep: rapid.SampledFrom(keeps).Draw(t, "keep"),
			})
		}
		plain, rest := f.split()
		all := slices.Sorted(slices.Values(slices.Concat(plain, rest)))
		for i := range f.ends {
			if len(all) != len(f.ends) || all[i] != i {
				t.Fatalf("of %d ends %v are plain and %v are not", len(f.ends), plain, rest)
			}
		}
		if f.skip && len(plain) > 0 {
			t.Fatalf("%v are plain where locked rows are passed over", plain)
		}
		for n, i := range plain {
			e := &f.ends[i]
			if e.To != job.Done || e.Keep.WithDefaults().Done != f.ends[plain[0]].Keep.WithDefaults().Done {
				t.Fatalf("end %d is plain: %+v", i, e)
			}
			if n > 0 && bytes.Compare(f.ends[plain[n-1]].ID[:], e.ID[:]) >= 0 {
				t.Fatalf("plain ends %v are not in the order of their jobs", plain)
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
