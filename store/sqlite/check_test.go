package sqlite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
)

// damage breaks one rule with SQL, as a bug or a person with a shell would.
var damage = map[string]string{
	"live job in a final state":           "UPDATE pawl_job SET state = 5 WHERE id = $waiting",
	"job in two places":                   "INSERT INTO pawl_job (namespace, id, state, priority, due, max_attempts, created, queue, kind) SELECT namespace, id, 2, priority, due, 5, created, queue, kind FROM pawl_job_archive WHERE id = $done",
	"running without a worker":            "UPDATE pawl_job SET worker = NULL WHERE id = $running",
	"worker of a job that does not run":   "UPDATE pawl_job SET worker = 1 WHERE id = $waiting",
	"running without a live worker":       "UPDATE pawl_job SET worker = 99, started = 1 WHERE id = $running",
	"unique key not held":                 "DELETE FROM pawl_job_unique",
	"ties do not add up":                  "UPDATE pawl_job SET ties = 1 - (ties & 1) WHERE id = $waiting",
	"attempts out of bounds":              "UPDATE pawl_job SET used = -1 WHERE id = $waiting",
	"priority out of bounds":              "UPDATE pawl_job SET priority = 12 WHERE id = $waiting",
	"log lines do not add up":             "UPDATE pawl_job SET logs = 3 WHERE id = $waiting",
	"wait of a job that is not suspended": "UPDATE pawl_job SET wait = 1 WHERE id = $waiting",
	"failures cannot be read":             "UPDATE pawl_job SET failures = x'5b5d' WHERE id = $waiting",
	"names cannot be read":                "UPDATE pawl_job SET tags = 'a,b' WHERE id = $waiting",
	"archived job in a live state":        "UPDATE pawl_job_archive SET state = 2",
	"archived without an end":             "UPDATE pawl_job_archive SET expires = 0",
	"row of no namespace":                 "INSERT INTO pawl_job_unique VALUES (1000, x'0102', $done, 1)",
	"unique key without its job":          "INSERT INTO pawl_job_unique VALUES ((SELECT max(namespace) FROM pawl_job), x'0102', $done, NULL)",
	"log lines without their job":         "INSERT INTO pawl_job_log VALUES ((SELECT max(namespace) FROM pawl_job), x'01020304050607080910111213141516', 1, 1, 1, 0, 'x')",
	"intent out of bounds":                "INSERT INTO pawl_intent (namespace, id, number, kind, created, subject) VALUES ((SELECT max(namespace) FROM pawl_job), $done, 1, 0, 1, 's')",
	"intent put off for nothing":          "INSERT INTO pawl_intent (namespace, id, number, kind, created, subject, due) VALUES ((SELECT max(namespace) FROM pawl_job), $done, 1, 1, 1, 's', 9000000000000000)",
	"declaration without its version":     "INSERT INTO pawl_declaration (namespace, kind, name, owner, version, value, since) SELECT namespace, 'queue', 'q', 'o', 'v', '{}', 1 FROM pawl_job LIMIT 1",
	"metric out of bounds":                "INSERT INTO pawl_metric SELECT namespace, 1, 3, 60000000, 'q', 'k', zeroblob(16), 0, NULL, 9000000000000000, x'01' FROM pawl_job LIMIT 1",
	"metric without its flush":            "INSERT INTO pawl_metric SELECT namespace, 1, 1, 3600000000, 'q', 'k', $done, 3, 9000000000000000, 9000000000000000, x'01' FROM pawl_job LIMIT 1",
	"metric in two places":                "INSERT INTO pawl_metric SELECT namespace, 1, w.column1, w.column2, 'q', 'k', zeroblob(16), 0, w.column3, 9000000000000000, x'01' FROM (SELECT namespace FROM pawl_job LIMIT 1), (VALUES (3, 3600000000, NULL), (2, 3660000000, 9000000000000000)) AS w",
	"pause of an unknown scope":           "INSERT INTO pawl_pause (namespace, scope, name, since, by, note) SELECT namespace, 9, 'q', 1, '', '' FROM pawl_job LIMIT 1",
}

func TestP6_CheckFindsEveryBrokenRule(t *testing.T) {
	for _, name := range (*Store)(nil).CheckRules() {
		if damage[name] == "" {
			t.Errorf("no test breaks the rule %q", name)
		}
	}
	for _, r := range settings.CheckRules {
		if _, ok := damage[r.Name]; !ok {
			t.Errorf("no test breaks the rule %q", r.Name)
		}
	}
	for name, text := range damage {
		t.Run(name, func(t *testing.T) {
			st, err := newFile(t).Open(t.Context(), store.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			s := st.(*Store)
			defer s.Close()
			w := s.mustRegister(t)
			done, running, waiting := draft(), draft(), draft()
			waiting.Unique = job.Unique{Hash: []byte("u")}
			s.mustEnqueue(t, done, running, waiting)
			held := s.mustClaim(t, claimOf(w, 1, 2)).Jobs
			if _, err := s.Finish(t.Context(), w, []job.End{{ID: held[0].ID, Run: held[0].Run, To: job.Done}}); err != nil {
				t.Fatal(err)
			}
			if r, err := s.Check(t.Context(), store.Check{}); err != nil || len(r.Faults) > 0 || r.Live != 2 || r.Archived != 1 {
				t.Fatalf("before the damage: %+v %v", r, err)
			}
			for name, d := range map[string]job.Draft{"$done": done, "$running": running, "$waiting": waiting} {
				text = strings.ReplaceAll(text, name, fmt.Sprintf("x'%x'", d.ID[:]))
			}
			sqlOf(t, s, text)
			for _, step := range []int{0, 1} {
				report, err := s.Check(t.Context(), store.Check{Step: step})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.ContainsFunc(report.Faults, func(f store.Fault) bool { return f.Rule == name }) {
					t.Errorf("with steps of %d, found %v, want %q", step, report.Faults, name)
				}
			}
		})
	}
}

// A run whose worker was just lost is not a fault: rescue has the grace.
func TestP6_TheGraceOfALostWorker(t *testing.T) {
	s := open(t, newFile(t))
	lost, by := s.mustRegister(t), s.mustRegister(t)
	s.mustEnqueue(t, drafts(2)...)
	s.mustClaim(t, claimOf(lost, 1, 2))
	s.SetClockOffset(2 * time.Minute)
	beaten, err := s.Beat(t.Context(), store.Beat{Worker: by})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.MarkLost(t.Context(), store.MarkLostRequest{By: by, Beat: beaten.Now, Steady: time.Hour}); n.Workers != 1 || err != nil {
		t.Fatal(n, err)
	}
	faults := func() int {
		r, err := s.Check(t.Context(), store.Check{Grace: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return len(r.Faults)
	}
	if n := faults(); n != 0 {
		t.Errorf("%d faults within the grace, want none", n)
	}
	s.SetClockOffset(4 * time.Minute)
	if n := faults(); n != 2 {
		t.Errorf("%d faults after the grace, want both runs", n)
	}
	if _, err := s.Rescue(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	if n := faults(); n != 0 {
		t.Errorf("%d faults after the rescue, want none", n)
	}
}
