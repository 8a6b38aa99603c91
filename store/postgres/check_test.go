package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// damage breaks one rule with SQL, as a bug or a person with a shell would.
var damage = map[string]string{
	"live job in a final state":           "UPDATE pawl.job SET state = 5 WHERE id = $waiting",
	"job in two places":                   "INSERT INTO pawl.job (namespace, id, state, priority, due, max_attempts, created, queue, kind) SELECT namespace, id, 2, priority, due, 5, created, queue, kind FROM pawl.job_archive WHERE id = $done",
	"running without a worker":            "UPDATE pawl.job SET worker = NULL WHERE id = $running",
	"worker of a job that does not run":   "UPDATE pawl.job SET worker = 1 WHERE id = $waiting",
	"running without a live worker":       "UPDATE pawl.job SET worker = 99, started = '2001-01-01' WHERE id = $running",
	"unique key not held":                 "DELETE FROM pawl.job_unique",
	"ties do not add up":                  "UPDATE pawl.job SET ties = 1 - (ties & 1) WHERE id = $waiting",
	"attempts out of bounds":              "UPDATE pawl.job SET used = -1 WHERE id = $waiting",
	"priority out of bounds":              "UPDATE pawl.job SET priority = 12 WHERE id = $waiting",
	"wait of a job that is not suspended": "UPDATE pawl.job SET wait = 1 WHERE id = $waiting",
	"failures cannot be read":             "UPDATE pawl.job SET failures = '[]' WHERE id = $waiting",
	"names cannot be read":                "UPDATE pawl.job SET tags = '{a,NULL}' WHERE id = $waiting",
	"archived job in a live state":        "UPDATE pawl.job_archive SET state = 2",
	"archived without an end":             "UPDATE pawl.job_archive SET expires = '2001-01-01'",
	"row of no namespace":                 "INSERT INTO pawl.job_unique SELECT namespace + 1000, '\\x0102', $done, '2030-01-01' FROM pawl.job LIMIT 1",
	"unique key without its job":          "INSERT INTO pawl.job_unique SELECT namespace, '\\x0102', $done, NULL FROM pawl.job LIMIT 1",
	"intent out of bounds":                "INSERT INTO pawl.intent (namespace, transaction, id, kind, created, subject) SELECT namespace, '1', $done, 0, now(), 's' FROM pawl.job LIMIT 1",
	"intent put off for nothing":          "INSERT INTO pawl.intent (namespace, transaction, id, kind, created, subject, due) SELECT namespace, '1', $done, 1, now(), 's', '2100-01-01' FROM pawl.job LIMIT 1",
	"declaration without its version":     "INSERT INTO pawl.declaration SELECT namespace, 'queue', 'q', 'o', 'v', '{}', now() FROM pawl.job LIMIT 1",
	"metric out of bounds":                "INSERT INTO pawl.metric (namespace, class, width, flush, start, expires, source, name, kind, data) SELECT namespace, 1, 3, 0, '2026-01-01 00:01Z', '2100-01-01', '00000000-0000-0000-0000-000000000000', 'q', 'k', '1' FROM pawl.job LIMIT 1",
	"metric without its flush":            "INSERT INTO pawl.metric (namespace, class, width, flush, start, roll, expires, source, name, kind, data) SELECT namespace, 1, 1, 3, '2026-01-01 00:01Z', '2100-01-01', '2100-01-01', $done, 'q', 'k', '1' FROM pawl.job LIMIT 1",
	"metric in two places":                "INSERT INTO pawl.metric (namespace, class, width, flush, start, roll, expires, source, name, kind, data) SELECT j.namespace, 1, w.*, '2100-01-01', '00000000-0000-0000-0000-000000000000', 'q', 'k', '1' FROM (SELECT namespace FROM pawl.job LIMIT 1) AS j, (VALUES (3, 0, '2026-01-01 00:00Z'::timestamptz, NULL::timestamptz), (2, 0, '2026-01-01 00:01Z', '2100-01-01')) AS w",
	"pause of an unknown scope":           "INSERT INTO pawl.pause SELECT namespace, 9, 'q', now(), '', '' FROM pawl.job LIMIT 1",
}

func TestP6_CheckFindsEveryBrokenRule(t *testing.T) {
	for _, name := range (*Store)(nil).CheckRules() {
		if damage[name] == "" {
			t.Errorf("no test breaks the rule %q", name)
		}
	}
	s := openInternal(t)
	check := func(step int) store.CheckReport {
		t.Helper()
		report, err := s.Check(t.Context(), store.Check{Step: step})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	for name, text := range damage {
		t.Run(name, func(t *testing.T) {
			if _, err := s.pg.Users.Exec(t.Context(), s.pg.SQL("TRUNCATE pawl.job, pawl.job_archive, pawl.job_unique, pawl.declaration, pawl.pause, pawl.intent, pawl.metric")); err != nil {
				t.Fatal(err)
			}
			s.claims.Frontiers.Drop()
			c := hire(t, s)
			done, running, waiting := someDraft(), someDraft(), someDraft(unique("u"))
			c.enqueue(done, running, waiting)
			held := c.claim(2)
			c.finish(held[:1])
			if r := check(0); len(r.Faults) > 0 || r.Live != 2 || r.Archived != 1 {
				t.Fatalf("before the damage: %+v", r)
			}
			for what, id := range map[string]job.ID{"$done": held[0].ID, "$running": held[1].ID, "$waiting": waiting.ID} {
				text = strings.ReplaceAll(text, what, "'"+id.String()+"'")
			}
			if _, err := s.pg.Users.Exec(t.Context(), s.pg.SQL(text)); err != nil {
				t.Fatal(err)
			}
			for _, step := range []int{0, 1} {
				if r := check(step); !slices.ContainsFunc(r.Faults, func(f store.Fault) bool { return f.Rule == name }) {
					t.Errorf("with steps of %d, found %v, want %q", step, r.Faults, name)
				}
			}
		})
	}
}
