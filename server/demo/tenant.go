package demo

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pawlwork/pawl"
)

// The tenants: a large one, that has most of the work, and small ones beside it.
const largeTenant = "acme"

var smallTenants = []string{"globex", "initech", "umbrella"}

// Sync brings a part of a tenant's catalogue up to date. Two of a tenant run at once.
type Sync struct {
	Tenant string `json:"tenant"`
	Part   int    `json:"part"`
}

// Kind is "tenant.sync".
func (Sync) Kind() string { return "tenant.sync" }

// Defaults puts it into the queue of tenants; each part of a tenant waits once.
func (s Sync) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Queue("tenants"), pawl.Key(s.Tenant), pawl.Unique(), pawl.Attempts(5)}
}

// Post writes a line into a tenant's ledger: one after the other.
type Post struct {
	Tenant string `json:"tenant"`
	Line   int64  `json:"line"`
}

// Kind is "tenant.ledger".
func (Post) Kind() string { return "tenant.ledger" }

// Defaults puts it into the queue of tenants.
func (p Post) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Queue("tenants"), pawl.Key(p.Tenant), pawl.Attempts(5)}
}

func (s *shop) sync(ctx context.Context, _ *pawl.Job[Sync]) error {
	if !pause(ctx, time.Duration(200+rand.IntN(200))*time.Millisecond) {
		return context.Cause(ctx)
	}
	return nil
}

func (s *shop) post(ctx context.Context, _ *pawl.Job[Post]) error {
	if !pause(ctx, 50*time.Millisecond) {
		return context.Cause(ctx)
	}
	return nil
}
