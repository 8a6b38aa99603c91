package webui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"go.uber.org/goleak"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/internal/chromium"
	"github.com/pawlwork/pawl/server/webui"
	"github.com/pawlwork/pawl/store/sqlite"
)

// One browser serves all tests of this binary; each tab has cookies of its own.
var browser struct {
	once sync.Once
	ctx  context.Context
	end  func()
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if browser.end != nil {
		browser.end()
	}
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// control is Mission Control of an engine, on loopback.
type control struct {
	t   *testing.T
	e   *pawl.Engine
	url string // with the prefix
}

// setup is how it is served.
type setup struct {
	config  pawl.Config
	who     auth.Auth
	options webui.Options
	wrap    func(http.Handler) http.Handler // around it
}

// serve starts one, for everybody as admin unless it is told otherwise.
func serve(t *testing.T, edit ...func(*setup)) *control {
	t.Helper()
	s := &setup{
		config: pawl.Config{Queues: pawl.Queues{"default": {Workers: 5}, "mail": {Workers: 5}}, Logger: slog.New(slog.DiscardHandler)},
		who:    auth.Open("tester"), options: webui.Options{Version: "v7", Patience: patience},
	}
	for _, f := range edit {
		f(s)
	}
	e, err := pawl.New(sqlite.Memory(), s.config)
	if err != nil {
		t.Fatal(err)
	}
	h := webui.Handler(e, s.who, s.options)
	if s.wrap != nil {
		h = s.wrap(h)
	}
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return &control{t, e, server.URL + s.options.Prefix}
}

// run lets the engine run until the test ends.
func (c *control) run() {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.e.Run(ctx) }()
	c.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	})
}

// as is somebody with a role.
func as(role auth.Role) func(*setup) {
	return func(s *setup) {
		s.who = auth.Func(func(*http.Request) (auth.Identity, error) { return auth.Identity{Name: "tester", Role: role}, nil })
	}
}

// tab is one in the browser. When its test ends it wants that nothing failed: no error on the console, no request that failed or was
// refused, none that left loopback.
type tab struct {
	t   *testing.T
	c   *control
	ctx context.Context

	mu       sync.Mutex
	faults   []string
	expected []string // parts of faults that are none here
}

// patience is how long a page may take to come to something.
const patience = 60 * time.Second

// start starts the browser.
func start(t *testing.T) context.Context {
	t.Helper()
	path := need.Tool(t, "chromium")
	browser.once.Do(func() {
		browser.ctx, browser.end, browser.err = chromium.Start(context.Background(), path)
	})
	if browser.err != nil {
		t.Fatal(browser.err)
	}
	return browser.ctx
}

// open opens a page in a tab of its own, and waits until it is live.
func open(t *testing.T, c *control, path string) *tab {
	t.Helper()
	b := tabOf(t, c)
	b.visit(path)
	return b
}

// tabOf is an empty tab.
func tabOf(t *testing.T, c *control) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(start(t), chromedp.WithNewBrowserContext())
	b := &tab{t: t, c: c, ctx: ctx}
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error { return nil }))
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	watched := b.watch()
	t.Cleanup(func() {
		cancel()
		watched.Wait()
		for _, fault := range b.faults {
			t.Error(fault)
		}
	})
	b.size(1440, 900)
	return b
}

// watch collects what fails, until the tab is closed.
func (b *tab) watch() *sync.WaitGroup {
	var all sync.WaitGroup
	console := chromedp.Console(b.ctx)
	sent := chromedp.Events(b.ctx, network.RequestWillBeSent)
	received := chromedp.Events(b.ctx, network.ResponseReceived)
	failed := chromedp.Events(b.ctx, network.LoadingFailed)
	all.Go(func() {
		for m, err := range console {
			if err != nil {
				return
			}
			if m.Type == chromedp.ConsoleError || m.IsException() || m.Type == chromedp.ConsoleWarning && m.Source != "" {
				b.fault("console: %s (%s:%d)", m, m.URL, m.Line)
			}
		}
	})
	all.Go(func() {
		for e, err := range sent {
			if err != nil {
				return
			}
			if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" && u.Hostname() != "127.0.0.1" && u.Scheme != "about" {
				b.fault("request to %s leaves loopback", e.Request.URL)
			}
		}
	})
	all.Go(func() {
		for e, err := range received {
			if err != nil {
				return
			}
			if e.Response.Status >= 400 {
				b.fault("response %d of %s", e.Response.Status, e.Response.URL)
			}
		}
	})
	all.Go(func() {
		for e, err := range failed {
			if err != nil {
				return
			}
			if !e.Canceled && e.Type != network.ResourceTypeEventSource {
				b.fault("a request of type %s failed: %s %s", e.Type, e.ErrorText, e.BlockedReason)
			}
		}
	})
	return &all
}

func (b *tab) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, part := range b.expected {
		if strings.Contains(text, part) {
			return
		}
	}
	b.faults = append(b.faults, text)
}

// expect takes faults with a part for what a test wants to see.
func (b *tab) expect(part string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, part)
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := b.ctx, context.CancelFunc(func() {})
	if len(steps) > 0 && chromedp.FromContext(b.ctx).Target != nil {
		ctx, cancel = context.WithTimeout(b.ctx, patience)
	}
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// visit goes to a page of the control, and waits until its scripts run and its stream is open.
func (b *tab) visit(path string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	answer, err := chromedp.Run(ctx, chromedp.NavigateResponse(b.c.url+path))
	if err != nil {
		b.t.Fatalf("%s: %v", path, err)
	}
	if answer.Status >= 400 {
		b.t.Fatalf("%s: %d %s", path, answer.Status, b.text("body"))
	}
	b.settled()
}

// settled waits until the page is live.
func (b *tab) settled() {
	b.t.Helper()
	b.wait(`document.readyState === "complete" && document.querySelector("#live.on")`)
}

// size sets the size of the window.
func (b *tab) size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// eval is what an expression is in the page.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// wait waits until an expression is true in the page, also across one that is loaded meanwhile.
func (b *tab) wait(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	poll := fmt.Sprintf(`new Promise((done) => {
		const look = () => { let v; try { v = (%s) } catch { } if (v) done(true); else setTimeout(look, 20) };
		look();
	})`, expression)
	for {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](poll, chromedp.EvalAwaitPromise))
		if err == nil {
			return
		}
		if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
			shown, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText`))
			b.t.Fatalf("in vain: %s\nfaults: %q\nthe page has:\n%.3000s", expression, b.faults, shown)
		}
	}
}

// click clicks on what a selector finds first. A page that lives may replace it between finding and clicking: then nothing
// was clicked, and it is found anew.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.wait(fmt.Sprintf("document.querySelector(%s)", quoted(selector)))
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS(selector)))
		if err == nil {
			return
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "Could not find node with given id") {
			b.t.Fatalf("click on %s: %v", selector, err)
		}
	}
}

// press presses keys as a keyboard does: a key that the page takes types nothing.
func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for _, r := range keys {
			events := kb.Encode(r)
			for i, k := range events {
				if k.Type == kb.KeyChar {
					continue
				}
				if i+1 < len(events) && events[i+1].Type == kb.KeyChar {
					k.Type, k.Text = input.DispatchKeyEventTypeKeyDown, events[i+1].Text
				}
				if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, *k); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// text is what is shown of an element.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf("document.querySelector(%s).innerText", quoted(selector)))
}

// has wants an element to show some text, sooner or later.
func (b *tab) has(selector, text string) {
	b.t.Helper()
	b.wait(fmt.Sprintf("document.querySelector(%s).innerText.includes(%s)", quoted(selector), quoted(text)))
}

// accessible wants that axe finds nothing serious, in both themes.
func (b *tab) accessible() {
	b.t.Helper()
	text, err := os.ReadFile("testdata/axe-core/axe.min.js")
	if err != nil {
		b.t.Fatal(err)
	}
	eval[bool](b, string(text)+";true")
	for _, theme := range []string{"dark", "light"} {
		eval[bool](b, fmt.Sprintf("document.documentElement.dataset.theme = %q; true", theme))
		found := eval[[]string](b, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations
			.filter((v) => v.impact === "serious" || v.impact === "critical")
			.map((v) => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3)
				.map((n) => n.html.slice(0, 200) + " " + (n.any[0]?.message || "")).join(" | ")))`)
		for _, one := range found {
			b.t.Errorf("%s, %s: %s", eval[string](b, "location.pathname"), theme, one)
		}
	}
}

// shot writes what is seen to a file, where PAWL_SHOTS names a folder.
func (b *tab) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("PAWL_SHOTS")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(dir+"/"+name+".png", picture, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// shots are of a page in both themes, on a desk and on a phone.
func (b *tab) shots(name string) {
	b.t.Helper()
	if os.Getenv("PAWL_SHOTS") == "" {
		return
	}
	for _, size := range []struct{ width, height int64 }{{1440, 900}, {390, 844}} {
		b.size(size.width, size.height)
		for _, theme := range []string{"dark", "light"} {
			eval[bool](b, fmt.Sprintf(`document.documentElement.dataset.theme = %q;
				scrollTo(0, 0);
				dispatchEvent(new Event("pawl:theme"));
				new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`, theme))
			b.shot(fmt.Sprintf("%s-%s-%d", name, theme, size.width))
		}
	}
	b.size(1440, 900)
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}
