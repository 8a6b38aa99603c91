package webui_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/webui"
)

func TestU7_ServicesShowLoopsAndRunRounds(t *testing.T) {
	c := serve(t, scheduled)
	c.run()
	until(t, func() bool { return c.e.Stats().Worker != 0 && len(c.e.Services(t.Context())) > 5 })
	b := open(t, c, "/services")
	b.has("main", "It leads")
	b.has("main", "keeper")
	b.has("main", "purge")
	b.accessible()
	b.shots("services")
	b.fitsAPhone()
	b.bound("form[action$='service/run']")
	b.click("form[action$='service/run']:has([value=purge]) button")
	b.has("#toasts", "purge ran for")
	b.has("#toasts", "nothing to do")
	if l, err := c.e.Audit(t.Context(), pawl.AuditFilter{Target: "purge"}, pawl.AuditPage{}); err != nil || len(l.Entries) != 1 || l.Entries[0].Action != "run upkeep" {
		t.Errorf("the audit log has %+v, %v", l, err)
	}
	// What it does is told. Its cycles are seen to go on.
	b.wait(`[...document.querySelectorAll(".c-cycles")].some((e) => Number(e.innerText.replace(",", "")) > 3)`)
	b.leave("location.reload()")
	b.has("main", "It leads")
}

func TestU7_ServicesOfAServerThatOnlyServes(t *testing.T) {
	c := serve(t, as(auth.Operator))
	b := open(t, c, "/services")
	b.has("main", "runs no engine of its own")
	b.has("main", "Nobody leads")
	b.has("main", "removes what is kept no longer")
	noButtons(b) // only admins run rounds
	b.accessible()
}

func TestU7_SettingsAreChosenAndShown(t *testing.T) {
	secret, hash := auth.NewToken()
	file := filepath.Join(t.TempDir(), "tokens")
	line := auth.Token{Name: "ann", Role: auth.Operator, Hash: hash}.String() + "\n"
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.OpenTokens(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	with := func(s *setup) {
		s.options.Settings = []webui.Setting{{"serve.listen", "127.0.0.1:7340", "default"}, {"store", "postgres:(hidden)", "environment"}}
		s.options.Tokens = auth.NewSessions(tokens).Tokens
	}
	c := serveScheduled(t, with)
	if err := c.e.Queue("mail").Set(operating(t.Context(), "SMTP relay limit"), pawl.QueueSettings{Attempts: 4}); err != nil {
		t.Fatal(err)
	}
	b := open(t, c, "/settings")
	b.has("main", "serve.listen")
	b.has("main", "environment")
	b.has("main", "SMTP relay limit")
	b.has(".tokens", "ann")
	b.has(".tokens", "operator")
	if whole := eval[string](b, "document.documentElement.outerHTML"); contains(whole, secret) || contains(whole, "sha256:") || contains(whole, line[12:40]) {
		t.Error("what proves a token is on the page")
	}
	b.accessible()
	b.shots("settings")
	b.fitsAPhone()

	choose := func(text string) {
		t.Helper()
		b.leave(`[...document.querySelectorAll(".mine a")].find((a) => a.innerText === ` + quoted(text) + `).click()`)
	}
	choose("Dark")
	b.wait(`document.documentElement.dataset.theme === "dark"`)
	b.settled()
	choose("Dense")
	b.wait(`document.documentElement.dataset.density === "dense"`)
	b.settled()
	choose("20")
	b.wait(`[...document.querySelectorAll(".mine a[aria-current]")].some((a) => a.innerText === "20")`)
	b.settled()
	b.press("g")
	b.press("c")
	b.wait(`location.pathname === "/cron"`)
	b.settled()
	b.visit("/settings")
	choose("Off")
	b.wait(`document.documentElement.dataset.keys === "off"`)
	b.settled()
	b.press("g")
	b.press("c")
	b.press("t") // does nothing any more
	b.visit("/settings")
	b.wait(`document.documentElement.dataset.theme === "dark" && document.documentElement.dataset.density === "dense"`)

	viewer := serve(t, as(auth.Viewer), with)
	b = open(t, viewer, "/settings")
	b.has("main", "serve.listen")
	if contains(b.text("main"), "Tokens") {
		t.Error("a viewer sees tokens")
	}
	noButtons(b)
}
