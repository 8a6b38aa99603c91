//go:build soak

package serve_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/server/internal/chromium"
)

// TestSoak_U7_UsableWithinASecond opens every page of Mission Control in a browser beside two million jobs in 500 queues of 50 workers,
// one after another as people do. The very first has nothing to build on: the server has just begun, the browser knows no file of ours.
// It is usable within a second, and so is each page in the middle of five more rounds after one.
func TestSoak_U7_UsableWithinASecond(t *testing.T) {
	const most, rounds = time.Second, 6
	program := need.Tool(t, "chromium")
	onStores(t, func(t *testing.T, address string) {
		s, pages := amongMillions(t, address)
		tab := s.tab(t, program)
		useBrowser(t, tab)
		t.Logf("load %s", loadAverage())
		ended := profiled(t, "cold")
		cold := s.visit(t, tab, pages[0])
		ended()
		t.Logf("the very first, %s: %.1f ms, %v", pages[0], ms(cold.usable()), cold)
		if cold.usable() > most {
			t.Errorf("the very first, %s, is usable after %v, want at most %v", pages[0], cold.usable(), most)
		}
		visits := map[string][]visit{}
		for range rounds {
			for _, path := range pages {
				visits[path] = append(visits[path], s.visit(t, tab, path))
			}
		}
		t.Logf("load %s", loadAverage())
		t.Logf("%-60s %8s %8s %8s  %s", "ms:", "first", "middle", "longest", "the middle one")
		for _, path := range pages {
			first, all := visits[path][0], visits[path][1:]
			slices.SortFunc(all, func(a, b visit) int { return cmp.Compare(a.usable(), b.usable()) })
			middle := all[len(all)/2]
			t.Logf("%-60.60s %8.1f %8.1f %8.1f  %v", path, ms(first.usable()), ms(middle.usable()), ms(all[len(all)-1].usable()), middle)
			if middle.usable() > most {
				t.Errorf("%s is usable after %v, want at most %v", path, middle.usable(), most)
			}
		}
	})
}

// visit is when a page came to what, in milliseconds since somebody went to it, by the browser's own clock.
type visit struct {
	Answer float64 // all of the page itself has come
	Paint  float64 // there is something to see
	Load   float64 // the load event is over
	Live   float64 // our modules have run and the page's stream is open
	Charts float64 // those that came with the page can be pointed at; 0: there are none
	Fresh  float64 // what the stream says first, which is all of the page again, is in its place
	Size   float64 // of the page, in bytes
	Parts  int     // elements of it
	Later  int     // parts that the page came without: metrics that were still being added up
	Failed string  // what the page says it could not read
}

// usable is when the last of it was there: people see the page, keys and buttons do what they say at once, and it is kept up to date.
func (v visit) usable() time.Duration {
	return time.Duration(max(v.Paint, v.Load, v.Live, v.Charts, v.Fresh) * float64(time.Millisecond))
}

func (v visit) String() string {
	return fmt.Sprintf("answer %.0f, paint %.0f, load %.0f, live %.0f, charts %.0f, fresh %.0f; %.0f kB, %d elements, %d parts later", v.Answer,
		v.Paint, v.Load, v.Live, v.Charts, v.Fresh, v.Size/1e3, v.Parts, v.Later)
}

// watchUsable is in each page before anything of its own. The mark that says Live is switched on by live.js, which htmx calls after all
// modules have run, when the stream answers; charts.js says when it is ready. The foot is the last that a stream says, so then nothing
// keeps the page from answering a key.
const watchUsable = `window.usable = new Promise((done) => {
	const v = { Live: 0, Charts: 0, Fresh: 0 }, root = () => document.documentElement;
	let charts;
	const look = () => {
		if (!v.Live && document.querySelector("#live.on")) v.Live = performance.now();
		if (!v.Charts && root()?.dataset.charts === "ready") v.Charts = performance.now();
		const [nav] = performance.getEntriesByType("navigation");
		const [paint] = performance.getEntriesByName("first-contentful-paint");
		if (!nav?.loadEventEnd || !paint || !v.Live || !v.Fresh || charts && !v.Charts) return;
		const failed = document.querySelector(".failed:not(.later)")?.innerText;
		done({ ...v, Answer: nav.responseEnd, Load: nav.loadEventEnd, Paint: paint.startTime,
			Size: nav.decodedBodySize, Parts: document.querySelectorAll("*").length,
			Failed: failed ?? (document.querySelector("#main > :not(header)") ? "" : "there is nothing on it") });
	};
	new MutationObserver(look).observe(document, { subtree: true, attributeFilter: ["class", "data-charts"] });
	new PerformanceObserver(look).observe({ type: "paint", buffered: true });
	addEventListener("htmx:sseMessage", (e) => { if (e.target.id === "foot") { v.Fresh ||= performance.now(); look(); } });
	addEventListener("DOMContentLoaded", () => {
		charts = document.querySelector("[data-chart]");
		v.Later = document.querySelectorAll(".later").length;
	});
	addEventListener("load", () => setTimeout(look));
})`

// tab is one with an empty cache, in a browser that lives as long as the test.
func (s *served) tab(t *testing.T, program string) context.Context {
	t.Helper()
	browser, end, err := chromium.Start(context.WithoutCancel(t.Context()), program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	tab, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	if _, err := chromedp.Call(tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watchUsable}); err != nil {
		t.Fatal(err)
	}
	return tab
}

// useBrowser shows a page that is not ours: people have used their browser before, and what it takes to begin is not Mission Control's.
func useBrowser(t *testing.T, tab context.Context) {
	t.Helper()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><style>body { font-family: system-ui; display: grid }</style><h1>Another page</h1><canvas></canvas>
<svg width="9" height="9"><path d="M0 0h9v9"/></svg><script type="module">window.usable = document.querySelector("canvas").getContext("2d") !== null</script>`)
	}))
	defer other.Close()
	ctx, cancel := context.WithTimeout(tab, time.Minute)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.NavigateResponse(other.URL)); err != nil {
		t.Fatal(err)
	}
	if used, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("usable")); err != nil || !used {
		t.Fatal(used, err)
	}
}

// visit goes to a page and waits until it is usable.
func (s *served) visit(t *testing.T, tab context.Context, path string) visit {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab, time.Minute)
	defer cancel()
	answer, err := chromedp.Run(ctx, chromedp.NavigateResponse(s.url+path))
	if err != nil || answer.Status != 200 {
		t.Fatalf("%s: %v %v", path, answer, err)
	}
	v, err := chromedp.Run(ctx, chromedp.Evaluate[visit]("usable", chromedp.EvalAwaitPromise))
	if err != nil || v.Failed != "" {
		t.Fatalf("%s: %v %s", path, err, v.Failed)
	}
	return v
}
