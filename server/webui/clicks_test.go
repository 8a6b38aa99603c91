package webui_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
)

// clickReady clicks at once, because rows are replaced, and as a person would: when the page is there and its scripts know the
// element.
const clickReady = `((e) => {
	if (!e || document.readyState !== "complete" || !window.htmx) return false;
	const knows = e.closest("[hx-get],[hx-post]");
	if (knows && !knows["htmx-internal-data"]) return false;
	e.click();
	return true;
})(document.querySelector(%s))`

// What an on-call engineer comes for is at most three clicks from the overview.
func TestU7_EachInThreeClicks(t *testing.T) {
	s := openShop(t)
	ctx := t.Context()
	for _, c := range []struct {
		name   string
		clicks []string // selectors, in their order
		shows  [2]string
		is     func() bool // in the store [anything]
	}{
		{
			name: "why a job does not run", clicks: []string{`#need a[href*="/queues/legacy-sync"]`},
			shows: [2]string{"main", "No live worker serves it"},
		},
		{
			name: "why this very job does not run", clicks: []string{`#side a[href="/jobs"]`, `.views a[href*="state=ready"]`,
				fmt.Sprintf("#o-%s", s.paused)},
			shows: [2]string{".why", "exports is paused"},
		},
		{
			name:   "the same from what needs someone, but for the last click",
			clicks: []string{`#need a[href*="/jobs/dead?error="]`, `.top [hx-get*="/ask/jobs/retry"]`},
			shows:  [2]string{"#dialog", "Retry 8 jobs?"},
		},
		{
			name:   "retry all dead jobs of one kind",
			clicks: []string{`#side a[href="/jobs/dead"]`, `.groups [hx-get*="kind=invoice.render"]`, "#dialog button.pri"},
			shows:  [2]string{".toasts", "8 jobs"},
			is: func() bool {
				list, err := s.e.Operations(ctx)
				return err == nil && len(list) == 1 && list[0].By == "tester"
			},
		},
		{
			name: "stop a runaway queue", clicks: []string{`#side a[href="/queues"]`, `form:has([name="name"][value="mail"]) button`},
			shows: [2]string{".toasts", "mail is paused"},
			is: func() bool {
				list, err := s.e.Queues(ctx, "mail")
				return err == nil && len(list) == 1 && list[0].Pause != nil && list[0].Pause.Scope == pawl.PauseQueue
			},
		},
		{
			name: "the slowest kind of the last hour", clicks: []string{`.seg a[data-range="2"]`},
			shows: [2]string{"#kinds tbody tr", "report.nightly"},
		},
	} {
		if len(c.clicks) > 3 {
			t.Errorf("%s: %d clicks", c.name, len(c.clicks))
		}
		b := open(t, s.control, "/")
		begun := time.Now()
		for _, selector := range c.clicks {
			b.wait(fmt.Sprintf(clickReady, quoted(selector)))
		}
		b.has(c.shows[0], c.shows[1])
		if c.is != nil && !c.is() {
			t.Errorf("%s: the store knows nothing of it", c.name)
		}
		t.Logf("%s: %d clicks, %v", c.name, len(c.clicks), time.Since(begun).Round(time.Millisecond))
	}
}
