package webui_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/webui"
)

func TestU7_TheOverviewSaysWhatNeedsSomeone(t *testing.T) {
	s := openShop(t)
	b := open(t, s.control, "/")
	b.wait(`document.documentElement.dataset.charts === "ready"`)
	b.has("#need", "things need someone")
	b.has("#need", "exports is paused by ops: “bad template, INC-311”. 4 ready jobs wait.")
	b.has("#need", "No live worker serves queue legacy-sync. 4 ready jobs wait.")
	b.has("#need", "geo cools down until")
	b.has("#need", "jobs of kind invoice.render died")
	b.has("#kinds", "report.nightly")
	b.accessible()
	b.shots("overview")
}

func TestU7_ChartsShareACrosshairAndAreZoomed(t *testing.T) {
	s := openShop(t)
	b := open(t, s.control, "/")
	b.wait(`document.documentElement.dataset.charts === "ready"`)
	box := eval[map[string]float64](b,
		`(({x, y, width, height}) => ({x, y, width, height}))(document.querySelector(".u-over").getBoundingClientRect())`)
	latest := b.text(`[data-read="p99"]`)
	y := box["y"] + box["height"]/2
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, box["x"]+box["width"]*.6, y))
	b.wait(fmt.Sprintf(`document.querySelector('[data-read="p99"]').innerText !== %q`, latest)) // that of another chart
	b.wait(`[...document.querySelectorAll("[data-at]")].every((e) => /^\d\d:\d\d$/.test(e.innerText))`)
	b.shot("crosshair")
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, box["x"]+box["width"]*.6, y, chromedp.ButtonLeft,
		chromedp.ClickCount(1)),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, box["x"]+box["width"]*.7, y, chromedp.ButtonLeft),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, box["x"]+box["width"]*.8, y, chromedp.ButtonLeft),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, box["x"]+box["width"]*.8, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	b.wait(`/from=\d+&to=\d+/.test(location.search)`)
	b.settled()
	b.wait(`document.documentElement.dataset.charts === "ready"`)
	b.has("#failures", " to ")
	b.do(chromedp.DoubleClick(chromedp.CSS(".u-over")))
	b.wait(`location.search === ""`)
	b.settled()
}

// A page is shown before metrics are added up that take long, says so, and its stream brings them, with charts that can be pointed at.
func TestU7_APageComesBeforeItsMetrics(t *testing.T) {
	a, e := askedEngine(t)
	a.hold = make(chan struct{})
	server := httptest.NewServer(webui.Handler(e, auth.Open("tester")))
	t.Cleanup(func() { // when the browser has left
		server.CloseClientConnections()
		server.Close()
	})
	b := open(t, &control{t, e, server.URL}, "/")
	b.has("#need", "needs you")
	for _, region := range []string{"#charts", "#failures", "#kinds"} {
		b.has(region, "still being added up")
	}
	b.accessible()
	close(a.hold)
	b.wait(`!document.querySelector("main").innerText.includes("still being added up")`)
	b.wait(`document.documentElement.dataset.charts === "ready"`)
}

// The overview of a server that has just begun does not wait for its first look, which counts all jobs: it says that it counts, shows no
// number that nobody has read, and its stream brings them.
func TestU7_TheOverviewComesBeforeTheFirstLook(t *testing.T) {
	a, e := askedEngine(t)
	a.count = make(chan struct{})
	let := sync.OnceFunc(func() { close(a.count) })
	server := httptest.NewServer(webui.Handler(e, auth.Open("tester"), webui.Options{Version: "v7"}))
	t.Cleanup(func() { // when the browser has left
		let()
		server.CloseClientConnections()
		server.Close()
	})
	if _, err := e.Enqueue(t.Context(), charge{}, pawl.Queue("nobody")); err != nil {
		t.Fatal(err)
	}
	b := open(t, &control{t, e, server.URL}, "/")
	for _, region := range []string{"#need", "#kpi"} {
		b.has(region, "still being added up")
	}
	b.wait(`!document.querySelector("#kpi").innerText.includes("Ready") && !document.querySelector("#need").innerText.includes("Nothing")`)
	b.wait(`document.querySelector("#banner").innerText.trim() === "" && document.querySelector("#busy").innerText.trim() === ""`)
	b.accessible()
	let()
	b.wait(`!document.querySelector("main").innerText.includes("still being added up")`)
	b.has("#need", "nobody")
	b.has("#foot", "v7")
	b.wait(`document.documentElement.dataset.charts === "ready"`)
}

// A server looks before anybody does, once: who comes first finds the look under way, or there.
func TestU7_AServerLooksBeforeAnybodyDoes(t *testing.T) {
	a, e := askedEngine(t)
	a.count = make(chan struct{})
	server := httptest.NewServer(webui.Handler(e, auth.Open("tester"), webui.Options{Eager: true, Patience: patience}))
	t.Cleanup(server.Close)
	defer close(a.count) // it may ask again
	select {
	case a.count <- struct{}{}: // it has asked
	case <-time.After(20 * time.Second):
		t.Fatal("nobody looks")
	}
	answer, err := http.Get(server.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || strings.Contains(string(text), "Nothing was ever") || !strings.Contains(string(text), "</html>") {
		t.Errorf("the first page: %v\n%s", err, text)
	}
}
