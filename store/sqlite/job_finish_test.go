package sqlite

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
)

// Ends that are alike go together in one statement. Whatever is among them, the
// outcome must be that of ending one at a time.
func TestP2_EndsInGroupsAreEndsOneByOne(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 3))
		together, single := open(t, Memory()), open(t, Memory())
		list := drafts(3*jobs.Group + random.IntN(jobs.Group))
		for i := range list {
			if random.IntN(150) == 0 {
				list[i].Unique = job.Unique{Hash: list[i].ID[:]}
			}
		}
		var ends []job.End
		var w job.WorkerID
		keep := []job.Keep{{}, {Done: -1}}[random.IntN(2)]
		for _, s := range []*Store{together, single} {
			w = s.mustRegister(t)
			s.mustEnqueue(t, list...)
			jobs := s.mustClaim(t, claimOf(w, 1, len(list))).Jobs
			noted := jobs[3]
			if _, err := s.Note(t.Context(), w, []store.Note{{RunRef: store.RunRef{ID: noted.ID, Run: noted.Run}, Logs: []job.LogLine{{Text: "x"}}}}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Cancel(t.Context(), []job.ID{jobs[5].ID}, store.Operator{}); err != nil {
				t.Fatal(err)
			}
			if len(ends) > 0 {
				continue
			}
			for _, l := range jobs {
				e := job.End{ID: l.ID, Run: l.Run, To: job.Done, Keep: keep}
				switch random.IntN(150) {
				case 0:
					e.Run++ // not its run
				case 1:
					e.Result = []byte("result")
				case 2:
					e.To = job.Waiting
				case 3:
					ends = append(ends, e) // twice
				case 4:
					e.Keep = job.Keep{Done: 5e9}
				case 5:
					e.ID = job.NewID()
				}
				ends = append(ends, e)
			}
		}
		got, err := together.Finish(t.Context(), w, ends)
		if err != nil {
			t.Fatal(err)
		}
		var want []job.Verdict
		for _, e := range ends {
			v, err := single.Finish(t.Context(), w, []job.End{e})
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, v...)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: verdicts %v, one by one %v", seed, got, want)
		}
		if a, b := together.picture(t), single.picture(t); !slices.Equal(a, b) {
			t.Fatalf("seed %d: together\n%v\none by one\n%v", seed, a, b)
		}
	}
}

// seen is what the two stores must agree on about a job.
type seen struct {
	id     job.ID
	state  job.State
	run    int64
	result string
	kept   bool
}

func (s *Store) picture(t *testing.T) []seen {
	t.Helper()
	page, err := s.List(t.Context(), store.Filter{}, store.Page{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var list []seen
	for _, j := range page.Jobs {
		list = append(list, seen{j.ID, j.State, j.Run, string(j.Result), j.Expires.Sub(j.Finished) > 1e11})
	}
	for _, table := range []string{"pawl_tombstone", "pawl_job_unique", "pawl_job_log"} {
		if err := s.write(t.Context(), 1, func(tr *jobs.Transition) error {
			n, err := tr.Query("SELECT count(*) FROM " + table).One()
			list = append(list, seen{run: n, result: table})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// A copy in the archive that should not be there stops neither the end of its job nor
// those of the group that it ends with.
func TestP8_AStrayCopyInTheArchiveStopsNoEnd(t *testing.T) {
	s := open(t, Memory())
	w := s.mustRegister(t)
	s.mustEnqueue(t, drafts(jobs.Group+1)...)
	leased := s.mustClaim(t, claimOf(w, 1, jobs.Group+1)).Jobs
	first, leased := leased[0], leased[1:]
	stray := leased[jobs.Group/2].ID
	if _, err := s.Finish(t.Context(), w, []job.End{{ID: first.ID, Run: first.Run, To: job.Done}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DB().ExecContext(t.Context(), "UPDATE pawl_job_archive SET id = ? WHERE id = ?", stray[:], first.ID[:]); err != nil {
		t.Fatal(err)
	}
	var ends []job.End
	for _, l := range leased {
		ends = append(ends, job.End{ID: l.ID, Run: l.Run, To: job.Done})
	}
	verdicts, err := s.Finish(t.Context(), w, ends)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range verdicts {
		if v != job.Applied {
			t.Errorf("end %d: %v", i, v)
		}
	}
	if n, err := s.Count(t.Context(), store.Filter{States: []job.State{job.Done}}, 0); err != nil || n.Jobs != jobs.Group {
		t.Errorf("%d are done (error %v), want %d", n.Jobs, err, jobs.Group)
	}
}
