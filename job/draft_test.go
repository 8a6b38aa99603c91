package job_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
)

func good() job.Draft {
	return job.Draft{ID: job.NewID(), Kind: "mail.welcome", Queue: "mail", Priority: 5, Attempts: 5, Args: []byte("{}")}
}

func TestJ3_DraftWithinBoundsIsAccepted(t *testing.T) {
	d := good()
	d.Tags, d.Capabilities, d.Key = []string{"a b", "ü"}, []string{"gpu"}, "user 42"
	if err := d.Check(job.Bounds{}); err != nil {
		t.Error(err)
	}
}

func TestP10_DraftFaultsNameFieldValueAndBound(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*job.Draft)
		want  []string
	}{
		{"priority", func(d *job.Draft) { d.Priority = 12 }, []string{"priority", "12", "1..9"}},
		{"priority 0", func(d *job.Draft) { d.Priority = 0 }, []string{"priority", "0", "1..9"}},
		{"version", func(d *job.Draft) { d.Version = 1 << 31 }, []string{"version", "2147483648", "0..2147483647"}},
		{"version below 0", func(d *job.Draft) { d.Version = -1 }, []string{"version", "-1", "0..2147483647"}},
		{"attempts", func(d *job.Draft) { d.Attempts = 0 }, []string{"attempts", "0", "1..10000"}},
		{"queue list", func(d *job.Draft) { d.Queue = "a,b" }, []string{"queue", `"a,b"`, `','`}},
		{"queue empty", func(d *job.Draft) { d.Queue = "" }, []string{"queue", "1..128"}},
		{"queue blank", func(d *job.Draft) { d.Queue = "a b" }, []string{"queue", `' '`}},
		{"kind long", func(d *job.Draft) { d.Kind = strings.Repeat("k", 129) }, []string{"kind", "129", "1..128"}},
		{"kind text", func(d *job.Draft) { d.Kind = "a\xff" }, []string{"kind", "UTF-8"}},
		{"kind control", func(d *job.Draft) { d.Kind = "a\x00b" }, []string{"kind", "control"}},
		{"payload", func(d *job.Draft) { d.Args = make([]byte, 1<<20+1) }, []string{"args", "1048577 bytes", "1048576 bytes"}},
		{"timeout", func(d *job.Draft) { d.Timeout = -time.Second }, []string{"timeout", "-1s"}},
		{"in", func(d *job.Draft) { d.In = -time.Second }, []string{"in", "-1s"}},
		{"tags", func(d *job.Draft) { d.Tags = make([]string, 33) }, []string{"tags", "33", "32"}},
		{"tag", func(d *job.Draft) { d.Tags = []string{""} }, []string{"tag", "1..128"}},
		{"key", func(d *job.Draft) { d.Key = strings.Repeat("k", 256) }, []string{"key", "256", "0..255"}},
		{"period", func(d *job.Draft) { d.Unique.Period = time.Hour }, []string{"unique period", "1h0m0s", "unique key"}},
		{"id", func(d *job.Draft) { d.ID = job.ID{} }, []string{"id", "must be set"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := good()
			c.spoil(&d)
			err := d.Check(job.Bounds{})
			if !errors.Is(err, job.ErrInvalid) {
				t.Fatalf("got %v", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}

func TestP10_AllFaultsAreReportedAtOnce(t *testing.T) {
	d := good()
	d.Priority, d.Attempts, d.Queue = 12, 0, "a,b"
	err := fmt.Sprint(d.Check(job.Bounds{}))
	for _, w := range []string{"priority", "attempts", "queue"} {
		if !strings.Contains(err, w) {
			t.Errorf("%q does not name %s", err, w)
		}
	}
}

func TestJ5_RoutesExactThenPrefixThenGlobThenDefault(t *testing.T) {
	routes := []job.Route{
		{Kind: "*.thumb-?", Queue: "gpu"},
		{Kind: "mail.*", Queue: "mail"},
		{Kind: "mail.bulk.*", Queue: "bulk"},
		{Kind: "mail.bulk.urgent", Queue: "now"},
	}
	for kind, want := range map[string]string{
		"mail.welcome": "mail", "mail.bulk.digest": "bulk", "mail.bulk.urgent": "now",
		"video.thumb-a": "gpu", "mail.thumb-a": "mail", "video.encode": "default", "mail": "default",
	} {
		if got := job.RouteKind(routes, kind); got != want {
			t.Errorf("%s goes to %s, want %s", kind, got, want)
		}
	}
	for _, r := range routes {
		if err := r.Check("route"); err != nil {
			t.Error(err)
		}
	}
	for _, r := range []job.Route{{Kind: "[", Queue: "a"}, {Kind: "", Queue: "a"}, {Kind: "a", Queue: "a,b"}} {
		if err := r.Check("route"); !errors.Is(err, job.ErrInvalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestJ4_UniqueHashDoesNotGlueParts(t *testing.T) {
	if string(job.UniqueHash("a", "bc")) == string(job.UniqueHash("ab", "c")) {
		t.Error("two keys share a hash")
	}
	first, again := job.UniqueHash("a", "b"), job.UniqueHash("a", "b")
	if string(first) != string(again) {
		t.Error("a key has two hashes")
	}
}
