package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// What is parked is replayed call by call until there is no more, also where the oldest are gone from the log.
func TestU8_AllThatIsParkedIsReplayed(t *testing.T) {
	for _, c := range []struct {
		answers string
		calls   int
		prints  string
	}{
		{`{"replayed":1000,"more":true} {"replayed":1000,"more":true} {"replayed":7,"gone":2}`, 3, "2007 replayed\n2 are not in the log any more\n"},
		{`{"replayed":0,"gone":1000,"more":true}`, 1, "0 replayed\n1000 are not in the log any more\n"},
		{`{"replayed":0}`, 1, "0 replayed\n"},
	} {
		answers, calls := strings.Fields(c.answers), 0
		out, problems, code := at(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintln(w, answers[calls])
			calls++
		}), "", "group", "replay", "billing", "--all")
		if code != 0 || calls != c.calls || out != c.prints {
			t.Errorf("%s: exit %d after %d calls: %s%s", c.answers, code, calls, out, problems)
		}
	}
}
