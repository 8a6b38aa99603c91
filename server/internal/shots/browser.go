package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/pawlwork/pawl/server/internal/chromium"
)

// browser is a tab of chromium, and what it took.
type browser struct {
	ctx             context.Context
	end             func()
	to              string // folder of the pictures
	pictures, bytes int
}

// sizes are those of a desk and of a phone.
var sizes = []struct{ width, height int64 }{{1440, 900}, {390, 844}}

var themes = []string{"dark", "light"}

func startBrowser(ctx context.Context, program, to string) (*browser, error) {
	tab, end, err := chromium.Start(ctx, program, chromedp.Flag("hide-scrollbars", true))
	if err != nil {
		return nil, err
	}
	b := &browser{ctx: tab, to: to, end: end}
	if _, err := chromedp.Call(tab, network.Enable, network.EnableParams{}); err != nil {
		b.end()
		return nil, err
	}
	return b, nil
}

// take takes a scene in both sizes and themes.
func (b *browser) take(d *demo, s scene) error {
	for _, size := range sizes {
		path, err := s.path(b.ctx, d)
		if err != nil {
			return err
		}
		if err := chromedp.Do(b.ctx, chromedp.EmulateViewport(size.width, size.height)); err != nil {
			return err
		}
		if _, err := chromedp.Run(b.ctx, chromedp.NavigateResponse(d.url+path)); err != nil {
			return err
		}
		if err := b.wait(`document.readyState === "complete" && document.querySelector("#live.on")`); err != nil {
			return err
		}
		if err := b.wait(`!document.querySelector("[data-chart]") || document.querySelector(".uplot")`); err != nil {
			return err
		}
		if s.do != nil {
			if err := s.do(b); err != nil {
				return err
			}
		}
		for _, theme := range themes {
			if err := b.picture(fmt.Sprintf("%s-%s-%d", s.name, theme, size.width), theme); err != nil {
				return err
			}
		}
	}
	return nil
}

// picture writes what is seen in a theme.
func (b *browser) picture(name, theme string) error {
	err := b.wait(fmt.Sprintf(`(document.documentElement.dataset.theme = %q, scrollTo(0, 0), dispatchEvent(new Event("pawl:theme")), true)`, theme))
	if err != nil {
		return err
	}
	frames := `new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => done(true))), 300))`
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](frames, chromedp.EvalAwaitPromise)); err != nil {
		return err
	}
	taken, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	small, err := shrink(bytes.NewReader(taken))
	if err != nil {
		return err
	}
	b.pictures, b.bytes = b.pictures+1, b.bytes+len(small)
	return os.WriteFile(filepath.Join(b.to, name+".png"), small, 0o644)
}

// wait waits until an expression is true in the page.
func (b *browser) wait(expression string) error {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	poll := fmt.Sprintf(`new Promise((done) => {
		const look = () => { let v; try { v = (%s) } catch { } if (v) done(true); else setTimeout(look, 20) };
		look();
	})`, expression)
	for {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](poll, chromedp.EvalAwaitPromise))
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("in vain: %s: %w", expression, err)
		}
		time.Sleep(20 * time.Millisecond) // the page is being loaded
	}
}

// click clicks on what a selector finds first.
func (b *browser) click(selector string) error {
	if err := b.wait(fmt.Sprintf("document.querySelector(%q)", selector)); err != nil {
		return err
	}
	return chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS(selector)))
}
