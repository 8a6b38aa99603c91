package job_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/pawlwork/pawl/job"
)

func TestJ28_HeadersAreAMap(t *testing.T) {
	var d job.Draft
	if d.Headers() != nil {
		t.Errorf("without headers: %v", d.Headers())
	}
	if err := errors.Join(d.SetHeader("traceparent", "00-x"), d.SetHeader("tenant", "größe"), d.SetHeader("traceparent", "00-y")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"traceparent": "00-y", "tenant": "größe"}
	if !maps.Equal(d.Headers(), want) {
		t.Errorf("the draft has %v", d.Headers())
	}
	j := job.Job{HeaderBytes: d.HeaderBytes}
	if !maps.Equal(j.Headers(), want) {
		t.Errorf("the job has %v", j.Headers())
	}
	clear(j.Headers()) // the caller's own
	if !maps.Equal(j.Headers(), want) {
		t.Errorf("after a caller emptied its map the job has %v", j.Headers())
	}
	for _, bad := range [][2]string{{"caf\xe9", "x"}, {"x", "caf\xe9"}} {
		if err := d.SetHeader(bad[0], bad[1]); !errors.Is(err, job.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if !maps.Equal(d.Headers(), want) {
		t.Errorf("after a refused header the draft has %v", d.Headers())
	}
}

// What another program wrote must not stop anybody from looking at the job.
func TestJ28_UnreadableHeadersAreNone(t *testing.T) {
	for _, text := range []string{"h", "[]", `{"a":1}`, "\x00"} {
		j := job.Job{HeaderBytes: []byte(text)}
		if got := j.Headers(); got != nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
