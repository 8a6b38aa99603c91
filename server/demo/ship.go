package demo

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
)

// FixPath is where 1.8.3 is shipped, by POST.
const FixPath = "/demo/fix-vat"

// TryPath is where what there is to try can be read.
const TryPath = "/demo/tries"

// shipNote marks in the audit log that a version was shipped: it stays shipped when the demo is
// started again.
const shipNote = "shipped " + versionFixed + ": invoices no longer need a VAT id"

// Shipped says what a request to ship came to.
type Shipped struct {
	Version string `json:"version"`
	Changed bool   `json:"changed"` // false: it was shipped before
}

// ErrNotRunning is for who ships while the company does not run.
var ErrNotRunning = errors.New("demo: the company does not run")

// Ship lets workers of 1.8.3 take the place of those of 1.8.2: the new ones begin, then the old ones
// stop gracefully. It is in the audit log, as the end of a pause of invoice.render.
func (c *Company) Ship(ctx context.Context) (Shipped, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Shipped{Version: versionFixed}
	switch {
	case c.workers == nil:
		return s, ErrNotRunning
	case c.workers.version == versionFixed:
		return s, nil
	}
	next, err := c.hire(ctx, versionFixed)
	if err != nil {
		return s, err
	}
	last := c.workers
	c.workers, s.Changed = next, true
	err = last.dismiss()
	by := auth.From(ctx).Name
	return s, errors.Join(err, c.config.Front.Kind(invoiceKind).Resume(pawl.As(context.WithoutCancel(ctx), by, shipNote)))
}

// shipped is the version that runs: the last that was shipped into this store.
func (c *Company) shipped(ctx context.Context) (version string, err error) {
	done, err := c.audited(ctx, pawl.AuditFilter{Target: invoiceKind, Action: "resume kind"}, 1000, func(e *pawl.AuditEntry) bool { return e.Note == shipNote })
	if done {
		return versionFixed, err
	}
	return versionFirst, err
}

// audited reports whether the newest entries that a filter finds have one that fits.
func (c *Company) audited(ctx context.Context, f pawl.AuditFilter, newest int, fits func(*pawl.AuditEntry) bool) (bool, error) {
	list, err := c.config.Front.Audit(ctx, f, pawl.AuditPage{Limit: newest})
	if err != nil {
		return false, err
	}
	for i := range list.Entries {
		if fits(&list.Entries[i]) {
			return true, nil
		}
	}
	return false, nil
}

// FixVAT answers POST requests to ship 1.8.3. Who may call it is for the server to decide: an operator.
func (c *Company) FixVAT() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := c.Ship(r.Context())
		if err != nil {
			c.config.Logger.Error("1.8.3 could not be shipped", "error", err)
			answer(w, "application/problem+json", http.StatusServiceUnavailable, httpapi.Problem{
				Type: "about:blank", Status: http.StatusServiceUnavailable, Title: http.StatusText(http.StatusServiceUnavailable),
				Kind: "unavailable", Detail: "1.8.3 could not be shipped now; the log of the demo says why",
			})
			return
		}
		answer(w, "application/json", http.StatusOK, s)
	})
}

// TryList answers GET requests for what there is to try. It is for a viewer.
func (c *Company) TryList() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(w, "application/json", http.StatusOK, map[string][]Try{"tries": c.Tries(r.Context())})
	})
}

func answer(w http.ResponseWriter, kind string, status int, value any) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
