package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlwork/pawl"
)

// Report adds up the day. In the demo night falls four times a minute.
type Report struct {
	Pages int `json:"pages"`
}

// Kind is "report.nightly".
func (Report) Kind() string { return reportKind }

const reportKind = "report.nightly"

// Defaults puts it into the queue of reports.
func (Report) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Queue("reports"), pawl.Attempts(3), pawl.Timeout(10 * time.Minute)}
}

// maxPages bounds a report.
const maxPages = 1000

// report writes a page a second, and says where it was when it was told to stop.
func (s *shop) report(ctx context.Context, j *pawl.Job[Report]) error {
	pages := j.Args.Pages
	if pages < 1 || pages > maxPages {
		return pawl.Dead(fmt.Errorf("pages %d: must be 1..%d", pages, maxPages))
	}
	j.Log().Info("the report begins", "pages", pages, "version", s.version)
	for page := range pages {
		if page%5 == 0 {
			j.Log().Info("adding up", "page", page+1, "of", pages)
		}
		if !pause(ctx, time.Second) {
			j.Log().Warn("stopped", "after page", page, "of", pages, "cause", context.Cause(ctx))
			return context.Cause(ctx)
		}
		if err := j.Progress(ctx, int64(page)+1, int64(pages)); err != nil {
			return err
		}
	}
	j.Log().Info("the report is written", "pages", pages)
	return nil
}

// Carts forgets carts that nobody came back for.
type Carts struct{}

// Kind is "cleanup.carts".
func (Carts) Kind() string { return "cleanup.carts" }

// Defaults puts it into the queue of cleaning.
func (Carts) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Queue("cleanup"), pawl.Attempts(3)}
}

func (s *shop) carts(ctx context.Context, _ *pawl.Job[Carts]) error {
	if !pause(ctx, 60*time.Millisecond) {
		return context.Cause(ctx)
	}
	return nil
}

// Export is a long list for a tenant.
type Export struct {
	Tenant string `json:"tenant"`
	Rows   int    `json:"rows"`
}

// Kind is "export.csv".
func (Export) Kind() string { return "export.csv" }

// Defaults puts it into the queue of exports, one for each tenant.
func (e Export) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Queue("exports"), pawl.Key(e.Tenant), pawl.Unique(pawl.ByKey(e.Tenant)), pawl.Attempts(3)}
}

// File is what was exported.
type File struct {
	Name string `json:"name"`
	Rows int    `json:"rows"`
}

func (s *shop) export(ctx context.Context, j *pawl.Job[Export]) (File, error) {
	const parts = 20
	for part := range parts {
		if !pause(ctx, time.Second) {
			return File{}, context.Cause(ctx)
		}
		if err := j.Progress(ctx, int64(part+1), parts); err != nil {
			return File{}, err
		}
	}
	return File{Name: j.Args.Tenant + ".csv", Rows: j.Args.Rows}, nil
}
