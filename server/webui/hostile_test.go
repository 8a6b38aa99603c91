package webui_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/pawlwork/pawl"
)

// hostile is what nobody should write.
const hostile = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>" +
	"\"'`{{.}}${x}\u202Etxt.exe\u2066\u200B\x1b[31m\x07</td></table>&lt;"

func TestU7_HostileContentIsShownAsTextAndTheLayoutHolds(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	c := serve(t)
	pawl.Handle(c.e, func(ctx context.Context, j *pawl.Job[charge]) error {
		j.Log().Info(hostile)
		j.Log().Error(long[:3000])
		_ = j.Progress(ctx, 1, 2)
		return pawl.Dead(errors.New(hostile + long[:3000]))
	})
	key := strings.NewReplacer("\x07", "", "\x1b", "").Replace(hostile) // keys have no control characters
	r, err := c.e.Enqueue(t.Context(), charge{work{Order: 1, Amount: hostile + long}}, pawl.Key(key), pawl.Tags("a.tag"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.e.Enqueue(t.Context(), charge{work{Amount: hostile}}, pawl.Queue("exports")); err != nil {
		t.Fatal(err)
	}
	if err := c.e.Queue("exports").Pause(pawl.As(t.Context(), hostile, hostile+long[:2000])); err != nil {
		t.Fatal(err)
	}
	c.run()
	if _, err := c.e.Wait(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	b := open(t, c, "/")
	for _, path := range []string{
		"/", "/jobs", "/jobs/dead", "/jobs/" + r.ID.String(), "/jobs?q=%3Cscript%3E", "/find?q=%3Cscript%3Ealert(1)%3C/script%3E",
		"/jobs/" + r.ID.String() + "?raw=args", "/jobs?key=%3Cb%3E",
	} {
		b.visit(path)
		for _, width := range []int64{1440, 390, 320} {
			b.size(width, 844)
			if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > int(width) {
				b.shot(fmt.Sprint("hostile-", width))
				t.Errorf("%s is %d wide on %d: %v", path, wide, width, eval[[]string](b, fmt.Sprintf(`[...document.querySelectorAll("main *")]
					.filter((e) => e.getBoundingClientRect().right > %d && !e.closest(".tw, .code, .views"))
					.slice(0, 5).map((e) => e.tagName + "." + e.className)`, width)))
			}
		}
		if eval[bool](b, `"hacked" in window || !!document.querySelector("main script, main img")`) {
			t.Errorf("%s: it ran", path)
		}
	}
	b.size(1440, 900)
	b.visit("/jobs/" + r.ID.String())
	b.has("#attempt-error", "<script>window.hacked=1</script>")
	b.has("#attempt-error", "⟨RLO⟩txt.exe")
	b.has("#log", "⟨RLO⟩txt.exe")
	b.has("#args", "Show all 2")
	b.accessible()
	b.shots("hostile")
}

func TestU7_TheKeyboardWorks(t *testing.T) {
	s := openShop(t)
	b := open(t, s.control, "/")
	for keys, title := range map[string]string{"gj": "Jobs", "gs": "Scheduled jobs", "gr": "Retries", "gd": "Dead jobs", "go": "Overview"} {
		b.press(keys)
		b.has("h1", title)
		b.settled()
	}
	b.visit("/")
	b.press("1")
	b.wait(`location.search === "?range=15m"`)
	b.settled()
	b.press("?")
	b.wait(`document.getElementById("help").open`)
	b.press("\x1b")
	b.wait(`!document.getElementById("help").open`)
	zone := eval[string](b, "document.documentElement.dataset.zone")
	b.press("z")
	b.wait(fmt.Sprintf("document.documentElement.dataset.zone !== %q", zone))
	b.press("t")
	b.wait(`document.documentElement.dataset.theme`)
	theme := eval[string](b, "document.documentElement.dataset.theme")
	b.visit("/jobs") // what was chosen is kept
	if eval[string](b, "document.documentElement.dataset.theme") != theme || eval[string](b, "document.documentElement.dataset.zone") == zone {
		t.Error("theme or zone is forgotten")
	}
	b.press("jjj")
	b.wait(`document.querySelectorAll("tbody tr")[2].classList.contains("cursor")`)
	b.press("k")
	b.press("x")
	b.press("jj")
	b.press("X")
	b.has("#bulk-count", "3 selected")
	b.press("\x1b")
	b.wait(`document.getElementById("bulk").hidden`)
	b.press("/")
	b.wait(`document.activeElement.matches("[data-filter]")`)
	b.press("kind:order.charge\r")
	b.has(".chip", "order.charge")
	b.settled()
	b.press("j")
	b.wait(`document.querySelector("tr.cursor")`)
	b.press("\r")
	b.has("h1", "order.charge")
	b.settled()
	first := eval[string](b, "location.pathname")
	b.wait(`!document.querySelector('[data-step="next"]').hidden`)
	b.press("j")
	b.wait(fmt.Sprintf("location.pathname !== %q", first))
	b.settled()
	b.press("k")
	b.wait(fmt.Sprintf("location.pathname === %q", first))
}

func TestU7_BackForwardAndReloadKeepTheView(t *testing.T) {
	s := openShop(t)
	b := open(t, s.control, "/jobs/dead?kind=invoice.render")
	b.click("tbody a[data-open]")
	b.has("#head", "Dead since")
	b.settled()
	b.leave("history.back()")
	b.wait(`location.search === "?kind=invoice.render" && document.querySelector(".chip")`)
	b.settled()
	b.leave("history.forward()")
	b.has("#head", "Dead since")
	b.settled()
	b.leave("location.reload()")
	b.has("#head", "Dead since")
	b.settled()
}

func TestU7_LiveUpdatesArriveAndALostConnectionIsSaid(t *testing.T) {
	var cut atomic.Bool
	s := openShop(t, func(s *setup) {
		s.wrap = func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if cut.Load() && strings.HasPrefix(r.URL.Path, "/live/") {
					http.Error(w, "cut", http.StatusServiceUnavailable)
					return
				}
				h.ServeHTTP(w, r)
			})
		}
	})
	b := open(t, s.control, "/")
	if err := s.e.Queue("exports").Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wait(`!document.querySelector("#need").innerText.includes("exports")`)
	b.visit("/jobs")
	b.wait(fmt.Sprintf(`document.getElementById("j-%s").innerText.includes("Done")`, s.paused))
	j := s.unserved
	if _, err := s.e.Cancel(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	b.wait(fmt.Sprintf(`document.getElementById("j-%s").innerText.includes("Cancelled")`, j))

	b.visit("/jobs/" + s.running.String())
	for i := range 3 {
		s.says <- fmt.Sprintf("line %d of a log that grows", i)
		b.has("#log", fmt.Sprintf("line %d of a log that grows", i))
	}
	if n := eval[int](b, `document.querySelectorAll("#log .line").length`); n != 6 {
		t.Errorf("%d lines, want 6: none twice", n)
	}
	b.visit("/jobs")

	b.expect("503")
	cut.Store(true)
	eval[bool](b, "pawlFeed.source.close(); pawlFeed.lose(); true") // as when the network ends it
	b.has("#conn", "Connection lost at")
	b.has("#conn", "You see what was true then")
	b.has("#live", "Not live since")
	b.wait(`document.querySelector("main.stale")`)
	b.shot("lost")
	cut.Store(false)
	b.click("#conn button")
	b.has("#conn", "Live again.")
	b.wait(`!document.querySelector("main.stale") && document.querySelector("#live.on")`)
	b.wait(`document.getElementById("conn").hidden`)
}

// What comes while somebody selects text of a region is there once they have let go of it, also where nothing changes afterwards.
func TestU7_WhatWasHeldBackComesLater(t *testing.T) {
	s := openShop(t)
	b := open(t, s.control, "/jobs/"+s.paused.String())
	b.has("#head", "is paused by ops")
	eval[bool](b, `getSelection().selectAllChildren(document.querySelector("#head .why p, #head p")); !getSelection().isCollapsed`)
	if err := s.e.Queue("exports").Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wait(`pawlFeed.missed.size > 0`)
	if text := b.text("#head"); !contains(text, "is paused by ops") {
		t.Errorf("what was selected is gone: %s", text)
	}
	if _, err := s.e.Wait(t.Context(), s.paused); err != nil {
		t.Fatal(err)
	}
	eval[bool](b, `getSelection().removeAllRanges(); true`)
	b.has("#head", "Done at")
	b.has("#live", "Live")
}

// The page of a question that is asked without JavaScript has no stream, and asks for none.
func TestU7_QuestionsOpenNoStream(t *testing.T) {
	var streams atomic.Int64
	s := openShop(t, func(s *setup) {
		s.wrap = func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/live/ask") {
					streams.Add(1)
				}
				h.ServeHTTP(w, r)
			})
		}
	})
	b := open(t, s.control, "/jobs")
	b.do(chromedp.Navigate(s.url + "/ask/job/delete?id=" + s.dead.String()))
	b.has("main", "for good?")
	b.wait(`document.readyState === "complete" && window.htmx !== undefined`)
	if n := streams.Load(); n > 0 || eval[bool](b, `document.querySelector("[sse-connect]") !== null || window.pawlFeed !== undefined`) {
		t.Errorf("%d streams were asked for", n)
	}
}
