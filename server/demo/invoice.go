package demo

import (
	"context"
	"errors"
	"time"

	"github.com/pawlwork/pawl"
)

// Invoice is the paper about an order.
type Invoice struct {
	Order
}

// Kind is "invoice.render".
func (Invoice) Kind() string { return invoiceKind }

const invoiceKind = "invoice.render"

// Defaults puts it into the queue of invoices.
func (Invoice) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Queue("invoices"), pawl.Attempts(3)}
}

// Paper is what was rendered.
type Paper struct {
	Template string `json:"template"`
	Pages    int    `json:"pages"`
	VATID    string `json:"vat_id"`
}

// render needs a VAT id until 1.8.3, which writes down that there is none.
func (s *shop) render(ctx context.Context, j *pawl.Job[Invoice]) (Paper, error) {
	if !pause(ctx, 60*time.Millisecond) {
		return Paper{}, context.Cause(ctx)
	}
	p := Paper{Template: "invoice/v3", Pages: 1 + int(j.Args.Number%3), VATID: j.Args.VATID}
	if p.VATID == "" {
		if s.version == versionFirst {
			j.Log().Warn("the order has no VAT id", "order", j.Args.Number, "template", p.Template)
			return Paper{}, errors.New(`template "invoice/v3" wants field "vat_id" but the order has none`)
		}
		p.VATID = "none given"
	}
	return p, nil
}
