// Package chromium starts the browser with which tests and pictures look at Mission Control.
package chromium

import (
	"context"

	"github.com/chromedp/chromedp"
)

// Start starts a program that is a Chromium, with no window. Its first tab is the context; end closes it and all others.
func Start(ctx context.Context, program string, more ...chromedp.ExecAllocatorOption) (tab context.Context, end func(), err error) {
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Headless,
		chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("lang", "en"), chromedp.Env("TZ=Europe/Vienna"),
		chromedp.WindowSize(1440, 900))
	all, stop := chromedp.NewExecAllocator(ctx, append(opts, more...)...)
	tab, cancel := chromedp.NewContext(all)
	end = func() {
		_ = chromedp.Cancel(tab)
		cancel()
		stop()
	}
	if err := chromedp.Do(tab); err != nil {
		end()
		return nil, nil, err
	}
	return tab, end, nil
}
